"""Flat arrays of the nested columns of built ``eraser`` rows: documents, spans, and the row of each."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from eraser_hub.conversion.arrays import get_bytes
from eraser_hub.conversion.offsets import compute_offsets
from eraser_hub.metrics.plain import find_token_starts, split_tokens

from .documents import count_tokens

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers


class FlatRows:
    """A batch of rows, flattened.

    Attributes:
        ids: the annotation ids.
        doc_row: int64 (documents,), the row of each.
        doc_text: int64 (documents,), the index of its text among ``texts``.
        doc_twice: the rows with two documents of the same name.
        docids: the documents' ids.
        texts: the distinct texts.
        counts: int64 (texts, 2), the tokens and sentences of each.
        span_row: int64 (spans,), the row of each span of all evidence groups.
        span_doc: int64 (spans,), the index of its document; -1 if the row has none of that name.
        span_code: int64 (spans,), a code of the document's name; spans of the same name have the same code.
        start, end, start_sentence, end_sentence: int64 (spans,); -2**31 for null.
        span_texts: the spans' texts.
        names: the documents that the spans name.
    """

    def __init__(self, table: pa.Table) -> None:
        rows = np.arange(table.num_rows)
        documents, groups = (table[name].combine_chunks() for name in ("documents", "evidences"))
        self.ids: list[str] = table["annotation_id"].cast(pa.string()).to_pylist()
        self.doc_row = np.repeat(rows, get_list_lengths(documents))
        structs = documents.flatten()
        self.docids, texts = structs.field("docid").fill_null(""), structs.field("text").fill_null("")
        texts = texts.dictionary_encode()
        self.doc_text = _to_integers(texts.indices)
        self.texts: list[str] = texts.dictionary.to_pylist()
        self._strings = texts.dictionary.cast(pa.string())
        self.counts = count_tokens(self._strings)
        members = groups.flatten()
        self.span_row = np.repeat(np.repeat(rows, get_list_lengths(groups)), get_list_lengths(members))
        spans = members.flatten()
        self.names, self.span_texts = spans.field("docid").fill_null(""), spans.field("text").fill_null("").to_pylist()
        self.start, self.end, self.start_sentence, self.end_sentence = (
            _to_integers(spans.field(name)) for name in ("start_token", "end_token", "start_sentence", "end_sentence")
        )
        # the document of each span in its row
        codes = pa.concat_arrays([names.cast(pa.string()) for names in (self.docids, self.names)]).dictionary_encode()
        numbers, kinds = _to_integers(codes.indices), max(1, len(codes.dictionary))
        self.span_code = numbers[len(self.docids) :]
        doc_key = self.doc_row * kinds + numbers[: len(self.docids)]
        span_key = self.span_row * kinds + self.span_code
        order = np.argsort(doc_key, kind="stable")
        in_order = doc_key[order]
        self.doc_twice = np.unique(self.doc_row[order[1:]][in_order[1:] == in_order[:-1]])
        self.span_doc = np.full(len(span_key), -1)
        if len(order):
            place = np.minimum(np.searchsorted(in_order, span_key), len(order) - 1)
            self.span_doc = np.where(in_order[place] == span_key, order[place], -1)

    @cached_property
    def tokens(self) -> list[list[str]]:
        """The tokens of each distinct text."""
        return [split_tokens(text) for text in self.texts]

    @property
    def doc_counts(self) -> np.ndarray:
        """int64 (documents, 2): the tokens and sentences of each document."""
        counts: np.ndarray = self.counts[self.doc_text]
        return counts

    def find_inside(self) -> np.ndarray:
        """Return bool (spans,): True if the span lies inside a document of its row."""
        has_document = self.span_doc >= 0
        length = np.zeros(len(has_document), np.int64)
        length[has_document] = self.doc_counts[self.span_doc[has_document], 0]
        return has_document & (self.start >= 0) & (self.start <= self.end) & (self.end <= length)

    def find_sentences(self, spans: np.ndarray) -> np.ndarray:
        """Return int64 (2, spans): the first sentence and the one behind the last, of nonempty spans inside a text."""
        starts = find_token_starts(*get_bytes(self._strings))
        sentences = compute_offsets(starts.opens_sentence)  # how many open before each token
        first = starts.first_token[self.doc_text[self.span_doc[spans]]]
        tokens = np.stack([first + self.start[spans], first + self.end[spans] - 1])
        found: np.ndarray = sentences[tokens + 1] - sentences[first] - np.array([[1], [0]])
        return found

    def get_evidence_tokens(self, span: int) -> list[str]:
        """Return the tokens of a span that lies inside its document."""
        return self.tokens[self.doc_text[self.span_doc[span]]][self.start[span] : self.end[span]]


def get_list_lengths(lists: pa.Array) -> np.ndarray:
    """Return the length of each list of an array, int64; 0 for null."""
    lengths: np.ndarray = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64)


def _to_integers(values: pa.Array) -> np.ndarray:
    numbers: np.ndarray = values.fill_null(-(2**31)).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)
