"""Parquet: predictions in row groups, and references of a built dataset; no Python object per row but its id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eraser_hub.errors import DataError
from eraser_hub.metrics.arrow_inputs import predictions_from_arrow, references_from_arrow
from eraser_hub.metrics.batches import concatenate
from eraser_hub.metrics.inputs import Offences, PredictionFlattener, Predictions, ReferenceFlattener, References
from eraser_hub.metrics.instance_batches import PREDICTION_PARTS
from eraser_hub.splits import dataset_split

from .soft import SoftReducer

ROWS_AT_ONCE = 512
NEEDED = ("annotation_id", "classification", "documents", "evidences")


def read_parquet(path: Path, offences: Offences, reducer: SoftReducer) -> Predictions:
    """A Parquet file of instances, some rows at a time; soft scores are ranked and forgotten."""
    parts: list[Predictions] = []
    nothing = np.zeros(0)
    first = 0
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS_AT_ONCE):
            part = _predictions(pa.Table.from_batches([batch]), offences, first)
            if not offences.total:
                reducer.reduce_batch(part)
            part.soft_scores = part.sentence_scores = nothing
            parts.append(part)
            first += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"not a readable Parquet file: {str(error).splitlines()[0]}", file=path) from None
    if not parts:
        return PredictionFlattener(offences).finish()
    return concatenate(parts, **PREDICTION_PARTS)


def _predictions(table: pa.Table, offences: Offences, first: int) -> Predictions:
    columns = predictions_from_arrow(table)
    if columns is not None:
        return Predictions(**columns)
    own = Offences()
    flattener = PredictionFlattener(own)
    for row in table.to_pylist():
        flattener.add(row)
    for offence in own:
        offences.say(offence.side, offence.row + first, offence.field, offence.message)
    offences.total += own.total - len(own)
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
    tables = []
    for path in files:
        try:
            schema = pq.read_schema(path).names
            missing = [name for name in (*NEEDED, *([by] if by else [])) if name not in schema]
            if missing:
                raise DataError(f"expected the column {missing[0]!r}, found {', '.join(schema)}", file=path)
            tables.append(pq.read_table(path, columns=[*NEEDED, *([by] if by and by not in NEEDED else [])]))
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"not a readable Parquet file: {str(error).splitlines()[0]}", file=path) from None
    table = pa.concat_tables(tables)
    columns = references_from_arrow(table, label_names)
    if columns is not None:
        references = References(**columns)
    else:
        flattener = ReferenceFlattener(offences, label_names)
        for row in table.to_pylist():
            flattener.add(row)
        references = flattener.finish()
    values: list[Any] | None = None
    if by == "classification":
        names = [*references.labels, None]
        values = [names[code] for code in references.classification.tolist()]
    elif by is not None:
        values = table.column(by).to_pylist()
    return references, values


class RowDocuments:
    """A dataset's documents, as `corpus.CorpusDocuments` gives a corpus'."""

    def __init__(self, references: References) -> None:
        self.docs = {docid: code for code, docid in enumerate(references.docids)}
        self.tokens = np.full(len(self.docs), -1, dtype=np.int64)
        self.sentences = self.tokens.copy()
        self.tokens[references.document] = references.tokens
        self.sentences[references.document] = references.sentences

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """(tokens, sentences) of every document of the vocabulary; -1 for one that does not exist."""
        missing = np.full(len(self.docs) - self.tokens.size, -1, dtype=np.int64)
        if missing.size:
            self.tokens = np.concatenate([self.tokens, missing])
            self.sentences = np.concatenate([self.sentences, missing])
        return self.tokens, self.sentences
