"""Chance-corrected agreement on nominal codes, from columns that are summed over texts.

Krippendorff's alpha (nominal), Fleiss' kappa, Cohen's kappa of each pair of annotators, and Cohen's kappa of each
annotator against the majority of the others. An item is a token (codes 0 and 1) or a text (its labels).

Sources: Krippendorff (2004), Content Analysis, 11.3; Fleiss (1971); Cohen (1960).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from .statistics_builder import divide

MISSING = -1
# kappas of pairs take 4 numbers a text and pair, more with more codes: above this many numbers a text they are left out
MOST_COLUMNS = 2000
KEYS = ("krippendorff_alpha", "fleiss_kappa", "pairwise_kappa", "leave_one_out_kappa")


def compute_alpha(coincidences: np.ndarray) -> np.ndarray:
    """Return Krippendorff's alpha for nominal codes; NaN where only one code occurs.

    Args:
        coincidences: (..., codes, codes), the pairs of codes that annotators gave to an item, each weighted by
            1 / (annotators of the item - 1).
    """
    n = coincidences.sum(axis=(-2, -1))
    own = coincidences.sum(axis=-1)
    disagreement = n - np.trace(coincidences, axis1=-2, axis2=-1)
    # the tolerance is for sums of thirds: with one code the difference is rounding
    by_chance = n**2 - (own**2).sum(axis=-1)
    by_chance = np.where(by_chance <= 1e-9 * n**2, 0, by_chance)
    return np.asarray(1 - divide((n - 1) * disagreement, by_chance, np.nan))


def compute_kappa(table: np.ndarray) -> np.ndarray:
    """Return Cohen's kappa of contingency tables (..., codes, codes); NaN where both give one and the same code."""
    n = table.sum(axis=(-2, -1))
    by_chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1)
    return divide(n * np.trace(table, axis1=-2, axis2=-1) - by_chance, n**2 - by_chance, np.nan)


def find_majority(codes: np.ndarray, n_codes: int, strict: bool) -> np.ndarray:
    """Return the most frequent code of each item: int (items,).

    Args:
        codes: (annotators, items); every annotator has a code for every item.
        n_codes: the number of codes.
        strict: a tie is code 0 (the token is not marked); otherwise it is missing.
    """
    counts = np.stack([(codes == code).sum(axis=0) for code in range(n_codes)])
    best = counts.argmax(axis=0)
    tied = (counts == counts.max(axis=0)).sum(axis=0) > 1
    return np.where(tied, 0 if strict else MISSING, best)


def _count_pairs(first: np.ndarray, second: np.ndarray, n_codes: int) -> np.ndarray:
    """Return the contingency table of two rows of codes, (codes, codes); missing codes do not count."""
    both = (first != MISSING) & (second != MISSING)
    cells = first[both] * n_codes + second[both]
    return np.bincount(cells, minlength=n_codes**2).reshape(n_codes, n_codes)


