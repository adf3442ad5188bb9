"""Confidence intervals of scores: BCa over clusters (see `resampling`), exact bounds of shares, warnings.

Source: Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from .resampling import (
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    SAME,
    bootstrap_intervals,
    check_settings,
    find_counted,
    jackknife,
)
from .statistics_builder import Statistics

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


def _bound_constant(
    score: np.ndarray, n: np.ndarray, level: float, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a score that is the same in each of n clusters.

    At this level at most a share ``p = 1 - ((1 - level) / 2)^(1 / n)`` of all clusters differs (Clopper and Pearson),
    at worst by the whole way to the range's end: the ends are ``score - p (score - low)`` and
    ``score + p (high - score)``.

    >>> low, high = _bound_constant(np.array(0.0), np.array(50), 0.95, 0.0, 1.0)
    >>> round(float(low), 6), round(float(high), 6)
    (0.0, 0.071122)
    """
    p = 1 - ((1 - level) / 2) ** (1 / n)
    return score - p * (score - low), score + p * (high - score)


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


def intervals(
    statistics: Statistics,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
    ranges: Ranges | None = None,
) -> dict[str, np.ndarray]:
    """Compute BCa intervals over clusters, see `bootstrap_intervals`.

    Args:
        statistics: the statistics of the scores.
        confidence_level: in (0, 1); None: the default.
        n_resamples: resamples of the bootstrap; None: the default.
        seed: of the resamples.
        ranges: of the scores, for those that are the same in every cluster.

    Returns:
        The bounds, see `compute_bounds`. Shares have exact ones if each cluster has one unit, see `find_exact_shares`.
        Other scores between two ends that are the same without any of the clusters do not vary in resamples: theirs are
        those of `_bound_constant`.
    """
    check_settings(confidence_level, n_resamples, seed)
    level = DEFAULT_LEVEL if confidence_level is None else confidence_level
    resamples = DEFAULT_RESAMPLES if n_resamples is None else n_resamples
    rows, scores, exact = statistics.cluster_sums(), statistics.scores(), find_exact_shares(statistics)
    bounds = bootstrap_intervals(rows, statistics.finalize, level, resamples, seed)
    if len(rows) > 1:
        left_out, alone = jackknife(rows, statistics.finalize), statistics.finalize(rows)
        for key, score in scores.items():
            low, high = find_range(key, scores, ranges)
            if low is not None and high is not None:
                constant = np.ptp(left_out[key], axis=0) <= SAME * np.maximum(1.0, np.abs(score))  # False for NaN
                counted = find_counted(score, left_out[key], np.asarray(alone[key])).sum(axis=0)
                ends = _bound_constant(score, np.maximum(counted, 1), level, low, high)
                bounds[key] = np.where(constant[..., None], np.stack(ends, axis=-1), bounds[key])
    for key, n in exact.items():
        bounds[key] = np.array(clopper_pearson(round(float(scores[key]) * n), n, level))
    return bounds


def describe_intervals(
    statistics: Statistics, confidence_level: float | None, n_resamples: int | None, seed: int
) -> dict[str, object]:
    """Return the signature's settings of intervals, and the scores that have exact bounds instead."""
    exact = list(find_exact_shares(statistics))
    settings = {"ci": "bca", **({"exact": exact} if exact else {}), "level": confidence_level or DEFAULT_LEVEL}
    return {**settings, "resamples": n_resamples or DEFAULT_RESAMPLES, "seed": seed}


def find_exact_shares(statistics: Statistics) -> dict[str, int]:
    """Return the shares with bounds of Clopper and Pearson, each with its number of units.

    Those are the shares of which each cluster has at most one annotation, quote or answer.
    """
    units = _count_units(statistics)
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


def cautions(statistics: Statistics) -> list[str]:
    """Return lines that warn of unreliable intervals: few clusters, and small counts."""
    n, lines = statistics.n_clusters, []
    if n == 1:
        lines = ["one cluster says nothing of others: there is no interval"]
    elif n < MINIMUM_CLUSTERS:
        lines = [f"{n} clusters: intervals of fewer than {MINIMUM_CLUSTERS} are too short"]
    else:
        for count, keys in _find_few(statistics).items():
            words = f"{count} of {n} clusters {'count' if count > 1 else 'counts'}"
            lines.append(f"{_name(keys)}: {words}: intervals of fewer than {MINIMUM_CLUSTERS} are too short")
    return lines + describe_small_counts(statistics)


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


def _name(keys: list[str]) -> str:
    more = len(keys) - MOST_NAMED
    return ", ".join(keys[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
