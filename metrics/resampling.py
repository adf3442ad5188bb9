"""Resampling of additive statistics: confidence intervals of scores, exact bounds of shares, tests against chance.

A score that is a function of SUMS of statistics never has to be recomputed from the data: for a matrix ``values`` (one
row per cluster of annotations, see `clusters`) and ``finalize`` (sums to scores), a resample is ``finalize(weights @
values)``.

Undefined values: the interval of a key leaves out replicates whose score is NaN (an average over no document, say); a
key whose score on the data is NaN has the interval (NaN, NaN). Infinite statistics (a KL divergence) that are drawn
zero times never become NaN.

Sources: Efron and Tibshirani (1993), chapters 13 and 14 (percentile and BCa intervals); Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist

import numpy as np

from .issues import InputError
from .statistics_builder import Finalize, Statistics

DEFAULT_LEVEL = 0.95
DEFAULT_RESAMPLES = 1000
CI_METHODS = ("bca", "percentile")
# sums of the same rows in another order differ by less than this, relative to 1 or to the value: they are equal
SAME = 1e-12
# below these counts of annotations of a class, or of hits, the interval is unreliable: warn
FEW = 5
# scores that are shares of annotations
SHARES = frozenset(("accuracy", "any_group_coverage", "iou_f1", "new_p", "accuracy_rationale", "accuracy_no_rationale"))
# names of counts of hits in messages, if they differ from the columns' names
NAMED = {"labels": "accuracy", "sentence_by_spans": "sentence"}
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


def check_values(values: np.ndarray, name: str = "values") -> np.ndarray:
    """Return the values as float64; raise a ValueError if they are no matrix with at least one row."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] == 0:
        raise InputError(
            f"expected a matrix with one row per instance and at least one row, found {values.shape}", "length", name
        )
    return values


def check_settings(
    confidence_level: float = DEFAULT_LEVEL, n_resamples: int = DEFAULT_RESAMPLES, ci_method: str = CI_METHODS[0]
) -> None:
    """Raise a ValueError for a level outside (0, 1), fewer than one resample or an unknown method."""
    if isinstance(confidence_level, bool) or not 0 < confidence_level < 1:
        message = f"expected a number between 0 and 1 (exclusive), found {confidence_level!r}"
        raise InputError(message, "option-value", "confidence_level")
    if isinstance(n_resamples, bool) or n_resamples != int(n_resamples) or n_resamples < 1:
        raise InputError(f"expected a positive integer, found {n_resamples!r}", "option-value", "n_resamples")
    if ci_method not in CI_METHODS:
        raise InputError(f"expected one of {', '.join(CI_METHODS)}, found {ci_method!r}", "option-value", "ci_method")


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


def bootstrap_intervals(
    values: np.ndarray,
    finalize: Finalize,
    confidence_level: float = DEFAULT_LEVEL,
    n_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    ci_method: str = CI_METHODS[0],
) -> dict[str, np.ndarray]:
    """Compute confidence intervals of every score by the bootstrap over rows.

    Args:
        values: statistics, (n, k), n >= 1, a row per cluster; the score is ``finalize(values.sum(0))``.
        finalize: sums (..., k) to {key: scores (...)}; a key may also be a list of T scores, (..., T).
        confidence_level: in (0, 1).
        n_resamples: bootstrap resamples.
        seed: of numpy's default generator; the same seed gives the same interval.
        ci_method: "bca" (bias-corrected and accelerated, with the jackknife over rows) or "percentile".

    Returns:
        The bounds, see `compute_bounds`; NaN with one row, which says nothing of others.

    Raises:
        ValueError: for settings out of range, or no row.

    >>> mean = lambda sums: {"mean": sums[..., 0] / sums[..., 1]}
    >>> interval = bootstrap_intervals(np.array([[1.0, 1], [2, 1], [3, 1], [4, 1]]), mean, n_resamples=200)["mean"]
    >>> bool(1 <= interval[0] < 2.5 < interval[1] <= 4)
    True
    """
    check_settings(confidence_level, n_resamples, ci_method)
    values = check_values(values)
    scores = finalize(weighted_sums(np.ones((1, len(values))), values))
    if len(values) < 2:
        return {key: np.full((*np.shape(score)[1:], 2), math.nan) for key, score in scores.items()}
    draws = replicates(values, finalize, n_resamples, seed)
    left_out = jackknife(values, finalize) if ci_method == "bca" else None
    return compute_bounds(
        {key: np.asarray(score)[0] for key, score in scores.items()}, draws, confidence_level, left_out
    )


