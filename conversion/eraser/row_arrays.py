"""The nested columns of a batch of ``eraser`` rows as flat numpy arrays: documents, spans, and the row of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eraser_hub.conversion.token_arrays import TokenArrays, token_arrays


@dataclass(slots=True)
class RowArrays:
    """A batch of rows, flattened. Documents: ``doc_*``; spans of all evidence groups: ``span_*``."""

    ids: list[str]
    doc_row: np.ndarray
    doc_text: np.ndarray  # index of the distinct text
    docids: pa.Array
    tokens: TokenArrays
    span_row: np.ndarray
    span_doc: np.ndarray  # index of the document; -1 where the row holds none of that name
    span_code: np.ndarray
    start: np.ndarray
    end: np.ndarray
    start_sentence: np.ndarray
    end_sentence: np.ndarray
    texts: pa.Array
    names: pa.Array  # the spans' docids
    doc_twice: np.ndarray  # rows that hold a document of one name twice


def flatten(table: pa.Table) -> RowArrays:
    """The nested columns of a batch as flat arrays with, for each entry, its row."""
    rows = np.arange(table.num_rows)
    documents = table["documents"].combine_chunks()
    doc_row = np.repeat(rows, list_lengths(documents))
    held = documents.flatten()
    docids, texts = held.field("docid").fill_null(""), held.field("text").fill_null("")
    distinct = texts.dictionary_encode()
    groups = table["evidences"].combine_chunks()
    group_row = np.repeat(rows, list_lengths(groups))
    group_lists = groups.flatten()
    span_row = np.repeat(group_row, list_lengths(group_lists))
    spans = group_lists.flatten()
    names = spans.field("docid").fill_null("")
    codes = pa.concat_arrays([docids.cast(pa.string()), names.cast(pa.string())]).dictionary_encode()
    numbers, kinds = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(1, len(codes.dictionary))
    doc_key, span_key = doc_row * kinds + numbers[: len(docids)], span_row * kinds + numbers[len(docids) :]
    order = np.argsort(doc_key, kind="stable")
    in_order = doc_key[order]
    place = np.minimum(np.searchsorted(in_order, span_key), max(0, len(in_order) - 1))
    there = in_order[place] == span_key if len(in_order) else np.zeros(len(span_key), bool)
    return RowArrays(
        ids=table["annotation_id"].cast(pa.string()).to_pylist(),
        doc_row=doc_row,
        doc_text=distinct.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        docids=docids,
        tokens=token_arrays(distinct.dictionary),
        span_row=span_row,
        span_doc=np.where(there, order[place] if len(order) else 0, -1),
        span_code=numbers[len(docids) :],
        start=_numbers(spans, "start_token"),
        end=_numbers(spans, "end_token"),
        start_sentence=_numbers(spans, "start_sentence"),
        end_sentence=_numbers(spans, "end_sentence"),
        texts=spans.field("text").fill_null(""),
        names=names,
        doc_twice=np.unique(doc_row[order[1:]][in_order[1:] == in_order[:-1]]),
    )


def list_lengths(lists: pa.Array) -> np.ndarray:
    """int64: the length of each list of an array; 0 for null."""
    return pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers(spans: pa.StructArray, name: str) -> np.ndarray:
    return spans.field(name).fill_null(-(2**31)).to_numpy(zero_copy_only=False).astype(np.int64)
