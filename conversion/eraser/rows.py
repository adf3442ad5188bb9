"""Annotations -> Arrow rows of the schema, on flat arrays with offsets; and built rows back to such arrays.

A row is made in two steps. A *numbered* row has all columns, but refers to its documents by number instead of holding
their texts: the numbered rows of a split fit into memory and are ordered there. `make_full_rows` adds the documents.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from eraser_hub.conversion.arrays import make_numbers, make_strings, to_numpy
from eraser_hub.conversion.dataset import RECORDS
from eraser_hub.metrics.tokens import masks
from eraser_hub.records.readers import BATCH_BYTES

from .checked import CheckedAnnotations, compute_offsets, read_checked
from .configs import EraserConfig
from .documents import Documents
from .format import MAX_INT, Annotation, Annotations
from .schema import EVIDENCE, SCHEMA

SEPARATOR = " … "  # between the evidence texts of `rationale`
ROW_GROUP_BYTES = 16 << 20  # of lines and documents

NUMBERED_EVIDENCE = pa.struct([pa.field("docid", pa.int32()), *list(EVIDENCE)[1:]])
_BY_NUMBER = {"documents": pa.list_(pa.int32()), "evidences": pa.list_(pa.list_(NUMBERED_EVIDENCE))}
NUMBERED = pa.schema([column.with_type(_BY_NUMBER.get(column.name, column.type)) for column in SCHEMA])


class SplitRows:
    """The rows of a split file, document by document, and what of its records they cannot hold.

    Attributes:
        facts: the form of its first record (the type of ids, absent keys, encoding, ..), for release.json.
        ids: the annotation ids.
        odd: line -> the record, of records in another form and of those with keys beyond the format.
        unknown: key beyond the format -> number of records that have it.
    """

    def __init__(self, path: Path, config: EraserConfig, documents: Documents) -> None:
        self.path, self.config, self.documents = path, config, documents
        self.facts: dict[str, Any] = {"file": path.name}
        self.ids: set[str] = set()
        self.odd: dict[int, dict[str, Any]] = {}
        self.unknown: Counter[str] = Counter()

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the rows as row groups of about `ROW_GROUP_BYTES`.

        Rows are ordered by their first document, and documents by their first occurrence in the file.

        Raises:
            DataError: at the first record that is invalid or repeats an id.
        """
        runs, sizes, numbers = list[pa.Table](), list[int](), dict[str, int]()
        for checked in read_checked(self.path, self.config.label_names, self.documents, numbers, BATCH_BYTES):
            if not runs:
                self._describe_form(checked.run)
            self._keep_odd(checked)
            runs.append(number_rows(checked, self.config.label_names, self.config.sentence_end_inclusive))
            sizes += checked.run.sizes
        self.ids = set(numbers)
        rows = pa.concat_tables(runs).combine_chunks()
        del runs
        lists = rows["documents"].chunk(0)
        offsets, documents = to_numpy(lists.offsets), to_numpy(lists.flatten())
        # a dictionary stores a document of many rows once; where few repeat, Parquet would write all texts twice
        shared = len(documents) > 1.2 * len(sort_distinct(documents))
        first = np.full(len(lists), -1, np.int64)
        has_documents = np.diff(offsets) > 0
        first[has_documents] = documents[offsets[:-1][has_documents]]
        _, places, document = np.unique(first, return_index=True, return_inverse=True)
        order = np.argsort(places[document], kind="stable")
        running = compute_offsets(self.documents.sizes[documents])
        weights = (np.array(sizes) + running[offsets[1:]] - running[offsets[:-1]])[order]
        groups = np.cumsum(weights) // ROW_GROUP_BYTES
        bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(order)]
        for begin, end in pairwise(bounds):
            yield make_full_rows(rows.take(make_numbers(order[begin:end])), self.documents, shared)

    def make_records(self) -> Iterator[pa.Table]:
        """Yield `odd` as JSON lines, which `export` needs beside rows and facts; nothing where there is none."""
        lines = (json.dumps({"line": line, "record": record}).encode() + b"\n" for line, record in self.odd.items())
        if self.odd:
            yield pa.Table.from_arrays(
                [make_strings([self.path.name]), pa.array([b"".join(lines)], pa.binary())], schema=RECORDS
            )

    def _describe_form(self, run: Annotations) -> None:
        record, docids = run.records[0], run.records[0].docids
        self.facts |= {
            "encoding": "json in a json string" if run.double else "json",
            "annotation_id": "integer" if isinstance(record.annotation_id, int) else "string",
            "docids": "absent" if docids is UNSET else "null" if docids is None else "list",
            "query_type": "absent" if record.query_type is UNSET else "present",
            "sentence_ends": "inclusive" if self.config.sentence_end_inclusive else "exclusive",
        }
        self._form = _get_form(record)

    def _keep_odd(self, checked: CheckedAnnotations) -> None:
        run, form = checked.run, self._form
        lengths = np.diff(checked.offsets).tolist()
        for place, (record, length) in enumerate(zip(run.records, lengths, strict=True)):
            docids = record.docids
            # docids that are not the row's documents in order name a document twice, or lack one of an evidence
            differs = _get_form(record) != form or (
                type(docids) is list and not len(docids) == length == len(set(docids))
            )
            if differs or place in run.extras:
                extras = run.extras.get(place, {})
                self.odd[run.numbers[place]] = msgspec.to_builtins(record) | extras
                self.unknown.update(extras.keys())


