"""Parquet: predictions in row groups, and references of a built dataset; no Python object per row but its id."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eraser_hub.metrics.flat import Predictions, References, concatenate
from eraser_hub.metrics.flatten_arrow import predictions_from_arrow, references_from_arrow
from eraser_hub.metrics.flatten_rows import PredictionFlattener, ReferenceFlattener
from eraser_hub.metrics.joining import Documents
from eraser_hub.metrics.offences import Offences
from eraser_hub.records.errors import DataError
from eraser_hub.records.splits import dataset_split

from .instances import Part, part_size
from .names import Names

ROWS_AT_ONCE = 512
LEAST_ROWS, MOST_ROWS = 16, 1 << 15
NEEDED = ("annotation_id", "classification", "documents", "evidences")


def parts_of_parquet(path: Path, offences: Offences) -> Iterator[Part]:
    """A Parquet file of instances, some rows at a time."""
    first = 0
    try:
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(batch_size=_rows_of_a_part(file.metadata)):
            part = _predictions(pa.Table.from_batches([batch]), offences, first)
            first += batch.num_rows
            yield Part(part, array("q", range(first - batch.num_rows + 1, first + 1)))
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"not a readable Parquet file: {str(error).splitlines()[0]}", file=path) from None


def _rows_of_a_part(metadata: pq.FileMetaData) -> int:
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    return min(max(part_size(size) * metadata.num_rows // max(size, 1), LEAST_ROWS), MOST_ROWS)


def _predictions(table: pa.Table, offences: Offences, first: int) -> Predictions:
    predictions = predictions_from_arrow(table)
    if predictions is not None:
        return predictions
    own = Offences()
    flattener = PredictionFlattener(own)
    for row in table.to_pylist():
        flattener.add(row)
    _move(own, offences, first)
    return flattener.finish()


def dataset_files(dataset: Path, config: str, split: str) -> list[Path]:
    """The Parquet files of a split of a built dataset."""
    name = dataset_split(split)
    files = sorted((dataset / config).glob(f"{name}-?????-of-?????.parquet"))
    if not files:
        splits = sorted({path.name.split("-")[0] for path in (dataset / config).glob("*-?????-of-?????.parquet")})
        known = ", ".join(splits) or "nothing"
        raise DataError(f"expected Parquet files of the split {name!r}, found {known}", file=dataset / config)
    return files


def read_dataset(
    files: Sequence[Path], label_names: Sequence[str] | None, by: str | None, offences: Offences
) -> tuple[References, list[object] | None]:
    """The references of a built dataset's split, and their values of the column ``by``."""
    parts: list[References] = []
    values: list[Any] | None = None if by is None else []
    wanted = [*NEEDED, *([by] if by and by not in NEEDED else [])]
    for path in files:
        try:
            schema = pq.read_schema(path).names
            missing = [name for name in wanted if name not in schema]
            if missing:
                raise DataError(f"expected the column {missing[0]!r}, found {', '.join(schema)}", file=path)
            for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS_AT_ONCE, columns=wanted):
                table = pa.Table.from_batches([batch])
                parts.append(_references(table, label_names, offences, sum(len(part.ids) for part in parts)))
                if values is not None and by != "classification":
                    values += table.column(by).to_pylist()
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"not a readable Parquet file: {str(error).splitlines()[0]}", file=path) from None
    references = concatenate(parts) if parts else ReferenceFlattener(offences, label_names).finish()
    if by == "classification":
        names = [*references.labels, None]
        values = [names[code] for code in references.classification.tolist()]
    return references, values


def _references(table: pa.Table, label_names: Sequence[str] | None, offences: Offences, first: int) -> References:
    references = references_from_arrow(table, label_names)
    if references is not None:
        return references
    own = Offences()
    flattener = ReferenceFlattener(own, label_names)
    for row in table.to_pylist():
        flattener.add(row)
    _move(own, offences, first)
    return flattener.finish()


def _move(own: Offences, offences: Offences, first: int) -> None:
    """Tell a part's offences, whose first row is ``first``, as the whole's."""
    for offence in own:
        offences.say(offence.side, offence.row + first, offence.field, offence.message)
    offences.total += own.total - len(own)


class RowDocuments(Documents):
    """A dataset's documents, as `corpus.CorpusDocuments` gives a corpus'."""

    def __init__(self, references: References) -> None:
        self.docs = Names(references.docids)
        super().__init__(references, len(self.docs))

    def read(self) -> None:
        """All documents are known from the start; docids that are new since have none."""
        if len(self.docs) >= self.any_row.size:
            more = np.full(len(self.docs) + 1 - self.any_row.size, -1, dtype=np.int64)
            self.any_row = np.concatenate([self.any_row, more])
