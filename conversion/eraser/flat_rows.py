"""The nested columns of built rows as flat arrays: the documents, the spans, and the row of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eraser_hub.conversion.built import BuiltDataset
from eraser_hub.conversion.offsets import compute_offsets

from .documents import Documents, read_built_documents

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


def open_documents(built: BuiltDataset, config: str, with_texts: bool = True) -> Documents:
    """Return the documents of a configuration; those of a dataset of the Hub are fetched.

    Raises:
        DataError: ``documents/CONFIG.parquet`` is missing or at fault, or has a document twice.
    """
    built.paths(f"documents/{config}.parquet")
    return read_built_documents(built.folder / "documents" / f"{config}.parquet", with_texts)
