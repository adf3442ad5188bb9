"""Resampling of per-instance statistics: confidence intervals, paired tests, Holm's correction, tests against chance.

A score that is a function of SUMS of per-instance statistics never has to be recomputed from the data: for a matrix
``values`` (one row per instance) and ``finalize`` (sums to scores), a resample is ``finalize(weights @ values)``.

What is undefined: a replicate whose score is NaN (an average over no document, say) is left out of that key's
interval or test; a key whose score on the data itself is NaN has the interval (NaN, NaN) and the p-value NaN.
Infinite statistics (a KL divergence) stay infinite, they never turn into NaN by being drawn zero times.

Sources: Efron and Tibshirani (1993), chapters 13 and 14 (percentile and BCa intervals); Noreen (1989) (approximate
randomisation); Koehn (2004) (paired bootstrap); Holm (1979).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist

import numpy as np

from .pool import Finalize

DEFAULT_LEVEL = 0.95
DEFAULT_RESAMPLES = 1000
CI_METHODS = ("percentile", "bca")
# weights of one chunk of resamples take at most this many bytes
CHUNK_BYTES = 32 * 2**20
_NORMAL = NormalDist()


# ---------------------------------------------------------------------------------------------------------- sums
def _weighted_sums(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``weights @ values`` in which a zero weight makes even an infinite or NaN statistic vanish."""
    finite = np.isfinite(values)
    if finite.all():
        return weights @ values
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


def _check_values(values: np.ndarray, name: str = "values") -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] == 0:
        raise ValueError(
            f"{name}: expected a matrix with one row per instance and at least one row, found {values.shape}"
        )
    return values


def check_settings(
    confidence_level: float = DEFAULT_LEVEL, n_resamples: int = DEFAULT_RESAMPLES, ci_method: str = "percentile"
) -> None:
    """Raise a ValueError for a level outside (0, 1), fewer than one resample or an unknown method."""
    if isinstance(confidence_level, bool) or not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level: expected a number between 0 and 1 (exclusive), found {confidence_level!r}")
    if isinstance(n_resamples, bool) or n_resamples != int(n_resamples) or n_resamples < 1:
        raise ValueError(f"n_resamples: expected a positive integer, found {n_resamples!r}")
    if ci_method not in CI_METHODS:
        raise ValueError(f"ci_method: expected one of {', '.join(CI_METHODS)}, found {ci_method!r}")


