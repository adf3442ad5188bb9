"""Normalised AOPC: the place of an order of erasure between the least and the greatest AOPC of all orders.

Units are erased one by one. The k-th point of an order's curve is ``p(text) - p(without its first k)``, its AOPC the
mean of the points k = 1..n. Highest score first this is comprehensiveness (high is good), lowest first sufficiency (low
is good); the bounds over all n! orders are the same for both, since they are all orders.

Exact bounds need no orders: ``best(S) = drop(S) + best over i in S of best(S - i)`` over sets S of erased units, 2 ** n
inputs. Of more than 10 units a beam keeps the best sets of each size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ..erasure import rank_tokens
from ..method import Measure, Search
from ..methods._shapley import EXACT_UNITS, enumerate_sets
from ..text import Text

SAME_BOUNDS = 1e-9  # bounds this close are equal: their difference is rounding
NO_SPAN = "instances whose least and greatest AOPC are equal: nothing to normalise by"


@dataclass(frozen=True)
class AopcBounds(Measure):
    """The least and the greatest AOPC of all orders of erasure, for normalised AOPC (NAOPC), and the ranking's own.

    Edin et al. 2025.

    Attributes:
        beam: sets of each size that are followed, of more than 10 units.
    """

    fields = ("aopc_bounds",)

    beam: Annotated[int, Meta(ge=1)] = 5

    def search(self, text: Text) -> Search[Mapping[str, Any]]:
        """Ask for what the bounds need, and for the ranking's two curves."""
        exact = text.size <= EXACT_UNITS
        if exact:
            lower, upper = compute_bounds(text.full - (yield from text.ask(enumerate_sets(text.size)))[::-1])
        else:
            lower = yield from self.follow(text, -1.0)
            upper = yield from self.follow(text, 1.0)
        if upper - lower <= SAME_BOUNDS:
            text.notes.count(NO_SPAN)
        ranking = rank_tokens(text.unit_scores, text.settings.choices.ties)
        counts = np.arange(1, text.size + 1)[:, None]
        # row k of a curve: the first k + 1 of its order are gone
        curves = [np.argsort(order, kind="stable") >= counts for order in (ranking, ranking[::-1])]
        drops = text.full - (yield from text.ask(np.concatenate(curves)))
        high, low = drops.reshape(2, -1).mean(axis=1).tolist() if text.size else (0.0, 0.0)
        forward = {"lower": lower, "upper": upper, "comprehensiveness": high}
        reverse = {"sufficiency_lower": lower, "sufficiency_upper": upper, "sufficiency": low}
        found = {"method": "exact" if exact else "beam", "beam": 0 if exact else self.beam}
        return {"aopc_bounds": {**forward, **reverse, **found}}

    def follow(self, text: Text, sign: float) -> Search[float]:
        """Search the greatest AOPC (sign 1) or the least (-1), at most n + beam n (n - 1) / 2 inputs.

        Each set is followed once, by its best order: the authors' package lets equal sets fill its beam, and its bounds
        are at best as far apart.
        """
        erased, sums = np.zeros((1, text.size), dtype=bool), np.zeros(1)
        for _ in range(text.size):
            parents, units = np.nonzero(~erased)
            candidates = erased[parents]
            candidates[np.arange(len(units)), units] = True
            totals = sums[parents] + text.full - (yield from text.ask(~candidates))
            order = np.argsort(-sign * totals, kind="stable")
            first = np.unique(np.packbits(candidates[order], axis=1), axis=0, return_index=True)[1]
            best = order[np.sort(first)[: self.beam]]
            erased, sums = candidates[best], totals[best]
        return float(sums[0]) / text.size


def compute_bounds(drops: NDArray[np.float64]) -> tuple[float, float]:
    """Return the least and the greatest AOPC of all orders, by dynamic programming over sets.

    Args:
        drops: p(text) - p(without the set), of every set in the order of `enumerate_sets`.
    """
    size = len(drops).bit_length() - 1
    sets, bits = enumerate_sets(size), 1 << np.arange(size)
    counts, least, most = sets.sum(axis=1), np.zeros(len(drops)), np.zeros(len(drops))
    for count in range(1, size + 1):
        numbers = np.flatnonzero(counts == count)
        before = numbers[:, None] ^ bits
        least[numbers] = drops[numbers] + np.where(sets[numbers], least[before], np.inf).min(axis=1)
        most[numbers] = drops[numbers] + np.where(sets[numbers], most[before], -np.inf).max(axis=1)
    return float(least[-1]) / max(size, 1), float(most[-1]) / max(size, 1)
