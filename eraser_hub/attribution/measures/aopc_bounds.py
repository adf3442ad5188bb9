"""Normalised AOPC: the place of an order of erasure between the least and the greatest AOPC of all orders.

Units are erased one by one. The k-th point of an order's curve is ``p(full) - p(without its first k)``, its AOPC the
mean of the points k = 1..n. Highest score first this is comprehensiveness (high is good), lowest first sufficiency (low
is good); the bounds over all n! orders are the same for both, since they are all orders.

Exact bounds need no orders: ``best(S) = drop(S) + best over i in S of best(S - i)`` over sets S of erased units, 2 ** n
inputs. Above :data:`chunk.EXACT_UNITS` units a beam keeps the ``width`` best sets of each size.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.measure import AOPC_BOUNDS

from ..chunk import EXACT_UNITS, Chunk, Coalitions, CoalitionSearch, enumerate_coalitions
from ..erasure import rank_tokens
from ..instances import Instance
from ..measure import Fields, Measure
from ..method import Setting

SAME_BOUNDS = 1e-9  # bounds this close are equal: their difference is rounding
NO_SPAN = "instances whose least and greatest AOPC are equal: nothing to normalise by"


class AopcBounds(Measure):
    """The least and the greatest AOPC of all orders of erasure, for normalised AOPC (NAOPC), and the ranking's own."""

    source = "Edin et al. 2025"
    enabled_by, fields = "aopc_bounds", (AOPC_BOUNDS,)
    settings: ClassVar = {
        "beam": Setting(5, "Orders that are followed together, of more than 10 units.", 1, field="beam")
    }
    signature_format = "aopc-bounds:beam{0.beam}"

    def measure(self, chunk: Chunk) -> Fields:
        """Return the AOPC of each ranking, and the least and the greatest of all orders."""
        width, ties = chunk.settings.beam, chunk.settings.choices.ties
        fields: Fields = []
        both = zip(
            chunk.evaluate_coalitions(lambda text_units, *_: compute_bounds(text_units.size, text_units.full, width)),
            chunk.evaluate_coalitions(
                lambda text_units, scores, _: compute_ranking_aopc(rank_tokens(scores, ties), text_units.full)
            ),
            strict=True,
        )
        for (text_units, (lower, upper)), (_, (high, low)) in both:
            if upper - lower <= SAME_BOUNDS:
                chunk.model.notes.count(NO_SPAN)
            exact = text_units.size <= EXACT_UNITS
            forward = {"lower": lower, "upper": upper, "comprehensiveness": high}
            reverse = {"sufficiency_lower": lower, "sufficiency_upper": upper, "sufficiency": low}
            search = {"method": "exact" if exact else "beam", "beam": 0 if exact else width}
            fields.append({AOPC_BOUNDS: {**forward, **reverse, **search}})
        return fields

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return the search's, and those of the ranking's own two curves."""
        beam = 2 * (units + settings.beam * units * (units - 1) // 2)
        search = 1 << units if units <= EXACT_UNITS else beam
        return 2 * units + search


class Bounds(NamedTuple):
    """The least and the greatest AOPC of all orders, or of those that a beam has found."""

    lower: float
    upper: float


def compute_bounds(size: int, full: float, width: int) -> CoalitionSearch[Bounds]:
    """Return both bounds, exactly of few units, by a beam of more."""
    return (yield from compute_exact_bounds(size, full) if size <= EXACT_UNITS else search_bounds(size, full, width))


def compute_exact_bounds(size: int, full: float) -> CoalitionSearch[Bounds]:
    """Compute both bounds over all orders of ``size`` units, by dynamic programming over sets."""
    if not size:
        return Bounds(0.0, 0.0)
    coalitions = enumerate_coalitions(size)
    coalition_values = yield coalitions
    drops = full - coalition_values[::-1]  # of set number s erased: all others stand
    counts = coalitions.sum(axis=1)
    least, most = np.zeros(len(drops)), np.zeros(len(drops))
    for count in range(1, size + 1):
        sets = np.flatnonzero(counts == count)
        bits = 1 << np.arange(size)
        before = sets[:, None] ^ bits
        inside = (sets[:, None] & bits) > 0
        least[sets] = drops[sets] + np.where(inside, least[before], np.inf).min(axis=1)
        most[sets] = drops[sets] + np.where(inside, most[before], -np.inf).max(axis=1)
    return Bounds(float(least[-1]) / size, float(most[-1]) / size)


def search_bound(
    size: int, full: float, width: int, greatest: bool, duplicates: bool = False
) -> CoalitionSearch[float]:
    """Search one bound by a beam of ``width`` partial orders, at most n + width n (n - 1) / 2 inputs.

    Args:
        size: number of units.
        full: value of the coalition of all units.
        width: number of partial orders that are kept.
        greatest: the greatest AOPC; else the least.
        duplicates: partial orders of the same set may fill the beam, as in the authors' package; without, each set is
            held once, by its best order, and the bounds are at least as far apart in practice.
    """
    sign = 1.0 if greatest else -1.0
    erased = np.zeros((1, size), dtype=bool)
    sums = np.zeros(1)
    for _ in range(size):
        parent, unit = np.nonzero(~erased)
        candidates = erased[parent]
        candidates[np.arange(len(unit)), unit] = True
        coalition_values = yield ~candidates
        totals = sums[parent] + full - coalition_values
        order = np.argsort(-sign * totals, kind="stable")
        if not duplicates:
            order = order[_find_first_of_each(candidates[order])]
        order = order[:width]
        erased, sums = candidates[order], totals[order]
    return float(sums[0]) / size if size else 0.0


def search_bounds(size: int, full: float, width: int) -> CoalitionSearch[Bounds]:
    """Search both bounds by a beam, one after the other; they begin with the same inputs."""
    lower = yield from search_bound(size, full, width, greatest=False)
    upper = yield from search_bound(size, full, width, greatest=True)
    return Bounds(lower, upper)


def _find_first_of_each(sets: Coalitions) -> NDArray[np.int64]:
    """Return places of the first of equal rows, ascending."""
    packed = np.packbits(sets, axis=1)
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    return np.sort(np.unique(rows, return_index=True)[1])


def compute_ranking_aopc(ranking: NDArray[np.int64], full: float) -> CoalitionSearch[tuple[float, float]]:
    """Compute comprehensiveness and sufficiency of a ranking of the units: the AOPC of it and of its reverse."""
    size = len(ranking)
    if not size:
        return 0.0, 0.0
    first = np.argsort(ranking, kind="stable") >= np.arange(1, size + 1)[:, None]  # row k: the top k + 1 are gone
    last = np.argsort(ranking[::-1], kind="stable") >= np.arange(1, size + 1)[:, None]
    coalition_values = yield np.concatenate([first, last])
    drops = full - coalition_values
    return float(drops[:size].mean()), float(drops[size:].mean())
