"""Annotations -> Arrow rows of the schema, one run at a time, on flat arrays with offsets.

A row is made in two steps. A *numbered* row has all columns, but refers to its documents by number instead of holding
their texts: the numbered rows of a split fit into memory and are ordered there. `make_full_rows` adds the documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import UNSET

from eraser_hub.conversion.arrays import make_numbers, make_strings, to_numpy
from eraser_hub.conversion.offsets import compute_offsets, sort_distinct
from eraser_hub.metrics.plain import masks

from .checked import CheckedAnnotations
from .documents import Documents
from .format import MAX_INT
from .schema import DOCUMENT, EVIDENCE, SCHEMA

SEPARATOR = " … "  # between the evidence texts of `rationale`

# bits of a record's state: the form of its id and of its optional keys in the file
INTEGER_ID, DOCIDS_NULL, DOCIDS_LIST, TYPE_ABSENT = 1, 2, 4, 8

NUMBERED_EVIDENCE = pa.struct([pa.field("docid", pa.int32()), *list(EVIDENCE)[1:]])
_BY_NUMBER = {"documents": pa.list_(pa.int32()), "evidences": pa.list_(pa.list_(NUMBERED_EVIDENCE))}
NUMBERED = pa.schema([column.with_type(_BY_NUMBER.get(column.name, column.type)) for column in SCHEMA])


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """A run of numbered rows, with facts of their records that the rows cannot hold.

    Attributes:
        table: the rows, with documents by number.
        states: uint8 (rows,), the bits above.
        sizes: int64 (rows,), the bytes of each record's line.
        kept: index -> keys of the record that do not follow from the row: unknown keys, and docids that are not the
            row's documents in order.
        pairs: number of (row, document with evidence).
        shares: sum, over these pairs, of the share of the document's tokens that evidences cover.
    """

    table: pa.Table
    states: np.ndarray
    sizes: np.ndarray
    kept: dict[int, dict[str, Any]]
    pairs: int
    shares: float


def number_rows(checked: CheckedAnnotations, label_numbers: Mapping[str, int], *, inclusive: bool) -> NumberedRows:
    """Return the numbered rows of a run of annotations.

    Args:
        checked: the annotations.
        label_numbers: label -> number.
        inclusive: True if ``end_sentence`` is inclusive in the file; in rows it is exclusive.
    """
    run, records = checked.run, checked.run.records
    labels = np.fromiter([label_numbers[record.classification] for record in records], np.int64, len(records))
    types, lists = [record.query_type for record in records], [record.docids for record in records]
    states = np.zeros(len(records), np.uint8)
    for bit, holds in (
        (INTEGER_ID, [type(record.annotation_id) is int for record in records]),
        (DOCIDS_NULL, [docids is None for docids in lists]),
        (DOCIDS_LIST, [type(docids) is list for docids in lists]),
        (TYPE_ABSENT, [kind is UNSET for kind in types]),
    ):
        states[np.array(holds, bool)] |= bit
    texts = [evidence.text for evidence in checked.evidences]
    values: dict[str, pa.Array] = {
        "annotation_id": make_strings([str(record.annotation_id) for record in records]),
        "query": make_strings([record.query for record in records]),
        "classification": make_numbers(labels),
        "documents": _make_lists(checked.offsets, make_numbers(checked.documents)),
        "evidences": _make_evidence_lists(checked, texts, inclusive),
        "query_type": make_strings([kind if type(kind) is str else None for kind in types]),
        "position": make_numbers(np.array(run.numbers, np.int32)),
        **derive(checked.slots, checked.bounds[:, 0], checked.bounds[:, 1], texts, checked.offsets, checked.counts),
    }
    table = pa.Table.from_arrays([values[name] for name in NUMBERED.names], schema=NUMBERED)
    slots = sort_distinct(checked.slots)
    marked = np.diff(to_numpy(values["rationale_positions"].flatten().offsets))[slots]
    shares = float((marked / np.maximum(checked.counts[slots, 0], 1)).sum())
    kept = {place: dict(extra) for place, extra in run.extras.items()}
    pairs = enumerate(zip(lists, np.diff(checked.offsets).tolist(), strict=True))
    for place in [at for at, (ids, size) in pairs if type(ids) is list and not len(ids) == size == len(set(ids))]:
        kept.setdefault(place, {})["docids"] = lists[place]
    return NumberedRows(table, states, np.array(run.sizes, np.int64), kept, len(slots), shares)


def _make_lists(offsets: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(make_numbers(offsets.astype(np.int32)), values)


def _make_evidence_lists(checked: CheckedAnnotations, texts: Sequence[str], inclusive: bool) -> pa.ListArray:
    bounds = checked.bounds
    end_sentence = bounds[:, 3]
    if inclusive:
        if len(end_sentence) and end_sentence.max() == MAX_INT:
            message = f"expected less than {MAX_INT}, found {MAX_INT}"
            raise checked.run.locate_error(int(end_sentence.argmax()), message, "end_sentence")
        end_sentence = end_sentence + (end_sentence >= 0).astype(np.int32)
    leaves = [
        make_numbers(checked.documents[checked.slots]),
        make_strings(texts),
        *(make_numbers(bounds[:, place]) for place in (0, 1, 2)),
        make_numbers(end_sentence),
    ]
    structs = pa.StructArray.from_arrays(leaves, fields=list(NUMBERED_EVIDENCE))
    return _make_lists(checked.groups, _make_lists(checked.members, structs))


def derive(
    slots: np.ndarray, start: np.ndarray, end: np.ndarray, texts: Sequence[str], offsets: np.ndarray, counts: np.ndarray
) -> dict[str, pa.Array]:
    """Return the columns that follow from documents and evidences.

    Args:
        slots: (spans,), the document of each span, numbered across rows.
        start: (spans,), the first token of each span.
        end: (spans,), the token behind its last one; spans lie inside their documents.
        texts: the text of each span.
        offsets: int64 (rows + 1,), the number of each row's first document.
        counts: (documents, 2), the numbers of tokens and sentences of each document.
    """
    positions, marked = find_covered_tokens(slots, start, end, counts[:, 0])
    num_tokens, num_sentences = (np.diff(compute_offsets(counts[:, k])[offsets]) for k in (0, 1))
    ratio = np.diff(marked[offsets]) / np.maximum(num_tokens, 1)
    # the texts of each row's distinct nonempty spans, by document, then start_token
    order = np.lexsort((end, start, slots))
    keys = np.stack([slots, start, end])[:, order]
    chosen = keys[1] < keys[2]
    chosen[1:] &= (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    places: list[int] = order[chosen].tolist()
    span_texts = [texts[place] for place in places]
    edges = pairwise(np.searchsorted(keys[0, chosen], offsets).tolist())
    return {
        "rationale": make_strings([SEPARATOR.join(span_texts[begin:stop]) for begin, stop in edges]),
        "rationale_positions": _make_lists(offsets, _make_lists(marked, make_numbers(positions.astype(np.int32)))),
        "num_tokens": make_numbers(num_tokens.astype(np.int32)),
        "num_sentences": make_numbers(num_sentences.astype(np.int32)),
        "rationale_ratio": make_numbers(ratio.astype(np.float32)),
    }


def find_covered_tokens(
    slots: np.ndarray, start: np.ndarray, end: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens that spans cover, in documents of these lengths; spans are those of `derive`.

    Returns:
        the positions of covered tokens in their document, ascending, document by document; and int64 (documents + 1,),
        the offset of each document's positions.
    """
    token_offsets = compute_offsets(lengths)
    places = np.flatnonzero(masks(slots, start, end, token_offsets))
    bounds = np.searchsorted(places, token_offsets)
    return places - np.repeat(token_offsets[:-1], np.diff(bounds)), bounds


