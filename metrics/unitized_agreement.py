"""Krippendorff's alpha for unitizing (alpha_u): agreement on where spans begin and end.

Each document is a continuum that every annotator of its text divides into marked units and gaps. With D_o the observed
and D_e the expected disagreement, alpha_u = 1 - D_o / D_e:

    D_o = sum over ordered pairs of annotators, and their units and gaps, of d / (m (m - 1) L^2)
    d = (difference of starts)^2 + (difference of ends)^2 for two units that overlap,
        length^2 for a unit that lies in a gap of the other, else 0
    D_e = 2 / L * sum over units g of [(N - 1) / 3 * (2 l_g^3 - 3 l_g^2 + l_g) + l_g^2 * sum over gaps h at least
          as long as g of (l_h - l_g + 1)] / [m L (m L - 1) - sum over units of l_g (l_g - 1)]

L is the number of tokens, m the number of annotators, N the number of units, l a length in tokens. Several documents
are one continuum whose gaps end at the ends of documents. Where the number of annotators differs between texts,
m L in D_e is the sum of annotators * tokens, and each text's part of D_o is divided by its own m (m - 1).

Source: Krippendorff (2004), Content Analysis, 2nd ed., 11.6; Krippendorff (1995), On the reliability of unitizing
continuous data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from .statistics_builder import divide
from .token_rows import find_mask_runs

Run = tuple[int, int]
_BASE = 6  # observed, tokens, annotators * tokens, units, sum of 2 l^3 - 3 l^2 + l, sum of l (l - 1)


def _find_gaps(units: Sequence[Run], length: int) -> list[Run]:
    """Return the runs of tokens between the units, those at both ends included."""
    edges = [0, *(edge for unit in units for edge in unit), length]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def _sum_differences(units: Sequence[Run], others: Sequence[Run]) -> float:
    """Return the disagreement of two annotators: both directions."""
    total = 0.0
    met = [False] * len(others)
    for start, end in units:
        alone = True
        for at, (first, last) in enumerate(others):
            if start < last and first < end:
                alone, met[at] = False, True
                total += 2 * ((start - first) ** 2 + (end - last) ** 2)
        total += 2 * (end - start) ** 2 * alone
    return total + sum(2 * (last - first) ** 2 for (first, last), seen in zip(others, met, strict=True) if not seen)


class UnitizedText:
    """Units and gaps of one text's annotators.

    Args:
        documents: per document the marks, bool (annotators, tokens).

    Attributes:
        sums: the columns that do not depend on other texts, float64 (6,).
        units: length -> number of units.
        gaps: length -> number of gaps.
    """

    def __init__(self, documents: Iterable[np.ndarray]) -> None:
        self.sums = np.zeros(_BASE)
        self.units, self.gaps = Counter[int](), Counter[int]()
        for marks in documents:
            m, length = marks.shape
            if m < 2:
                continue
            units = [find_mask_runs(row) for row in marks.tolist()]
            observed = sum(_sum_differences(units[one], units[other]) for other in range(m) for one in range(other))
            self.sums[:3] += observed / (m * (m - 1)), length, m * length
            self.units.update(end - start for own in units for start, end in own)
            self.gaps.update(end - start for own in units for start, end in _find_gaps(own, length))
        for size, count in self.units.items():
            self.sums[3:] += count, count * (2 * size**3 - 3 * size**2 + size), count * size * (size - 1)


class UnitizedAgreement:
    """Columns and the score of alpha_u.

    Args:
        texts: all texts.
    """

    def __init__(self, texts: Sequence[UnitizedText]) -> None:
        self.units = sorted({size for text in texts for size in text.units})
        self.gaps = sorted({size for text in texts for size in text.gaps})
        self.width = _BASE + len(self.units) + len(self.gaps)
        unit, gap = np.array(self.units, float)[:, None], np.array(self.gaps, float)[None, :]
        self._placements = unit**2 * np.maximum(gap - unit + 1, 0)

    def count(self, text: UnitizedText) -> np.ndarray:
        """Return a text's columns, float64 (width,)."""
        sizes = [
            [counts[size] for size in known] for known, counts in ((self.units, text.units), (self.gaps, text.gaps))
        ]
        return np.concatenate([text.sums, *(np.array(own, float) for own in sizes)])

    def finalize(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Return the score of sums of columns (..., width); NaN if nobody marks anything."""
        observed, tokens, places, n, self_terms, taken = np.moveaxis(sums[..., :_BASE], -1, 0)
        units, gaps = sums[..., _BASE : _BASE + len(self.units)], sums[..., _BASE + len(self.units) :]
        in_gaps = ((units @ self._placements) * gaps).sum(axis=-1)
        expected = divide(2, tokens) * divide((n - 1) / 3 * self_terms + in_gaps, places * (places - 1) - taken)
        return {"krippendorff_alpha_u": 1 - divide(divide(observed, tokens**2), expected, np.nan)}
