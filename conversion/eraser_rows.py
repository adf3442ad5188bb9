"""Annotations and documents -> Arrow rows of the one schema, a batch at a time, column by column.

The work is done on flat arrays with offsets: texts are read once per batch however many rows share them, tokens are
counted on the bytes, and the rationale mask is the running sum of +1 at each span's start and -1 at its end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import UNSET

from eraser_hub.errors import DataError, shown

from .eraser_format import MOST_INT, RawAnnotation, RawEvidence
from .eraser_schema import DOCUMENT, EVIDENCE, SCHEMA


@dataclass(frozen=True, slots=True)
class SplitFacts:
    """What is the same in (nearly) all records of a split file; records that differ are kept whole, see `Exceptions`.

    Attributes:
        ids: ``string`` or ``integer``.
        docids: ``absent``, ``null`` or ``list``.
        query_type: ``present`` (a string or null) or ``absent``.
        sentence_ends: ``exclusive`` or ``inclusive`` (rows carry the exclusive end).
    """

    ids: str = "string"
    docids: str = "absent"
    query_type: str = "present"
    sentence_ends: str = "exclusive"


@dataclass(slots=True)
class Records:
    """A batch of decoded records, with what is needed to say where one stands.

    ``documents`` are, row after row, numbers into ``texts`` (docid, text); ``offsets`` say where each row's begin.
    """

    file: Path
    numbers: Sequence[int]
    records: list[RawAnnotation]
    extras: dict[int, dict[str, Any]]
    offsets: np.ndarray
    documents: np.ndarray
    texts: list[tuple[str, str]]

    def error(self, row: int, message: str, path: str | None = None) -> DataError:
        """The error for a row of the batch."""
        identity = self.records[row].annotation_id
        return DataError(message, file=self.file, line=self.numbers[row], instance=identity, field=path)


@dataclass(slots=True)
class Batch:
    """The finished rows, and the records that cannot be told from a row and the split's facts alone.

    ``exceptions`` are (position, JSON of the keys to set or take away).
    """

    rows: pa.RecordBatch
    exceptions: list[tuple[int, str]] = field(default_factory=list)


def count_tokens(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and sentences of each text: tokens are runs of bytes other than U+0020 and "\\n"; a sentence is a line
    that has a token."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    if not offsets[-1] - offsets[0]:
        zeros = np.zeros(len(texts), np.int64)
        return zeros, zeros
    data = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    newline = data == 10
    inside = ~(newline | (data == 32))
    starts = inside.copy()
    starts[1:] &= ~inside[:-1]
    firsts = offsets[:-1][offsets[:-1] < offsets[1:]]
    starts[firsts] = inside[firsts]
    places = np.flatnonzero(starts)
    bounds = np.searchsorted(places, offsets)
    # a token opens a sentence when it is its document's first, or a newline stands between it and the one before
    lines = np.searchsorted(np.flatnonzero(newline), places)
    opens = np.ones(len(places), bool)
    opens[1:] = lines[1:] != lines[:-1]
    opens[bounds[:-1][bounds[:-1] < len(places)]] = True
    sentences = np.concatenate([[0], np.cumsum(opens)])[bounds]
    return np.diff(bounds), np.diff(sentences)


def _list_offsets(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def rows_of(batch: Records, label_numbers: dict[str, int], facts: SplitFacts) -> Batch:
    """The Arrow rows of a batch.

    Raises:
        DataError: an unknown label, or a span that is reversed, negative or past its document's end.
    """
    records = batch.records
    count = len(records)
    docids = pa.array([docid for docid, _ in batch.texts], pa.string())
    texts = pa.array([text for _, text in batch.texts], pa.string())
    tokens, sentences = count_tokens(texts)

    labels = [label_numbers.get(record.classification, -1) for record in records]
    if -1 in labels:
        row = labels.index(-1)
        raise batch.error(
            row,
            f"expected one of {', '.join(map(repr, label_numbers))}, found {shown(records[row].classification)}",
            "classification",
        )

    groups = [group for record in records for group in record.evidences]
    flat = [evidence for group in groups for evidence in group]
    group_offsets = _list_offsets([len(record.evidences) for record in records])
    evidence_offsets = _list_offsets([len(group) for group in groups])
    evidence_row = np.repeat(np.arange(count), np.diff(evidence_offsets[group_offsets]))
    number_of = {docid: number for number, (docid, _) in enumerate(batch.texts)}
    evidence_document = np.array([number_of.get(e.docid, -1) for e in flat], np.int64)
    if len(flat) and evidence_document.min() < 0:
        at = int(evidence_document.argmin())
        raise batch.error(
            int(evidence_row[at]), f"expected a document that is there, found {flat[at].docid!r}", "evidences"
        )
    start = np.array([e.start_token for e in flat], np.int64)
    end = np.array([e.end_token for e in flat], np.int64)
    start_sentence = np.array([e.start_sentence for e in flat], np.int64)
    end_sentence = np.array([e.end_sentence for e in flat], np.int64)
    _check_spans(batch, flat, evidence_row, evidence_document, start, end, tokens)
    if facts.sentence_ends == "inclusive":
        end_sentence = end_sentence + (end_sentence >= 0)
        if len(end_sentence) and end_sentence.max() > MOST_INT:
            at = int(end_sentence.argmax())
            raise batch.error(int(evidence_row[at]), f"expected less than {MOST_INT}, found {MOST_INT}", "end_sentence")

    # the mask: flat over the tokens of each row's documents
    row_tokens = tokens[batch.documents]
    token_offsets = np.zeros(len(batch.documents) + 1, np.int64)
    np.cumsum(row_tokens, out=token_offsets[1:])
    slot = _slots(batch.offsets, batch.documents, evidence_row, evidence_document)
    change = np.zeros(int(token_offsets[-1]) + 1, np.int32)
    # an empty span adds and takes away at one place
    np.add.at(change, token_offsets[slot] + start, 1)
    np.add.at(change, token_offsets[slot] + end, -1)
    # a span that ends where its document ends closes at the next one's first token, where it belongs to neither
    mask = np.cumsum(change, out=change)[:-1] > 0
    marked = np.concatenate([[0], np.cumsum(mask)])
    bounds = token_offsets[batch.offsets]
    num_tokens = np.diff(bounds)
    ratio = np.diff(marked[bounds]) / np.maximum(num_tokens, 1)
    sentence_sums = np.concatenate([[0], np.cumsum(sentences[batch.documents])])
    num_sentences = np.diff(sentence_sums[batch.offsets])

    taken = pa.array(batch.documents)
    document_lists = pa.array(batch.offsets.astype(np.int32))
    columns: dict[str, pa.Array] = {
        "annotation_id": pa.array([str(record.annotation_id) for record in records], pa.string()),
        "classification": pa.array(labels, pa.int64()),
        "query": pa.array([record.query for record in records], pa.string()),
        "query_type": pa.array([None if record.query_type is UNSET else record.query_type for record in records], pa.string()),
        "documents": pa.ListArray.from_arrays(
            document_lists, pa.StructArray.from_arrays([docids.take(taken), texts.take(taken)], fields=list(DOCUMENT))
        ),
        "evidences": pa.ListArray.from_arrays(
            pa.array(group_offsets),
            pa.ListArray.from_arrays(
                pa.array(evidence_offsets),
                pa.StructArray.from_arrays(
                    [
                        docids.take(pa.array(evidence_document)),
                        pa.array([e.text for e in flat], pa.string()),
                        *(pa.array(a.astype(np.int32)) for a in (start, end, start_sentence, end_sentence)),
                    ],
                    fields=list(EVIDENCE),
                ),
            ),
        ),
        "rationale_mask": pa.ListArray.from_arrays(
            document_lists, pa.ListArray.from_arrays(pa.array(token_offsets.astype(np.int32)), pa.array(mask))
        ),
        "num_tokens": pa.array(num_tokens.astype(np.int32)),
        "num_sentences": pa.array(num_sentences.astype(np.int32)),
        "rationale_ratio": pa.array(ratio.astype(np.float32)),
        "position": pa.array(np.asarray(batch.numbers, np.int32)),
    }  # fmt: skip
    rows = pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
    return Batch(rows, _exceptions(batch, facts))


def _slots(offsets: np.ndarray, documents: np.ndarray, row: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each evidence the place of its document among ``documents``, looking from its row's first one on."""
    slot = offsets[:-1][row].astype(np.int64)
    looking = np.flatnonzero(documents[slot] != wanted) if len(slot) else slot
    while len(looking):
        slot[looking] += 1
        looking = looking[documents[slot[looking]] != wanted[looking]]
    return slot


