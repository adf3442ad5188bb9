"""How the modules for ERASER instances keep what they get: flattened as it comes, joined at ``compute``.

Lists of dicts are taken apart once; a Dataset or an Arrow table goes straight through its buffers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import pyarrow as pa

from .batches import Batches, Measured
from .clusters import NONE, Clusters, connected, numbered
from .flat import FlatRecord, Predictions, Record, References, concatenate, pack, unpack
from .flatten_arrow import predictions_from_arrow, references_from_arrow
from .flatten_rows import Flattener, PredictionFlattener, ReferenceFlattener
from .joining import by_documents
from .offences import Offences
from .pool import Statistics

SCALARS = (str, int, float, bool, type(None))


@dataclass
class Batch(Generic[Record]):
    """One side of a batch: flat, and the columns that it came with (for breakdowns)."""

    record: Record
    source: pa.Table | list[Any] | dict[str, list[Any]]
    label_names: list[str] | None = None  # of a Dataset's ClassLabel

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


def _table(data: Any) -> tuple[pa.Table | None, list[str] | None]:
    """An Arrow table of a Dataset, a table or a record batch, with the label names it knows; (None, ..) for others."""
    if hasattr(data, "features") and hasattr(data, "with_format") and hasattr(data, "num_rows"):
        label = (data.features or {}).get("classification")
        names = list(label.names) if label is not None and hasattr(label, "names") else None
        # a Dataset's own table ignores selections: the arrow format gives the rows that it stands for
        return data.with_format("arrow")[:], names
    if hasattr(data, "column_names") and hasattr(data, "num_rows") and hasattr(data, "combine_chunks"):
        return data, None
    if hasattr(data, "num_rows") and hasattr(data, "schema") and hasattr(data, "columns"):
        return pa.Table.from_batches([data]), None
    return None, None


def _rows(data: Any, side: str) -> list[Any]:
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    elif isinstance(data, Mapping):
        columns = {name: column for name, column in data.items() if isinstance(column, (list, tuple))}
        if len(columns) != len(data) or len({len(column) for column in columns.values()}) != 1:
            raise ValueError(
                f"{side}s: expected a list of rows, found one object with {', '.join(map(str, data))[:60]}"
            )
        data = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise ValueError(f"{side}s: expected a list of rows, a Dataset or an Arrow table, found {repr(data)[:60]}")
    return list(data)


def flat_predictions(data: Any) -> Batch[Predictions]:
    """Predictions in any form that ``add_batch`` takes.

    Raises:
        ValueError: a field of the wrong type; names the instance and the field.
    """
    table, names = _table(data)
    record = None if table is None else predictions_from_arrow(table)
    if record is not None:
        return Batch(record, table, names)
    return _by_row(data if table is None else table.to_pylist(), PredictionFlattener(Offences()), names)


def flat_references(data: Any) -> Batch[References]:
    """References, likewise."""
    table, names = _table(data)
    record = None if table is None else references_from_arrow(table, names)
    if record is not None:
        return Batch(record, table, names)
    return _by_row(data if table is None else table.to_pylist(), ReferenceFlattener(Offences(), names), names)


def _by_row(data: Any, flattener: Flattener[Record], names: list[str] | None) -> Batch[Record]:
    rows = _rows(data, flattener.side)
    for row in rows:
        flattener.add(row)
    record = flattener.finish()
    flattener.offences.stop({flattener.side: record.ids})
    return Batch(record, rows, names)


class InstanceBatches(Batches[Batch]):
    """A mixin before ``evaluate.Metric`` for modules that score ERASER instances.

    The class defines ``_measure(predictions, references, label_names, **settings)``, which gives the statistics, the
    settings for the signature, and further entries of the result; references may be None where they are not needed.
    """

    references_needed = True
    _measure: Callable[..., tuple[Statistics, dict[str, object], dict[str, object]]]

    def _keep(self, data: Any, side: str) -> Batch:
        return flat_predictions(data) if side == "prediction" else flat_references(data)

    def _packed(self, kept: Batch, side: str) -> bytes:
        record = pack(kept.record)
        columns = [kept.scalar_columns(), kept.label_names]  # to break scores down by, and to cluster by
        return len(record).to_bytes(8, "little") + record + json.dumps(columns).encode()

    def _unpacked(self, data: bytes, side: str) -> Batch:
        end = 8 + int.from_bytes(data[:8], "little")
        kind: type[FlatRecord] = Predictions if side == "prediction" else References
        return Batch(unpack(kind, data[8:end]), *json.loads(data[end:]))

    def _measured(self, predictions: Sequence[Batch], references: Sequence[Batch], **settings: Any) -> Measured:
        if not predictions:
            raise ValueError("predictions: expected at least one instance, found none")
        if not references and self.references_needed:
            raise ValueError("references: expected at least one row, found none")
        p = concatenate([batch.record for batch in predictions])
        r = concatenate([batch.record for batch in references]) if references else None
        if r is not None and not r.ids:
            raise ValueError("references: expected at least one row, found none")
        if settings.get("label_names") is None:
            known = [batch.label_names for batch in references if batch.label_names is not None]
            if any(names != known[0] for names in known):
                raise ValueError(f"references: expected the same label names throughout, found {known[0]} and others")
            settings["label_names"] = known[0] if known else None
        statistics, made_by, extra = self._measure(p, r, **settings)
        columns = InstanceColumns(statistics.ids, predictions, references, p, r)
        return Measured(statistics, columns, made_by, extra)


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
            raise ValueError(f"by: expected references with the column {name!r}, found no references")
        raise ValueError(f"by: expected a column that every reference has, found {name!r} not in all of them")

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
