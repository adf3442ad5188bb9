"""Prediction files, read once and streaming: typed decoding of a line, flat arrays, soft scores ranked on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import numpy as np

from eraser_hub.errors import DataError
from eraser_hub.metrics.inputs import Offences, PredictionFlattener, Predictions, References

from .corpus import is_parquet, lines_of, said
from .soft import SoftReducer, SoftScores, lookup


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
) -> list[int]:
    """Read a prediction file, or its bytes [start, stop), into the flattener; returns the line of each instance.

    A line of the wrong type is an offence, told with the path of the field; a line that is no JSON ends the reading.
    """
    decode = msgspec.json.Decoder(Instance).decode
    numbers: list[int] = []
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
    flattener = PredictionFlattener(offences, checked=True)
    reducer = SoftReducer(flattener, references, lookup(documents), no_positives, n_shuffles, sentence_threshold)
    if is_parquet(path):
        from .tables import read_parquet  # the Arrow libraries are slow to import: only where they are needed

        batches = read_parquet(path, offences, reducer)
        documents_known(batches.docids, references, documents)
        return batches, reducer.finish(), range(1, len(batches.ids) + 1)
    numbers = read_jsonl(path, flattener, reducer)
    soft = reducer.finish()
    documents_known(list(flattener.docs), references, documents)
    return flattener.finish(), soft, numbers


def documents_known(docids: list[str], references: References, documents: Any) -> None:
    """Add to the references the documents that only predictions speak of."""
    codes = set(references.docids)
    documents.count(docids)
    new = [name for name in docids if name not in codes and name in documents.counts]
    if not new:
        return
    first = len(references.docids)
    references.docids = [*references.docids, *new]
    lengths = np.array([documents.counts[name] for name in new], dtype=np.int64)
    references.document = np.concatenate([references.document, np.arange(first, first + len(new))])
    references.document_instance = np.concatenate([references.document_instance, np.full(len(new), -1)])
    references.tokens = np.concatenate([references.tokens, lengths[:, 0]])
    references.sentences = np.concatenate([references.sentences, lengths[:, 1]])