def bootstrap_weights(n: int, n_resamples: int, seed: int = 0, chunk_bytes: int | None = None) -> Iterator[np.ndarray]:
    """Multinomial weights of bootstrap resamples, in chunks of rows: float64 arrays (rows, n), each row summing to n.

    The draws depend on ``n`` and ``seed`` alone, not on the size of the chunks; the memory does not grow with
    ``n_resamples``.
    """
    random = np.random.default_rng(seed)
    rows = max(1, min(n_resamples, (chunk_bytes or CHUNK_BYTES) // (8 * n)))
    for start in range(0, n_resamples, rows):
        weights = np.empty((min(rows, n_resamples - start), n))
        for row in weights:
            row[:] = np.bincount(random.integers(0, n, size=n, dtype=np.int32), minlength=n)
        yield weights


def replicates(
    values: np.ndarray, finalize: Finalize, n_resamples: int = DEFAULT_RESAMPLES, seed: int = 0
) -> dict[str, np.ndarray]:
    """Scores of bootstrap resamples: {key: array (n_resamples,)} (or (n_resamples, T) for keys that are lists)."""
    values = _check_values(values)
    sums = np.concatenate(
        [_weighted_sums(weights, values) for weights in bootstrap_weights(len(values), n_resamples, seed)]
    )
    return {key: np.asarray(scores, dtype=float) for key, scores in finalize(sums).items()}


# ----------------------------------------------------------------------------------------------------- intervals
def _quantiles(ordered: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Linear quantiles of sorted numbers that may hold infinities (no inf - inf)."""
    position = np.clip(q, 0, 1) * (len(ordered) - 1)
    below = np.floor(position).astype(int)
    above = np.minimum(below + 1, len(ordered) - 1)
    low, high, share = ordered[below], ordered[above], position - below
    with np.errstate(invalid="ignore"):
        between = low + share * (high - low)
    whole = np.where(share == 0, low, high)
    return np.where(np.isfinite(low) & np.isfinite(high), between, np.where(low == high, low, whole))


def _bca_levels(score: float, draws: np.ndarray, jackknife: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The percentile levels that BCa reads: moved by bias and acceleration (Efron and Tibshirani, 14.3)."""
    centred = jackknife.mean() - jackknife
    spread = (centred**2).sum()
    if not np.isfinite(spread) or spread <= 0:
        return levels
    acceleration = (centred**3).sum() / (6 * spread**1.5)
    share = ((draws < score).sum() + (draws <= score).sum()) / (2 * len(draws))
    edge = 0.5 / (len(draws) + 1)
    bias = _NORMAL.inv_cdf(float(np.clip(share, edge, 1 - edge)))
    moved = []
    for level in levels:
        z = bias + _NORMAL.inv_cdf(float(level))
        moved.append(_NORMAL.cdf(bias + z / (1 - acceleration * z)) if acceleration * z < 1 else float(level > 0.5))
    return np.array(moved)


def _interval(score: float, draws: np.ndarray, levels: np.ndarray, jackknife: np.ndarray | None) -> tuple[float, float]:
    draws = np.sort(draws[~np.isnan(draws)])
    if np.isnan(score) or len(draws) == 0:
        return float("nan"), float("nan")
    if jackknife is not None:
        jackknife = jackknife[~np.isnan(jackknife)]
        if len(jackknife) > 1 and np.isfinite(jackknife).all():
            levels = _bca_levels(score, draws, jackknife, levels)
    low, high = _quantiles(draws, levels)
    return float(low), float(high)


def bootstrap_intervals(
    values: np.ndarray,
    finalize: Finalize,
    confidence_level: float = DEFAULT_LEVEL,
    n_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    ci_method: str = "percentile",
) -> dict[str, np.ndarray]:
    """Confidence intervals of every score by the bootstrap over instances.

    Args:
        values: per-instance statistics, (n, k), n >= 1; the score is ``finalize(values.sum(0))``.
        finalize: sums (..., k) to {key: scores (...)}; a key may also be a list of T scores, (..., T).
        confidence_level: in (0, 1).
        n_resamples: bootstrap resamples.
        seed: of numpy's default generator; the same seed gives the same interval.
        ci_method: "percentile", or "bca" (bias-corrected and accelerated, with the jackknife over instances; a key
            whose jackknife is not finite or does not vary falls back to the percentile interval).

    Returns:
        {key: array (2,) or (T, 2)}, low and high. With one instance both ends equal the score.

    Raises:
        ValueError: for settings out of range, or no instance.

    >>> mean = lambda sums: {"mean": sums[..., 0] / sums[..., 1]}
    >>> interval = bootstrap_intervals(np.array([[1.0, 1], [2, 1], [3, 1], [4, 1]]), mean, n_resamples=200)["mean"]
    >>> bool(1 <= interval[0] < 2.5 < interval[1] <= 4)
    True
    """
    check_settings(confidence_level, n_resamples, ci_method)
    values = _check_values(values)
    levels = np.array([(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    score = finalize(_weighted_sums(np.ones((1, len(values))), values))
    drawn = replicates(values, finalize, n_resamples, seed)
    left_out = dict(_jackknife(values, finalize)) if ci_method == "bca" and len(values) > 1 else {}
    bounds: dict[str, np.ndarray] = {}
    for key, draws in drawn.items():
        point = np.asarray(score[key], dtype=float)[0]
        if draws.ndim == 1:
            bounds[key] = np.array(_interval(float(point), draws, levels, left_out.get(key)))
        else:
            bounds[key] = np.array(
                [
                    _interval(float(point[t]), draws[:, t], levels, left_out[key][:, t] if key in left_out else None)
                    for t in range(draws.shape[1])
                ]
            ).reshape(-1, 2)
    return bounds


def _jackknife(values: np.ndarray, finalize: Finalize) -> Mapping[str, np.ndarray]:
    """Scores with one instance left out; NaN where a left-out sum is not finite."""
    with np.errstate(invalid="ignore"):
        return finalize(values.sum(axis=0) - values)


def intervals(
    values: np.ndarray,
    finalize: Finalize,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
    ci_method: str = "percentile",
) -> dict[str, np.ndarray] | None:
    """``bootstrap_intervals`` when a level or a number of resamples is given (the other has its default), else None."""
    if confidence_level is None and n_resamples is None:
        return None
    level = DEFAULT_LEVEL if confidence_level is None else confidence_level
    return bootstrap_intervals(
        values, finalize, level, DEFAULT_RESAMPLES if n_resamples is None else n_resamples, seed, ci_method
    )


# ------------------------------------------------------------------------------------------------- paired tests
def _swaps(n: int, n_resamples: int, seed: int, exact: bool) -> Iterator[np.ndarray]:
    """Rows of 0/1: which instances exchange their systems."""
    rows = max(1, min(n_resamples, CHUNK_BYTES // (8 * n)))
    random = np.random.default_rng(seed)
    for start in range(0, n_resamples, rows):
        stop = min(start + rows, n_resamples)
        if exact:
            yield ((np.arange(start, stop)[:, None] >> np.arange(n)) & 1).astype(float)
        else:
            # row by row, so that the draws do not depend on the size of the chunks
            yield np.stack([random.integers(0, 2, size=n, dtype=np.int8) for _ in range(start, stop)]).astype(float)


def _differences(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    with np.errstate(invalid="ignore"):
        return {key: np.asarray(first[key], float) - np.asarray(second[key], float) for key in first}


def _concatenate(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _check_pair(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = _check_values(first, "first"), _check_values(second, "second")
    if first.shape != second.shape:
        raise ValueError(
            f"expected two systems on the same instances, found statistics {first.shape} and {second.shape}"
        )
    return first, second


def approximate_randomisation(
    first: np.ndarray, second: np.ndarray, finalize: Finalize, n_resamples: int = DEFAULT_RESAMPLES, seed: int = 0
) -> dict[str, np.ndarray]:
    """Two-sided p-value of every score's difference under random exchange of the two systems, instance by instance.

    p = (1 + #{abs(difference after exchange) >= abs(difference)}) / (1 + n_resamples). With so few instances that all
    2^n exchanges are no more than ``n_resamples``, all are taken once and p is their share: exact.

    Args:
        first, second: statistics (n, k) of two systems, row i of both for the same instance.
        finalize, n_resamples, seed: as in ``bootstrap_intervals``.

    Returns:
        {key: p-value, array () or (T,)}; NaN where the difference is undefined.
    """
    first, second = _check_pair(first, second)
    check_settings(n_resamples=n_resamples)
    n = len(first)
    exact = n < 31 and 2**n <= n_resamples
    count = 2**n if exact else n_resamples
    ones = np.ones((1, n))
    observed = _differences(finalize(_weighted_sums(ones, first)), finalize(_weighted_sums(ones, second)))
    parts = []
    finite = bool(np.isfinite(first).all() and np.isfinite(second).all())
    gain, totals = first - second if finite else first, (first.sum(axis=0), second.sum(axis=0))
    for swap in _swaps(n, count, seed, exact):
        if finite:
            # what the exchange takes from one system it gives to the other: one product in place of four
            moved = swap @ gain
            parts.append(_differences(finalize(totals[0] - moved), finalize(totals[1] + moved)))
            continue
        keep = 1 - swap
        exchanged = _weighted_sums(keep, first) + _weighted_sums(swap, second)
        other = _weighted_sums(keep, second) + _weighted_sums(swap, first)
        parts.append(_differences(finalize(exchanged), finalize(other)))
    p_values = {}
    for key, drawn in _concatenate(parts).items():
        real = observed[key][0]
        # sums in another order differ in their last bits: an equal difference must count as equal
        margin = 1e-12 * np.maximum(1.0, np.abs(np.where(np.isfinite(real), real, 0)))
        valid = ~np.isnan(drawn)
        hits = (valid & (np.abs(drawn) >= np.abs(real) - margin)).sum(axis=0)
        total = valid.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            p = hits / total if exact else (1 + hits) / (1 + total)
        p_values[key] = np.where(np.isnan(real), np.nan, p)
    return p_values


def paired_bootstrap(
    first: np.ndarray,
    second: np.ndarray,
    finalize: Finalize,
    confidence_level: float = DEFAULT_LEVEL,
    n_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> dict[str, dict[str, np.ndarray]]:
    """Every score's difference first - second on resamples of the instances, the same resample for both systems.

    Returns:
        {key: {"difference": (), "ci": (2,), "p_value": (), "win_share": ()}}, or with a leading (T,) for keys that are
        lists. ``p_value`` is two-sided: (1 + #{abs(replicate - difference) >= abs(difference)}) / (1 + n_resamples);
        ``win_share`` is the share of resamples in which the first scores higher, ties counting one half.
    """
    first, second = _check_pair(first, second)
    check_settings(confidence_level, n_resamples)
    levels = np.array([(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    ones = np.ones((1, len(first)))
    observed = _differences(finalize(_weighted_sums(ones, first)), finalize(_weighted_sums(ones, second)))
    drawn = _concatenate(
        [
            _differences(finalize(_weighted_sums(weights, first)), finalize(_weighted_sums(weights, second)))
            for weights in bootstrap_weights(len(first), n_resamples, seed)
        ]
    )
    tests = {}
    for key, draws in drawn.items():
        real = np.atleast_1d(observed[key][0])
        columns = draws.reshape(len(draws), -1)
        rows = [_paired_column(float(real[t]), columns[:, t], levels) for t in range(columns.shape[1])]
        stacked = {name: np.array([row[name] for row in rows]) for name in ("difference", "ci", "p_value", "win_share")}
        tests[key] = stacked if draws.ndim > 1 else {name: value[0] for name, value in stacked.items()}
    return tests


def _paired_column(real: float, draws: np.ndarray, levels: np.ndarray) -> dict[str, object]:
    draws = draws[~np.isnan(draws)]
    if np.isnan(real) or len(draws) == 0:
        nan = float("nan")
        return {"difference": real, "ci": (nan, nan), "p_value": nan, "win_share": nan}
    margin = 1e-12 * max(1.0, abs(real)) if np.isfinite(real) else 0.0
    with np.errstate(invalid="ignore"):
        extreme = (np.abs(draws - real) >= abs(real) - margin).sum()
    return {
        "difference": real,
        "ci": _interval(real, draws, levels, None),
        "p_value": (1 + extreme) / (1 + len(draws)),
        "win_share": ((draws > margin).sum() + 0.5 * (np.abs(draws) <= margin).sum()) / len(draws),
    }


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment of p-values (controls the family-wise error); a NaN is no test and stays NaN.

    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or (p < 0).any() or (p > 1).any():
        raise ValueError("p_values: expected a list of numbers in [0, 1]")
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return [float(value) for value in adjusted]


def against_chance(observed: np.ndarray, draws: np.ndarray, higher_is_better: bool = True) -> dict[str, np.ndarray]:
    """An observed score against the same score of random draws.

    Args:
        observed: (...,), one score, or one per instance.
        draws: (..., m), the same score of m random rationales; NaN draws do not count.
        higher_is_better: False where a smaller score is the better one (sufficiency).

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
        raise ValueError(f"draws: expected shape {observed.shape} plus one axis of draws, found {draws.shape}")
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
