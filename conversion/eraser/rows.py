"""Annotations as columns, and their documents -> Arrow rows of the one schema, a batch at a time.

The work is done on flat arrays with offsets: texts are read once per batch however many rows share them, tokens are
counted on the bytes, and the rationale mask is the running sum of +1 at each span's start and -1 at its end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from eraser_hub.conversion.arrays import booleans, distinct, numbers, offsets_of, string_data, string_sizes
from eraser_hub.records.errors import shown

from .columns import DOCIDS_LIST, DOCIDS_NULL, KEPT, TYPE_ABSENT, WHOLE_NUMBER, Columns
from .format import MOST_INT
from .schema import DOCUMENT, EVIDENCE, SCHEMA

LONG = 512


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
class Texts:
    """The documents of a batch: their numbers (ascending), ids and texts."""

    numbers: np.ndarray
    docids: pa.StringArray
    texts: pa.StringArray


@dataclass(slots=True)
class Batch:
    """The finished rows, and the records that cannot be told from a row and the split's facts alone.

    ``exceptions`` are (position, JSON of the keys to set or take away). ``pairs`` is the number of (row, document with
    evidence), ``shares`` the sum over them of the share of the document's tokens that the row's evidences cover.
    """

    rows: pa.RecordBatch
    exceptions: list[tuple[int, str]] = field(default_factory=list)
    pairs: int = 0
    shares: float = 0.0


def count_tokens(texts: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and sentences of each text: tokens are runs of bytes other than U+0020 and "\\n"; a sentence is a line
    that has a token."""
    data, offsets = string_data(texts), offsets_of(string_sizes(texts))
    if not len(data):
        zeros = np.zeros(len(texts), np.int64)
        return zeros, zeros
    newline = data == 10
    blank = data == 32
    blank |= newline
    starts = np.empty(len(data), bool)
    starts[0] = not blank[0]
    np.greater(blank[:-1], blank[1:], out=starts[1:])  # a blank, then none
    firsts = offsets[:-1][offsets[:-1] < offsets[1:]]
    starts[firsts] = ~blank[firsts]
    if len(data) > LONG * len(texts) and not (blank[1:] & blank[:-1]).any():
        return _count_in_long(starts, newline, offsets)
    places = np.flatnonzero(starts)
    bounds = np.searchsorted(places, offsets)
    # a token opens a sentence when it is its document's first, or a newline stands between it and the one before
    opens = np.zeros(len(places) + 1, bool)
    opens[np.searchsorted(places, np.flatnonzero(newline))] = True
    opens[bounds[:-1]] = True
    sentences = offsets_of(opens[:-1])[bounds]
    return np.diff(bounds), np.diff(sentences)


def _count_in_long(starts: np.ndarray, newline: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and sentences of texts without two blanks in a row, text by text: numpy counts in a slice much faster than it
    lists places, and the call for each pays where texts are long. A newline there ends a sentence unless it is a text's first
    or last byte."""
    bounds = offsets.tolist()
    tokens = [np.count_nonzero(starts[begin:end]) for begin, end in pairwise(bounds)]
    inner = [np.count_nonzero(newline[begin + 1 : max(begin, end - 1)]) for begin, end in pairwise(bounds)]
    counts = np.array(tokens, np.int64)
    return counts, np.where(counts > 0, np.array(inner, np.int64) + 1, 0)


def rows_of(columns: Columns, documents: Texts, facts: SplitFacts, *, shared: bool = False) -> Batch:
    """The Arrow rows of a batch.

    Args:
        columns: the records.
        documents: all that they name.
        facts: of the split.
        shared: give the documents' ids and texts as dictionaries, so that one that many rows share is there once.

    Raises:
        DataError: a span that is reversed, negative or past its document's end.
    """
    row_documents = np.searchsorted(documents.numbers, columns.documents)
    evidence_documents = np.searchsorted(documents.numbers, columns.evidence_documents)
    tokens, sentences = count_tokens(documents.texts)
    spans = columns.spans.astype(np.int64)
    start, end = spans[:, 0], spans[:, 1]
    _check_spans(columns, documents, evidence_documents, start, end, tokens)
    end_sentence = columns.spans[:, 3]
    if facts.sentence_ends == "inclusive":
        if len(end_sentence) and end_sentence.max() == MOST_INT:
            message = f"expected less than {MOST_INT}, found {MOST_INT}"
            raise columns.evidence_error(int(end_sentence.argmax()), message, "end_sentence")
        end_sentence = end_sentence + (end_sentence >= 0).astype(np.int32)

    # the mask: flat over the tokens of each row's documents
    token_offsets = offsets_of(tokens[row_documents])
    slot = _slots(columns.offsets, row_documents, columns.evidence_rows(), evidence_documents)
    change = np.zeros(int(token_offsets[-1]) + 1, np.int32)
    # an empty span adds and takes away at one place
    np.add.at(change, token_offsets[slot] + start, 1)
    np.add.at(change, token_offsets[slot] + end, -1)
    # a span that ends where its document ends closes at the next one's first token, where it belongs to neither
    mask = np.cumsum(change, out=change)[:-1] > 0
    bounds = token_offsets[columns.offsets]
    num_tokens = np.diff(bounds)
    marked = np.zeros(len(num_tokens), np.int64)
    if len(mask):
        held = np.flatnonzero(num_tokens)
        marked[held] = np.add.reduceat(mask, bounds[:-1][held], dtype=np.int64)
    ratio = marked / np.maximum(num_tokens, 1)
    pairs, shares = _shares(mask, token_offsets, distinct(slot))
    num_sentences = np.diff(offsets_of(sentences[row_documents])[columns.offsets])

    taken = numbers(row_documents)
    document_lists = numbers(columns.offsets.astype(np.int32))
    parts = [documents.docids, documents.texts]
    if shared:
        indices = numbers(row_documents.astype(np.int32))
        leaves = [pa.DictionaryArray.from_arrays(indices, part) for part in parts]
        kinds = [pa.field(of.name, leaf.type) for of, leaf in zip(DOCUMENT, leaves, strict=True)]
    else:
        leaves, kinds = [part.take(taken) for part in parts], list(DOCUMENT)
    values: dict[str, pa.Array] = {
        "annotation_id": columns.ids,
        "classification": numbers(columns.labels),
        "query": columns.queries,
        "query_type": columns.types,
        "documents": pa.ListArray.from_arrays(document_lists, pa.StructArray.from_arrays(leaves, fields=kinds)),
        "evidences": pa.ListArray.from_arrays(
            numbers(columns.groups.astype(np.int32)),
            pa.ListArray.from_arrays(
                numbers(columns.evidences.astype(np.int32)),
                pa.StructArray.from_arrays(
                    [
                        documents.docids.take(numbers(evidence_documents)),
                        columns.texts,
                        *(numbers(columns.spans[:, place]) for place in (0, 1, 2)),
                        numbers(end_sentence),
                    ],
                    fields=list(EVIDENCE),
                ),
            ),
        ),
        "rationale_mask": pa.ListArray.from_arrays(
            document_lists, pa.ListArray.from_arrays(numbers(token_offsets.astype(np.int32)), booleans(mask))
        ),
        "num_tokens": numbers(num_tokens.astype(np.int32)),
        "num_sentences": numbers(num_sentences.astype(np.int32)),
        "rationale_ratio": numbers(ratio.astype(np.float32)),
        "position": numbers(columns.numbers.astype(np.int32)),
    }
    rows = pa.RecordBatch.from_arrays([values[name] for name in SCHEMA.names], names=SCHEMA.names)
    return Batch(rows, _exceptions(columns, documents, row_documents, facts), pairs, shares)


def _shares(mask: np.ndarray, token_offsets: np.ndarray, slots: np.ndarray) -> tuple[int, float]:
    """`Batch.pairs` and `Batch.shares`; ``slots`` are those of the rows' documents that have evidence, ascending."""
    begins, lengths = token_offsets[slots], np.diff(token_offsets)[slots]
    begins, lengths = begins[lengths > 0], lengths[lengths > 0]
    if not len(begins):
        return len(slots), 0.0
    # sums from each document to its end, and from there to the next one
    edges = np.stack([begins, begins + lengths], axis=1).ravel()
    marked = np.add.reduceat(np.append(mask, False), edges, dtype=np.int64)[::2]
    return len(slots), float((marked / lengths).sum())


def _slots(offsets: np.ndarray, documents: np.ndarray, row: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each evidence the place of its document among ``documents``, looking from its row's first one on."""
    slot = offsets[:-1][row].astype(np.int64)
    looking = np.flatnonzero(documents[slot] != wanted) if len(slot) else slot
    while len(looking):
        slot[looking] += 1
        looking = looking[documents[slot[looking]] != wanted[looking]]
    return slot


def _check_spans(
    columns: Columns, documents: Texts, document: np.ndarray, start: np.ndarray, end: np.ndarray, tokens: np.ndarray
) -> None:
    if not len(start):
        return
    bad = (start < 0) | (end < start) | (end > tokens[document])
    if not bad.any():
        return
    at = int(bad.argmax())
    first, last = int(start[at]), int(end[at])
    name = shown(documents.docids[int(document[at])].as_py())
    if first < 0:
        raise columns.evidence_error(at, f"expected a token of {name}, found {first}", "start_token")
    if last < first:
        message = f"expected an end at or after the start {first}, found {last}"
        raise columns.evidence_error(at, message, "end_token")
    message = f"expected a span inside {name}, which has {tokens[document[at]]} tokens, found the end {last}"
    raise columns.evidence_error(at, message, "end_token")


def _exceptions(
    columns: Columns, documents: Texts, row_documents: np.ndarray, facts: SplitFacts
) -> list[tuple[int, str]]:
    """What a record has and its row and the split's facts cannot tell: kept as JSON of the keys as they were.

    An absent key is told by standing in ``"absent"``.
    """
    expected = {"absent": 0, "null": DOCIDS_NULL, "list": DOCIDS_LIST}[facts.docids]
    expected |= WHOLE_NUMBER if facts.ids == "integer" else 0
    expected |= TYPE_ABSENT if facts.query_type == "absent" else 0
    looked_at = WHOLE_NUMBER | DOCIDS_NULL | DOCIDS_LIST | TYPE_ABSENT | KEPT
    out: list[tuple[int, str]] = []
    for row in np.flatnonzero((columns.states & looked_at) != expected).tolist():
        state = int(columns.states[row])
        kept = columns.kept.get(row, {})
        keep: dict[str, Any] = {}
        absent: list[str] = []
        if (state ^ expected) & WHOLE_NUMBER:
            keep["annotation_id"] = columns.identity(row)
        if not state & (DOCIDS_NULL | DOCIDS_LIST):
            if facts.docids != "absent":
                absent.append("docids")
        elif state & DOCIDS_NULL:
            if facts.docids != "null":
                keep["docids"] = None
        elif "docids" in kept:
            keep["docids"] = kept["docids"]
        elif facts.docids != "list":
            own = row_documents[columns.offsets[row] : columns.offsets[row + 1]]
            keep["docids"] = documents.docids.take(numbers(own)).to_pylist()
        if state & TYPE_ABSENT:
            if facts.query_type != "absent":
                absent.append("query_type")
        elif facts.query_type == "absent":
            keep["query_type"] = columns.types[row].as_py()
        keep.update({key: value for key, value in kept.items() if key != "docids"})
        if keep or absent:
            out.append((int(columns.numbers[row]), json.dumps({"set": keep, "absent": absent})))
    return out
