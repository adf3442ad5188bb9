"""How every metric turns per-instance statistics into the dict it returns.

A metric reduces its input to ``Statistics``: additive numbers per instance. Their sum, put through ``finalize``, is the
score; sums over groups are the breakdown; the same rows are what the bootstrap resamples. An average over keys (a
macro average) is such a sum too: the sum of the per-key values and the number of keys.

NaN: a score that is undefined (a mean over nothing) is NaN in Python and null in JSON; nothing is averaged around it
silently, because ``finalize`` carries the count it divides by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

# equal to the package's own version (a test holds them together); a Space has no package to ask
VERSION = "1.0.0"


@dataclass(frozen=True)
class Statistics:
    """Additive statistics of one system on n instances.

    Attributes:
        ids: annotation ids, n strings, unique.
        values: float64 (n, k); the score is ``finalize(values.sum(axis=0))``.
        finalize: sums (..., k) to {key: scores (...)}; a key that is a list of T scores has shape (..., T). It works
            on any leading shape and gives NaN (or the metric's convention) where a count is 0, without warning.
        per_instance: {key: (n,) or (n, T)}, the instance's own scores; NaN where an instance has none.
        columns: what each column of ``values`` is, k names, by which the statistics of systems with other optional
            fields are compared; None where that never happens.
    """

    ids: Sequence[str]
    values: np.ndarray
    finalize: Callable[[np.ndarray], Mapping[str, np.ndarray]]
    per_instance: Mapping[str, np.ndarray] = field(default_factory=dict)
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or len(self.values) != len(self.ids):
            raise ValueError(
                f"expected one row of statistics per id, found {self.values.shape} for {len(self.ids)} ids"
            )
        if self.columns is not None and len(self.columns) != self.values.shape[1]:
            raise ValueError(f"expected {self.values.shape[1]} names of columns, found {len(self.columns)}")
        for key, column in self.per_instance.items():
            if len(column) != len(self.ids):
                raise ValueError(f"per_instance[{key!r}]: expected {len(self.ids)} values, found {len(column)}")

    def scores(self) -> dict[str, np.ndarray]:
        """The scores over all instances: {key: 0-d array, or (T,)}."""
        with np.errstate(invalid="ignore"):
            return {key: np.asarray(value) for key, value in self.finalize(self.values.sum(axis=0)).items()}

    def take(self, rows: Sequence[int] | np.ndarray) -> Statistics:
        """The statistics of some instances, in the order of ``rows``."""
        rows = np.asarray(rows, dtype=np.int64)
        own = {key: np.asarray(column)[rows] for key, column in self.per_instance.items()}
        return Statistics([self.ids[row] for row in rows], self.values[rows], self.finalize, own, self.columns)


def merge(parts: Sequence[Statistics]) -> Statistics:
    """The statistics of disjoint batches as of one call (the same metric with the same settings throughout)."""
    ids = [name for part in parts for name in part.ids]
    if len(set(ids)) != len(ids):
        raise ValueError("expected disjoint batches, found an annotation id twice")
    keys = list(parts[0].per_instance)
    own = {key: np.concatenate([np.asarray(part.per_instance[key]) for part in parts]) for key in keys}
    values = np.concatenate([part.values for part in parts])
    return Statistics(ids, values, parts[0].finalize, own, parts[0].columns)


def mean(sums: np.ndarray, column: int, count: int, empty: float = math.nan) -> np.ndarray:
    """Column ``column`` of the sums over column ``count``; ``empty`` where the count is 0. For use in ``finalize``."""
    return ratio(sums[..., column], sums[..., count], empty)


def ratio(numerator: np.ndarray, denominator: np.ndarray, empty: float = math.nan) -> np.ndarray:
    """``numerator / denominator``, and ``empty`` where the denominator is 0, without a warning."""
    numerator, denominator = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator == 0, empty, numerator / np.where(denominator == 0, 1.0, denominator))


def plain(value: object) -> object:
    """A score as plain Python: float, int, bool, str, None, and lists and dicts of them (no numpy scalar)."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def _setting(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        short = format(value, "g")
        return short if float(short) == value else repr(float(value))  # other numbers, another signature
    if isinstance(value, (list, tuple)):
        return ",".join(_setting(part) for part in value)
    # the separators of the line itself must not appear inside a value
    return str(value).replace("|", "/").replace("\n", " ")


def signature(name: str, settings: Mapping[str, object], version: str = VERSION) -> str:
    """One line that says what made the number: the metric, every setting in the order given, the version.

    >>> signature("perturbation_map", {"average": "pairs", "level": 0.95}, version="1.0")
    'perturbation_map|average:pairs|level:0.95|version:1.0'
    """
    return "|".join([name, *(f"{key}:{_setting(value)}" for key, value in settings.items()), f"version:{version}"])


def resampling_settings(
    confidence_level: float | None, n_resamples: int | None, seed: int, ci_method: str, by: str | None = None
) -> dict[str, object]:
    """The part of a signature that the keyword arguments common to all metrics make; empty when none was used."""
    settings: dict[str, object] = {}
    if confidence_level is not None or n_resamples is not None:
        settings["ci"] = ci_method
        settings["level"] = 0.95 if confidence_level is None else confidence_level
        settings["resamples"] = 1000 if n_resamples is None else n_resamples
        settings["seed"] = seed
    if by is not None:
        settings["by"] = by
    return settings


def group_names(values: Sequence[object], label_names: Sequence[str] | None = None) -> list[str]:
    """The values of a column as the keys of a breakdown: strings; ``None`` is "null"; class numbers by their names.

    Raises:
        ValueError: for a column whose cells are lists or dicts.
    """
    names = []
    for row, value in enumerate(values):
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, (list, tuple, dict, set, np.ndarray)):
            raise ValueError(f"by: expected a column of single values, found {type(value).__name__} in row {row}")
        if (
            label_names is not None
            and isinstance(value, int)
            and not isinstance(value, bool)
            and 0 <= value < len(label_names)
        ):
            names.append(str(label_names[value]))
        else:
            names.append("null" if value is None else str(value))
    return names


