"""Paired tests of two systems on the same clusters of annotations, and corrections for several tests.

A system is one run or several (other seeds): its score is the mean of its runs' scores. What is drawn, left out and
exchanged are clusters, see `metrics.clusters`. The seeds' share of a difference is in `uncertainty.mixed_model`.

Sources: Noreen (1989) (approximate randomisation); Holm (1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from eraser_hub.metrics.resampling import (
    CHUNK_BYTES,
    SAME,
    Scores,
    check_settings,
    check_values,
    find_counted,
    weighted_sums,
)
from eraser_hub.metrics.statistics_builder import Finalize
from eraser_hub.records.errors import DataError

from .uncertainty.mixed_model import DifferenceModel, compute_influences, fit_difference, make_unknown_difference
from .uncertainty.verdicts import ALPHA

RESAMPLES = 10_000
MOST_RESAMPLES = 100_000  # that are chosen, and not named by a user
SAMPLE = 256  # exchanges that tell whether clusters without a difference of their own matter


class Pair:
    """Two systems on the same clusters.

    Args:
        first, second: the statistics of each system's runs, each (n, k); row i of all for the same cluster.
        finalize: sums (..., k) to {key: scores (...)}, single numbers.

    Raises:
        ValueError: no row, or runs of other shapes.
    """

    def __init__(self, first: Sequence[np.ndarray], second: Sequence[np.ndarray], finalize: Finalize) -> None:
        runs = [check_values(run) for run in (*first, *second)]
        if len({run.shape for run in runs}) > 1:
            shapes = sorted({run.shape for run in runs})
            raise DataError(f"expected two systems on the same instances, found statistics {shapes}", rule="length")
        self.rows = np.concatenate(runs, axis=1)  # (n, runs of both * k)
        self.finalize, self.n_first, self.n_second = finalize, len(first), len(second)
        self.totals = weighted_sums(np.ones((1, len(self.rows))), self.rows)
        self.observed: Scores = {key: score[0] for key, score in self.differences(self.totals).items()}

    def _runs(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sums (r, runs of both * k) as (r, runs, k) of either system."""
        runs = sums.reshape(len(sums), self.n_first + self.n_second, -1)
        return runs[:, : self.n_first], runs[:, self.n_first :]

    def differences(self, sums: np.ndarray) -> Scores:
        """Return the first system's mean score minus the second's, {key: (r,)}, of sums (r, runs of both * k)."""
        with np.errstate(invalid="ignore"):
            means = [
                {key: score.mean(axis=1) for key, score in self.finalize(runs).items()} for runs in self._runs(sums)
            ]
            return {key: means[0][key] - means[1][key] for key in means[0]}

    def models(
        self,
        first_runs: Sequence[int] | None = None,
        second_runs: Sequence[int] | None = None,
        shared: bool = False,
    ) -> dict[str, DifferenceModel]:
        """Return the model of documents and runs of every score's difference, of the clusters that the score counts.

        Args:
            first_runs: the run of each file of the first system, see `mixed_model.fit_system`.
            second_runs: likewise of the second.
            shared: both systems explain the same trainings, see `mixed_model.fit_difference`.
        """
        with np.errstate(invalid="ignore"):
            scores = [self.finalize(runs[0]) for runs in self._runs(self.totals)]
            left_out = [self.finalize(runs) for runs in self._runs(self.totals - self.rows)]
            alone = [self.finalize(runs) for runs in self._runs(self.rows)]
        models = {}
        for key, difference in self.observed.items():
            each = [[own[key] for own in side] for side in zip(scores, left_out, alone, strict=True)]
            counted = np.concatenate([find_counted(*own) for own in each], axis=1).any(axis=1)
            both = [compute_influences(own, out[counted]) for own, out, _ in each]
            if counted.sum() > 1 and all(np.isfinite(each).all() for each in both):
                models[key] = fit_difference(both[0], both[1], first_runs, second_runs, shared)
            else:
                models[key] = make_unknown_difference(difference, int(counted.sum()))
        return models

    def exchanged(self, swap: np.ndarray) -> Scores:
        """Return the differences after clusters were exchanged, {key: (r,)}: the mean over all pairs of runs.

        Args:
            swap: 0/1 (r, n): which clusters exchange their systems.
        """
        moved = weighted_sums(swap, self.rows)
        finite = np.isfinite(self.totals).all()
        first, second = self._runs(moved)
        left, right = self._runs(self.totals - moved if finite else weighted_sums(1 - swap, self.rows))
        scores = [
            self.finalize(kept + taken)
            for kept, taken in ((left[:, :, None], second[:, None]), (right[:, None], first[:, :, None]))
        ]
        with np.errstate(invalid="ignore"):
            return {key: score.mean(axis=(1, 2)) - scores[1][key].mean(axis=(1, 2)) for key, score in scores[0].items()}


def find_differing(pair: Pair) -> dict[str, np.ndarray]:
    """Return which clusters differ in each score between the systems: {key: bool (n,)}.

    A cluster that alone has no score counts where its statistics differ.
    """
    runs = pair.rows.reshape(len(pair.rows), pair.n_first + pair.n_second, -1)
    changed = (runs != runs[:, :1]).any(axis=(1, 2))
    return {key: changed & ~(np.abs(own) <= SAME) for key, own in pair.differences(pair.rows).items()}


