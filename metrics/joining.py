"""Predictions and references, matched: instances by annotation id, documents by docid, both in any order; and which
annotations share documents."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from .clusters import NONE, Clusters, connected
from .flat import Predictions, References


class Join(NamedTuple):
    """Which prediction belongs to which reference, and what each predicted document is."""

    row: np.ndarray  # (n references,) the prediction of each reference; -1: none
    reference: np.ndarray  # (n predictions,) the reference of each prediction; -1: none
    doc: np.ndarray  # (m,) the document of each rationale, as a code of the references; -1: unknown
    docs: int  # how many document codes there are


class Keys(NamedTuple):
    """(annotation, document) pairs with evidence or a predicted rationale, numbered."""

    owner: np.ndarray  # (keys,) the annotation of each
    doc: np.ndarray  # (keys,) and its document
    evidence: np.ndarray  # the key of each evidence
    span: np.ndarray  # the key of each predicted span; -1 where instance or document are unknown


def number_keys(references: References, predictions: Predictions, joined: Join) -> Keys:
    """Number the (annotation, document) pairs that either side speaks of."""
    width = max(joined.docs, 1)
    evidence = pairs(references.group_instance[references.group], references.doc, width)
    rationale = pairs(joined.reference[predictions.instance], joined.doc, width)
    packed, number = np.unique(np.concatenate([evidence, rationale[rationale >= 0]]), return_inverse=True)
    places = np.full(rationale.size, -1, dtype=np.int64)
    places[rationale >= 0] = number[evidence.size :]
    span = places[np.repeat(np.arange(places.size), np.maximum(predictions.hard, 0))]
    return Keys(packed // width, packed % width, number[: evidence.size], span)


def pairs(annotation: np.ndarray, doc: np.ndarray, width: int) -> np.ndarray:
    """(annotation, document) as one number; -1 where either is negative."""
    return np.where((annotation < 0) | (doc < 0), -1, annotation * width + doc)


def evidence_of(references: References, width: int, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(position in ``wanted``, evidence) of every evidence of the wanted (annotation, document) pairs, see `pairs`."""
    packed = pairs(references.group_instance[references.group], references.doc, width)
    order = np.argsort(packed, kind="stable")
    packed = packed[order]
    low = np.searchsorted(packed, wanted, side="left")
    size = np.where(wanted < 0, 0, np.searchsorted(packed, wanted, side="right") - low)
    where = np.repeat(np.arange(wanted.size), size)
    at = np.arange(where.size) - np.repeat(np.cumsum(size) - size - low, size)
    return where, order[at]


def unsaid_sentences(references: References) -> np.ndarray:
    """Which annotations have evidence that does not say its sentences (-1 in releases that do not know them): bool."""
    unsaid = np.zeros(len(references.ids), dtype=bool)
    silent = (references.start_sentence < 0) | (references.end_sentence < 0)
    unsaid[references.group_instance[references.group[silent]]] = True
    return unsaid


