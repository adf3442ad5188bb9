"""How the modules for ERASER instances keep what they get: flattened as it comes, joined at ``compute``.

Lists of dicts are taken apart once; a Dataset or an Arrow table goes straight through its buffers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple

import numpy as np
import pyarrow as pa

from .batches import Batches, Measured
from .clusters import NONE, Clusters, connected, numbered
from .flat import FlatRecord, Predictions, Record, References, concatenate, pack, unpack
from .flatten_arrow import predictions_from_arrow, references_from_arrow
from .flatten_rows import Flattener, PredictionFlattener, ReferenceFlattener
from .joining import by_documents
from .offences import InputError, Offences
from .pool import Statistics
from .rows import check_columns, rows_of
from .strangers import Strangers
from .token_rows import as_eraser_row, is_token_row

SCALARS = (str, int, float, bool, type(None))


@dataclass
class Batch(Generic[Record]):
    """One side of a batch: flat, and the columns that it came with (for breakdowns)."""

    record: Record
    source: pa.Table | list[Any] | dict[str, list[Any]]
    label_names: list[str] | None = None  # of a Dataset's ClassLabel
    strangers: Strangers = field(default_factory=Strangers)

    def __len__(self) -> int:
        return len(self.record.ids)

    def column(self, name: str) -> list[Any] | None:
        """The values of a column; None where not every row has it."""
        source = self.source
        if isinstance(source, dict):
            return source.get(name)
        if isinstance(source, list):
            return [row[name] for row in source] if source and all(name in row for row in source) else None
        return source.column(name).to_pylist() if name in source.column_names else None

    def scalar_columns(self) -> dict[str, list[Any]]:
        """The columns of strings and numbers."""
        if isinstance(self.source, list):
            names = [name for name in (self.source[0] if self.source else ()) if isinstance(name, str)]
        else:
            names = [*self.source] if isinstance(self.source, dict) else self.source.column_names
        columns = {name: self.column(name) for name in names}
        return {
            name: values
            for name, values in columns.items()
            if values is not None and all(isinstance(value, SCALARS) for value in values)
        }


def _table(data: Any, side: str) -> tuple[pa.Table | None, list[str] | None]:
    """An Arrow table of a Dataset, a table or a record batch, with the label names it knows; (None, ..) for others."""
    table, names = None, None
    if hasattr(data, "features") and hasattr(data, "with_format"):
        features = data.features or {}
        label = features.get("classification", features.get("label") if "rationale_mask" in features else None)
        names = list(label.names) if label is not None and hasattr(label, "names") else None
        # a Dataset's own table ignores selections: the arrow format gives the rows that it stands for
        table = data.with_format("arrow")[:] if hasattr(data, "num_rows") else None
    elif hasattr(data, "column_names") and hasattr(data, "num_rows") and hasattr(data, "combine_chunks"):
        table = data
    elif hasattr(data, "num_rows") and hasattr(data, "schema") and hasattr(data, "columns"):
        table = pa.Table.from_batches([data])
    if table is not None:
        check_columns(table.schema.names, side)
    return table, names


def flat_predictions(data: Any) -> Batch[Predictions]:
    """Predictions in any form that ``add_batch`` takes.

    Raises:
        ValueError: a field of the wrong type, or a misspelt one; names the instance and the field.
    """
    table, names = _table(data, "prediction")
    offences, strangers = Offences(), Strangers()
    record = None if table is None else predictions_from_arrow(table, offences, strangers)
    if record is not None:
        offences.stop({"prediction": record.ids})
        return Batch(record, table, names, strangers)
    flattener = PredictionFlattener(offences)
    batch = _by_row(data if table is None else table.to_pylist(), flattener, names)
    batch.strangers = flattener.strangers
    return batch


def flat_references(data: Any, needed: Sequence[str] = ()) -> Batch[References]:
    """References, likewise.

    Args:
        needed: the fields that every row must have.
    """
    table, names = _table(data, "reference")
    record = None
    if table is not None and all(name in table.column_names and not table[name].null_count for name in needed):
        record = references_from_arrow(table, names)
    if record is not None:
        return Batch(record, table, names)
    rows = list(rows_of(data if table is None else table.to_pylist(), "reference"))
    flattener = ReferenceFlattener(Offences(), names, needed)
    batch = _by_row([as_eraser_row(row) if is_token_row(row) else row for row in rows], flattener, names)
    batch.source = rows
    return batch


def _by_row(data: Any, flattener: Flattener[Record], names: list[str] | None) -> Batch[Record]:
    rows = list(rows_of(data, flattener.side))
    for row in rows:
        flattener.add(row)
    record = flattener.finish()
    flattener.offences.stop({flattener.side: record.ids})
    return Batch(record, rows, names)


class InstanceScores(NamedTuple):
    """What a module makes of instances.

    Attributes:
        statistics: additive, per instance.
        settings: what made them, for the signature.
        extra: further entries of the result.
        notes: see `batches.Measured`.
        rows: the references that the statistics speak of; None: all.
    """

    statistics: Statistics
    settings: dict[str, object]
    extra: dict[str, object]
    notes: Sequence[str]
    rows: np.ndarray | None


class InstanceBatches(Batches[Batch[Any]]):
    """A mixin before ``evaluate.Metric`` for modules that score ERASER instances.

    The class defines ``_measure(predictions, references, label_names, only_predicted, **settings)``, which gives a
    `InstanceScores`; references may be None where they are not needed.

    Attributes:
        references_needed: whether there must be references.
        REFERENCE_COLUMNS: which every one of them must have.
    """

    references_needed = True
    REFERENCE_COLUMNS: ClassVar[Sequence[str]] = ()
    _measure: Callable[..., InstanceScores]

    def _keep(self, data: Any, side: str) -> Batch[Any]:
        return flat_predictions(data) if side == "prediction" else flat_references(data, self.REFERENCE_COLUMNS)

    def _packed(self, kept: Batch[Any], side: str) -> bytes:
        record = pack(kept.record)
        columns = [kept.scalar_columns(), kept.label_names, kept.strangers]  # to break scores down by, to cluster by
        return len(record).to_bytes(8, "little") + record + json.dumps(columns).encode()

    def _unpacked(self, data: bytes, side: str) -> Batch[Any]:
        end = 8 + int.from_bytes(data[:8], "little")
        kind: type[FlatRecord] = Predictions if side == "prediction" else References
        source, names, strangers = json.loads(data[end:])
        return Batch(unpack(kind, data[8:end]), source, names, Strangers(strangers))

    def _measured(
        self,
        predictions: Sequence[Batch[Any]],
        references: Sequence[Batch[Any]],
        by: str | None = None,
        **settings: Any,
    ) -> Measured:
        if not predictions:
            raise InputError("expected at least one instance, found none", "empty", "predictions")
        if not references and self.references_needed:
            raise InputError("expected at least one row, found none", "empty", "references")
        p = concatenate([batch.record for batch in predictions])
        r = concatenate([batch.record for batch in references]) if references else None
        if r is not None and not r.ids:
            raise InputError("expected at least one row, found none", "empty", "references")
        if settings.get("label_names") is None:
            known = [batch.label_names for batch in references if batch.label_names is not None]
            if any(names != known[0] for names in known):
                raise InputError(
                    f"expected the same label names throughout, found {known[0]} and others", "constant", "references"
                )
            settings["label_names"] = known[0] if known else None
        scores = self._measure(p, r, **settings)
        strangers = sum((batch.strangers for batch in predictions), Strangers())
        notes = [note for note in (Strangers(strangers).told(), *scores.notes) if note]
        columns = InstanceColumns(scores.statistics.ids, predictions, references, p, r)
        return Measured(scores.statistics, columns, scores.settings, scores.extra, notes)


@dataclass
class InstanceColumns:
    """What is known of each annotation beside its scores.

    Attributes:
        ids: of the annotations, in the order of the statistics.
        predictions, references: as they came; no batch of references where there are none.
        p, r: the same, flat.
    """

    ids: Sequence[str]
    predictions: Sequence[Batch[Predictions]]
    references: Sequence[Batch[References]]
    p: Predictions
    r: References | None

    def __call__(self, name: str, predicted: bool = False) -> list[Any]:
        """The values of a column of the references; labels by their names.

        Args:
            predicted: where they lack it, of the predictions.

        Raises:
            ValueError: not every row has it.
        """
        r = self.r
        if name == "classification" and r is not None and (r.classification >= 0).any():
            names = [*(label.lstrip("\0") for label in r.labels), None]
            return self._ordered([names[code] for code in r.classification.tolist()], r.ids)
        for batches, record in ((self.references, r), (self.predictions, self.p if predicted else None)):
            parts = [batch.column(name) for batch in batches]
            if record is not None and not any(part is None for part in parts):
                return self._ordered([value for part in parts for value in part or ()], record.ids)
        if r is None:
            raise InputError(f"expected references with the column {name!r}, found no references", "option-value", "by")
        raise InputError(
            f"expected a column that every reference has, found {name!r} not in all of them", "option-value", "by"
        )

    def clusters(self) -> Clusters:
        """Annotations that share a document: those of the references, else those of the predictions' rationales."""
        p, ids = self.p, self.p.ids
        if self.r is not None:
            clusters, ids = by_documents(self.r), self.r.ids
        elif p.instance.size:
            clusters = Clusters("documents of rationales", connected(p.instance, p.doc, len(ids)))
        else:
            clusters = Clusters(NONE)
        if clusters.numbers is None:
            return clusters
        return clusters._replace(numbers=numbered(self._ordered(clusters.numbers.tolist(), ids)))

    def _ordered(self, values: Sequence[Any], ids: Sequence[str]) -> list[Any]:
        """Values of one side in the order of the annotations."""
        if ids is self.ids:
            return list(values)
        held = dict(zip(ids, values, strict=True))
        return [held[name] for name in self.ids]