def _make_exchanges(pair: Pair, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield rows of 0/1, 1 for clusters that exchange their systems, by chance."""
    n, random = len(pair.rows), np.random.default_rng(seed)
    for start, stop in _cut(pair, n_resamples):
        yield (random.random((stop - start, n)) < 0.5).astype(float)


def _list_exchanges(pair: Pair, clusters: np.ndarray) -> Iterator[np.ndarray]:
    """Yield all exchanges of the clusters of these numbers, each once, as `_make_exchanges` does."""
    for start, stop in _cut(pair, 2 ** len(clusters)):
        swap = np.zeros((stop - start, len(pair.rows)))
        swap[:, clusters] = (np.arange(start, stop)[:, None] >> np.arange(len(clusters))) & 1
        yield swap


def _cut(pair: Pair, count: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row of each part of so many exchanges that fits into `CHUNK_BYTES`."""
    rows = max(1, CHUNK_BYTES // (8 * max(len(pair.rows), pair.totals.size)))
    yield from ((start, min(start + rows, count)) for start in range(0, count, rows))


def _concatenate(parts: Sequence[Scores]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def is_exact(n: int, n_resamples: int) -> bool:
    """Return True if there are at most ``n_resamples`` exchanges of n clusters."""
    return n < 31 and 2**n <= n_resamples


def count_needed_resamples(tests: int) -> int:
    """Return how many exchanges of documents let the smallest p-value be .05 after the correction.

    The smallest p-value of N exchanges is 1 / (N + 1), and the first step of Holm's correction multiplies it by the
    number of tests.

    Args:
        tests: number of tests in the family.

    >>> count_needed_resamples(75)
    1499
    """
    return math.ceil(max(1, tests) / ALPHA) - 1


def choose_resamples(tests: int) -> int:
    """Return the number of exchanges of documents where nobody names one.

    It is 10,000, or the next multiple of it that reaches `count_needed_resamples`, and at most 100,000.

    >>> choose_resamples(90), choose_resamples(190 * 6), choose_resamples(1_000_000)
    (10000, 30000, 100000)
    """
    return min(MOST_RESAMPLES, RESAMPLES * max(1, math.ceil(count_needed_resamples(tests) / RESAMPLES)))


def randomisation(pair: Pair, n_resamples: int = RESAMPLES, seed: int = 0) -> dict[str, float]:
    """Return the two-sided p-value of every score's difference under random exchange of systems by cluster.

    p = (1 + #{abs(difference after exchange) >= abs(difference)}) / (1 + n_resamples). With so few clusters that all
    2^n exchanges are no more than ``n_resamples``, all are taken once and p is their share: exact. So are those of the
    clusters that differ in a score, where the others change nothing. Of several runs the means are exchanged: the test
    is about these files, and the model of `mixed_model` about other runs.

    Returns:
        {key: p-value}; NaN where the difference is undefined.
    """
    check_settings(n_resamples=n_resamples)
    n = len(pair.rows)
    if is_exact(n, n_resamples):
        return _enumerate(pair, np.arange(n), list(pair.observed))
    p_values = _enumerate_differing(pair, n_resamples, seed)
    if len(p_values) < len(pair.observed):
        drawn = _concatenate([pair.exchanged(swap) for swap in _make_exchanges(pair, n_resamples, seed)])
        sampled = {key: _compute_p(pair.observed[key], drawn[key], 1) for key in drawn if key not in p_values}
        p_values |= sampled
    return {key: p_values[key] for key in pair.observed}


def _enumerate(pair: Pair, clusters: np.ndarray, keys: Sequence[str]) -> dict[str, float]:
    """Return the exact p-values of these scores, by all exchanges of the clusters of these numbers."""
    drawn = _concatenate([pair.exchanged(swap) for swap in _list_exchanges(pair, clusters)])
    return {key: _compute_p(pair.observed[key], drawn[key], 0) for key in keys}


def _enumerate_differing(pair: Pair, n_resamples: int, seed: int) -> dict[str, float]:
    """Return the exact p-values of the scores in which few clusters differ.

    A score may depend on clusters that alone have equal scores, as a micro average does: a sample of exchanges tells.
    """
    keys_of: dict[bytes, list[str]] = {}
    masks = find_differing(pair)
    for key, mask in masks.items():
        if is_exact(int(mask.sum()), n_resamples):
            keys_of.setdefault(mask.tobytes(), []).append(key)
    if not keys_of:
        return {}
    p_values: dict[str, float] = {}
    sample = next(_make_exchanges(pair, min(SAMPLE, n_resamples), seed))
    every = pair.exchanged(sample)
    for keys in keys_of.values():
        mask = masks[keys[0]]
        own = pair.exchanged(sample * mask)
        alike = [key for key in keys if np.allclose(own[key], every[key], rtol=SAME, atol=SAME, equal_nan=True)]
        if alike:
            p_values |= _enumerate(pair, np.flatnonzero(mask), alike)
    return p_values


def _compute_p(observed: np.ndarray, drawn: np.ndarray, more: int) -> float:
    """Return the share of differences that are as far from 0 as the observed one; ``more``: 1 counts that one too."""
    # sums in another order differ in their last bits: an equal difference must count as equal
    margin = SAME * max(1.0, abs(float(observed))) if np.isfinite(observed) else 0.0
    valid = drawn[~np.isnan(drawn)]
    if np.isnan(observed) or not len(valid) + more:
        return math.nan
    return (more + int((np.abs(valid) >= abs(observed) - margin).sum())) / (more + len(valid))


# ---------------------------------------------------------------------------------------------------- several tests
def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method, which controls the family-wise error; NaN stays NaN.

    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or (p < 0).any() or (p > 1).any():
        raise DataError("p_values: expected a list of numbers in [0, 1]", rule="range")
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return [float(value) for value in adjusted]