class NominalAgreement:
    """Columns and scores of agreement on nominal codes.

    Args:
        texts: the names of each text's annotators.
        n_codes: the number of codes.
        strict: see `find_majority`.
        prefix: the start of the scores' keys.

    Attributes:
        left_out: True if kappas of pairs and of annotators are left out, because there are too many annotators.
    """

    def __init__(self, texts: Sequence[Sequence[str]], n_codes: int, strict: bool, prefix: str = "") -> None:
        self.n_codes, self.strict, self.prefix = n_codes, strict, prefix
        names = dict.fromkeys(name for own in texts if len(own) > 1 for name in own)
        pairs = dict.fromkeys(pair for own in texts for pair in combinations(sorted(own), 2))
        self.left_out = (len(pairs) + len(names)) * n_codes**2 > MOST_COLUMNS
        self.names = {} if self.left_out else {name: at for at, name in enumerate(names)}
        self.pairs = {} if self.left_out else {pair: at for at, pair in enumerate(pairs)}
        cells = n_codes**2
        sizes = {"coincidences": cells, "fleiss": 2 + n_codes, "pairs": cells * len(self.pairs)}
        sizes["others"] = cells * len(self.names)
        bounds = np.cumsum([0, *sizes.values()])
        self._places = {name: slice(*bounds[at : at + 2]) for at, name in enumerate(sizes)}
        self.width = int(bounds[-1])

    def count(self, codes: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return a text's columns, float64 (width,).

        Args:
            codes: int (annotators, items), each from 0.
            names: the annotators.
        """
        values = np.zeros(self.width)
        m, c = len(codes), self.n_codes
        if m < 2:
            return values
        counts = np.stack([(codes == code).sum(axis=0) for code in range(c)], axis=1)
        coincidences = counts.T @ counts - np.diag(counts.sum(axis=0))
        values[self._places["coincidences"]] = (coincidences / (m - 1)).ravel()
        agreeing = (counts * (counts - 1)).sum() / (m * (m - 1))
        values[self._places["fleiss"]] = [agreeing, len(counts), *counts.sum(axis=0)]
        if self.left_out:
            return values
        pairs = values[self._places["pairs"]].reshape(-1, c, c)
        for (one, first), (other, second) in combinations(sorted(zip(names, codes, strict=True), key=itemgetter(0)), 2):
            pairs[self.pairs[one, other]] = _count_pairs(first, second, c)
        others = values[self._places["others"]].reshape(-1, c, c)
        for at, name in enumerate(names):
            majority = find_majority(np.delete(codes, at, axis=0), c, self.strict)
            others[self.names[name]] = _count_pairs(codes[at], majority, c)
        return values

    def finalize(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of sums of columns (..., width)."""
        c, lead = self.n_codes, sums.shape[:-1]
        part = {name: sums[..., place] for name, place in self._places.items()}
        agreeing, items, *counts = np.moveaxis(part["fleiss"], -1, 0)
        share = divide(np.stack(counts), np.stack(counts).sum(axis=0), np.nan)
        by_chance = (share**2).sum(axis=0)
        scores = (
            compute_alpha(part["coincidences"].reshape(*lead, c, c)),
            divide(divide(agreeing, items, np.nan) - by_chance, 1 - by_chance, np.nan),
            *(_average_kappas(part[name].reshape(*lead, -1, c, c)) for name in ("pairs", "others")),
        )
        return {f"{self.prefix}{key}": score for key, score in zip(KEYS, scores, strict=True)}


def _average_kappas(tables: np.ndarray) -> np.ndarray:
    """Return the mean of the kappas that are defined, over the third last axis."""
    kappas = compute_kappa(tables)
    defined = ~np.isnan(kappas)
    return divide(np.where(defined, kappas, 0).sum(axis=-1), defined.sum(axis=-1), np.nan)


def get_expected_kappa(share: npt.ArrayLike, annotators: Mapping[int, np.ndarray | int]) -> np.ndarray:
    """Return the mean Cohen's kappa of annotators against their own majority if they mark tokens at random.

    Args:
        share: the share of tokens that each of them marks, in [0, 1]: (...).
        annotators: number of annotators of a text -> comparisons, (...).

    >>> [round(float(get_expected_kappa(0.2, {m: 1})), 2) for m in (2, 3, 5)]
    [0.29, 0.39, 0.21]
    """
    share = np.asarray(share, float)
    total, comparisons = np.zeros(share.shape), np.zeros(share.shape)
    for m, count in annotators.items():
        least = m // 2 + 1  # a strict majority
        marked = _get_binomial_tail(m, least, share)
        both = share * _get_binomial_tail(m - 1, least - 1, share)
        observed = 1 - share - marked + 2 * both
        by_chance = share * marked + (1 - share) * (1 - marked)
        total += count * divide(observed - by_chance, 1 - by_chance, np.nan)
        comparisons += count
    return divide(total, comparisons, np.nan)


def _get_binomial_tail(n: int, least: int, p: np.ndarray) -> np.ndarray:
    """Return the probability of at least so many hits in n draws."""
    terms = [comb(n, hits) * p**hits * (1 - p) ** (n - hits) for hits in range(least, n + 1)]
    return np.asarray(sum(terms))
