"""Kernel SHAP: Shapley values by sets that are drawn by the Shapley kernel, each with its complement."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..chunk import EXACT_UNITS, Search, Sets, all_sets
from ..erasure import one_thread
from ._shapley_values import Shapley, ShapleyMethod

Solver = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


class KernelShap(ShapleyMethod):
    """Shapley values of the units, by a linear model of p over drawn sets that keeps the sum."""

    source = "Lundberg and Lee 2017"
    reads = ("units", "shap_samples")

    def search(self, size: int, settings: Any, random: np.random.Generator) -> Search[Shapley]:
        """Return `kernel_shapley` of the run's samples."""
        return kernel_shapley(size, settings.shap_samples, random, least_squares)

    @classmethod
    def drawn_inputs(cls, units: int, settings: Any) -> int:
        """Return the samples."""
        return settings.shap_samples or default_samples(units)

    @classmethod
    def words(cls, settings: Any) -> list[str]:
        """Return the samples."""
        return [f"shap:{settings.shap_samples or '2n+2048'}"]


def default_samples(size: int) -> int:
    """Return how many sets the shap package draws for so many units."""
    return 2 * size + 2048


def least_squares(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least-squares solution of smallest norm, by one thread: the same on any number of processors."""
    with one_thread("numpy"):
        return np.asarray(np.linalg.lstsq(left, right, rcond=None)[0], np.float64)


def kernel_shapley(size: int, samples: int, random: np.random.Generator, solve: Solver) -> Search[Shapley]:
    """The linear model of v over ``samples`` sets whose coefficients sum to v(all) - v(nothing).

    Args:
        samples: sets besides the empty and the full one; 0: 2 n + 2048, as the shap package.
        solve: least squares.
    """
    if not size:
        return Shapley(np.zeros(0), 0.0)
    exact = size <= EXACT_UNITS
    stands = all_sets(size)[1:-1] if exact else kernel_sets(size, samples or default_samples(size), random)
    worths = yield np.concatenate([stands, [[False] * size, [True] * size]])
    values, (empty, full) = worths[:-2], worths[-2:]
    counts = stands.sum(axis=1)
    weights = np.ones(len(stands))
    if exact:
        weights = np.array([1 / (comb(size, count) * count * (size - count)) for count in range(1, size)])[counts - 1]
    # the last coefficient is what the others leave of the sum
    present = stands.astype(np.float64)
    root = np.sqrt(weights)
    left = (present[:, :-1] - present[:, -1:]) * root[:, None]
    right = (values - empty - present[:, -1] * (full - empty)) * root
    others = solve(left, right)
    return Shapley(np.append(others, full - empty - others.sum()), 0.0 if exact else np.nan)


def kernel_sets(size: int, samples: int, random: np.random.Generator) -> Sets:
    """Sets by the Shapley kernel, a size k with weight 1 / (k (n - k)), each followed by its complement."""
    counts = np.arange(1, size)
    weights = 1 / (counts * (size - counts))
    drawn = random.choice(counts, size=(samples + 1) // 2, p=weights / weights.sum())
    places = random.random((len(drawn), size)).argsort(axis=1).argsort(axis=1)
    stands = places < drawn[:, None]
    return np.stack([stands, ~stands], axis=1).reshape(-1, size)[:samples]
