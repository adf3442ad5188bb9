"""Annotators of a custom corpus: who marked which tokens, and who chose which label.

``annotators/CONFIG.parquet``, in corpus folders and built datasets, has a row per text and person
(:data:`.schema.ANNOTATORS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eraser_hub.conversion.built import read_rows
from eraser_hub.metrics.annotators import AnnotatedText, read_annotated_texts
from eraser_hub.metrics.errors import DataError as RowError
from eraser_hub.records.errors import DataError
from eraser_hub.records.places import dataset_split

from .schema import ANNOTATORS

# columns that hold no null; others may hold one as a whole
_WHOLE = ("annotation_id", "annotator", "split", "docids", "num_tokens", "rationale_positions[]")


def read_annotators(path: Path, split: str | None = None) -> Mapping[str, AnnotatedText]:
    """Return annotation id -> the marks and labels of its annotators.

    Args:
        path: the file.
        split: the split, under the dataset's name or the release's; None: all.

    Raises:
        DataError: the file cannot be read, or has other columns; marks of one text differ in length; a person stands
            twice in a text.
    """
    wanted = None if split is None else dataset_split(split)
    tables = read_rows([path], ANNOTATORS.names, kinds=ANNOTATORS, whole=_WHOLE)
    rows = [row for table in tables for row in table.to_pylist() if wanted in (None, row["split"])]
    try:
        return {text.id: text for text in read_annotated_texts(rows)}
    except RowError as error:
        raise DataError(error.message, file=path, instance=error.instance, field=error.field) from None
