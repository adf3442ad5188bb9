"""Resampling of additive statistics: bootstrap intervals of scores, the jackknife, tests against chance.

A score that is a function of SUMS of statistics never has to be recomputed from the data: for a matrix ``values`` (one
row per cluster of annotations, see `clusters`) and ``finalize`` (sums to scores), a resample is ``finalize(weights @
values)``.

Undefined values: the interval of a key leaves out replicates whose score is NaN (an average over no document, say); a
key whose score on the data is NaN has the interval (NaN, NaN). Infinite statistics (a KL divergence) that are drawn
zero times never become NaN.

Sources: Efron and Tibshirani (1993), chapters 13 and 14 (percentile and BCa intervals).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from numbers import Integral
from statistics import NormalDist

import numpy as np

from .cells import as_number
from .issues import InputError
from .statistics_builder import Finalize

DEFAULT_LEVEL = 0.95
DEFAULT_RESAMPLES = 1000
MOST_RESAMPLES = 10_000_000  # more tell nothing that these do not, and take days
# sums of the same rows in another order differ by less than this, relative to 1 or to the value: they are equal
SAME = 1e-12
# weights of one chunk of resamples take at most this many bytes
CHUNK_BYTES = 32 * 2**20
NORMAL = NormalDist()
Scores = Mapping[str, np.ndarray]


# ---------------------------------------------------------------------------------------------------------- sums
def weighted_sums(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return ``weights @ values``, in which statistics of weight zero vanish even if infinite or NaN."""
    finite = np.isfinite(values)
    sums: np.ndarray
    if finite.all():
        sums = weights @ values
        return sums
    sums = weights @ np.where(finite, values, 0.0)
    touched = np.flatnonzero(~finite.all(axis=0))
    part = values[:, touched]
    # a column's sum is NaN when a NaN is drawn or infinities of both signs are, else the infinity that is drawn
    nan, up, down = (weights @ mask.astype(float) != 0 for mask in (np.isnan(part), part == np.inf, part == -np.inf))
    column = sums[:, touched]
    column[up] = np.inf
    column[down] = -np.inf
    column[nan | (up & down)] = np.nan
    sums[:, touched] = column
    return sums


def check_values(values: np.ndarray) -> np.ndarray:
    """Return the values as float64; raise a ValueError if they are no matrix with at least one row."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] == 0:
        message = f"expected a matrix with one row per instance and at least one row, found {values.shape}"
        raise InputError(message, "length", "values")
    return values


def check_settings(confidence_level: float | None = None, n_resamples: int | None = None, seed: int = 0) -> None:
    """Raise a ValueError for a level outside (0, 1), a wrong number of resamples or a wrong seed."""
    if confidence_level is not None and not 0 < (as_number(confidence_level) or 0) < 1:
        message = f"expected a number between 0 and 1 (exclusive), found {confidence_level!r}"
        raise InputError(message, "option-value", "confidence_level")
    number = 1 if n_resamples is None else as_number(n_resamples)
    if number is None or number % 1 or not 1 <= number <= MOST_RESAMPLES:
        message = f"expected an integer from 1 to {MOST_RESAMPLES:,}, found {n_resamples!r}"
        raise InputError(message, "option-value", "n_resamples")
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"expected a whole number of at least 0, found {seed!r}", "option-value", "seed")


def bootstrap_weights(n: int, n_resamples: int, seed: int = 0, chunk_bytes: int | None = None) -> Iterator[np.ndarray]:
    """Yield multinomial weights of bootstrap resamples in chunks: float64 (rows, n), each row summing to n.

    The draws depend on ``n`` and ``seed`` alone, not on the size of chunks. Memory does not grow with ``n_resamples``.
    """
    random = np.random.default_rng(seed)
    rows = max(1, min(n_resamples, (chunk_bytes or CHUNK_BYTES) // (8 * n)))
    for start in range(0, n_resamples, rows):
        count = min(rows, n_resamples - start)
        drawn = random.integers(0, n, size=(count, n), dtype=np.int32) + n * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def replicates(
    values: np.ndarray, finalize: Finalize, n_resamples: int = DEFAULT_RESAMPLES, seed: int = 0
) -> dict[str, np.ndarray]:
    """Compute scores of bootstrap resamples: {key: (n_resamples,)}, or (n_resamples, T) for keys that are lists."""
    values = check_values(values)
    sums = np.concatenate(
        [weighted_sums(weights, values) for weights in bootstrap_weights(len(values), n_resamples, seed)]
    )
    return {key: np.asarray(scores, dtype=float) for key, scores in finalize(sums).items()}


# ----------------------------------------------------------------------------------------------------- intervals
def _quantiles(ordered: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return linear quantiles of sorted numbers, which may include infinities (no inf - inf)."""
    position = np.clip(q, 0, 1) * (len(ordered) - 1)
    below = np.floor(position).astype(int)
    above = np.minimum(below + 1, len(ordered) - 1)
    low, high, share = ordered[below], ordered[above], position - below
    with np.errstate(invalid="ignore"):
        between = low + share * (high - low)
    whole = np.where(share == 0, low, high)
    beyond = np.where(low == high, low, whole)
    return np.asarray(np.where(np.isfinite(low) & np.isfinite(high), between, beyond))