def _check_spans(
    batch: Records,
    flat: list[RawEvidence],
    row: np.ndarray,
    document: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    tokens: np.ndarray,
) -> None:
    if not len(flat):
        return
    bad = (start < 0) | (end < start) | (end > tokens[document])
    if not bad.any():
        return
    at = int(bad.argmax())
    evidence, line = flat[at], int(row[at])
    path = "evidences"
    for g, group in enumerate(batch.records[line].evidences):
        for e, candidate in enumerate(group):
            if candidate is evidence:
                path = f"evidences[{g}][{e}]"
    name = shown(evidence.docid)
    if evidence.start_token < 0:
        raise batch.error(line, f"expected a token of {name}, found {evidence.start_token}", f"{path}.start_token")
    if evidence.end_token < evidence.start_token:
        raise batch.error(
            line,
            f"expected an end at or after the start {evidence.start_token}, found {evidence.end_token}",
            f"{path}.end_token",
        )
    raise batch.error(
        line,
        f"expected a span inside {name}, which has {tokens[document[at]]} tokens, found the end {evidence.end_token}",
        f"{path}.end_token",
    )


def _exceptions(batch: Records, facts: SplitFacts) -> list[tuple[int, str]]:
    """What a record has and its row and the split's facts cannot tell: kept as JSON of the keys as they were.

    An absent key is told by standing in ``"absent"``.
    """
    out: list[tuple[int, str]] = []
    id_type = int if facts.ids == "integer" else str
    names = [docid for docid, _ in batch.texts]
    known = set(names)
    offsets, documents = batch.offsets.tolist(), batch.documents.tolist()
    for index, record in enumerate(batch.records):
        keep: dict[str, Any] = {}
        absent: list[str] = []
        if type(record.annotation_id) is not id_type:
            keep["annotation_id"] = record.annotation_id
        docids = record.docids
        if docids is UNSET:
            if facts.docids != "absent":
                absent.append("docids")
        elif docids is None:
            if facts.docids != "null":
                keep["docids"] = None
        elif facts.docids != "list" or docids != [names[d] for d in documents[offsets[index] : offsets[index + 1]]]:
            for place, docid in enumerate(docids):  # type: ignore[arg-type]
                if docid not in known:
                    raise batch.error(
                        index, f"expected a document that is there, found {shown(docid)}", f"docids[{place}]"
                    )
            keep["docids"] = docids
        if record.query_type is UNSET:
            if facts.query_type != "absent":
                absent.append("query_type")
        elif facts.query_type == "absent":
            keep["query_type"] = record.query_type
        if index in batch.extras:
            keep.update(batch.extras[index])
        if keep or absent:
            out.append((int(batch.numbers[index]), json.dumps({"set": keep, "absent": absent})))
    return out
