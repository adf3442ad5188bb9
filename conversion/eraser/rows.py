"""Annotations -> Arrow rows of the one schema, a run at a time, on flat arrays with offsets.

A row is made in two steps. A *numbered* row has all columns, but names its documents by number, and holds none of their
texts: a split's numbered rows fit into memory, and are put in order there. `full_rows` gives them their documents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple, NoReturn

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


class Evidences:
    """The evidences of a run of annotations, flat.

    Attributes:
        all: the evidences.
        groups: int64 (records + 1,), where each record's groups begin.
        members: int64 (groups + 1,), where each group's evidences begin.
        row: int64 (evidences,), the place of each one's record.
        bounds: int32 (evidences, 4): start_token, end_token, start_sentence, end_sentence, as in the file.
    """

    def __init__(self, records: list[Annotation]) -> None:
        groups = [group for record in records for group in record.evidences]
        flat = [evidence for group in groups for evidence in group]
        sizes = np.fromiter([len(record.evidences) for record in records], np.int64, len(records))
        self.all = flat
        self.groups = offsets_of(sizes)
        self.members = offsets_of(np.fromiter(map(len, groups), np.int64, len(groups)))
        self.row = np.repeat(np.repeat(np.arange(len(records)), sizes), np.diff(self.members))
        bounds = [
            [evidence.start_token for evidence in flat],
            [evidence.end_token for evidence in flat],
            [evidence.start_sentence for evidence in flat],
            [evidence.end_sentence for evidence in flat],
        ]
        self.bounds = np.array(bounds, np.int32).T


class RowDocuments(NamedTuple):
    """The documents of a run's rows: those of their docids, then those of their evidences, each once.

    Attributes:
        offsets: int64 (rows + 1,), where each row's begin.
        numbers: int32, the number of each document.
        slots: int64 (evidences,), the place of each evidence's document in ``numbers``.
        counts: int32, the tokens and sentences of each document.
    """

    offsets: np.ndarray
    numbers: np.ndarray
    slots: np.ndarray
    counts: np.ndarray


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
    evidences, row_documents = checked(run, label_numbers, documents)
    labels = np.fromiter([label_numbers[record.classification] for record in records], np.int64, len(records))
    states, types = _states(records)
    values: dict[str, pa.Array] = {
        "annotation_id": strings([str(record.annotation_id) for record in records]),
        "query": strings([record.query for record in records]),
        "classification": numbers(labels),
        "documents": _lists(row_documents.offsets, numbers(row_documents.numbers)),
        "evidences": _evidence_lists(run, evidences, row_documents, inclusive),
        "query_type": types,
        "position": numbers(np.array(run.numbers, np.int32)),
        **_derived(evidences, row_documents),
    }
    table = pa.Table.from_arrays([values[name] for name in NUMBERED.names], schema=NUMBERED)
    slots = distinct(row_documents.slots)
    marked = np.diff(numpy_values(values["rationale_positions"].flatten().offsets))[slots]
    return NumberedRows(
        table,
        states,
        np.array(run.sizes, np.int64),
        _kept(run, np.diff(row_documents.offsets)),
        pairs=len(slots),
        shares=float((marked / np.maximum(row_documents.counts[slots, 0], 1)).sum()),
    )


def checked(run: Annotations, labels: Collection[str] | None, documents: Documents) -> tuple[Evidences, RowDocuments]:
    """The evidences and documents of a run of annotations that are all in order; ``labels`` None: any label is.

    Raises:
        DataError: as `numbered_rows`.
    """
    evidences = Evidences(run.records)
    row_documents = _documents_of(run, evidences, labels, documents)
    _refuse_spans(run, evidences, row_documents)
    return evidences, row_documents


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(numbers(offsets.astype(np.int32)), values)


def _states(records: list[Annotation]) -> tuple[np.ndarray, pa.StringArray]:
    """(the bits of each record, query_type with null where it is null or absent)."""
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


def _kept(run: Annotations, sizes: np.ndarray) -> dict[int, dict[str, Any]]:
    """`NumberedRows.kept`; ``sizes`` are the numbers of each row's documents."""
    kept = {place: dict(extra) for place, extra in run.extras.items()}
    lists = [record.docids for record in run.records]
    pairs = enumerate(zip(lists, sizes.tolist(), strict=True))
    for place in [at for at, (ids, size) in pairs if type(ids) is list and not len(ids) == size == len(set(ids))]:
        kept.setdefault(place, {})["docids"] = lists[place]
    return kept


