"""Additive statistics: columns of sums and counts per annotation, scores as quotients of sums, intervals over clusters.

A score is computed last, from sums of columns: over all annotations, over a group of them, over one, or over the
clusters that a resample draws. So each of these is the same formula.

Sources: Efron and Tibshirani, An Introduction to the Bootstrap (1993), 14.3 (BCa); Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .errors import VERSION, DataError, check_number, cut

Columns = Mapping[str, np.ndarray]
DEFAULT_LEVEL, DEFAULT_RESAMPLES = 0.95, 1000
MAX_RESAMPLES = 1_000_000
MIN_CLUSTERS = 6  # intervals of fewer clusters are too short
MIN_COUNT = 5  # of hits or misses: below it an interval is rough
TIE = 1e-12  # relative: values this close are equal, whatever the order of summation
CHUNK = 1 << 22  # weights that are drawn at a time
NORMAL = NormalDist()


class Score(NamedTuple):
    """A score: how it is computed from sums of columns, and how it is read.

    Attributes:
        compute: sums of columns, each (...) or (..., T), to the score: (...) or (..., T); NaN where it is undefined.
        higher_is_better: None if it has no direction.
        low: its least value; None: no bound.
        high: its greatest value; None: no bound.
        units: of a share, the column that counts its units, each of which is right or wrong: its bounds are exact
            where every cluster has at most one unit.
    """

    compute: Callable[[Columns], np.ndarray]
    higher_is_better: bool | None = True
    low: float | None = 0.0
    high: float | None = 1.0
    units: str = ""


def divide(dividend: np.ndarray, divisor: np.ndarray, empty: float = 0.0) -> np.ndarray:
    """Return the quotient elementwise; ``empty`` where the divisor is 0."""
    dividend, divisor = np.asarray(dividend, dtype=float), np.asarray(divisor, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(divisor == 0, empty, dividend / np.where(divisor == 0, 1.0, divisor))


def add_up(owner: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Return the sum of the values of each of n owners: float64 (n,)."""
    return np.bincount(owner, weights=values, minlength=n)


def mean_columns(key: str, values: np.ndarray, owner: np.ndarray | None = None, n: int = 0) -> dict[str, np.ndarray]:
    """Return the columns ``KEY.sum`` and ``KEY.count`` of a mean that leaves out NaN; see `mean`.

    Args:
        key: the score's key.
        values: a value per annotation (n,), or per key (keys,).
        owner: the annotation of each key; None: values are per annotation.
        n: the number of annotations, with ``owner``.
    """
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0), known.astype(float)
    if owner is not None:
        total, count = add_up(owner, total, n), add_up(owner, count, n)
    return {f"{key}.sum": total, f"{key}.count": count}


def mean(key: str) -> Callable[[Columns], np.ndarray]:
    """Return the function that computes the mean of the columns of `mean_columns`; NaN where there is no value."""
    return lambda sums: divide(sums[f"{key}.sum"], sums[f"{key}.count"], np.nan)


