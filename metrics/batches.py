"""Base of all modules, between evaluate's API and the measures: ``add``, ``add_batch``, ``compute``, info.

With one process batches stay in memory; with several (``num_process``) they travel as bytes through evaluate's shared
files, as JSON. ERASER instances are flattened when they are added; other rows are kept as lists.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import datasets
import evaluate

from eraser_hub.schema.arrow import make_features
from eraser_hub.schema.record import Record
from eraser_hub.schema.rows import ID_FIELDS

from .cells import Row, as_list, as_number, as_scalar
from .clusters import AUTO, AnnotationColumns, add_clusters
from .gold_digest import shorten_digest
from .intervals import cautions
from .issues import InputError, Issues, cut
from .resampling import check_settings
from .results import HEADLINE, describe_breakdown, report
from .rows import to_rows
from .sources import PaperSource
from .statistics_builder import Statistics
from .unknown_fields import UnknownFields, find_similar

LICENSE = "Apache-2.0"
# the columns of evaluate's shared files
PACKED = datasets.Features(
    {"predictions": datasets.Value("large_binary"), "references": datasets.Value("large_binary")}
)


def _is_list(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (items := as_list(value)) is not None and all(map(is_item, items))


def _is_number(value: Any) -> bool:
    return as_number(value) is not None


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


# annotation of a setting -> the expected value, and its check; modules check choices and ranges
SETTING_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(as_scalar(value), bool)),
    "float": ("a number", _is_number),
    "str | None": ("a string", _is_string),
    "Sequence[float]": ("a list of numbers", _is_list(_is_number)),
    "Sequence[str] | None": ("a list of strings", _is_list(_is_string)),
}


class Measured(NamedTuple):
    """Result of a module for all predictions and references.

    Attributes:
        statistics: additive, per instance.
        columns: further columns of each instance, for breakdowns and clusters; None: those of the batches of instances.
        settings: the settings of the scores, for the signature.
        extra: further entries of the result.
        notes: lines for the reader, on scores that are left out.
        digest: of the gold; "" where it is not known.
    """

    statistics: Statistics
    columns: AnnotationColumns | None = None
    settings: Mapping[str, object] = {}
    extra: Mapping[str, object] = {}
    notes: Sequence[str] = ()
    digest: str = ""


@dataclass
class Batch:
    """One side of a batch.

    Attributes:
        source: the added rows: a list, or a table.
        label_names: the names of a Dataset's ClassLabel, where the rows hold numbers.
    """

    source: Any
    label_names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.source)

    def to_bytes(self) -> bytes:
        """Return the batch as bytes."""
        rows = self.source if isinstance(self.source, list) else self.source.to_pylist()
        return json.dumps([rows, self.label_names], default=_to_json_value).encode()


def _to_json_value(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)  # of dates and the like no score is made


class Batches:
    """Mixin before ``evaluate.Metric``.

    A class that uses it implements ``_measure(predictions, references, **settings)``, which returns a `Measured`. Its
    docstring describes the scores, and from ``Args:`` on the inputs and the result. It receives rows as lists, and None
    for a side without rows. See `instances.InstanceBatches` for ERASER instances.

    Attributes:
        SOURCE: the paper that defines the scores.
        INPUTS: (predictions, references): the record of the rows, and the fields that the module's features name.
        FURTHER_FIELDS: fields of predictions that are known beside those of the record.
        HIGHER_IS_BETTER: key -> direction; None: the score has none.
        RANGES: key -> the lowest and the highest value; None: no bound.
        OPTIONS: the keyword arguments of ``compute`` for the result; the others are settings of ``_measure``.
    """

    SOURCE: ClassVar[PaperSource]
    INPUTS: ClassVar[Sequence[tuple[Record, Sequence[str]]]]
    FURTHER_FIELDS: ClassVar[Sequence[str]] = ID_FIELDS
    HIGHER_IS_BETTER: ClassVar[Mapping[str, bool | None]]
    RANGES: ClassVar[Mapping[str, tuple[float | None, float | None]]]
    OPTIONS: ClassVar[Sequence[str]] = (
        "per_instance",
        "confidence_level",
        "n_resamples",
        "seed",
        "by",
        "label_names",
    )
    name: str
    num_process: int
    _measure: Callable[..., Measured]

    def _info(self) -> evaluate.MetricInfo:
        """Return evaluate's description of the module, with ``higher_is_better``, ``ranges`` and ``headline``."""
        described, _, inputs = inspect.cleandoc(type(self).__doc__ or "").partition("\n\nArgs:\n")
        sides = zip(("predictions", "references"), self.INPUTS, strict=True)
        metric = evaluate.MetricInfo(
            description=f"{described}\n",
            citation=self.SOURCE.citation,
            inputs_description=f"\nArgs:\n{inputs}\n",
            features=datasets.Features({side: make_features(record, names) for side, (record, names) in sides}),
            homepage=self.SOURCE.homepage,
            license=LICENSE,
            codebase_urls=[self.SOURCE.codebase] if self.SOURCE.codebase else [],
            reference_urls=[self.SOURCE.url],
        )
        headline = HEADLINE.get(type(self).__module__.rpartition(".")[2], ())
        vars(metric).update(higher_is_better=self.HIGHER_IS_BETTER, ranges=self.RANGES, headline=headline)
        return metric

    def _keep(self, data: Any, side: str) -> Batch:
        """Keep one side of a batch; a list is copied (not its rows): the caller may clear it for the next batch."""
        return Batch(to_rows(data, side))

    def _from_bytes(self, data: bytes, side: str) -> Batch:
        """Return the batch of the bytes of `Batch.to_bytes`."""
        rows, label_names = json.loads(data)
        return replace(self._keep(rows, side), label_names=label_names)

    def _measure_batches(
        self, predictions: Sequence[Batch], references: Sequence[Batch], by: str | None, settings: dict[str, Any]
    ) -> tuple[Measured, AnnotationColumns]:
        """Return the result for all batches, and the further columns of the instances."""
        rows, others = (
            [row for batch in side for row in batch.source] if side else None for side in (predictions, references)
        )
        unknown, issues = UnknownFields(), Issues()
        known = self._get_record(rows or ())
        for at, row in enumerate(rows or ()):
            name = next((row[field] for field in ID_FIELDS if row.get(field) is not None), at)
            for where, message in unknown.count_row(row, known):
                if where in self.FURTHER_FIELDS:
                    continue
                issues.add_by_id("prediction", name, where, message, "key-unknown")
        issues.raise_if_any()
        measured = self._measure(rows, others, **settings)
        assert measured.columns is not None
        note = unknown.describe(besides=(by, *self.FURTHER_FIELDS))
        return (measured._replace(notes=[note, *measured.notes]) if note else measured), measured.columns

    def _get_record(self, rows: Sequence[Row]) -> Record:
        """Return the record of these predictions."""
        return self.INPUTS[0][0]

    def _make_result(
        self, predictions: Sequence[Batch], references: Sequence[Batch], settings: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the scores of all batches; warn of scores that are left out."""
        options = {key: settings.pop(key) for key in self.OPTIONS if key in settings}
        cluster_by = settings.pop("cluster_by", AUTO)
        by = options.get("by")
        measured, columns = self._measure_batches(predictions, references, by, settings)
        statistics = measured.statistics
        values = None if by is None else columns(by)
        notes = [*measured.notes, *(describe_breakdown(by, statistics) if by else ())]
        intervals = any(options.get(key) is not None for key in ("confidence_level", "n_resamples"))
        # scores alone need no clusters, which take time
        if intervals or options.get("per_instance") or cluster_by != AUTO:
            statistics = add_clusters(statistics, columns, cluster_by)
        data = {"data": shorten_digest(measured.digest)} if measured.digest else {}
        settings = {**data, "n": len(statistics.ids), **measured.settings}
        result = report(
            statistics, self.name, settings, by_values=values, extra=measured.extra, ranges=self.RANGES, **options
        )
        if intervals:
            notes += [f"{self.name}: {line}" for line in cautions(statistics)]
        for note in notes:
            warnings.warn(note, stacklevel=3)
        return result

    def _check_settings(self, settings: Mapping[str, Any], options: Sequence[str] = ()) -> None:
        """Check the keyword arguments, which are ``options`` and the settings of this module.

        Raises:
            TypeError: an unknown one.
            ValueError: the value of one has another type.
        """
        own = dict([*inspect.signature(self._measure).parameters.items()][2:])
        further = inspect.signature(report).parameters
        known = {**own, **{name: further[name] for name in options}, "cluster_by": None}
        for name, value in settings.items():
            if name not in known:
                near = find_similar(name, known)
                hint = f"did you mean {near!r}?" if near else f"expected one of {', '.join(known)}"
                raise TypeError(f"{self.name}: unknown keyword argument {name!r}: {hint}")
            kind = str(getattr(known[name], "annotation", ""))
            expected, is_sound = SETTING_TYPES.get(kind, ("", None))
            if is_sound is not None and not is_sound(value) and not (value is None and kind.endswith("None")):
                several = f" ({name}s takes several)" if f"{name}s" in known and as_list(value) else ""
                raise InputError(f"expected {expected}{several}, found {cut(value)}", "option-value", name)
        names = ("confidence_level", "n_resamples", "seed")
        check_settings(**{name: settings[name] for name in names if name in settings})

    def statistics(
        self, predictions: Any = None, references: Any = None, cluster_by: str = AUTO, **settings: Any
    ) -> Statistics:
        """Return the additive statistics per instance, for a comparison of systems.

        Args:
            predictions: as for ``compute``.
            references: as for ``compute``.
            cluster_by: as for ``compute``.
            **settings: as for ``compute``.

        Raises:
            ValueError: wrong input; names the instance and the field.
        """
        sides = (("prediction", predictions), ("reference", references))
        kept, others = ([] if data is None else [self._keep(data, side)] for side, data in sides)
        self._check_settings(settings)
        measured, columns = self._measure_batches(kept, others, None, settings)
        return add_clusters(measured.statistics, columns, cluster_by)

    def _infer_feature_from_batch(self, batch: Any) -> datasets.Features:
        """Return the features of evaluate's shared files: bytes, whatever the features of the rows."""
        return PACKED

    def __len__(self) -> int:
        """Return the number of added predictions."""
        kept_batches = vars(self).get("_held")
        return sum(map(len, kept_batches["prediction"])) if kept_batches else super().__len__()  # type: ignore[misc]

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Keep a batch of predictions and references; both may come in any order, and in different batches.

        Args:
            predictions: a list of dicts, a Dataset, or an Arrow table; see below.
            references: likewise.

        Raises:
            ValueError: a field of the wrong type; names the instance and the field.
        """
        sides = (("prediction", predictions), ("reference", references))
        kept = {side: None if data is None else self._keep(data, side) for side, data in sides}
        if self.num_process > 1:
            packed = [b"" if batch is None else batch.to_bytes() for batch in kept.values()]
            super().add_batch(predictions=packed[:1], references=packed[1:])  # type: ignore[misc]
            return
        kept_batches = vars(self).setdefault("_held", {"prediction": [], "reference": []})
        for side, batch in kept.items():
            if batch is not None:
                kept_batches[side].append(batch)

    def add(
        self, *, prediction: Any = None, reference: Any = None, predictions: Any = None, references: Any = None
    ) -> None:
        """Keep one prediction and one reference.

        Args:
            prediction: a row, see below.
            reference: a row, see below.
            predictions: the same under the name that ``evaluate.combine`` uses.
            references: likewise.
        """
        one = (
            prediction if prediction is not None else predictions,
            reference if reference is not None else references,
        )
        batch = [None if row is None else [row] for row in one]
        self.add_batch(predictions=batch[0], references=batch[1])

    def compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any] | None:
        """Return the scores of all rows that were added, and of those given here.

        Args:
            predictions: as for ``add_batch``.
            references: as for ``add_batch``.
            **settings: see below; an unknown one is a TypeError.

        Returns:
            A flat dict of plain Python numbers; None on processes other than the first.

        Raises:
            ValueError: wrong input; names the instance and the field.
        """
        self._check_settings(settings, self.OPTIONS)
        if predictions is not None or references is not None:
            try:
                self.add_batch(predictions=predictions, references=references)
            except ValueError:
                vars(self).pop("_held", None)
                raise
        if self.num_process > 1:
            result: dict[str, Any] | None = super().compute(**settings)  # type: ignore[misc]
            return result
        kept_batches = vars(self).pop("_held", {"prediction": [], "reference": []})
        return self._make_result(kept_batches["prediction"], kept_batches["reference"], settings)

    def _compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any]:
        """Return the scores; evaluate calls this with the bytes of all processes."""
        sides = (("prediction", predictions), ("reference", references))
        kept = [[self._from_bytes(data, side) for data in packed or () if data] for side, packed in sides]
        return self._make_result(kept[0], kept[1], settings)
