"""Shapley values of the units: what each adds to the probability, the mean over all orders in which they come.

They sum to p(full) - p(nothing). To :data:`play.EXACT_UNITS` units all sets are looked at. Above, either permutations
are drawn in antithetic pairs, each with its reverse (Castro et al. 2009; Mitchell et al. 2022), or sets by the Shapley
kernel, each with its complement, and a linear model is fitted that keeps the sum (Lundberg and Lee 2017, KernelSHAP).
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .play import EXACT_UNITS, Search, Sets, all_sets

Solver = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


class Shapley(NamedTuple):
    """Values of the units, and the largest of their standard errors: 0 of exact ones, NaN where none is known."""

    values: NDArray[np.float64]
    standard_error: float


def exact_shapley(size: int) -> Search[Shapley]:
    """By the definition: the mean over sets S without i of v(S + i) - v(S), sets of each size weighing alike."""
    if not size:
        return Shapley(np.zeros(0), 0.0)
    stands = all_sets(size)
    worths = yield stands
    weight = np.array([1 / (size * comb(size - 1, count)) for count in range(size)])
    values = np.empty(size)
    for unit in range(size):
        without = np.flatnonzero(~stands[:, unit])
        gains = worths[without | (1 << unit)] - worths[without]
        values[unit] = weight[stands[without].sum(axis=1)] @ gains
    return Shapley(values, 0.0)


def permutation_shapley(size: int, pairs: int, random: np.random.Generator) -> Search[Shapley]:
    """From ``pairs`` permutations, each with its reverse: 2 (n - 1) inputs a pair."""
    if size <= EXACT_UNITS:
        return (yield from exact_shapley(size))
    empty, full = yield np.array([[False] * size, [True] * size])
    estimates = np.empty((pairs, size))
    for pair in range(pairs):
        order = random.permutation(size)
        orders = np.stack([order, order[::-1]])
        places = np.argsort(orders, axis=1)
        inside = places[:, None, :] < np.arange(1, size)[:, None]  # row k: the first k + 1 have come
        worths = (yield inside.reshape(-1, size)).reshape(2, size - 1)
        ends = np.column_stack([np.full(2, empty), worths, np.full(2, full)])
        gains = np.empty((2, size))
        np.put_along_axis(gains, orders, np.diff(ends, axis=1), axis=1)
        estimates[pair] = gains.mean(axis=0)
    spread = estimates.std(axis=0, ddof=1).max() if pairs > 1 else np.nan
    return Shapley(estimates.mean(axis=0), float(spread / np.sqrt(pairs)))


def kernel_shapley(size: int, samples: int, random: np.random.Generator, solve: Solver) -> Search[Shapley]:
    """The linear model of v over ``samples`` sets whose coefficients sum to v(all) - v(nothing).

    Args:
        samples: sets besides the empty and the full one; 0: 2 n + 2048, as the shap package.
        solve: least squares.
    """
    if not size:
        return Shapley(np.zeros(0), 0.0)
    exact = size <= EXACT_UNITS
    stands = all_sets(size)[1:-1] if exact else kernel_sets(size, samples or 2 * size + 2048, random)
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


def most_inputs(method: str, size: int, pairs: int, samples: int) -> int:
    """How many inputs ``shapley`` or ``kernel-shap`` takes at most."""
    if size <= EXACT_UNITS:
        return 1 << size
    return 2 + (2 * pairs * (size - 1) if method == "shapley" else samples or 2 * size + 2048)
