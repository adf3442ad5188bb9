"""Restricted maximum likelihood of crossed variance components, for designs with missing cells."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def fit_reml(values: np.ndarray, runs: np.ndarray) -> tuple[float, float, float, float]:
    """Estimate the variances of documents, runs, draws within runs, and of the rest.

    ``V = rest (I + a Zd Zd' + b Zr Zr' + c Zf Zf')``: documents make blocks of which the inverse is known; runs and
    files are few, and come in by Woodbury's formula. The ratios a, b, c maximise the restricted likelihood.

    Args:
        values: float64 (n, files), NaN where a document has no value.
        runs: the run of each file, int (files,) from 0. Where each run has one file there are no draws.

    Returns:
        documents, runs, draws, rest: variances, not negative.
    """
    mask = (~np.isnan(values)).astype(float)
    filled = np.where(mask > 0, values, 0.0)
    means = filled.sum(axis=1) / np.maximum(1, mask.sum(axis=1))
    if np.abs((filled - means[:, None]) * mask).max() <= 1e-12 * max(1.0, np.abs(filled).max()):
        return float(means.var(ddof=1)), 0.0, 0.0, 0.0  # equal files: ratios of variances would grow without bound
    filled = np.where(mask > 0, filled - filled.sum() / mask.sum(), 0.0)
    run_matrix = (runs[:, None] == np.arange(runs.max() + 1)).astype(float)
    has_runs, has_draws = run_matrix.shape[1] > 1, run_matrix.shape[1] < len(runs)
    used = [0, *([1] if has_runs else []), *([2] if has_draws else [])]

    def ratios(roots: np.ndarray) -> np.ndarray:
        every = np.zeros(3)
        every[used] = roots**2
        return every

    def deviance(roots: np.ndarray) -> float:
        return _deviance(filled, mask, run_matrix, ratios(roots))[0]

    best = minimise(deviance, np.ones(len(used)))
    best = minimise(deviance, best)  # a second simplex does not stop at a corner of the first
    documents, between_runs, draws = ratios(best)
    rest = _deviance(filled, mask, run_matrix, ratios(best))[1]
    return rest * documents, rest * between_runs, rest * draws, rest


def _deviance(y: np.ndarray, mask: np.ndarray, run_matrix: np.ndarray, ratios: np.ndarray) -> tuple[float, float]:
    """Return -2 log restricted likelihood (without constants) and the variance of the rest that maximises it."""
    size, cells = mask.sum(axis=1), mask.sum()
    shrink = ratios[0] / (1 + ratios[0] * size)
    low_rank = np.hstack([math.sqrt(ratios[1]) * run_matrix, math.sqrt(ratios[2]) * np.eye(len(run_matrix))])

    def product(left: np.ndarray, right: np.ndarray) -> float:
        return float((left * right).sum() - (shrink * left.sum(axis=1) * right.sum(axis=1)).sum())

    gram = np.diag(mask.sum(axis=0)) - (mask * shrink[:, None]).T @ mask
    inner = np.eye(low_rank.shape[1]) + low_rank.T @ gram @ low_rank
    by_file = [low_rank.T @ (mask * (one - (shrink * one.sum(axis=1))[:, None])).sum(axis=0) for one in (mask, y)]
    solved = [np.linalg.solve(inner, one) for one in by_file]
    ones = product(mask, mask) - float(by_file[0] @ solved[0])
    cross = product(mask, y) - float(by_file[0] @ solved[1])
    squares = product(y, y) - float(by_file[1] @ solved[1])
    rest = max((squares - cross**2 / ones) / (cells - 1), 1e-300)
    log_det = float(np.log1p(ratios[0] * size).sum()) + float(np.linalg.slogdet(inner)[1])
    return float((cells - 1) * math.log(rest) + log_det + math.log(ones)), rest


def minimise(function: Callable[[np.ndarray], float], start: np.ndarray, steps: int = 2000) -> np.ndarray:
    """Return the place of a minimum by the simplex method of Nelder and Mead (1965)."""
    size = len(start)
    points = [start, *(start + 0.5 * np.eye(size)[at] for at in range(size))]
    simplex: list[tuple[float, np.ndarray]] = sorted(
        ((function(point), point) for point in points), key=lambda pair: pair[0]
    )
    for _ in range(steps):
        worst_value, worst = simplex[-1]
        if max(float(np.abs(point - simplex[0][1]).max()) for _, point in simplex) < 1e-10:
            break
        centre = np.mean([point for _, point in simplex[:-1]], axis=0)
        moved = centre + (centre - worst)
        value = function(moved)
        if value < simplex[0][0]:
            far = centre + 2 * (centre - worst)
            moved, value = min(((moved, value), (far, function(far))), key=lambda pair: pair[1])
        elif value >= simplex[-2][0]:
            moved = centre + 0.5 * ((moved if value < worst_value else worst) - centre)
            value = function(moved)
            if value >= worst_value:
                best = simplex[0][1]
                simplex = [(function(point), point) for point in ((one + best) / 2 for _, one in simplex)]
                simplex.sort(key=lambda pair: pair[0])
                continue
        simplex = sorted([*simplex[:-1], (value, moved)], key=lambda pair: pair[0])
    return simplex[0][1]
