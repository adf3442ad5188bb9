"""Confidence intervals of scores: the choice of a method, studentised intervals, exact bounds of shares, warnings.

Fewer than 100 clusters have studentised intervals of their jackknife influences (see `student`), which hold the true
score more often than the bootstrap's (see `resampling`). docs/statistics.md has the measurements.

Source: Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from .resampling import (
    AUTO,
    BCA,
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    SAME,
    STUDENT,
    bootstrap_intervals,
    check_settings,
    find_counted,
    jackknife,
)
from .statistics_builder import Finalize, Statistics
from .student import compute_interval, measure_influences

# "auto" is "student" below this number of clusters, else "bca"
STUDENT_BELOW = 100
# intervals of fewer clusters are too short
MINIMUM_CLUSTERS = 6
# keys named in one line
MOST_NAMED = 8
# below these counts of annotations of a class, of hits or of misses the interval is unreliable: warn
FEW = 5
# scores that are shares of annotations, of quotes or of answers: each is right or wrong
_OF_ANNOTATIONS = ("accuracy", "any_group_coverage", "iou_f1", "new_p", "accuracy_rationale", "accuracy_no_rationale")
_OF_QUOTES = ("in_text", "exact", "normalised", "fuzzy", "ambiguous", "invented")
_OF_ANSWERS = ("answered", "instances_with_invented")
SHARES = frozenset((*_OF_ANNOTATIONS, *_OF_QUOTES, *_OF_ANSWERS))
SHARES_BY_PREFIX = ("label_flip_", "label_kept_")
# names of counts of hits in messages, if they differ from the columns' names; "": a share has its own name
NAMED = {"labels": "", "sentence_by_spans": "sentence"}
# key -> the lowest and the highest value; None: no bound
Ranges = Mapping[str, tuple[float | None, float | None]]


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


def _compute_student_interval(
    score: float, left_out: np.ndarray, level: float, low: float | None, high: float | None
) -> tuple[float, float]:
    """Return the studentised interval of a score within its range, out of the scores without one row each.

    A score that no row changes has the interval of `_bound_constant`.
    """
    n = len(left_out)
    influences = score + (n - 1) * (left_out.mean() - left_out)
    if not np.isfinite(influences).all():
        return math.nan, math.nan
    if np.abs(influences - score).max() <= SAME * max(1.0, abs(score)):
        return _bound_constant(score, n, level, low, high)
    df, skewness = measure_influences(influences)
    error = float(influences.std(ddof=1)) / math.sqrt(n)
    ends = compute_interval(score, error, max(1.0, float(df)), float(skewness), level)
    return max(ends[0], -math.inf if low is None else low), min(ends[1], math.inf if high is None else high)


def _bound_constant(score: float, n: int, level: float, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the interval of a score that is the same in each of n clusters; NaN at the end of an open range.

    At this level at most a share ``p = 1 - ((1 - level) / 2)^(1 / n)`` of all clusters differs (Clopper and Pearson),
    at worst by the whole way to the range's end: the ends are ``score - p (score - low)`` and
    ``score + p (high - score)``.

    >>> [round(end, 6) for end in _bound_constant(0.0, 50, 0.95, 0.0, 1.0)]
    [0.0, 0.071122]
    """
    p = 1 - ((1 - level) / 2) ** (1 / n)
    return (
        math.nan if low is None else score - p * (score - low),
        math.nan if high is None else score + p * (high - score),
    )


def student_intervals(
    values: np.ndarray, finalize: Finalize, confidence_level: float = DEFAULT_LEVEL, ranges: Ranges | None = None
) -> dict[str, np.ndarray]:
    """Compute studentised confidence intervals of every score, from the influences of the rows that it counts.

    The interval joins Student's t, whose degrees of freedom fall where few rows carry the score, with Hall's correction
    of skewness, see `student.compute_interval`; it ends at the score's range.

    Args:
        values: statistics, (n, k), see `bootstrap_intervals`.
        finalize: likewise.
        confidence_level: in (0, 1).
        ranges: of the scores; keys of further thresholds (``KEY@0.1``) have the key's.

    Returns:
        The bounds, see `compute_bounds`. NaN: with one row that counts, see `find_counted`; where a score is undefined
        or infinite without one of the rows; at an end without bound, if the score is the same without any row.

    >>> mean = lambda sums: {"mean": sums[..., 0] / sums[..., 1]}
    >>> values = np.array([[0.0, 1], [0, 1], [0, 1], [1, 1]])
    >>> student_intervals(values, mean, ranges={"mean": (0.0, 1.0)})["mean"].tolist()
    [0.0, 1.0]
    """
    bounds, left_out, alone = {}, jackknife(values, finalize), finalize(values)
    scores = finalize(values.sum(axis=0))
    for key, score in scores.items():
        points = np.asarray(score, dtype=float)
        low, high = find_range(key, scores, ranges)
        columns = left_out[key].reshape(len(values), points.size)
        counted = find_counted(points, left_out[key], np.asarray(alone[key])).reshape(columns.shape)
        pairs = [
            _compute_student_interval(float(point), columns[counted[:, at], at], confidence_level, low, high)
            if counted[:, at].sum() > 1
            else (math.nan, math.nan)
            for at, point in enumerate(points.reshape(-1))
        ]
        bounds[key] = np.array(pairs).reshape(*points.shape, 2)
    return bounds


