"""Conversion of per-instance `Statistics` to the dict that a metric returns.

An undefined score (a mean over nothing) is NaN in Python and null in JSON. No mean skips it silently, because
``finalize`` has the count of the division.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .intervals import Ranges, describe_intervals, intervals
from .issues import MAX_SHOWN, InputError
from .statistics_builder import Statistics

# equal to the package's version (a test compares them); a Space has no package
VERSION = "1.0.0"
# module -> its primary scores: `compare` corrects p-values over these, all others are exploratory
HEADLINE = {
    "eraser_agreement": ("token_macro_f1", "iou_macro_f1", "auprc", "sentence_macro_f1"),
    "eraser_faithfulness": ("comprehensiveness_aopc", "sufficiency_aopc", "macro_f1"),
    "perturbation_map": ("map",),
    "rationale_set_agreement": ("token_f1",),
    "normalized_fidelity": ("normalized_sufficiency", "normalized_comprehensiveness"),
    "annotator_agreement": ("krippendorff_alpha", "cohen_kappa"),
    "quote_faithfulness": ("in_text",),
}


def to_python(value: object) -> object:
    """Convert a score to plain Python: float, int, bool, str, None, and lists and dicts of them (no numpy scalar)."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype != object else to_python(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): to_python(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_python(part) for part in value]
    return value


def describe_scored(scored: int, total: int) -> dict[str, object]:
    """Return the signature's setting if not all are scored."""
    return {} if scored == total else {"scored": f"{scored}/{total}"}


def describe_lacking(lacking: Mapping[str, str]) -> list[str]:
    """Return one line that names scores without anything to score, or none.

    Args:
        lacking: key -> the missing field.
    """
    keys = {field: [key for key, other in lacking.items() if other == field] for field in lacking.values()}
    more = {field: f" and {len(own) - MAX_SHOWN} more" if len(own) > MAX_SHOWN else "" for field, own in keys.items()}
    listed = "; ".join(f"{', '.join(own[:MAX_SHOWN])}{more[field]} (no {field})" for field, own in keys.items())
    return [f"left out: {listed}"] if listed else []


def _format_setting(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        short = format(value, "g")
        return short if float(short) == value else repr(float(value))  # other numbers, another signature
    if isinstance(value, (list, tuple)):
        return ",".join(_format_setting(part) for part in value)
    # the separators of the line itself must not appear inside a value
    return str(value).replace("|", "/").replace("\n", " ")


def signature(name: str, settings: Mapping[str, object], version: str = VERSION) -> str:
    """Return the signature of a result: the metric, every setting in the given order, the version.

    >>> signature("perturbation_map", {"average": "pairs", "level": 0.95}, version="1.0")
    'perturbation_map|average:pairs|level:0.95|version:1.0'
    """
    return "|".join(
        [name, *(f"{key}:{_format_setting(value)}" for key, value in settings.items()), f"version:{version}"]
    )


def get_group_names(values: Sequence[object], label_names: Sequence[str] | None = None) -> list[str]:
    """Return the values of a column as keys of a breakdown: strings; ``None`` is "null"; class numbers by their names.

    Raises:
        ValueError: the column's values are lists or dicts.
    """
    names, numbered = [], dict[object, object](enumerate(label_names or ()))
    for row, value in enumerate(values):
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, (list, tuple, dict, set, np.ndarray)):
            message = f"expected a column of single values, found {type(value).__name__} in row {row}"
            raise InputError(message, "option-value", "by")
        if isinstance(value, int) and not isinstance(value, bool):
            value = numbered.get(value, value)
        names.append("null" if value is None else str(value))
    return names


def describe_breakdown(by: str, statistics: Statistics) -> list[str]:
    """Return a line on the scores that a breakdown by this column leaves out, or none."""
    if by != "classification" or "macro_f1" not in statistics.scores():
        return []
    return [f"by {by}: macro_f1 is left out, because each group has one label"]


def score_groups(statistics: Statistics, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Compute scores per group: {name: {key: score}}, groups in the order of their names."""
    if len(names) != len(statistics.ids):
        raise InputError(f"expected {len(statistics.ids)} values, one per instance, found {len(names)}", "length", "by")
    if not names:
        return {}
    levels, which = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(which[order]) > 0])
    with np.errstate(invalid="ignore"):
        scores = statistics.finalize(np.add.reduceat(statistics.values[order], starts, axis=0))
    return {
        str(level): {key: np.asarray(column)[row].tolist() for key, column in scores.items()}
        for row, level in enumerate(levels)
    }


def report(
    statistics: Statistics,
    name: str,
    settings: Mapping[str, object],
    *,
    by_values: Sequence[object] | None = None,
    extra: Mapping[str, object] | None = None,
    per_instance: bool = False,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
    by: str | None = None,
    label_names: Sequence[str] | None = None,
    ranges: Ranges | None = None,
) -> dict[str, object]:
    """Return the result of a metric: a flat dict of plain Python numbers.

    Args:
        statistics: the statistics of all instances.
        name: the metric's name.
        settings: the metric's own settings, for the signature.
        by_values: one value per instance, aligned with ``statistics.ids``; adds ``by: {value: {key: score}}``.
        extra: further entries that are no resampled score (counts, lists of settings), put before ``signature``.
        per_instance: adds ``per_instance: {key: [score per instance], "annotation_id": [..], "cluster": [number ..]}``.
        confidence_level: see `resampling.intervals`; with a level or a number of resamples ``KEY_ci: [low, high]``
            follows its key.
        n_resamples: likewise.
        seed: likewise.
        by: the column's name; groups by label have no macro F1.
        label_names: names of the class numbers in ``by_values``, if they are class numbers.
        ranges: of the scores, for those that are the same in every cluster.
    """
    settings = dict(settings) if "n" in settings else {"n": len(statistics.ids), **settings}
    bounds: Mapping[str, np.ndarray] = {}
    if confidence_level is not None or n_resamples is not None:
        bounds = intervals(statistics, confidence_level, n_resamples, seed, ranges)
        settings |= describe_intervals(statistics, confidence_level, n_resamples, seed)
        settings |= {"cluster": statistics.clustering, "clusters": statistics.n_clusters}
    result: dict[str, object] = {}
    for key, value in statistics.scores().items():
        result[key] = value.tolist()
        if key in bounds:
            result[f"{key}_ci"] = bounds[key].tolist()
    result |= {key: to_python(value) for key, value in (extra or {}).items()}
    if per_instance:
        clusters = np.arange(len(statistics.ids)) if statistics.clusters is None else statistics.clusters
        columns = {key: np.asarray(column).tolist() for key, column in statistics.per_instance.items()}
        names = [str(name) for name in statistics.ids]
        result["per_instance"] = {**columns, "annotation_id": names, "cluster": clusters.tolist()}
    if by_values is not None:
        result["by"] = groups = score_groups(statistics, get_group_names(by_values, label_names))
        for group in groups.values() if by == "classification" else ():
            group.pop("macro_f1", None)
    if by is not None:
        settings["by"] = by
    return result | {"signature": signature(name, settings)}
