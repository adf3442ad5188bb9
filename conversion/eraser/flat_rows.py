"""The nested columns of a batch of built ``eraser`` rows, flat: documents, spans, and the row of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from eraser_hub.conversion.offsets import offsets_of
from eraser_hub.metrics.tokens import masks, tokens_of

from .documents import count_tokens

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers


@dataclass
class FlatRows:
    """A batch of rows, flattened.

    Attributes:
        ids: the annotation ids.
        doc_row: int64 (documents,), the row of each.
        doc_text: int64 (documents,), the index of its text among ``texts``.
        docids: the documents' ids.
        texts: the distinct texts.
        counts: int64 (texts, 2), the tokens and sentences of each.
        span_row: int64 (spans,), the row of each span of all evidence groups.
        span_doc: int64 (spans,), the index of its document; -1 where the row holds none of that name.
        span_code: int64 (spans,), a number that is the same where spans name the same document.
        start, end, start_sentence, end_sentence: int64 (spans,); -2**31 for null.
        span_texts: the spans' texts.
        names: the documents that the spans name.
        doc_twice: the rows that hold a document of one name twice.
    """

    ids: list[str]
    doc_row: np.ndarray
    doc_text: np.ndarray
    docids: pa.Array
    texts: list[str]
    counts: np.ndarray
    span_row: np.ndarray
    span_doc: np.ndarray
    span_code: np.ndarray
    start: np.ndarray
    end: np.ndarray
    start_sentence: np.ndarray
    end_sentence: np.ndarray
    span_texts: list[str]
    names: pa.Array
    doc_twice: np.ndarray

    @cached_property
    def tokens(self) -> list[list[str]]:
        """The tokens of each distinct text."""
        return [tokens_of(text) for text in self.texts]

    @property
    def doc_counts(self) -> np.ndarray:
        """int64 (documents, 2): the tokens and sentences of each document."""
        counts: np.ndarray = self.counts[self.doc_text]
        return counts

    def inside(self) -> np.ndarray:
        """bool (spans,): whether the span lies inside of a document of its row."""
        there = self.span_doc >= 0
        length = np.zeros(len(there), np.int64)
        length[there] = self.doc_counts[self.span_doc[there], 0]
        return there & (self.start >= 0) & (self.start <= self.end) & (self.end <= length)

    def covered(self, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tokens that ``spans`` (indices of spans that lie inside) cover.

        Returns:
            the positions in their document, ascending, of one document after the other; int64 (documents + 1,), where
            each document's begin.
        """
        first_token = offsets_of(self.doc_counts[:, 0])
        covered = np.flatnonzero(masks(self.span_doc[spans], self.start[spans], self.end[spans], first_token))
        bounds = np.searchsorted(covered, first_token)
        return covered - np.repeat(first_token[:-1], np.diff(bounds)), bounds

    def evidence(self, span: int) -> list[str]:
        """The tokens of a span that lies inside."""
        return self.tokens[self.doc_text[self.span_doc[span]]][self.start[span] : self.end[span]]


def flatten(table: pa.Table) -> FlatRows:
    """The nested columns of a batch as flat arrays with, for each entry, its row."""
    rows = np.arange(table.num_rows)
    documents = table["documents"].combine_chunks()
    doc_row = np.repeat(rows, list_lengths(documents))
    structs = documents.flatten()
    docids, texts = structs.field("docid").fill_null(""), structs.field("text").fill_null("").dictionary_encode()
    groups = table["evidences"].combine_chunks()
    group_lists = groups.flatten()
    span_row = np.repeat(np.repeat(rows, list_lengths(groups)), list_lengths(group_lists))
    spans = group_lists.flatten()
    names = spans.field("docid").fill_null("")
    codes = pa.concat_arrays([docids.cast(pa.string()), names.cast(pa.string())]).dictionary_encode()
    numbers, kinds = _integers(codes.indices), max(1, len(codes.dictionary))
    doc_key, span_key = doc_row * kinds + numbers[: len(docids)], span_row * kinds + numbers[len(docids) :]
    order = np.argsort(doc_key, kind="stable")
    in_order = doc_key[order]
    place = np.minimum(np.searchsorted(in_order, span_key), max(0, len(in_order) - 1))
    there = in_order[place] == span_key if len(in_order) else np.zeros(len(span_key), bool)
    return FlatRows(
        ids=table["annotation_id"].cast(pa.string()).to_pylist(),
        doc_row=doc_row,
        doc_text=_integers(texts.indices),
        docids=docids,
        texts=texts.dictionary.to_pylist(),
        counts=count_tokens(texts.dictionary.cast(pa.string())),
        span_row=span_row,
        span_doc=np.where(there, order[place] if len(order) else 0, -1),
        span_code=numbers[len(docids) :],
        start=_integers(spans.field("start_token")),
        end=_integers(spans.field("end_token")),
        start_sentence=_integers(spans.field("start_sentence")),
        end_sentence=_integers(spans.field("end_sentence")),
        span_texts=spans.field("text").fill_null("").to_pylist(),
        names=names,
        doc_twice=np.unique(doc_row[order[1:]][in_order[1:] == in_order[:-1]]),
    )


def list_lengths(lists: pa.Array) -> np.ndarray:
    """int64: the length of each list of an array; 0 for null."""
    lengths: np.ndarray = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64)


def _integers(values: pa.Array) -> np.ndarray:
    numbers: np.ndarray = values.fill_null(-(2**31)).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)