def find_range(key: str, scores: Mapping[str, np.ndarray], ranges: Ranges | None) -> tuple[float | None, float | None]:
    """Return the lowest and the highest value of a score; None: no end.

    Recall and F1 of IOU pass 1 only where two predicted spans hit one gold span. Where none do, as the scores of
    one-to-one matches tell, the range ends at 1.
    """
    family, at, threshold = key.partition("@")
    low, high = (ranges or {}).get(family, (None, None))
    if high != 1 and family.startswith(("iou_micro_", "iou_macro_")):
        hits, matched = (scores.get(f"iou_{kind}_p{at}{threshold}") for kind in ("micro", "matched"))
        high = 1.0 if hits is not None and hits == matched else high
    return low, high


def choose_method(ci_method: str, clusters: int) -> str:
    """Return the method of intervals over so many clusters: "auto" is "student" below 100, else "bca"."""
    return ci_method if ci_method != AUTO else STUDENT if clusters < STUDENT_BELOW else BCA


def intervals(
    statistics: Statistics,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
    ci_method: str = AUTO,
    ranges: Ranges | None = None,
) -> dict[str, np.ndarray]:
    """Compute intervals over clusters.

    Args:
        statistics: the statistics of the scores.
        confidence_level: in (0, 1); None: the default.
        n_resamples: resamples of a bootstrap; None: the default.
        seed: likewise.
        ci_method: "student" (see `student_intervals`), "bca" or "percentile" (see `bootstrap_intervals`), or "auto",
            see `choose_method`.
        ranges: of the scores, for "student" and for shares that do not vary.

    Returns:
        The bounds, see `compute_bounds`. Shares (`find_exact_shares`) have exact ones if each cluster has one unit
        (annotation, quote or answer). Otherwise those that are 0 or 1 have the bounds of their clusters, see
        `_bound_constant`. "student" has no interval (NaN) where it would cover the whole range.
    """
    check_settings(confidence_level, n_resamples, ci_method, seed)
    level = DEFAULT_LEVEL if confidence_level is None else confidence_level
    resamples = DEFAULT_RESAMPLES if n_resamples is None else n_resamples
    rows, method = statistics.cluster_sums(), choose_method(ci_method, statistics.n_clusters)
    if method == STUDENT:
        bounds = student_intervals(rows, statistics.finalize, level, ranges)
    else:
        bounds = bootstrap_intervals(rows, statistics.finalize, level, resamples, seed, method)
    scores, exact = statistics.scores(), find_exact_shares(statistics, method)
    for key, units in _count_units(statistics).items():
        if key in exact:
            bounds[key] = np.array(clopper_pearson(round(float(scores[key]) * exact[key]), exact[key], level))
        elif scores[key] in (0.0, 1.0):
            bounds[key] = np.array(_bound_constant(float(scores[key]), int((units > 0).sum()), level, 0.0, 1.0))
    if method == STUDENT:
        for key in bounds:
            low, high = find_range(key, scores, ranges)
            if low is not None and high is not None:
                whole = (bounds[key][..., :1] <= low) & (bounds[key][..., 1:] >= high)
                bounds[key] = np.where(whole, math.nan, bounds[key])
    return bounds


def describe_intervals(
    statistics: Statistics, confidence_level: float | None, n_resamples: int | None, seed: int, ci_method: str
) -> dict[str, object]:
    """Return the signature's settings of intervals: the method, and the scores that have exact bounds instead."""
    method = choose_method(ci_method, statistics.n_clusters)
    level = {"level": confidence_level or DEFAULT_LEVEL}
    if method != STUDENT:
        return {"ci": method, **level, "resamples": n_resamples or DEFAULT_RESAMPLES, "seed": seed}
    exact = [*find_exact_shares(statistics, method)]
    return {"ci": method, **({"exact": exact} if exact else {}), **level}


def find_exact_shares(statistics: Statistics, ci_method: str = AUTO) -> dict[str, int]:
    """Return the shares with bounds of Clopper and Pearson, each with its number of units.

    Those are, where each cluster has at most one annotation, quote or answer, all shares with "student"; else those
    that are 0 or 1, as they do not vary in resamples.
    """
    constant, scores = choose_method(ci_method, statistics.n_clusters) != STUDENT, statistics.scores()
    units = {key: own for key, own in _count_units(statistics).items() if not constant or scores[key] in (0.0, 1.0)}
    return {key: int(own.sum()) for key, own in units.items() if own.max(initial=0) <= 1}


