"""Kernel SHAP: Shapley values by sets that are drawn by the Shapley kernel, each with its complement."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chunk import EXACT_UNITS, Coalitions, CoalitionSearch, enumerate_coalitions
from ..erasure import limit_to_one_thread
from ..method import Setting
from ._shapley_values import ShapleyEstimate, ShapleyMethod

Solver = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


class KernelShap(ShapleyMethod):
    """Shapley values of the units, by a linear model of p over drawn sets that keeps the sum."""

    source = "Lundberg and Lee 2017"
    packages = ("threadpoolctl",)
    settings: ClassVar = {"samples": Setting(0, "Sets of more than 10 units; 0: 2 n + 2048.", 0, field="shap_samples")}
    sampled = True

    def search(self, size: int, settings: Any, random: np.random.Generator) -> CoalitionSearch[ShapleyEstimate]:
        """Return `compute_kernel_shapley` of the run's samples."""
        return compute_kernel_shapley(size, settings.shap_samples, random, solve_least_squares)

    @classmethod
    def drawn_inputs(cls, units: int, settings: Any) -> int:
        """Return the samples."""
        return settings.shap_samples or get_default_samples(units)

    @classmethod
    def describe_settings(cls, settings: Any) -> list[str]:
        """Return the samples."""
        return [f"shap:{settings.shap_samples or '2n+2048'}"]


def get_default_samples(size: int) -> int:
    """Return the number of coalitions that the shap package draws for so many units."""
    return 2 * size + 2048


def solve_least_squares(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least-squares solution of smallest norm, by one thread: the same on any number of processors."""
    with limit_to_one_thread("numpy"):
        return np.asarray(np.linalg.lstsq(left, right, rcond=None)[0], np.float64)


def compute_kernel_shapley(
    size: int, samples: int, random: np.random.Generator, solve: Solver
) -> CoalitionSearch[ShapleyEstimate]:
    """Fit a linear model of v over ``samples`` sets whose coefficients sum to v(all) - v(nothing).

    Args:
        size: number of units.
        samples: sets besides the empty and the full one; 0: 2 n + 2048, as the shap package.
        random: random generator.
        solve: least squares.
    """
    if not size:
        return ShapleyEstimate(np.zeros(0), 0.0)
    exact = size <= EXACT_UNITS
    coalitions = (
        enumerate_coalitions(size)[1:-1]
        if exact
        else draw_kernel_coalitions(size, samples or get_default_samples(size), random)
    )
    coalition_values = yield np.concatenate([coalitions, [[False] * size, [True] * size]])
    values, (empty, full) = coalition_values[:-2], coalition_values[-2:]
    counts = coalitions.sum(axis=1)
    weights = np.ones(len(coalitions))
    if exact:
        weights = np.array([1 / (comb(size, count) * count * (size - count)) for count in range(1, size)])[counts - 1]
    # the last coefficient is what the others leave of the sum
    present = coalitions.astype(np.float64)
    root = np.sqrt(weights)
    left = (present[:, :-1] - present[:, -1:]) * root[:, None]
    right = (values - empty - present[:, -1] * (full - empty)) * root
    others = solve(left, right)
    return ShapleyEstimate(np.append(others, full - empty - others.sum()), 0.0 if exact else np.nan)


def draw_kernel_coalitions(size: int, samples: int, random: np.random.Generator) -> Coalitions:
    """Draw sets by the Shapley kernel, size k with weight 1 / (k (n - k)), each followed by its complement."""
    counts = np.arange(1, size)
    weights = 1 / (counts * (size - counts))
    drawn = random.choice(counts, size=(samples + 1) // 2, p=weights / weights.sum())
    places = random.random((len(drawn), size)).argsort(axis=1).argsort(axis=1)
    coalitions = places < drawn[:, None]
    return np.stack([coalitions, ~coalitions], axis=1).reshape(-1, size)[:samples]
