"""Base of modules that score ERASER instances: flattened when they are added, joined at ``compute``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

import pyarrow as pa

from eraser_hub.schema.rows import ID_FIELDS

from .arrow_columns import flatten_table
from .batches import Batch, Batches, Measured
from .clusters import NONE, AnnotationColumns, Clusters, find_components, number_values
from .flat import Predictions, References, concatenate
from .flatten import SIDES, flatten_rows
from .gold_digest import digest_references
from .issues import InputError, Issues
from .joining import cluster_by_documents
from .plain_rows import (
    PlainText,
    describe_notes,
    find_plain_rows,
    get_id,
    make_annotations,
    make_instances,
    read_text,
)
from .rows import check_columns, to_rows
from .token_rows import TOKEN_FIELDS, as_eraser_row
from .unknown_fields import UnknownFields


@dataclass(kw_only=True)
class FlatBatch(Batch):
    """One side of a batch, flat.

    Attributes:
        record: the rows, flat.
        unknown: the unknown fields.
    """

    record: Any
    unknown: UnknownFields = field(default_factory=UnknownFields)

    def __len__(self) -> int:
        return len(self.record.ids)

    def column(self, name: str) -> list[Any] | None:
        """Return the values of a column; None if a row lacks it."""
        source = self.source
        if isinstance(source, list):
            return [row[name] for row in source] if source and all(name in row for row in source) else None
        return source.column(name).to_pylist() if name in source.column_names else None


class InstanceBatches(Batches):
    """Mixin before ``evaluate.Metric`` for modules that score ERASER instances.

    ``_measure`` receives both sides flat; references are None if there are none.

    Attributes:
        REFERENCES_NEEDED: True if references are required.
        REFERENCE_COLUMNS: the columns that every reference must have.
    """

    OPTIONS = tuple(option for option in Batches.OPTIONS if option != "label_names")
    REFERENCES_NEEDED: ClassVar[bool] = True
    REFERENCE_COLUMNS: ClassVar[Sequence[str]] = ()

    def _keep(self, data: Any, side: str) -> Batch:
        """Keep one side of a batch, flat; plain rows are converted when both sides are known."""
        if hasattr(data, "__next__"):  # an iterator, which can be read once
            data = list(data)
        if (plain := find_plain_rows(data)) is not None:
            return Batch(plain)
        table, names = None, None
        if hasattr(data, "features") and hasattr(data, "with_format"):  # a Dataset
            features = data.features or {}
            label = features.get("classification", features.get("label") if "rationale_mask" in features else None)
            names = list(label.names) if label is not None and hasattr(label, "names") else None
            # a Dataset's own table ignores selections; the arrow format returns the selected rows
            table = data.with_format("arrow")[:] if hasattr(data, "num_rows") else None
        elif hasattr(data, "column_names") and hasattr(data, "num_rows") and hasattr(data, "combine_chunks"):
            table = data
        elif hasattr(data, "num_rows") and hasattr(data, "schema") and hasattr(data, "columns"):  # a record batch
            table = pa.Table.from_batches([data])
        if table is not None:
            check_columns(table.schema.names, side)
        issues, needed = Issues(), () if side == "prediction" else self.REFERENCE_COLUMNS
        if table is not None and (side == "prediction" or "annotation_id" in table.column_names):
            record, unknown = flatten_table(table, SIDES[side], issues, needed)
            source: Any = table
        else:
            source = to_rows(data if table is None else table.to_pylist(), side)
            human = side == "reference"
            shaped = [as_eraser_row(row) if human and row.keys() >= TOKEN_FIELDS else row for row in source]
            record, unknown = flatten_rows(shaped, SIDES[side], issues, needed)
        issues.raise_if_any({side: record.ids})
        return FlatBatch(source, names, record=record, unknown=unknown)

    def _convert_plain(
        self, predictions: Sequence[Batch], references: Sequence[Batch]
    ) -> tuple[list[Batch], list[Batch], list[str]]:
        """Return the batches with plain rows converted, those in sequence as one, and notes."""
        ours, theirs = list[Batch](), list[Batch]()
        texts: dict[str, PlainText | None] = {}
        notes = Counter[str]()
        for is_flat, batches in groupby(references, lambda batch: isinstance(batch, FlatBatch)):
            if is_flat:
                for batch in batches:
                    texts |= _read_texts(batch)
                    theirs.append(batch)
                continue
            rows, own, further = make_annotations([row for batch in batches for row in batch.source], len(texts))
            texts |= own
            notes += further
            theirs.append(self._keep(rows, "reference"))
        places = list(texts) if references else None
        for is_flat, batches in groupby(predictions, lambda batch: isinstance(batch, FlatBatch)):
            if is_flat:
                ours += batches
                continue
            rows, further = make_instances(
                [row for batch in batches for row in batch.source], texts, places, sum(map(len, ours))
            )
            notes += further
            ours.append(self._keep(rows, "prediction"))
        return ours, theirs, describe_notes(notes)

    def _measure_batches(
        self, predictions: Sequence[Batch], references: Sequence[Batch], by: str | None, settings: dict[str, Any]
    ) -> tuple[Measured, AnnotationColumns]:
        notes: list[str] = []
        if not all(isinstance(one, FlatBatch) for one in (*predictions, *references)):
            predictions, references, notes = self._convert_plain(predictions, references)
        ours, theirs = ([one for one in side if isinstance(one, FlatBatch)] for side in (predictions, references))
        p, r = (concatenate([batch.record for batch in side]) if side else None for side in (ours, theirs))
        if p is None:
            raise InputError("expected at least one instance, found none", "empty", "predictions")
        if self.REFERENCES_NEEDED if r is None else not r.ids:
            raise InputError("expected at least one row, found none", "empty", "references")
        if settings.get("label_names") is None:
            known = [batch.label_names for batch in theirs if batch.label_names is not None]
            if any(names != known[0] for names in known):
                message = f"expected the same label names throughout, found {known[0]} and others"
                raise InputError(message, "constant", "references")
            settings["label_names"] = known[0] if known else None
        measured = self._measure(p, r, **settings)
        unknown = UnknownFields(sum((batch.unknown for batch in ours), UnknownFields()))
        notes += [*([unknown.describe()] if unknown else []), *measured.notes]
        columns = InstanceColumns(measured.statistics.ids, ours, theirs, p, r)
        if r is not None and not any(label.startswith("\0") for label in r.labels):  # else they are numbers
            measured = measured._replace(digest=digest_references(r))
        return measured._replace(notes=notes), columns


def _read_texts(batch: Batch) -> dict[str, PlainText | None]:
    """Return the text of each reference by id, in order; None for rows without documents."""
    source = batch.source
    columns = [*ID_FIELDS, "documents", "tokens"]
    if not isinstance(source, list):
        source = source.select([name for name in columns if name in source.column_names]).to_pylist()
    return {name: read_text(row, name) for row in source if (name := get_id(row)) is not None}


@dataclass
class InstanceColumns:
    """Columns of annotations beside their scores.

    Attributes:
        ids: the ids of the annotations, in the order of the statistics.
        predictions: the batches of predictions.
        references: the batches of references, if there are any.
        p: all predictions, flat.
        r: all references, flat, or None.
    """

    ids: Sequence[str]
    predictions: Sequence[FlatBatch]
    references: Sequence[FlatBatch]
    p: Predictions
    r: References | None

    def __call__(self, name: str, predicted: bool = False) -> list[Any]:
        """Return the values of a column of the references; labels by their names.

        Args:
            name: the column.
            predicted: read the predictions, if the references lack the column.

        Raises:
            ValueError: not every row has it.
        """
        r = self.r
        if name == "classification" and r is not None and (r.classification >= 0).any():
            names = [*(label.lstrip("\0") for label in r.labels), None]
            return self._order([names[code] for code in r.classification.tolist()], r.ids)
        for batches, record in ((self.references, r), (self.predictions, self.p if predicted else None)):
            parts = [batch.column(name) for batch in batches]
            if record is not None and not any(part is None for part in parts):
                return self._order([value for part in parts for value in part or ()], record.ids)
        if r is None:
            raise InputError(f"expected references with the column {name!r}, found no references", "option-value", "by")
        raise InputError(
            f"expected a column that every reference has, found {name!r} not in all of them", "option-value", "by"
        )

    def clusters(self) -> Clusters:
        """Return clusters of annotations that share a document of references, else of predicted rationales."""
        p, ids = self.p, self.p.ids
        if self.r is not None:
            clusters, ids = cluster_by_documents(self.r), self.r.ids
        elif p.instance.size:
            clusters = Clusters("documents of rationales", find_components(p.instance, p.doc, len(ids)))
        else:
            clusters = Clusters(NONE)
        if clusters.numbers is None:
            return clusters
        return clusters._replace(numbers=number_values(self._order(clusters.numbers.tolist(), ids)))

    def _order(self, values: Sequence[Any], ids: Sequence[str]) -> list[Any]:
        """Return the values of one side in the order of the annotations."""
        if ids is self.ids:
            return list(values)
        by_id = dict(zip(ids, values, strict=True))
        return [by_id[name] for name in self.ids]