def _count_units(statistics: Statistics) -> dict[str, np.ndarray]:
    """Return the number of units of each defined share in each cluster: (clusters,)."""
    scores, places = statistics.scores(), {name: at for at, name in enumerate(statistics.columns or ())}
    keys = [key for key in scores if key in SHARES or key.startswith(SHARES_BY_PREFIX)]
    keys = [key for key in keys if not scores[key].ndim and scores[key] == scores[key]]
    counted = {key: places[f"{key}.count"] for key in keys if f"{key}.count" in places}
    sums = statistics.cluster_sums() if counted else np.zeros((0, 0))
    each = statistics.finalize(statistics.values) if len(counted) < len(keys) else {}
    clusters = np.arange(len(statistics.ids)) if statistics.clusters is None else statistics.clusters
    return {
        key: sums[:, counted[key]] if key in counted else np.bincount(clusters, ~np.isnan(each[key]))
        for key in keys
        if key in counted or not key.startswith(SHARES_BY_PREFIX)
    }


def describe_small_counts(statistics: Statistics) -> list[str]:
    """Return lines for classes of fewer than 5 annotations, and for counts of fewer than 5 hits, or 1 to 4 misses."""
    sums = statistics.values.sum(axis=0).tolist()
    columns = dict(zip(statistics.columns, sums, strict=True)) if statistics.columns else {}
    rare = {name: f"{int(count)}" for name, count in columns.items() if count < FEW}
    labels = [name[6:-6] for name in rare if name.startswith("label ") and name.endswith(".truth")]
    used = [label for label in labels if columns[f"label {label}.truth"] or columns[f"label {label}.predicted"]]
    names = [name[:-5] for name in rare if name.endswith(".hits") and not name.startswith("label ")]
    few = {"hits": {NAMED.get(name, name): int(rare[f"{name}.hits"]) for name in names if NAMED.get(name, name)}}
    few["misses"] = {}
    scores = statistics.scores()
    for key, units in _count_units(statistics).items():
        n = round(float(units.sum()))
        hits = round(float(scores[key]) * n)
        if hits < n and min(hits, n - hits) < FEW:  # without a miss there is an exact bound
            few["hits" if hits <= n - hits else "misses"][key] = min(hits, n - hits)
    lines = []
    if used:
        classes = ", ".join(f"{label} ({rare[f'label {label}.truth']})" for label in used)
        lines.append(f"fewer than {FEW} annotations of {classes}: intervals of macro F1 are rough")
    for kind, counts in few.items():
        if counts:
            found = ", ".join(f"{name} ({count})" for name, count in counts.items())
            lines.append(f"fewer than {FEW} {kind} of {found}: their intervals are rough or wide")
    return lines


def cautions(statistics: Statistics, ci_method: str = AUTO, result: Mapping[str, object] | None = None) -> list[str]:
    """Return lines that warn of unreliable intervals: few clusters, small counts, and scores without an interval.

    Args:
        statistics: those of the scores.
        ci_method: see `intervals`.
        result: the scores, each with ``KEY_ci``; None: intervals that were left out are not named.
    """
    n, lines = statistics.n_clusters, []
    if n == 1:
        lines = ["one cluster says nothing of others: there is no interval"]
    elif n < MINIMUM_CLUSTERS:
        lines = [f"{n} clusters: intervals of fewer than {MINIMUM_CLUSTERS} are too short"]
    else:
        for count, keys in _find_few(statistics).items():
            words = f"{count} of {n} clusters {'count' if count > 1 else 'counts'}"
            lines.append(f"{_name(keys)}: {words}: intervals of fewer than {MINIMUM_CLUSTERS} are too short")
    lines += describe_small_counts(statistics)
    if n == 1 or choose_method(ci_method, n) != STUDENT:
        return lines
    undefined, whole = _find_lacking(statistics, result or {})
    lines += [f"{_name(undefined)}: no interval, because one cluster decides it"] if undefined else []
    return lines + ([f"{_name(whole)}: no interval, because it would cover the whole range"] if whole else [])


def _find_few(statistics: Statistics) -> dict[int, list[str]]:
    """Return the scores that count from one to five clusters, by this number."""
    rows, few = statistics.cluster_sums(), dict[int, list[str]]()
    with np.errstate(invalid="ignore"):
        without, alone = jackknife(rows, statistics.finalize), statistics.finalize(rows)
    for key, score in statistics.scores().items():
        count = 0 if score.ndim else int(find_counted(score, without[key], np.asarray(alone[key])).sum())
        if 0 < count < MINIMUM_CLUSTERS:
            few.setdefault(count, []).append(key)
    return few


def _find_lacking(statistics: Statistics, result: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the scores that are not finite without one of the clusters, and those that vary without an interval."""
    without = jackknife(statistics.cluster_sums(), statistics.finalize)
    exact, scores = find_exact_shares(statistics, STUDENT), statistics.scores()
    keys = [key for key, score in scores.items() if not score.ndim and np.isfinite(score) and key not in exact]
    undefined = [key for key in keys if not np.isfinite(without[key]).all()]
    lacking = [
        key for key in keys if key not in undefined and np.isnan(np.asarray(result.get(f"{key}_ci", 0.0), float)).all()
    ]
    return undefined, [key for key in lacking if np.ptp(without[key]) > SAME]


def _name(keys: list[str]) -> str:
    more = len(keys) - MOST_NAMED
    return ", ".join(keys[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