def grouped(statistics: Statistics, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Scores per group: {name: {key: score}}, groups in the order of their names."""
    if len(names) != len(statistics.ids):
        raise ValueError(f"by: expected {len(statistics.ids)} values, one per instance, found {len(names)}")
    if not names:
        return {}
    levels, which = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(which[order]) > 0])
    with np.errstate(invalid="ignore"):
        scores = statistics.finalize(np.add.reduceat(statistics.values[order], starts, axis=0))
    return {
        str(level): {key: plain(np.asarray(column)[row]) for key, column in scores.items()}
        for row, level in enumerate(levels)
    }


def assemble(
    statistics: Statistics,
    *,
    signature: str,
    per_instance: bool = False,
    by_values: Sequence[object] | None = None,
    label_names: Sequence[str] | None = None,
    intervals: Mapping[str, np.ndarray] | None = None,
    extra: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The result of a metric: a flat dict of plain Python numbers.

    Args:
        statistics: of all instances.
        signature: see ``signature``.
        per_instance: adds ``per_instance: {key: [score per instance], "annotation_id": [..]}``.
        by_values: one value per instance, aligned with ``statistics.ids``; adds ``by: {value: {key: score}}``.
        label_names: names of the class numbers in ``by_values``, if they are class numbers.
        intervals: {key: (low, high)}; adds ``KEY_ci: [low, high]`` right after its key.
        extra: further entries that are no resampled score (counts, lists of settings), put before ``signature``.
    """
    result: dict[str, object] = {}
    for key, value in statistics.scores().items():
        result[key] = plain(value)
        if intervals is not None and key in intervals:
            result[f"{key}_ci"] = plain(np.asarray(intervals[key]))
    if extra:
        result.update({key: plain(value) for key, value in extra.items()})
    if per_instance:
        columns = {key: plain(np.asarray(column)) for key, column in statistics.per_instance.items()}
        result["per_instance"] = {**columns, "annotation_id": [str(name) for name in statistics.ids]}
    if by_values is not None:
        result["by"] = grouped(statistics, group_names(by_values, label_names))
    result["signature"] = signature
    return result


def report(
    statistics: Statistics,
    name: str,
    settings: Mapping[str, object],
    bootstrap: Callable[..., Mapping[str, np.ndarray] | None],
    *,
    by_values: Sequence[object] | None = None,
    extra: Mapping[str, object] | None = None,
    per_instance: bool = False,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
    ci_method: str = "percentile",
    by: str | None = None,
    label_names: Sequence[str] | None = None,
) -> dict[str, object]:
    """``assemble`` for the keyword arguments common to all metrics.

    Args:
        statistics: of all instances.
        name: the metric's name.
        settings: the metric's own settings, for the signature.
        bootstrap: ``resampling.intervals``.
        by_values: the values of column ``by``, aligned with ``statistics.ids``.
        extra: see ``assemble``.
        per_instance: asks for the per-instance values.
        confidence_level, n_resamples, seed, ci_method: see ``resampling.intervals``; none are computed without a level
            or a number of resamples.
        by: the column's name.
        label_names: names of the class numbers in the column.
    """
    found = bootstrap(statistics.values, statistics.finalize, confidence_level, n_resamples, seed, ci_method)
    common = resampling_settings(confidence_level, n_resamples, seed, ci_method, by)
    return assemble(
        statistics,
        signature=signature(name, {**settings, **common}),
        per_instance=per_instance,
        by_values=by_values,
        label_names=label_names,
        intervals=found,
        extra=extra,
    )
