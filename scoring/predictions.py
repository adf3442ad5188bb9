"""A prediction file as one record, its soft scores ranked on the way and not kept."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eraser_hub.metrics.flat import Predictions, References, concatenate
from eraser_hub.metrics.flatten_rows import PredictionFlattener
from eraser_hub.metrics.offences import Offences

from .corpus import is_parquet
from .instances import Part, parts_of
from .soft import Ranking, SoftReducer, SoftScores


def parts_of_file(path: Path, offences: Offences, start: int = 0, end: int | None = None) -> Iterator[Part]:
    """A prediction file, jsonl or Parquet, some instances at a time; of jsonl the lines between two bytes."""
    if is_parquet(path):
        from .tables import parts_of_parquet  # the Arrow libraries are slow to import: only where they are needed

        return parts_of_parquet(path, offences)
    return parts_of(path, offences, start, end)


def read_predictions(
    path: Path, references: References, documents: Any, offences: Offences, ranking: Ranking
) -> tuple[Predictions, SoftScores, array]:
    """A prediction file: flat, its soft scores ranked, and the line of each instance (in Parquet: the row).

    Rationales' documents are numbered as in ``documents``.
    """
    reducer = SoftReducer(references, documents, offences, ranking)
    parts, lines = [], array("q")
    for part in parts_of_file(path, offences):
        lines.extend(part.lines)
        reducer.reduce(part.predictions)
        parts.append(part.predictions)
    if not parts:
        return PredictionFlattener(offences).finish(), reducer.finish(), lines
    coded = {"classification": "labels"}  # documents are numbered alike in all parts
    return concatenate(parts, coded), reducer.finish(), lines