def number_values(values: Iterable[object]) -> np.ndarray:
    """Return the number of each value, from 0 by first appearance: int64 (n,)."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def find_components(owner: np.ndarray, item: np.ndarray, n: int) -> np.ndarray | None:
    """Find the connected components of annotations that share items (documents), directly or through others.

    Args:
        owner: the annotation of each (annotation, item) pair, in [0, n): int (pairs,).
        item: the item of each pair, from 0: int (pairs,).
        n: the number of annotations; one without items is a component of its own.

    Returns:
        The component of each, from 0 by first appearance: int64 (n,); None if no two annotations share an item.
    """
    least = np.arange(n)
    while True:
        of_item = np.full(int(item.max(initial=-1)) + 1, n)
        np.minimum.at(of_item, item, least[owner])
        lower = least.copy()
        np.minimum.at(lower, owner, of_item[item])
        lower = lower[lower]  # a component's least annotation is in the component: this halves the way to it
        if (lower == least).all():
            break
        least = lower
    names, numbers = np.unique(least, return_inverse=True)
    return None if names.size == n else numbers


@dataclass
class Statistics:
    """Columns of n annotations, and the scores that are computed from their sums.

    Attributes:
        ids: of the annotations.
        columns: name -> a number per annotation (n,), or T numbers (n, T); all additive.
        scores: key -> score, in the order of results; each needs its columns.
        clusters: the cluster of each annotation, from 0: int (n,); None: one annotation each.
        clustering: what clusters are, in the signature: "documents", "original", a column's name, or "none".
    """

    ids: Sequence[str]
    columns: dict[str, np.ndarray]
    scores: Mapping[str, Score]
    clusters: np.ndarray | None = None
    clustering: str = "none"

    def set_clusters(self, clustering: str, values: Iterable[object] | None) -> None:
        """Set the clusters: annotations with one value; None: one annotation each. One without a value is alone."""
        self.clustering = clustering
        keys = None if values is None else ((at,) if each is None else each for at, each in enumerate(values))
        self.clusters = None if keys is None else number_values(keys)

    def take(self, rows: np.ndarray) -> Statistics:
        """Return the statistics of some annotations, in this order."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        clusters = None if self.clusters is None else np.unique(self.clusters[rows], return_inverse=True)[1]
        return replace(self, ids=[self.ids[row] for row in rows.tolist()], columns=columns, clusters=clusters)

    def compute(self, sums: Columns) -> dict[str, np.ndarray]:
        """Return all scores of sums of columns: {key: (...) or (..., T)}."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return {key: np.asarray(score.compute(sums), dtype=float) for key, score in self.scores.items()}

    def values(self) -> dict[str, np.ndarray]:
        """Return the scores of all annotations: {key: () or (T,)}."""
        return self.compute({name: values.sum(axis=0) for name, values in self.columns.items()})

    def per_instance(self) -> dict[str, np.ndarray]:
        """Return the scores of each annotation alone: {key: (n,) or (n, T)}."""
        return self.compute(self.columns)

    def group(self, groups: np.ndarray, n: int) -> dict[str, np.ndarray]:
        """Return the sums of the columns over each of n groups of annotations: {name: (n,) or (n, T)}."""
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(n))
        return {
            name: np.add.reduceat(values[order], starts, axis=0, dtype=float) for name, values in self.columns.items()
        }

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.ids) if self.clusters is None else int(self.clusters.max(initial=-1)) + 1

    def cluster_sums(self) -> dict[str, np.ndarray]:
        """Return the sums of the columns over each cluster: {name: (clusters,) or (clusters, T)}, float64."""
        sums = self.columns if self.clusters is None else self.group(self.clusters, self.n_clusters)
        return {name: np.asarray(values, dtype=float) for name, values in sums.items()}

    def intervals(
        self, level: float | None = None, resamples: int | None = None, seed: int = 0
    ) -> dict[str, np.ndarray]:
        """Compute the interval of every score, over clusters: {key: (2,) or (T, 2)}, low and high.

        BCa: percentiles of the scores of resampled clusters, moved by bias and acceleration. A share of which each
        cluster has at most one unit has the exact bounds of Clopper and Pearson, and so has a score between two ends
        that is the same without any cluster: at most a share p of all clusters differs, at worst by the whole way to
        the end. One cluster says nothing of others: NaN.

        Args:
            level: in (0, 1); by default .95.
            resamples: by default 1,000.
            seed: of numpy's default generator.

        Raises:
            DataError: a setting out of its range.
        """
        level = DEFAULT_LEVEL if level is None else level
        resamples = DEFAULT_RESAMPLES if resamples is None else resamples
        check_inference(level, resamples, seed)
        sums, n, values = self.cluster_sums(), self.n_clusters, self.values()
        if n < 2:
            return {key: np.full((*value.shape, 2), np.nan) for key, value in values.items()}
        draws = self.compute(resample(sums, n, resamples, seed))
        left_out = self.compute({name: column.sum(axis=0) - column for name, column in sums.items()})
        alone = self.compute(sums)
        bounds = {}
        for key, value in values.items():
            score, units = self.scores[key], sums.get(self.scores[key].units)
            if units is not None and units.max() <= 1 and not np.isnan(value):
                bounds[key] = np.array(clopper_pearson(round(float(value * units.sum())), int(units.sum()), level))
                continue
            columns = draws[key].reshape(resamples, -1).T, left_out[key].reshape(n, -1).T
            points = zip(value.reshape(-1), *columns, strict=True)
            ends = [find_bca_bounds(float(point), drawn, left, level) for point, drawn, left in points]
            bounds[key] = np.array(ends).reshape(*value.shape, 2)
            if score.low is not None and score.high is not None:
                # without a cluster that alone is counted there is no score, and none that differs
                others = np.where(np.isnan(left_out[key]), value, left_out[key])
                constant = np.ptp(others, axis=0) <= TIE * np.maximum(1.0, np.abs(value))  # False for NaN
                counted = np.maximum(find_counted(value, left_out[key], alone[key]).sum(axis=0), 1)
                p = 1 - ((1 - level) / 2) ** (1 / counted)
                exact = np.stack([value - p * (value - score.low), value + p * (score.high - value)], axis=-1)
                bounds[key] = np.where(constant[..., None], exact, bounds[key])
        return bounds

    def cautions(self) -> list[str]:
        """Return lines that warn of unreliable intervals: few clusters, few hits or misses."""
        n = self.n_clusters
        if n == 1:
            return ["one cluster says nothing of others: there is no interval"]
        if n < MIN_CLUSTERS:
            return [f"{n} clusters: intervals of fewer than {MIN_CLUSTERS} are too short"]
        sums, values, lines = self.cluster_sums(), self.values(), list[str]()
        few: dict[str, list[str]] = {}
        left_out = self.compute({name: column.sum(axis=0) - column for name, column in sums.items()})
        alone = self.compute(sums)
        for key, value in values.items():
            if value.ndim or np.isnan(value):
                continue
            counted = int(find_counted(value, left_out[key], alone[key]).sum())
            if 0 < counted < MIN_CLUSTERS:
                few.setdefault(f"{counted} of {n} clusters count", []).append(key)
            elif (units := sums.get(self.scores[key].units)) is not None:
                total = float(units.sum())
                rare = round(min(float(value), 1 - float(value)) * total)
                if 0 < rare < MIN_COUNT and units.max() > 1:
                    few.setdefault(f"fewer than {MIN_COUNT} hits or misses", []).append(key)
        for why, keys in few.items():
            more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
            lines.append(f"{', '.join(keys[:8])}{more}: {why}: intervals are rough")
        return lines


def check_inference(level: float, resamples: int, seed: int, name: str = "n_resamples") -> None:
    """Raise a `DataError` if a setting of intervals or tests is out of its range."""
    if not isinstance(level, (int, float)) or not 0 < level < 1:
        raise DataError(f"expected a number in (0, 1), found {cut(level)}", argument="confidence_level")
    check_number(resamples, name, 1, MAX_RESAMPLES)
    check_number(seed, "seed", 0)


def draw_weights(n: int, resamples: int, seed: int) -> Iterable[np.ndarray]:
    """Yield how often each of n clusters is drawn: float64 (rows, n), ``resamples`` rows in all.

    The draws depend on n and the seed alone; memory does not grow with the number of resamples.
    """
    random, rows = np.random.default_rng(seed), max(1, min(resamples, CHUNK // n))
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        drawn = random.integers(0, n, size=(count, n), dtype=np.int32) + n * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(float)


def resample(sums: Columns, n: int, resamples: int, seed: int) -> dict[str, np.ndarray]:
    """Return the sums of columns in each bootstrap resample of n clusters: {name: (resamples,) or (resamples, T)}."""
    shapes = {name: column.shape[1:] for name, column in sums.items()}
    table = np.column_stack([column.reshape(n, -1) for column in sums.values()])
    # 0 x infinity is NaN: a column with an infinite value is infinite where it is drawn
    finite, drawn = np.where(np.isfinite(table), table, 0.0), []
    special = {np.inf: table == np.inf, -np.inf: table == -np.inf, np.nan: np.isnan(table)}
    for weights in draw_weights(n, resamples, seed):
        total = weights @ finite
        for value, places in special.items():
            if places.any():
                total += np.where(weights @ places > 0, value, 0.0)
        drawn.append(total)
    totals, place, result = np.concatenate(drawn), 0, {}
    for name, shape in shapes.items():
        width = math.prod(shape)
        result[name] = totals[:, place : place + width].reshape(resamples, *shape)
        place += width
    return result


def find_counted(value: np.ndarray, left_out: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Return which clusters a score counts: the others change nothing, and alone they have no score.

    Args:
        value: the score of all clusters: (...).
        left_out: the score without each cluster: (n, ...).
        alone: the score of each cluster: (n, ...); NaN, or 0 by convention, where there is nothing to divide.
    """
    silent = np.isnan(alone) | ((alone == 0) & (value != 0))
    return np.asarray((left_out != value) | ~silent)