def touched_sentences(
    r: References, p: Predictions, joined: Join, keys: Keys, documents: DocumentLengths
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sentences by spans: those of the evidence, and those of which a predicted span covers at least one token.

    Returns:
        two of (key, first sentence, end sentence); evidence that does not say its sentences has none.
    """
    with_sentences = np.flatnonzero((r.start_sentence >= 0) & (r.end_sentence >= r.start_sentence))
    rationale = np.repeat(np.arange(p.hard.size), np.maximum(p.hard, 0))
    owner = joined.reference[p.instance[rationale]]
    first, end = documents.sentence_spans(owner, joined.doc[rationale], p.start, p.end)
    gold = keys.evidence[with_sentences], r.start_sentence[with_sentences], r.end_sentence[with_sentences]
    return gold, (keys.span, first, end)


def by_documents(r: References) -> Clusters:
    """Clusters of annotations that share a document of their own or of their evidence."""
    listed = r.document_instance >= 0
    owner = np.concatenate([r.document_instance[listed], r.group_instance[r.group]])
    if not owner.size:
        return Clusters(NONE)
    return Clusters("documents", connected(owner, np.concatenate([r.document[listed], r.doc]), len(r.ids)))


class DocumentLengths:
    """Lengths of documents: of an annotation's own ones first, else of the one document of that name.

    Attributes:
        numbers: docid -> the document's number.
        tokens, sentences, first_sentence: of each document that is there, see `flat.References`.
        reached: see `tokens_before`.
        rows: the place among all annotations of those that are asked about, see `at`; None: they are all.
    """

    rows: np.ndarray | None = None

    def __init__(self, references: References) -> None:
        self.numbers = {docid: number for number, docid in enumerate(references.docids)}
        self.tokens, self.sentences = references.tokens, references.sentences
        self.first_sentence, self.reached = references.first_sentence, tokens_before(references.sentence_tokens)
        packed = references.document_instance * self.n_docs + references.document
        self.order = np.argsort(packed, kind="stable")
        self.packed = packed[self.order]
        # by name alone: only where all documents of that name are as long
        by_name = np.lexsort((references.tokens, references.document))
        names, first, size = np.unique(references.document[by_name], return_index=True, return_counts=True)
        rows = by_name[first]
        one = references.tokens[rows] == references.tokens[by_name[first + size - 1]]
        self.any_row = np.full(self.n_docs + 1, -1, dtype=np.int64)
        self.any_row[names[one]] = rows[one]

    @property
    def n_docs(self) -> int:
        """How many documents have numbers; at least 1."""
        return max(len(self.numbers), 1)

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """The number of each document: int64; -1 for one that is not known."""
        return np.array([self.numbers.get(docid, -1) for docid in docids], dtype=np.int64)

    def at(self, rows: np.ndarray) -> DocumentLengths:
        """The same documents, asked about by the place of an annotation in ``rows``."""
        documents = copy(self)
        documents.rows = rows
        return documents

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """The row of each (annotation, document) among the references' documents; -1 where there is none."""
        if self.rows is not None:
            annotation = np.append(self.rows, -1)[annotation]
        rows: np.ndarray = self.any_row[doc]
        if self.packed.size:
            wanted = annotation * self.n_docs + doc
            at = np.minimum(np.searchsorted(self.packed, wanted), self.packed.size - 1)
            known = (self.packed[at] == wanted) & (annotation >= 0) & (doc >= 0)
            rows[known] = self.order[at[known]]
        return rows

    def lengths(self, annotation: np.ndarray, doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(tokens, sentences) of each (annotation, document); -1 where there is no such document."""
        rows = self.find(annotation, doc)
        tokens, sentences = (
            np.where(rows < 0, -1, values[rows]) if values.size else np.full(rows.size, -1, dtype=np.int64)
            for values in (self.tokens, self.sentences)
        )
        return tokens, sentences

    def evidence_tokens(self, references: References) -> np.ndarray:
        """Tokens of each annotation's evidence documents, each document once: int64 (annotations,)."""
        packed = np.unique(references.group_instance[references.group] * self.n_docs + references.doc)
        tokens, _ = self.lengths(packed // self.n_docs, packed % self.n_docs)
        return np.bincount(packed // self.n_docs, weights=tokens, minlength=len(references.ids)).astype(np.int64)

    def sentence_spans(
        self, annotation: np.ndarray, doc: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The sentences of which spans of tokens cover at least one token: [first, last) of each span.

        Args:
            annotation, doc: of each span; the documents are known.
            start, end: within the document, start <= end; an empty span covers no sentence.
        """
        first = self.first_sentence[self.find(annotation, doc)]
        before = self.reached[first]
        low = np.searchsorted(self.reached, before + start, side="right") - 1 - first
        high = np.searchsorted(self.reached, before + end, side="left") - first
        return low, np.where(end > start, high, low)


def tokens_before(sentence_tokens: np.ndarray) -> np.ndarray:
    """Tokens before each sentence of all documents, one after another, and after the last: int64 (sentences + 1,)."""
    return np.concatenate([[0], np.cumsum(sentence_tokens, dtype=np.int64)])