def make_full_rows(numbered: pa.Table, documents: Documents, *, shared: bool = False) -> pa.Table:
    """Return numbered rows with the ids and texts of their documents.

    Args:
        numbered: the rows, in one chunk.
        documents: the documents with these numbers.
        shared: encode ids and texts as dictionaries, which store a document of many rows once.
    """
    lists = numbered["documents"].combine_chunks()
    groups = numbered["evidences"].combine_chunks()
    members = groups.flatten()
    evidences = members.flatten()
    row_documents = to_numpy(lists.flatten())
    chosen = sort_distinct(row_documents)
    places = make_numbers(np.searchsorted(chosen, row_documents).astype(np.int32))
    ids = documents.names.take(make_numbers(chosen))
    parts = [ids, documents.texts(chosen)]
    leaves = [pa.DictionaryArray.from_arrays(places, part) if shared else part.take(places) for part in parts]
    kinds = [pa.field(field.name, leaf.type) for field, leaf in zip(DOCUMENT, leaves, strict=True)]
    evidence_ids = ids.take(make_numbers(np.searchsorted(chosen, to_numpy(evidences.field("docid")))))
    fields = [evidence_ids, *(evidences.field(name) for name in EVIDENCE.names[1:])]
    structs = pa.StructArray.from_arrays(fields, fields=list(EVIDENCE))
    columns: dict[str, pa.Array] = {
        "documents": pa.ListArray.from_arrays(lists.offsets, pa.StructArray.from_arrays(leaves, fields=kinds)),
        "evidences": pa.ListArray.from_arrays(groups.offsets, pa.ListArray.from_arrays(members.offsets, structs)),
    }
    return pa.Table.from_arrays([columns.get(name, numbered[name]) for name in SCHEMA.names], names=SCHEMA.names)