def find_bca_bounds(value: float, draws: np.ndarray, left_out: np.ndarray, level: float) -> tuple[float, float]:
    """Return the BCa interval of a score (percentiles where the jackknife does not vary); NaN where it has none.

    A draw within 1e-12 max(1, abs(value)) of the value is a tie and counts half.

    Args:
        value: the score.
        draws: the scores of the resamples: (resamples,); NaN ones are left out.
        left_out: the scores without each cluster: (clusters,).
        level: in (0, 1).
    """
    draws, left_out = np.sort(draws[~np.isnan(draws)]), left_out[~np.isnan(left_out)]
    if np.isnan(value) or not draws.size:
        return math.nan, math.nan
    levels = np.array([(1 - level) / 2, (1 + level) / 2])
    centred = left_out.mean() - left_out if left_out.size > 1 and np.isfinite(left_out).all() else np.zeros(1)
    spread = (centred**2).sum()
    if np.isfinite(spread) and spread > 0:
        acceleration = (centred**3).sum() / (6 * spread**1.5)
        margin = TIE * max(1.0, abs(value)) if math.isfinite(value) else 0.0
        share = ((draws < value - margin).sum() + (draws <= value + margin).sum()) / (2 * draws.size)
        edge = 0.5 / (draws.size + 1)
        bias = NORMAL.inv_cdf(float(np.clip(share, edge, 1 - edge)))
        for at, each in enumerate(levels.tolist()):
            z = bias + NORMAL.inv_cdf(each)
            levels[at] = NORMAL.cdf(bias + z / (1 - acceleration * z)) if acceleration * z < 1 else each > 0.5
    position = np.clip(levels, 0, 1) * (draws.size - 1)
    below = np.floor(position).astype(int)
    low, high, share = draws[below], draws[np.minimum(below + 1, draws.size - 1)], position - below
    with np.errstate(invalid="ignore"):  # between infinite draws there is no line
        between = np.where(low == high, low, np.where(share == 0, low, low + share * (high - low)))
    ends = np.where(np.isfinite(low) & np.isfinite(high), between, np.where((low == high) | (share == 0), low, high))
    return float(ends[0]), float(ends[1])