def _get_form(record: Annotation) -> tuple[type, type, bool]:
    return type(record.annotation_id), type(record.docids), record.query_type is UNSET


def number_rows(checked: CheckedAnnotations, label_names: Sequence[str], inclusive: bool) -> pa.Table:
    """Return the numbered rows of a run of annotations.

    Args:
        checked: the annotations.
        label_names: the labels in order.
        inclusive: True if ``end_sentence`` is inclusive in the file; in rows it is exclusive.
    """
    run, records = checked.run, checked.run.records
    numbers = {label: number for number, label in enumerate(label_names)}
    labels = [record.classification for record in records]
    types = [record.query_type for record in records]
    texts = [evidence.text for evidence in checked.evidences]
    end_sentence = checked.bounds[:, 3]
    if inclusive:
        if len(end_sentence) and end_sentence.max() == MAX_INT:
            message = f"expected less than {MAX_INT}, found {MAX_INT}"
            raise run.locate_error(int(end_sentence.argmax()), message, "end_sentence")
        end_sentence = end_sentence + (end_sentence >= 0).astype(np.int32)
    leaves = [
        make_numbers(checked.documents[checked.slots]),
        make_strings(texts),
        *(make_numbers(checked.bounds[:, place]) for place in (0, 1, 2)),
        make_numbers(end_sentence),
    ]
    evidences = pa.StructArray.from_arrays(leaves, fields=list(NUMBERED_EVIDENCE))
    columns: dict[str, pa.Array] = {
        "annotation_id": make_strings([str(record.annotation_id) for record in records]),
        "query": make_strings([record.query for record in records]),
        "classification": make_numbers(np.array([numbers[label] for label in labels], np.int64)),
        "label": make_strings(labels),
        "documents": _make_lists(checked.offsets, make_numbers(checked.documents)),
        "evidences": _make_lists(checked.groups, _make_lists(checked.members, evidences)),
        "query_type": make_strings([kind if isinstance(kind, str) else None for kind in types]),
        "position": make_numbers(np.array(run.numbers, np.int32)),
        **derive(checked.slots, checked.bounds[:, 0], checked.bounds[:, 1], texts, checked.offsets, checked.counts),
    }
    return pa.Table.from_arrays([columns[name] for name in NUMBERED.names], schema=NUMBERED)


