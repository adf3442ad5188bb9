"""Paired tests of two systems on the same clusters of annotations, and corrections for several tests.

A system is one run or several (other seeds): its score is the mean of its runs' scores. What is drawn, left out and
exchanged are clusters, see `metrics.clusters`; where a system has several runs, runs are drawn within each resample as
well, so that the seeds' share of the difference counts.

Sources: Noreen (1989) (approximate randomisation); Koehn (2004) (paired bootstrap); Schuirmann (1987) (two one-sided
tests); Holm (1979); Benjamini and Hochberg (1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eraser_hub.metrics.resampling import (
    CHUNK_BYTES,
    DEFAULT_LEVEL,
    NORMAL,
    SAME,
    Scores,
    bootstrap_weights,
    check_settings,
    check_values,
    compute_bounds,
    jackknife,
    weighted_sums,
)
from eraser_hub.metrics.statistics_builder import Finalize
from eraser_hub.records.errors import DataError

RESAMPLES = 10_000
ALPHA, POWER = 0.05, 0.8


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

    def differences(self, sums: np.ndarray, seeds: np.random.Generator | None = None, resamples: int = 1) -> Scores:
        """Return the first system's mean score minus the second's.

        Args:
            sums: float64 (r, runs of both * k).
            seeds: draws each system's runs, with replacement; None: all count alike.
            resamples: drawings, where the sums are those of all clusters (r is 1).

        Returns:
            {key: (r,)}, or (resamples,).
        """
        means: list[dict[str, np.ndarray]] = []
        with np.errstate(invalid="ignore"):
            for runs in self._runs(sums):
                shares = _shares(runs.shape[1], max(len(sums), resamples), seeds)
                means.append({key: (score * shares).sum(axis=1) for key, score in self.finalize(runs).items()})
            return {key: means[0][key] - means[1][key] for key in means[0]}

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


def _shares(runs: int, resamples: int, seeds: np.random.Generator | None) -> np.ndarray:
    """Return the weight of each run in each resample, float64 (resamples, runs), rows summing to 1."""
    if seeds is None or runs == 1:
        return np.full((resamples, runs), 1 / runs)
    drawn = seeds.multinomial(runs, np.full(runs, 1 / runs), size=resamples) / runs
    # runs drawn of few vary less than new runs would: by (runs - 1) / runs
    return 1 / runs + (drawn - 1 / runs) * math.sqrt(runs / (runs - 1))


def _swaps(n: int, n_resamples: int, seed: int, exact: bool, width: int) -> Iterator[np.ndarray]:
    """Yield rows of 0/1: 1 for clusters that exchange their systems."""
    rows = max(1, min(n_resamples, CHUNK_BYTES // (8 * max(n, width))))
    random = np.random.default_rng(seed)
    for start in range(0, n_resamples, rows):
        stop = min(start + rows, n_resamples)
        if exact:
            yield ((np.arange(start, stop)[:, None] >> np.arange(n)) & 1).astype(float)
        else:
            yield (random.random((stop - start, n)) < 0.5).astype(float)


def _concatenate(parts: Sequence[Scores]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def is_exact(n: int, n_resamples: int) -> bool:
    """Return True if there are at most ``n_resamples`` exchanges of n clusters."""
    return n < 31 and 2**n <= n_resamples


def randomisation(pair: Pair, n_resamples: int = RESAMPLES, seed: int = 0) -> dict[str, float]:
    """Return the two-sided p-value of every score's difference under random exchange of systems by cluster.

    p = (1 + #{abs(difference after exchange) >= abs(difference)}) / (1 + n_resamples). With so few clusters that all
    2^n exchanges are no more than ``n_resamples``, all are taken once and p is their share: exact. Of several runs each
    exchange adds how far the mean of runs drawn at random lies from the mean of all: a difference that other seeds
    would make is none.

    Returns:
        {key: p-value}; NaN where the difference is undefined.
    """
    check_settings(n_resamples=n_resamples)
    n, several = len(pair.rows), pair.n_first * pair.n_second > 1
    exact = is_exact(n, n_resamples) and not several
    count, seeds = 2**n if exact else n_resamples, np.random.default_rng([seed, 1])
    drawn = _concatenate([pair.exchanged(swap) for swap in _swaps(n, count, seed, exact, pair.totals.size)])
    p_values = {}
    noise = pair.differences(pair.totals, seeds, count) if several else {}
    for key, observed in pair.observed.items():
        differences = drawn[key] + (noise[key] - observed) if several else drawn[key]
        # sums in another order differ in their last bits: an equal difference must count as equal
        margin = SAME * max(1.0, abs(float(observed))) if np.isfinite(observed) else 0.0
        valid = differences[~np.isnan(differences)]
        hits = int((np.abs(valid) >= abs(observed) - margin).sum())
        p = (hits, len(valid)) if exact else (1 + hits, 1 + len(valid))
        p_values[key] = math.nan if np.isnan(observed) or not p[1] else p[0] / p[1]
    return p_values


def paired_bootstrap(
    pair: Pair,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
    confidence_level: float = DEFAULT_LEVEL,
    margin: float | None = None,
) -> dict[str, dict[str, object]]:
    """Bootstrap every score's difference, first - second: both systems get the same resamples of clusters.

    Args:
        pair: the systems.
        n_resamples: resamples.
        seed: seed of the resamples.
        confidence_level: level of the interval, in (0, 1).
        margin: margin of equivalence, in the score's units.

    Returns:
        {key: {``difference``; ``ci``, BCa; ``p_bootstrap``, two-sided: (1 + #{abs(replicate - difference) >=
        abs(difference)}) / (1 + n_resamples); ``win_share``, the share of resamples in which the first scores higher,
        ties counting one half; ``detectable``, the difference that a test at .05 finds with power .8, (z(.975) + z(.8))
        times the replicates' standard deviation; with a margin ``p_equivalence``, the larger p of two one-sided
        tests}}.
    """
    check_settings(confidence_level, n_resamples)
    seeds = np.random.default_rng([seed, 1])
    parts = [
        pair.differences(weighted_sums(weights, pair.rows), seeds)
        for weights in bootstrap_weights(len(pair.rows), n_resamples, seed)
    ]
    drawn = _concatenate(parts)
    left_out = jackknife(pair.rows, pair.differences) if len(pair.rows) > 1 else None
    bounds = compute_bounds(pair.observed, drawn, confidence_level, left_out)
    tests = {}
    for key, draws in drawn.items():
        observed = float(pair.observed[key])
        test = {"difference": observed, "ci": bounds[key].tolist(), **_of_draws(observed, draws[~np.isnan(draws)])}
        if margin is not None:
            test["p_equivalence"] = compute_equivalence_p(observed, draws[~np.isnan(draws)], margin)
        tests[key] = test
    return tests


def _of_draws(observed: float, draws: np.ndarray) -> dict[str, float]:
    if math.isnan(observed) or not len(draws):
        return dict.fromkeys(("p_bootstrap", "win_share", "detectable"), math.nan)
    margin = SAME * max(1.0, abs(observed)) if math.isfinite(observed) else 0.0
    with np.errstate(invalid="ignore"):
        extreme = (np.abs(draws - observed) >= abs(observed) - margin).sum()
        error = draws.std(ddof=1) if len(draws) > 1 else math.nan
    return {
        "p_bootstrap": float((1 + extreme) / (1 + len(draws))),
        "win_share": float(((draws > margin).sum() + 0.5 * (np.abs(draws) <= margin).sum()) / len(draws)),
        # systems that never differ show no difference, however large
        "detectable": float((NORMAL.inv_cdf(1 - ALPHA / 2) + NORMAL.inv_cdf(POWER)) * error)
        if error > SAME
        else math.nan,
    }


def compute_equivalence_p(real: float, draws: np.ndarray, margin: float) -> float:
    """Return the larger p-value of two one-sided tests that the difference is at least ``margin`` either way.

    Args:
        real: the difference.
        draws: the differences of resamples, moved to either margin to count those as far inside as the difference.
        margin: the margin of equivalence.
    """
    if math.isnan(real) or not len(draws):
        return math.nan
    with np.errstate(invalid="ignore"):
        below = 1 + int((draws - real >= real + margin - SAME).sum())
        above = 1 + int((draws - real <= real - margin + SAME).sum())
    return max(below, above) / (1 + len(draws))


# ---------------------------------------------------------------------------------------------------- several tests
def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method, which controls the family-wise error; NaN stays NaN.

    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    return _adjusted(p_values, lambda p: np.maximum.accumulate(p * np.arange(len(p), 0, -1)))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Benjamini and Hochberg, which controls the false discovery rate; NaN stays NaN.

    >>> [round(p, 6) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    return _adjusted(p_values, lambda p: np.minimum.accumulate((p * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1])


def _adjusted(p_values: Sequence[float], adjust_sorted: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or (p < 0).any() or (p > 1).any():
        raise DataError("p_values: expected a list of numbers in [0, 1]", rule="range")
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    adjusted[order] = np.minimum(1, adjust_sorted(p[order]))
    return [float(value) for value in adjusted]


ADJUSTMENTS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": list,
}
