"""Shapley values by permutations, drawn in antithetic pairs, each with its reverse."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..chunk import EXACT_UNITS, CoalitionSearch
from ..method import Setting
from ._shapley_values import ShapleyEstimate, ShapleyMethod, compute_exact_shapley


class PermutationShapley(ShapleyMethod):
    """Shapley values of the units, from permutations above ten units."""

    source = "Castro, Gomez and Tejada 2009; Mitchell et al. 2022"
    settings: ClassVar = {
        "draws": Setting(10, "Permutations of more than 10 units, each with its reverse.", 1, field="shapley_draws")
    }
    sampled = True
    signature_format = "shapley:{0.shapley_draws}"

    def search(self, size: int, settings: Any, random: np.random.Generator) -> CoalitionSearch[ShapleyEstimate]:
        """Return `compute_permutation_shapley` of the run's draws."""
        return compute_permutation_shapley(size, settings.shapley_draws, random)

    @classmethod
    def drawn_inputs(cls, units: int, settings: Any) -> int:
        """Return 2 (n - 1) a pair of permutations."""
        return int(2 * settings.shapley_draws * (units - 1))


def compute_permutation_shapley(size: int, pairs: int, random: np.random.Generator) -> CoalitionSearch[ShapleyEstimate]:
    """Estimate from ``pairs`` permutations, each with its reverse: 2 (n - 1) inputs a pair."""
    if size <= EXACT_UNITS:
        return (yield from compute_exact_shapley(size))
    empty, full = yield np.array([[False] * size, [True] * size])
    estimates = np.empty((pairs, size))
    for pair in range(pairs):
        order = random.permutation(size)
        orders = np.stack([order, order[::-1]])
        places = np.argsort(orders, axis=1)
        inside = places[:, None, :] < np.arange(1, size)[:, None]  # row k: the first k + 1 have come
        coalition_values = (yield inside.reshape(-1, size)).reshape(2, size - 1)
        ends = np.column_stack([np.full(2, empty), coalition_values, np.full(2, full)])
        gains = np.empty((2, size))
        np.put_along_axis(gains, orders, np.diff(ends, axis=1), axis=1)
        estimates[pair] = gains.mean(axis=0)
    spread = estimates.std(axis=0, ddof=1).max() if pairs > 1 else np.nan
    return ShapleyEstimate(estimates.mean(axis=0), float(spread / np.sqrt(pairs)))