def _make_lists(offsets: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(make_numbers(offsets.astype(np.int32)), values)


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


def sort_distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct integers, ascending; `numpy.unique` hashes them, which takes several times as long."""
    ordered = np.sort(values)
    distinct: np.ndarray = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def make_full_rows(numbered: pa.Table, documents: Documents, shared: bool = False) -> pa.Table:
    """Return numbered rows with the ids and texts of their documents.

    Args:
        numbered: the rows, in one chunk.
        documents: the documents with these numbers.
        shared: encode ids and texts as dictionaries.
    """
    lists, groups = numbered["documents"].combine_chunks(), numbered["evidences"].combine_chunks()
    members = groups.flatten()
    evidences = members.flatten()
    row_documents = to_numpy(lists.flatten())
    chosen = sort_distinct(row_documents)
    places = make_numbers(np.searchsorted(chosen, row_documents).astype(np.int32))
    names, texts = documents.take(chosen)
    leaves = [
        pa.DictionaryArray.from_arrays(places, values) if shared else values.take(places) for values in (names, texts)
    ]
    evidence_ids = names.take(make_numbers(np.searchsorted(chosen, to_numpy(evidences.field("docid")))))
    fields = [evidence_ids, *(evidences.field(name) for name in EVIDENCE.names[1:])]
    structs = pa.StructArray.from_arrays(fields, fields=list(EVIDENCE))
    document = pa.StructArray.from_arrays(leaves, names=["docid", "text"])
    columns: dict[str, pa.Array] = {
        "documents": pa.ListArray.from_arrays(lists.offsets, document),
        "evidences": pa.ListArray.from_arrays(groups.offsets, pa.ListArray.from_arrays(members.offsets, structs)),
    }
    return pa.Table.from_arrays([columns.get(name, numbered[name]) for name in SCHEMA.names], names=SCHEMA.names)


# the columns of documents and evidences without the texts, which are most of the bytes
PLACES = (
    "documents.list.element.docid",
    *(f"evidences.list.element.list.element.{name}" for name in ("docid", "start_token", "end_token")),
)


class FlatRows(NamedTuple):
    """Rows, flattened.

    Attributes:
        offsets: int64 (rows + 1,), the place of each row's first document.
        document_rows: int64 (documents,), the row of each.
        documents: int64 (documents,), the number of each; -1 for an unknown one.
        spans: the evidences of all groups.
        span_rows: int64 (spans,), the row of each.
        slots: int64 (spans,), the place of the document that it names; -1 where its row has none of that name.
        start, end: int64 (spans,), its first token, and the token behind its last one.
    """

    offsets: np.ndarray
    document_rows: np.ndarray
    documents: np.ndarray
    spans: pa.StructArray
    span_rows: np.ndarray
    slots: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def are_inside(self, lengths: np.ndarray) -> np.ndarray:
        """Return bool (spans,): True for a span inside its document, given the number of tokens of each document."""
        ends = np.append(lengths, -1)[self.slots]  # nothing is inside of no document
        inside: np.ndarray = (self.start >= 0) & (self.start <= self.end) & (self.end <= ends)
        return inside


def flatten_rows(rows: pa.Table, documents: Documents) -> FlatRows:
    """Flatten ``documents`` and ``evidences``, which hold no null.

    Args:
        rows: the rows.
        documents: the documents, by number.
    """
    lists, groups = (rows[name].combine_chunks() for name in ("documents", "evidences"))
    members = groups.flatten()
    spans = members.flatten()
    each_row, sizes = np.arange(len(rows)), get_list_lengths(lists)
    document_rows = np.repeat(each_row, sizes)
    span_rows = np.repeat(np.repeat(each_row, get_list_lengths(groups)), get_list_lengths(members))
    numbers, named = (
        documents.number(structs.field("docid").to_pylist()).astype(np.int64) for structs in (lists.flatten(), spans)
    )
    # a span's document is the one of its row with the same number
    kinds = max(numbers.max(initial=0), named.max(initial=0)) + 2
    keys, wanted = document_rows * kinds + numbers + 1, span_rows * kinds + named + 1
    order = np.argsort(keys, kind="stable")
    slots = np.full(len(wanted), -1)
    if len(keys):
        found = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
        slots = np.where((keys[found] == wanted) & (named >= 0), found, -1)
    start, end = (spans.field(name).to_numpy().astype(np.int64) for name in ("start_token", "end_token"))
    return FlatRows(compute_offsets(sizes), document_rows, numbers, spans, span_rows, slots, start, end)


def get_list_lengths(lists: pa.Array) -> np.ndarray:
    """Return the length of each list of an array without nulls, int64."""
    lengths: np.ndarray = pc.call_function("list_value_length", [lists]).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths
