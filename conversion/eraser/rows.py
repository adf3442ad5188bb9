"""Annotations -> Arrow rows of the one schema, a run at a time, on flat arrays with offsets.

A row is made in two steps. A *numbered* row has all columns, but names its documents by number, and holds none of their
texts: a split's numbered rows fit into memory, and are put in order there. `full_rows` gives them their documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import UNSET

from eraser_hub.conversion.arrays import distinct, first_places, numbers, numpy_values, offsets_of, strings, with_nulls
from eraser_hub.metrics.tokens import masks
from eraser_hub.records.errors import shown

from .documents import Documents
from .format import MOST_INT, Annotation, Annotations
from .schema import DOCUMENT, EVIDENCE, SCHEMA

JOINT = " … "  # between the evidence texts of `rationale`

# a record's state: how its id and its optional keys stand in the file
WHOLE_NUMBER, DOCIDS_NULL, DOCIDS_LIST, TYPE_ABSENT = 1, 2, 4, 8

NUMBERED_EVIDENCE = pa.struct([pa.field("docid", pa.int32()), *list(EVIDENCE)[1:]])
NUMBERED = pa.schema(
    [
        {"documents": pa.field("documents", pa.list_(pa.int32())),
         "evidences": pa.field("evidences", pa.list_(pa.list_(NUMBERED_EVIDENCE)))}.get(column.name, column)
        for column in SCHEMA
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """A run of rows, and what is known of their records besides.

    Attributes:
        table: the rows, documents by number.
        states: uint8 (rows,), the bits above.
        sizes: int64 (rows,), the bytes of each record's line.
        kept: by place, the keys that do not follow from the row, as they were: those the format does not know, and docids
            that are not the row's documents in order.
        pairs: the number of (row, document with evidence).
        shares: the sum over them of the share of the document's tokens that the row's evidences cover.
    """

    table: pa.Table
    states: np.ndarray
    sizes: np.ndarray
    kept: dict[int, dict[str, Any]]
    pairs: int
    shares: float

    def __len__(self) -> int:
        return self.table.num_rows


@dataclass(frozen=True, slots=True)
class _Spans:
    """The evidences of a run, flat, and the documents of its rows.

    Attributes:
        offsets: int64 (rows + 1,) into ``documents``, the numbers of each row's documents: those of its docids, then those
            of its evidences, each once.
        slots: int64 (evidences,), the place of each evidence's document in ``documents``.
        bounds: int32 (evidences, 4): start_token, end_token, start_sentence, end_sentence, as in the file.
        texts: the evidences' texts.
    """

    offsets: np.ndarray
    documents: np.ndarray
    slots: np.ndarray
    bounds: np.ndarray
    texts: list[str]


def numbered_rows(
    run: Annotations, label_numbers: Mapping[str, int], documents: Documents, *, inclusive: bool
) -> NumberedRows:
    """The rows of a run of annotations.

    Args:
        run: the annotations.
        label_numbers: label -> its number.
        documents: those that the annotations may name.
        inclusive: whether the file counts ``end_sentence`` inclusively; rows carry the exclusive end.

    Raises:
        DataError: an unknown label; a document that does not exist; a span that is reversed, negative or past its
            document's end.
    """
    records = run.records
    flat = [evidence for record in records for group in record.evidences for evidence in group]
    group_sizes = np.fromiter([len(record.evidences) for record in records], np.int64, len(records))
    evidence_sizes = np.array([len(group) for record in records for group in record.evidences], np.int64)
    evidence_row = np.repeat(np.repeat(np.arange(len(records)), group_sizes), evidence_sizes)
    bounds = np.array(
        [
            [evidence.start_token for evidence in flat],
            [evidence.end_token for evidence in flat],
            [evidence.start_sentence for evidence in flat],
            [evidence.end_sentence for evidence in flat],
        ],
        np.int32,
    ).T
    offsets, row_documents, slots, kept = _documents_of(run, label_numbers, documents, evidence_row)
    spans = _Spans(offsets, row_documents, slots, bounds, [evidence.text for evidence in flat])
    counts = documents.counts(row_documents)
    _refuse_spans(run, spans, counts[:, 0], documents)
    labels = np.fromiter([label_numbers[record.classification] for record in records], np.int64, len(records))
    states, types = _states(run)
    ends = bounds[:, 3]
    if inclusive:
        if len(ends) and ends.max() == MOST_INT:
            message = f"expected less than {MOST_INT}, found {MOST_INT}"
            raise run.evidence_error(int(ends.argmax()), message, "end_sentence")
        ends = ends + (ends >= 0).astype(np.int32)
    leaves = [*(numbers(bounds[:, place]) for place in (0, 1, 2)), numbers(ends)]
    evidences = [numbers(row_documents[slots]), strings(spans.texts), *leaves]
    values: dict[str, pa.Array] = {
        "annotation_id": strings([str(record.annotation_id) for record in records]),
        "query": strings([record.query for record in records]),
        "classification": numbers(labels),
        "documents": _lists(offsets, numbers(row_documents)),
        "evidences": _lists(
            offsets_of(group_sizes),
            _lists(
                offsets_of(evidence_sizes),
                pa.StructArray.from_arrays(evidences, fields=list(NUMBERED_EVIDENCE)),
            ),
        ),
        "query_type": types,
        "position": numbers(np.array(run.numbers, np.int32)),
        **_derived(spans, counts),
    }
    table = pa.Table.from_arrays([values[name] for name in NUMBERED.names], schema=NUMBERED)
    held = distinct(slots)
    marked = np.diff(numpy_values(values["rationale_positions"].flatten().offsets))[held]
    shares = float((marked / np.maximum(counts[held, 0], 1)).sum())
    return NumberedRows(table, states, np.array(run.sizes, np.int64), kept, len(held), shares)


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(numbers(offsets.astype(np.int32)), values)


def _states(run: Annotations) -> tuple[np.ndarray, pa.StringArray]:
    """(the bits of each record, query_type with null where it is null or absent)."""
    records = run.records
    types = [record.query_type for record in records]
    states = np.zeros(len(records), np.uint8)
    for bit, holds in (
        (WHOLE_NUMBER, [type(record.annotation_id) is int for record in records]),
        (DOCIDS_NULL, [record.docids is None for record in records]),
        (DOCIDS_LIST, [type(record.docids) is list for record in records]),
        (TYPE_ABSENT, [kind is UNSET for kind in types]),
    ):
        states[np.array(holds, bool)] |= bit
    lacking = np.array([type(kind) is not str for kind in types], bool)
    return states, with_nulls(strings([kind if type(kind) is str else "" for kind in types]), lacking)


def _documents_of(
    run: Annotations, label_numbers: Mapping[str, int], documents: Documents, evidence_row: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, dict[str, Any]]]:
    """Each record's documents once: those of its docids, then those of its evidences: `_Spans.offsets`, ``documents`` and
    ``slots``, and `NumberedRows.kept`."""
    total = len(run.records)
    lists = [record.docids or _named_by_id(record, documents) for record in run.records]
    wanted = list(chain.from_iterable(lists))
    listed = len(wanted)
    wanted += [evidence.docid for record in run.records for group in record.evidences for evidence in group]
    named = documents.find(wanted)
    row = np.concatenate([np.repeat(np.arange(total), np.fromiter(map(len, lists), np.int64, total)), evidence_row])
    _refuse_names(run, label_numbers, documents, wanted, named, row, listed)
    key = row * (len(documents) + 1) + named
    first = first_places(key)
    once = np.flatnonzero(first == np.arange(len(key)))
    order = once[np.argsort(row[once], kind="stable")]
    place = np.empty(len(key), np.int64)
    place[order] = np.arange(len(order))
    sizes = np.bincount(row[once], minlength=total)
    from_lists = np.bincount(row[once[once < listed]], minlength=total)
    kept = {number: dict(extra) for number, extra in run.extras.items()}
    told = np.array([len(each.docids) if type(each.docids) is list else -1 for each in run.records], np.int64)
    for number in np.flatnonzero((told >= 0) & ((told != from_lists) | (told != sizes))).tolist():
        kept.setdefault(number, {})["docids"] = run.records[number].docids
    return offsets_of(sizes), named[order], place[first[listed:]], kept


def _named_by_id(record: Annotation, documents: Documents) -> list[str]:
    """The document of a record that names none (no docids, no evidences): the one that has its id (movies' posR_161),
    or whose id its own begins with (multirc's ``DOCID:QUESTION:ANSWER``); none where there is no such document."""
    if any(record.evidences):
        return []
    identity = str(record.annotation_id)
    names = [identity, identity.rsplit(":", 2)[0]]
    return [name for name, number in zip(names, documents.find(names).tolist(), strict=True) if number >= 0][:1]


def _refuse_names(
    run: Annotations,
    label_numbers: Mapping[str, int],
    documents: Documents,
    wanted: list[str],
    named: np.ndarray,
    row: np.ndarray,
    listed: int,
) -> None:
    """The error of the first record that has an unknown label or names a document that is not there."""
    total = len(run.records)
    lost = np.flatnonzero(named < 0)
    nowhere = int(row[lost].min()) if len(lost) else total
    labels = [record.classification for record in run.records]
    unknown = next((place for place, label in enumerate(labels) if label not in label_numbers), total)
    if unknown < total and unknown <= nowhere:
        expected = ", ".join(map(repr, label_numbers))
        raise run.error(unknown, f"expected one of {expected}, found {shown(labels[unknown])}", "classification")
    if nowhere < total:
        at = int(lost[row[lost] == nowhere][0])
        words = f"expected a document of {documents.path}, found {shown(wanted[at])}, which is not there"
        if at < listed:
            raise run.error(nowhere, words, "docids")
        raise run.evidence_error(at - listed, words, "docid")


def _refuse_spans(run: Annotations, spans: _Spans, tokens: np.ndarray, documents: Documents) -> None:
    start, end, length = spans.bounds[:, 0], spans.bounds[:, 1], tokens[spans.slots]
    bad = (start < 0) | (end < start) | (end > length)
    if not bad.any():
        return
    at = int(bad.argmax())
    first, last = int(start[at]), int(end[at])
    name = shown(documents.names[int(spans.documents[spans.slots[at]])].as_py())
    if first < 0:
        raise run.evidence_error(at, f"expected a token of {name}, found {first}", "start_token")
    if last < first:
        raise run.evidence_error(at, f"expected an end at or after the start {first}, found {last}", "end_token")
    message = f"expected a span inside {name}, which has {length[at]} tokens, found the end {last}"
    raise run.evidence_error(at, message, "end_token")


def _derived(spans: _Spans, counts: np.ndarray) -> dict[str, pa.Array]:
    """The columns that follow from documents and evidences; ``counts`` are the tokens and sentences of each document."""
    token_offsets = offsets_of(counts[:, 0])
    covered = np.flatnonzero(masks(spans.slots, spans.bounds[:, 0], spans.bounds[:, 1], token_offsets))
    marked = np.searchsorted(covered, token_offsets)
    num_tokens, num_sentences = (np.diff(offsets_of(counts[:, k])[spans.offsets]) for k in (0, 1))
    ratio = np.diff(marked[spans.offsets]) / np.maximum(num_tokens, 1)
    positions = covered - np.repeat(token_offsets[:-1], np.diff(marked))
    return {
        "rationale": strings(
            rationales(spans.slots, spans.bounds[:, 0], spans.bounds[:, 1], spans.texts, spans.offsets)
        ),
        "rationale_positions": _lists(spans.offsets, _lists(marked, numbers(positions.astype(np.int32)))),
        "num_tokens": numbers(num_tokens.astype(np.int32)),
        "num_sentences": numbers(num_sentences.astype(np.int32)),
        "rationale_ratio": numbers(ratio.astype(np.float32)),
    }


def rationales(
    slots: np.ndarray, start: np.ndarray, end: np.ndarray, texts: Sequence[str], slot_offsets: np.ndarray
) -> list[str]:
    """The texts of each row's distinct spans by document, then start_token, joined by `JOINT`; empty spans are left out.

    Args:
        slots: the document of each span, numbered through all rows.
        start, end: its tokens, [start, end).
        texts: its text.
        slot_offsets: int64 (rows + 1,), the number of each row's first document.
    """
    order = np.lexsort((end, start, slots))
    slots, start, end = slots[order], start[order], end[order]
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(slots) != 0) | (np.diff(start) != 0) | (np.diff(end) != 0)
    chosen = new & (start < end)
    some = [texts[place] for place in order[chosen].tolist()]
    edges = np.searchsorted(slots[chosen], slot_offsets)
    return [JOINT.join(some[begin:stop]) for begin, stop in pairwise(edges.tolist())]


def full_rows(numbered: pa.Table, documents: Documents, *, shared: bool = False) -> pa.Table:
    """Numbered rows with their documents' ids and texts.

    Args:
        numbered: of one chunk.
        documents: those that the numbers mean.
        shared: give the documents' ids and texts as dictionaries, so that one that many rows share is there once.
    """
    lists = numbered["documents"].combine_chunks()
    groups = numbered["evidences"].combine_chunks()
    group_lists = groups.flatten()
    evidences = group_lists.flatten()
    named = numpy_values(lists.flatten())
    chosen = distinct(named)
    places = np.searchsorted(chosen, named).astype(np.int32)
    ids = documents.names.take(numbers(chosen))
    parts = [ids, documents.texts(chosen)]
    if shared:
        leaves = [pa.DictionaryArray.from_arrays(numbers(places), part) for part in parts]
        kinds = [pa.field(of.name, leaf.type) for of, leaf in zip(DOCUMENT, leaves, strict=True)]
    else:
        leaves, kinds = [part.take(numbers(places)) for part in parts], list(DOCUMENT)
    held = np.searchsorted(chosen, numpy_values(evidences.field("docid")))
    filled = [ids.take(numbers(held)), *(evidences.field(name) for name in EVIDENCE.names[1:])]
    columns: dict[str, pa.Array] = {
        "documents": _lists(_offsets(lists), pa.StructArray.from_arrays(leaves, fields=kinds)),
        "evidences": _lists(
            _offsets(groups),
            _lists(_offsets(group_lists), pa.StructArray.from_arrays(filled, fields=list(EVIDENCE))),
        ),
    }
    arrays = [columns.get(name, numbered[name]) for name in SCHEMA.names]
    return pa.Table.from_arrays(arrays, names=SCHEMA.names)


def _offsets(lists: pa.ListArray) -> np.ndarray:
    offsets = numpy_values(lists.offsets)
    return offsets - offsets[0]