def bca_levels(score: float, draws: np.ndarray, jackknife: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the percentile levels of BCa: moved by bias and acceleration (Efron and Tibshirani, 14.3).

    A draw within 1e-12 max(1, abs(score)) of the score is a tie and counts half: otherwise the bias, and the interval,
    would depend on the order of summation.
    """
    centred = jackknife.mean() - jackknife
    spread = (centred**2).sum()
    if not np.isfinite(spread) or spread <= 0:
        return levels
    acceleration = (centred**3).sum() / (6 * spread**1.5)
    margin = SAME * max(1.0, abs(score)) if math.isfinite(score) else 0.0
    share = ((draws < score - margin).sum() + (draws <= score + margin).sum()) / (2 * len(draws))
    edge = 0.5 / (len(draws) + 1)
    bias = NORMAL.inv_cdf(float(np.clip(share, edge, 1 - edge)))
    moved = []
    for level in levels:
        z = bias + NORMAL.inv_cdf(float(level))
        moved.append(NORMAL.cdf(bias + z / (1 - acceleration * z)) if acceleration * z < 1 else float(level > 0.5))
    return np.array(moved)


def _compute_interval(
    score: float, draws: np.ndarray, levels: np.ndarray, jackknife: np.ndarray | None
) -> tuple[float, float]:
    draws = np.sort(draws[~np.isnan(draws)])
    if np.isnan(score) or len(draws) == 0:
        return math.nan, math.nan
    if jackknife is not None:
        jackknife = jackknife[~np.isnan(jackknife)]
        if len(jackknife) > 1 and np.isfinite(jackknife).all():
            levels = bca_levels(score, draws, jackknife, levels)
    low, high = _quantiles(draws, levels)
    return float(low), float(high)


def compute_bounds(
    scores: Scores, draws: Scores, confidence_level: float = DEFAULT_LEVEL, left_out: Scores | None = None
) -> dict[str, np.ndarray]:
    """Compute the interval of every score.

    Args:
        scores: {key: () or (T,)}.
        draws: {key: (R,) or (R, T)}, the scores of resamples.
        confidence_level: in (0, 1).
        left_out: {key: (n,) or (n, T)}, the scores with one cluster left out, for BCa; None: percentile intervals. A
            key whose jackknife is not finite or does not vary has the percentile interval.

    Returns:
        {key: array (2,) or (T, 2)}, low and high.
    """
    levels = np.array([(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    bounds = {}
    for key, drawn in draws.items():
        points = np.asarray(scores[key], dtype=float)
        columns = drawn.reshape(len(drawn), points.size)
        jackknife = None if left_out is None else left_out[key].reshape(-1, points.size)
        pairs = [
            _compute_interval(float(point), columns[:, at], levels, None if jackknife is None else jackknife[:, at])
            for at, point in enumerate(points.reshape(-1))
        ]
        bounds[key] = np.array(pairs).reshape(*points.shape, 2)
    return bounds


def jackknife(values: np.ndarray, finalize: Finalize) -> Scores:
    """Compute scores with one row left out, {key: (n,) or (n, T)}; NaN if such a sum is not finite."""
    with np.errstate(invalid="ignore"):
        return {key: np.asarray(scores, float) for key, scores in finalize(values.sum(axis=0) - values).items()}


def find_counted(score: np.ndarray, left_out: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Return which rows a score counts: the others change nothing, and alone they have no score.

    A mean over documents of several sentences, for example, does not count documents of one sentence.

    Args:
        score: the score of all rows, (...).
        left_out: the score without each row, (n, ...), see `jackknife`.
        alone: the score of each row alone, (n, ...): NaN, or 0 by convention, where there is nothing to divide.

    >>> find_counted(np.array(0.5), np.array([0.4, 0.6, 0.5, 0.5]), np.array([0.6, 0.4, 0.5, np.nan])).tolist()
    [True, True, True, False]
    """
    counted: np.ndarray = (left_out != score) | ~(np.isnan(alone) | ((alone == 0) & (score != 0)))
    return counted


def bootstrap_intervals(
    values: np.ndarray,
    finalize: Finalize,
    confidence_level: float = DEFAULT_LEVEL,
    n_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Compute BCa intervals of every score: the bootstrap over rows, its levels moved by bias and acceleration.

    Args:
        values: statistics, (n, k), n >= 1, a row per cluster; the score is ``finalize(values.sum(0))``.
        finalize: sums (..., k) to {key: scores (...)}; a key may also be a list of T scores, (..., T).
        confidence_level: in (0, 1).
        n_resamples: bootstrap resamples.
        seed: of numpy's default generator; the same seed gives the same interval.

    Returns:
        The bounds, see `compute_bounds`; NaN with one row, which says nothing of others.

    Raises:
        ValueError: for settings out of range, or no row.

    >>> mean = lambda sums: {"mean": sums[..., 0] / sums[..., 1]}
    >>> interval = bootstrap_intervals(np.array([[1.0, 1], [2, 1], [3, 1], [4, 1]]), mean, n_resamples=200)["mean"]
    >>> bool(1 <= interval[0] < 2.5 < interval[1] <= 4)
    True
    """
    check_settings(confidence_level, n_resamples, seed)
    values = check_values(values)
    scores = finalize(weighted_sums(np.ones((1, len(values))), values))
    if len(values) < 2:
        return {key: np.full((*np.shape(score)[1:], 2), math.nan) for key, score in scores.items()}
    draws = replicates(values, finalize, n_resamples, seed)
    points = {key: np.asarray(score)[0] for key, score in scores.items()}
    return compute_bounds(points, draws, confidence_level, jackknife(values, finalize))


# ------------------------------------------------------------------------------------------------------- chance
def against_chance(observed: np.ndarray, draws: np.ndarray, higher_is_better: bool = True) -> dict[str, np.ndarray]:
    """Compare an observed score with the same score of random draws.

    Args:
        observed: (...,), one score, or one per instance.
        draws: (..., m), the same score of m random rationales; NaN draws do not count.
        higher_is_better: False if a smaller score is better (sufficiency).

    Returns:
        Arrays (...,): ``p_value`` = (1 + #{draw at least as good}) / (1 + m), one-sided; ``win_rate`` = share of the
        draws that are worse than the observed score; ``effect_size`` = (observed - mean of draws) / standard
        deviation of the draws (ddof 1), signed so that positive is better than chance; NaN with fewer than two
        draws or draws that do not vary.

    >>> test = against_chance(np.array(0.9), np.array([0.1, 0.2, 0.3, 0.95]))
    >>> float(test["p_value"]), float(test["win_rate"])
    (0.4, 0.75)
    """
    observed = np.asarray(observed, dtype=float)
    draws = np.asarray(draws, dtype=float)
    if draws.shape[:-1] != observed.shape:
        raise InputError(
            f"expected shape {observed.shape} plus one axis of draws, found {draws.shape}", "length", "draws"
        )
    sign = 1.0 if higher_is_better else -1.0
    score, drawn = sign * observed, sign * draws
    valid = ~np.isnan(drawn)
    count = valid.sum(axis=-1)
    known = ~np.isnan(score) & (count > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(valid, drawn, 0.0).sum(axis=-1) / count
        spread = np.sqrt(np.where(valid, (drawn - mean[..., None]) ** 2, 0.0).sum(axis=-1) / (count - 1))
        effect = np.where((count > 1) & (spread > 1e-12), (score - mean) / spread, np.nan)
        p_value = (1 + (valid & (drawn >= score[..., None])).sum(axis=-1)) / (1 + count)
        win_rate = (valid & (drawn < score[..., None])).sum(axis=-1) / count
    return {
        "p_value": np.where(known, p_value, np.nan),
        "win_rate": np.where(known, win_rate, np.nan),
        "effect_size": np.where(known, effect, np.nan),
    }
