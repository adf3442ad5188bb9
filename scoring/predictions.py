"""Prediction files, read once and streaming: typed decoding of a line, flat arrays, soft scores ranked on the way."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from eraser_hub.errors import DataError
from eraser_hub.metrics.inputs import Offences, PredictionFlattener, Predictions, References

from .corpus import is_parquet, lines_of, said
from .soft import SoftReducer, SoftScores


class _Span(TypedDict):
    start_token: int
    end_token: int


class _Rationale(TypedDict, total=False):
    docid: str | int
    hard_rationale_predictions: list[_Span] | None
    soft_rationale_predictions: list[float] | None
    soft_sentence_predictions: list[float] | None


class _Erased(TypedDict, total=False):
    threshold: float
    comprehensiveness_classification_scores: dict[str, float | None] | None
    sufficiency_classification_scores: dict[str, float | None] | None


class Instance(TypedDict, total=False):
    """What a line of predictions holds; keys beyond these are left alone."""

    annotation_id: str | int
    rationales: list[_Rationale] | None
    classification: str | None
    classification_scores: dict[str, float | None] | None
    comprehensiveness_classification_scores: dict[str, float | None] | None
    sufficiency_classification_scores: dict[str, float | None] | None
    null_classification_scores: dict[str, float | None] | None
    tokens_to_flip: float | None
    thresholded_scores: list[_Erased] | None
    random_rationales: list[_Erased] | None


def read_jsonl(
    path: Path,
    flattener: PredictionFlattener,
    reducer: SoftReducer,
    start: int = 0,
    stop: int | None = None,
    first_line: int = 1,
) -> array:
    """Read a prediction file, or its bytes [start, stop), into the flattener; returns the line of each instance.

    A line of the wrong type is an offence, told with the path of the field; a line that is no JSON ends the reading.
    """
    decode = msgspec.json.Decoder(Instance).decode
    numbers = array("q")
    add = flattener.add
    for number, line in enumerate(lines_of(path, start, stop), first_line):
        try:
            instance = decode(line)
        except msgspec.ValidationError as error:
            numbers.append(number)
            flattener.say(*_told(error))
            add({"annotation_id": _name(line, flattener)})
            continue
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not line.strip():
                continue
            raise DataError(said(error, line), file=path, line=number) from None
        if not line.isascii():
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise DataError(f"not UTF-8: {error}", file=path, line=number) from None
        numbers.append(number)
        add(instance)
        if reducer.enough():
            reducer.reduce()
    return numbers


def _told(error: Exception) -> tuple[str, str]:
    """Field and message of a typed decoder's error: "Expected .. - at `$.path`"."""
    message, _, place = str(error).partition(" - at `$")
    return place.rstrip("`").lstrip("."), message[:1].lower() + message[1:]


def _name(line: bytes, flattener: PredictionFlattener) -> str | int:
    """The id of a line whose types are wrong elsewhere, so that only the real offence is told."""

    class Named(TypedDict):
        annotation_id: str | int

    try:
        return msgspec.json.decode(line, type=Named)["annotation_id"]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"\0{flattener.n}"


def read_predictions(
    path: Path,
    references: References,
    documents: Any,
    offences: Offences,
    no_positives: float,
    n_shuffles: int,
    sentence_threshold: float,
) -> tuple[Predictions, SoftScores, Sequence[int]]:
    """A prediction file (jsonl, or Parquet by its name): flat, ranked, and the line of each instance.

    The soft scores themselves are not kept.
    """
    flattener = PredictionFlattener(offences, checked=True, docs=documents.docs)
    reducer = SoftReducer(flattener, references, documents, no_positives, n_shuffles, sentence_threshold)
    if is_parquet(path):
        from .tables import read_parquet  # the Arrow libraries are slow to import: only where they are needed

        predictions = read_parquet(path, offences, reducer)
        return predictions, reducer.finish(), range(1, len(predictions.ids) + 1)
    numbers = read_jsonl(path, flattener, reducer)
    soft = reducer.finish()
    return flattener.finish(), soft, numbers