def clopper_pearson(hits: int, n: int, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
    """Compute exact bounds of a share: the p at which so many hits of n, or more, or fewer, become improbable.

    >>> [round(bound, 6) for bound in clopper_pearson(0, 50)]
    [0.0, 0.071122]
    """
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    tail = (1 - level) / 2

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


def concatenate(parts: Sequence[Columns], sizes: Sequence[int]) -> dict[str, np.ndarray]:
    """Join the columns of chunks one after another; a column that a chunk lacks is 0 there.

    Args:
        parts: the columns of each chunk.
        sizes: the annotations of each chunk.
    """
    shapes = {name: values.shape[1:] for part in parts for name, values in part.items()}
    empty = {name: [np.zeros((size, *shape)) for size in sizes] for name, shape in shapes.items()}
    return {
        name: np.concatenate([part.get(name, blank) for part, blank in zip(parts, empty[name], strict=True)])
        for name in shapes
    }


def sign(name: str, settings: Mapping[str, object]) -> str:
    """Return the signature of a result: the metric's name, and what makes two numbers comparable, in this order.

    >>> sign("perturbation_map", {"n": 2, "level": 0.95, "version": "1.0"})
    'perturbation_map|n:2|level:0.95|version:1.0'
    """

    def show(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            short = format(value, "g")
            return short if float(short) == value else repr(float(value))  # other numbers, another signature
        if isinstance(value, (list, tuple)):
            return ",".join(map(show, value))
        return str(value).replace("|", "/").replace("\n", " ")  # the separators of the line must not appear in a value

    return "|".join([name, *(f"{key}:{show(value)}" for key, value in settings.items())])


@dataclass
class Measured:
    """What a measure returns for all rows.

    Attributes:
        statistics: additive, per annotation; its clusters are those of ``cluster_by="auto"``.
        settings: of the signature: settings that differ from their defaults, and facts ("scored": "105/199").
        extra: further entries of the result, put before the signature.
        notes: what was left out or guessed, a line each.
    """

    statistics: Statistics
    settings: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()


def summarize(
    name: str,
    measured: Measured,
    names: Mapping[str, object] | None = None,
    *,
    by: str | None = None,
    groups: Sequence[object] = (),
    per_instance: bool = False,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
) -> tuple[dict[str, Any], list[str]]:
    """Return the result of a metric, flat and in plain Python, and the lines that a reader of it needs.

    Args:
        name: the metric's name.
        measured: of all rows.
        names: what the scores are of, at the beginning of the signature: data, config, split, n; by default
            ``data``, if the settings have it, and n.
        by: a column's name; adds ``by: {value: {key: score}}``.
        groups: the column's value of each annotation.
        per_instance: adds ``per_instance: {key: [score per annotation], "annotation_id": [..], "cluster": [..]}``.
        confidence_level: adds ``KEY_ci: [low, high]``; in (0, 1).
        n_resamples: likewise; by default 1,000.
        seed: of the resamples.

    Raises:
        DataError: a setting out of its range.
    """
    statistics, notes = measured.statistics, list(measured.notes)
    level = DEFAULT_LEVEL if confidence_level is None else confidence_level
    check_inference(level, DEFAULT_RESAMPLES if n_resamples is None else n_resamples, seed)
    if names is None:
        data = {"data": measured.settings["data"]} if "data" in measured.settings else {}
        names = {**data, "n": len(statistics.ids)}
    settings = {**names, **measured.settings}
    bounds: Mapping[str, np.ndarray] = {}
    if confidence_level is not None or n_resamples is not None:
        bounds = statistics.intervals(confidence_level, n_resamples, seed)
        drawn = {
            "level": (confidence_level, DEFAULT_LEVEL),
            "resamples": (n_resamples, DEFAULT_RESAMPLES),
            "seed": (seed, 0),
        }
        settings |= {name: value for name, (value, default) in drawn.items() if value not in (None, default)}
        settings |= {"cluster": statistics.clustering, "clusters": statistics.n_clusters}
        notes += [f"{name}: {line}" for line in statistics.cautions()]
    result: dict[str, Any] = {}
    for key, value in statistics.values().items():
        result[key] = value.tolist()
        if key in bounds:
            result[f"{key}_ci"] = bounds[key].tolist()
    result |= measured.extra
    if per_instance:
        clusters = np.arange(len(statistics.ids)) if statistics.clusters is None else statistics.clusters
        columns = {key: column.tolist() for key, column in statistics.per_instance().items()}
        result["per_instance"] = columns | {"annotation_id": list(statistics.ids), "cluster": clusters.tolist()}
    if by is not None:
        result["by"] = score_groups(statistics, ["null" if each is None else str(each) for each in groups])
        if by == "classification" and "macro_f1" in result:
            notes.append("by classification: macro_f1 is left out, because each group has one label")
            for group in result["by"].values():
                del group["macro_f1"]
        settings["by"] = by
    return result | {"signature": sign(name, {**settings, "version": VERSION})}, notes


def score_groups(statistics: Statistics, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return {name: {key: score}} of groups of annotations, in the order of the names.

    Args:
        statistics: of all annotations.
        names: the group of each.
    """
    levels, which = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)
    scores = statistics.compute(statistics.group(which, levels.size))
    return {
        str(level): {key: column[row].tolist() for key, column in scores.items()} for row, level in enumerate(levels)
    }