def _documents_of(
    run: Annotations, evidences: Evidences, labels: Collection[str] | None, documents: Documents
) -> RowDocuments:
    total = len(run.records)
    lists = [record.docids or _named_by_id(record, documents) for record in run.records]
    docids = list(chain.from_iterable(lists))
    listed = len(docids)
    docids += [evidence.docid for evidence in evidences.all]
    number = documents.find(docids)
    row = np.concatenate([np.repeat(np.arange(total), np.fromiter(map(len, lists), np.int64, total)), evidences.row])
    unknown = labels is not None and any(record.classification not in labels for record in run.records)
    if (number < 0).any() or unknown:
        _refuse_names(run, labels, documents, docids, np.flatnonzero(number < 0), row, listed)
    first = first_places(row * (len(documents) + 1) + number)
    once = np.flatnonzero(first == np.arange(len(first)))
    order = once[np.argsort(row[once], kind="stable")]
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(order))
    offsets = offsets_of(np.bincount(row[once], minlength=total))
    return RowDocuments(offsets, number[order], place[first[listed:]], documents.counts(number[order]))


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
    labels: Collection[str] | None,
    documents: Documents,
    docids: list[str],
    lost: np.ndarray,
    row: np.ndarray,
    listed: int,
) -> NoReturn:
    """The error of the first record that has an unknown label or names a document that is not there.

    Args:
        run, labels, documents: as in `checked`.
        docids: what the records name: the first ``listed`` in their docids, the others in their evidences.
        lost: those of them that are not there.
        row: the place of each one's record.
    """
    there = [record.classification for record in run.records]
    unknown = next((at for at, label in enumerate(there) if labels is not None and label not in labels), len(there))
    nowhere = int(row[lost].min()) if len(lost) else len(there)
    if unknown < len(there) and unknown <= nowhere:
        expected = ", ".join(map(repr, labels or ()))
        raise run.error(unknown, f"expected one of {expected}, found {shown(there[unknown])}", "classification")
    at = int(lost[row[lost] == nowhere][0])
    words = f"expected a document of {documents.path}, found {shown(docids[at])}, which is not there"
    raise run.error(nowhere, words, "docids") if at < listed else run.evidence_error(at - listed, words, "docid")


def _refuse_spans(run: Annotations, evidences: Evidences, row_documents: RowDocuments) -> None:
    start, end = evidences.bounds[:, 0], evidences.bounds[:, 1]
    length = row_documents.counts[row_documents.slots, 0]
    bad = (start < 0) | (end < start) | (end > length)
    if not bad.any():
        return
    at = int(bad.argmax())
    first, last = int(start[at]), int(end[at])
    name = shown(evidences.all[at].docid)
    if first < 0:
        raise run.evidence_error(at, f"expected a token of {name}, found {first}", "start_token")
    if last < first:
        raise run.evidence_error(at, f"expected an end at or after the start {first}, found {last}", "end_token")
    message = f"expected a span inside {name}, which has {length[at]} tokens, found the end {last}"
    raise run.evidence_error(at, message, "end_token")


def _evidence_lists(
    run: Annotations, evidences: Evidences, row_documents: RowDocuments, inclusive: bool
) -> pa.ListArray:
    end_sentence = evidences.bounds[:, 3]
    if inclusive:
        if len(end_sentence) and end_sentence.max() == MOST_INT:
            message = f"expected less than {MOST_INT}, found {MOST_INT}"
            raise run.evidence_error(int(end_sentence.argmax()), message, "end_sentence")
        end_sentence = end_sentence + (end_sentence >= 0).astype(np.int32)
    leaves = [
        numbers(row_documents.numbers[row_documents.slots]),
        strings([evidence.text for evidence in evidences.all]),
        *(numbers(evidences.bounds[:, place]) for place in (0, 1, 2)),
        numbers(end_sentence),
    ]
    structs = pa.StructArray.from_arrays(leaves, fields=list(NUMBERED_EVIDENCE))
    return _lists(evidences.groups, _lists(evidences.members, structs))


def _derived(evidences: Evidences, row_documents: RowDocuments) -> dict[str, pa.Array]:
    """The columns that follow from documents and evidences."""
    offsets, slots, counts = row_documents.offsets, row_documents.slots, row_documents.counts
    start, end = evidences.bounds[:, 0], evidences.bounds[:, 1]
    token_offsets = offsets_of(counts[:, 0])
    covered = np.flatnonzero(masks(slots, start, end, token_offsets))
    marked = np.searchsorted(covered, token_offsets)
    num_tokens, num_sentences = (np.diff(offsets_of(counts[:, k])[offsets]) for k in (0, 1))
    ratio = np.diff(marked[offsets]) / np.maximum(num_tokens, 1)
    positions = covered - np.repeat(token_offsets[:-1], np.diff(marked))
    texts = [evidence.text for evidence in evidences.all]
    return {
        "rationale": strings(rationales(slots, start, end, texts, offsets)),
        "rationale_positions": _lists(offsets, _lists(marked, numbers(positions.astype(np.int32)))),
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
    members = groups.flatten()
    evidences = members.flatten()
    row_documents = numpy_values(lists.flatten())
    chosen = distinct(row_documents)
    places = numbers(np.searchsorted(chosen, row_documents).astype(np.int32))
    ids = documents.names.take(numbers(chosen))
    parts = [ids, documents.texts(chosen)]
    leaves = [pa.DictionaryArray.from_arrays(places, part) if shared else part.take(places) for part in parts]
    kinds = [pa.field(of.name, leaf.type) for of, leaf in zip(DOCUMENT, leaves, strict=True)]
    evidence_ids = ids.take(numbers(np.searchsorted(chosen, numpy_values(evidences.field("docid")))))
    fields = [evidence_ids, *(evidences.field(name) for name in EVIDENCE.names[1:])]
    columns: dict[str, pa.Array] = {
        "documents": _lists(_offsets(lists), pa.StructArray.from_arrays(leaves, fields=kinds)),
        "evidences": _lists(
            _offsets(groups),
            _lists(_offsets(members), pa.StructArray.from_arrays(fields, fields=list(EVIDENCE))),
        ),
    }
    return pa.Table.from_arrays([columns.get(name, numbered[name]) for name in SCHEMA.names], names=SCHEMA.names)


def _offsets(lists: pa.ListArray) -> np.ndarray:
    offsets = numpy_values(lists.offsets)
    return offsets - offsets[0]
