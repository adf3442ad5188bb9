"""Base of the modules, between evaluate's API and the measures: rows, keyword arguments, intervals, breakdowns, signature.

Rows stay in memory as they come; a module runs in one process.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import datasets
import evaluate
import numpy as np

from .errors import VERSION, DataError, cut, find_similar
from .plain import row_id, to_list
from .rows import to_rows
from .statistics import DEFAULT_LEVEL, DEFAULT_RESAMPLES, Score, Statistics, check_inference, number_values, sign

Row = Mapping[str, Any]
OPTIONS = ("by", "cluster_by", "per_instance", "confidence_level", "n_resamples", "seed")
# annotation of a setting -> what is expected, and whether a value is it; measures check choices and ranges
KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)),
    "str": ("a string", lambda value: isinstance(value, str)),
    "Sequence[float]": ("a list of numbers", lambda value: _is_list(value, (int, float))),
    "Sequence[str]": ("a list of strings", lambda value: _is_list(value, str)),
}


def _is_list(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) and not isinstance(each, bool) for each in value)


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


class RationaleMetric:
    """Mixin before ``evaluate.Metric``: a class with it implements ``measure(predictions, references, **settings)``.

    ``measure`` gets lists of rows (None for a side without rows) and returns a `Measured`. The docstring of the class
    describes the scores, and from ``Args:`` on the inputs and the result.

    Attributes:
        CITATION: BibTeX of the paper that defines the scores.
        SCORES: key -> score, of rows with every field; gives ``higher_is_better`` and ``ranges`` of the module's info.
        HEADLINE: the scores that a table shows first.
    """

    CITATION: ClassVar[str] = ""
    SCORES: ClassVar[Mapping[str, Score]] = {}
    HEADLINE: ClassVar[Sequence[str]] = ()
    name: str
    num_process: int
    measure: Callable[..., Measured]

    def _info(self) -> evaluate.MetricInfo:
        described, _, inputs = inspect.cleandoc(type(self).__doc__ or "").partition("\n\nArgs:\n")
        info = evaluate.MetricInfo(
            description=f"{described}\n",
            citation=self.CITATION,
            inputs_description=f"\nArgs:\n{inputs}\n",
            features=datasets.Features(dict.fromkeys(("predictions", "references"), datasets.Value("string"))),
            license="Apache-2.0",
        )
        vars(info).update(
            higher_is_better={key: score.higher_is_better for key, score in self.SCORES.items()},
            ranges={key: (score.low, score.high) for key, score in self.SCORES.items()},
            headline=tuple(self.HEADLINE),
        )
        return info

    def __len__(self) -> int:
        return len(self._rows["predictions"] or ())

    @property
    def _rows(self) -> dict[str, list[Any] | None]:
        return vars(self).setdefault("_held", {"predictions": None, "references": None})  # type: ignore[no-any-return]

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Keep a batch of predictions and references; both may come in any order, and in different batches.

        Args:
            predictions: a list of rows, a Dataset, an Arrow table, a DataFrame, or a dict of columns; see below.
            references: likewise.

        Raises:
            DataError: something else; several processes.
        """
        if self.num_process > 1:
            raise DataError(
                f"expected 1 process, found {self.num_process}: rows are kept in memory", argument="num_process"
            )
        for side, data in (("predictions", predictions), ("references", references)):
            if data is not None:
                self._rows[side] = [*(self._rows[side] or ()), *to_rows(data, side)]

    def add(
        self, *, prediction: Any = None, reference: Any = None, predictions: Any = None, references: Any = None
    ) -> None:
        """Keep one prediction and one reference; the plural names are those that ``evaluate.combine`` uses."""
        sides = {"predictions": (prediction, predictions), "references": (reference, references)}
        for side, given in sides.items():
            row = next((each for each in given if each is not None), None)
            self.add_batch(**{side: None if row is None else [row]})

    def compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any]:
        """Return the scores of all rows that were added, and of those given here.

        Args:
            predictions: as for ``add_batch``.
            references: likewise.
            **settings: see below; an unknown one is a TypeError.

        Returns:
            A flat dict of plain Python numbers.

        Raises:
            ValueError: wrong input; it names the instance and the field.
        """
        options = {key: settings.pop(key) for key in OPTIONS if key in settings}
        self._check_settings(settings)
        try:
            self.add_batch(predictions=predictions, references=references)
            rows = dict(self._rows)
        finally:
            vars(self).pop("_held", None)
        measured = self.measure(rows["predictions"], rows["references"], **settings)
        sides = [rows["references"] or (), rows["predictions"] or ()]
        result, notes = summarize(self.name, measured, sides, settings.get("label_names"), **options)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return result

    def statistics(self, predictions: Any = None, references: Any = None, **settings: Any) -> Statistics:
        """Return the additive statistics per annotation, for a comparison of systems; arguments as for ``compute``."""
        self._check_settings(settings)
        sides = {"predictions": predictions, "references": references}
        rows = [None if data is None else to_rows(data, side) for side, data in sides.items()]
        return self.measure(*rows, **settings).statistics

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Check the keyword arguments against those of ``measure``; lists of any kind become lists."""
        known = dict([*inspect.signature(self.measure).parameters.items()][2:])
        for key, value in settings.items():
            if key not in known:
                near = find_similar(key, [*known, *OPTIONS])
                hint = f"did you mean {near!r}?" if near else f"expected one of {', '.join([*known, *OPTIONS])}"
                raise TypeError(f"{self.name}: unknown keyword argument {key!r}: {hint}")
            settings[key] = value = to_list(value) if hasattr(value, "__len__") or hasattr(value, "item") else value
            kind, _, optional = str(known[key].annotation).partition(" | ")
            expected, is_kind = KINDS.get(kind, ("", None))
            if is_kind and not is_kind(value) and not (value is None and optional):
                raise DataError(f"expected {expected}, found {cut(value)}", argument=key)

    def _compute(self, **_: Any) -> dict[str, Any]:
        raise NotImplementedError  # evaluate wants the method; `compute` does not call it


def summarize(
    name: str,
    measured: Measured,
    sides: Sequence[Sequence[Row]] = (),
    label_names: Sequence[str] | None = None,
    *,
    by: str | None = None,
    cluster_by: str = "auto",
    per_instance: bool = False,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
) -> tuple[dict[str, Any], list[str]]:
    """Return the result of a metric, and the lines that a reader of it needs.

    Args:
        name: the metric's name.
        measured: of all rows.
        sides: rows that may have the columns ``by`` and ``cluster_by``, by their ids.
        label_names: names of numbers in a column of labels.
        by: adds ``by: {value: {key: score}}``.
        cluster_by: "auto", "none" (one annotation each), or a column.
        per_instance: adds ``per_instance: {key: [score per annotation], "annotation_id": [..], "cluster": [..]}``.
        confidence_level: adds ``KEY_ci: [low, high]``; in (0, 1).
        n_resamples: likewise; by default 1,000.
        seed: of the resamples.

    Raises:
        DataError: not every annotation has the column; a setting out of its range.
    """
    statistics, notes = measured.statistics, list(measured.notes)
    check_inference(confidence_level or DEFAULT_LEVEL, DEFAULT_RESAMPLES if n_resamples is None else n_resamples, seed)
    settings = {"n": len(statistics.ids), **measured.settings}
    if cluster_by != "auto":
        statistics.clusters, statistics.clustering = None, cluster_by
        if cluster_by != "none":
            values = read_column(cluster_by, statistics.ids, sides, "cluster_by")
            # an annotation without a value is a cluster of its own
            statistics.clusters = number_values((at,) if each is None else each for at, each in enumerate(values))
    bounds: Mapping[str, np.ndarray] = {}
    if confidence_level is not None or n_resamples is not None:
        bounds = statistics.intervals(confidence_level, n_resamples, seed)
        level = {"level": confidence_level} if confidence_level not in (None, DEFAULT_LEVEL) else {}
        settings |= {**level, "cluster": statistics.clustering, "clusters": statistics.n_clusters}
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
        numbered = dict(enumerate(label_names or ()))
        values = [numbered.get(each, each) for each in read_column(by, statistics.ids, sides, "by")]
        result["by"] = score_groups(statistics, ["null" if each is None else str(each) for each in values])
        if by == "classification" and "macro_f1" in result:
            notes.append("by classification: macro_f1 is left out, because each group has one label")
            for group in result["by"].values():
                del group["macro_f1"]
        settings["by"] = by
    return result | {"signature": sign(name, {**settings, "version": VERSION})}, notes


def read_column(name: str, ids: Sequence[str], sides: Sequence[Sequence[Row]], argument: str) -> list[Any]:
    """Return the value of a column for each id, from the first side whose rows have it.

    Raises:
        DataError: no side has the column for every id; a value is a list or an object.
    """
    for rows in sides:
        values = {row_id(row): to_list(row[name]) for row in rows if isinstance(row, Mapping) and name in row}
        if all(key in values for key in ids):
            column = [values[key] for key in ids]
            bad = next((each for each in column if isinstance(each, (list, dict))), None)
            if bad is not None:
                raise DataError(f"expected a column of single values, found {cut(bad)} in {name!r}", argument=argument)
            return column
    raise DataError(f"expected the column {name!r} in every row, found rows without it", argument=argument)


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