def clopper_pearson(hits: int, n: int, confidence_level: float = DEFAULT_LEVEL) -> tuple[float, float]:
    """Compute exact bounds of a share: the p at which so many hits of n, or more, or fewer, become improbable.

    >>> [round(bound, 6) for bound in clopper_pearson(0, 50)]
    [0.0, 0.071122]
    """
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    tail = (1 - confidence_level) / 2

    def bound(least: int, most: int, rising: bool) -> float:
        k = np.arange(least, most + 1)
        log_coefficients = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
        low, high = 0.0, 1.0
        while high - low > 2**-50 * max(high, 2**-20):
            p = (low + high) / 2
            probability = np.exp(log_coefficients + k * math.log(p) + (n - k) * math.log1p(-p)).sum()
            low, high = (p, high) if (probability < tail) == rising else (low, p)
        return (low + high) / 2

    return (0.0 if hits == 0 else bound(hits, n, True)), (1.0 if hits == n else bound(0, hits, False))


def intervals(
    statistics: Statistics,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
    ci_method: str = CI_METHODS[0],
) -> dict[str, np.ndarray] | None:
    """Compute `bootstrap_intervals` over clusters; None if neither a level nor a number of resamples is given.

    A share of annotations that is 0 or 1 does not vary in resamples: its bounds are exact (`clopper_pearson`) if each
    cluster has one annotation; otherwise the bound on the other side is NaN.
    """
    if confidence_level is None and n_resamples is None:
        return None
    level = DEFAULT_LEVEL if confidence_level is None else confidence_level
    resamples = DEFAULT_RESAMPLES if n_resamples is None else n_resamples
    rows, finalize = statistics.cluster_sums(), statistics.finalize
    bounds = bootstrap_intervals(rows, finalize, level, resamples, seed, ci_method)
    for key, n in _find_constant_shares(statistics).items():
        hit = float(statistics.scores()[key])
        if len(rows) == len(statistics.ids):
            bounds[key] = np.array(clopper_pearson(round(hit * n), n, level))
        else:
            bounds[key] = np.array([0.0, math.nan] if hit == 0 else [math.nan, 1.0])
    return bounds


def _find_constant_shares(statistics: Statistics) -> dict[str, int]:
    """Return the shares that are 0 or 1, each with its number of annotations."""
    keys = [key for key, score in statistics.scores().items() if key in SHARES and score in (0.0, 1.0)]
    if not keys:
        return {}
    each = statistics.finalize(statistics.values)
    return {key: int((~np.isnan(each[key])).sum()) for key in keys}


def describe_small_counts(statistics: Statistics) -> list[str]:
    """Return a line for classes of fewer than 5 annotations, and one for counts of fewer than 5 hits."""
    sums = statistics.values.sum(axis=0).tolist()
    columns = dict(zip(statistics.columns, sums, strict=True)) if statistics.columns else {}
    rare = {name: f"{int(count)}" for name, count in columns.items() if count < FEW}
    labels = [name[6:-6] for name in rare if name.startswith("label ") and name.endswith(".truth")]
    used = [label for label in labels if columns[f"label {label}.truth"] or columns[f"label {label}.predicted"]]
    hits = [name[:-5] for name in rare if name.endswith(".hits") and not name.startswith("label ")]
    lines = []
    if used:
        classes = ", ".join(f"{label} ({rare[f'label {label}.truth']})" for label in used)
        lines.append(f"fewer than {FEW} annotations of {classes}: intervals of macro F1 are rough")
    if hits:
        counts = ", ".join(f"{NAMED.get(name, name)} ({rare[f'{name}.hits']})" for name in hits)
        lines.append(f"fewer than {FEW} hits of {counts}: their intervals are rough")
    return lines


def cautions(statistics: Statistics) -> list[str]:
    """Return lines that warn of unreliable intervals: one cluster, small counts, and shares without a bound."""
    is_clustered = statistics.n_clusters < len(statistics.ids)
    none = ["one cluster says nothing of others: there is no interval"] if statistics.n_clusters == 1 else []
    return (
        none
        + describe_small_counts(statistics)
        + [
            f"{key} is the same in all {n} annotations, which are not independent: one end of it has no bound"
            for key, n in (_find_constant_shares(statistics).items() if is_clustered else ())
        ]
    )


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
