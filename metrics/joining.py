"""Matched predictions and references: instances by annotation id, documents by docid, both in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .clusters import NONE, Clusters, find_components
from .flat import Predictions, References


@dataclass
class MatchedChunk:
    """Some instances matched with their annotations, and their rationales with documents.

    A pair is an (annotation of the chunk, document) as one number: annotation * width + document.

    Attributes:
        p: the instances.
        r: their annotations, in the references' order.
        rows: (annotations,) the place of each annotation among all of them.
        row: (annotations,) the instance of each.
        reference: (instances,) the annotation of each; -1: none.
        documents: the documents of all annotations.
        lines: the number of each instance in messages.
        doc: (rationales,) the number of its document; -1: unknown.
        owner: (rationales,) its annotation; -1: none.
        lengths: tokens and sentences of each rationale's document, see `DocumentLengths.lengths`.
        evidence: (evidences,) the pair of each.
        rationale: (rationales,) the pair of each; -1: its annotation or document is unknown.
    """

    p: Predictions
    r: References
    rows: np.ndarray
    row: np.ndarray
    reference: np.ndarray
    documents: DocumentLengths
    lines: Sequence[int]

    def __post_init__(self) -> None:
        p, r = self.p, self.r
        self.doc = np.append(self.documents.number(p.docids), -1)[p.doc]
        self.owner = self.reference[p.instance]
        self.lengths = self.documents.lengths(np.append(self.rows, -1)[self.owner], self.doc)
        self.width = max(len(self.documents.numbers), 1)
        self.evidence = r.group_instance[r.group] * self.width + r.doc
        unknown = (self.owner < 0) | (self.doc < 0)
        self.rationale = np.where(unknown, -1, self.owner * self.width + self.doc)

    def count_evidence_tokens(self) -> np.ndarray:
        """Count the tokens of each annotation's evidence documents, each document once: int64 (annotations,)."""
        owner, doc = np.divmod(np.unique(self.evidence), self.width)
        tokens, _ = self.documents.lengths(self.rows[owner], doc)
        return np.bincount(owner, weights=tokens, minlength=self.rows.size).astype(np.int64)


def cluster_by_documents(r: References) -> Clusters:
    """Return clusters of annotations that share a document of their own or of their evidence."""
    listed = r.document_instance >= 0
    owner = np.concatenate([r.document_instance[listed], r.group_instance[r.group]])
    if not owner.size:
        return Clusters(NONE)
    return Clusters("documents", find_components(owner, np.concatenate([r.document[listed], r.doc]), len(r.ids)))


class DocumentLengths:
    """Lengths of an annotation's own documents, else of the one document of that name.

    Attributes:
        numbers: docid -> the document's number.
        tokens: the tokens of each document, see `flat.References`.
        sentences: the sentences of each document.
        sentence_places: the place of each document's first sentence; and the tokens before each sentence of all
            documents, one after another, and after the last.
    """

    def __init__(self, references: References) -> None:
        self.numbers = {docid: number for number, docid in enumerate(references.docids)}
        self.tokens, self.sentences = references.tokens, references.sentences
        reached = np.append(0, np.cumsum(references.sentence_tokens, dtype=np.int64))
        self.sentence_places = references.first_sentence, reached
        self.width = max(len(self.numbers), 1)
        packed = references.document_instance * self.width + references.document
        self.order = np.argsort(packed, kind="stable")
        self.packed = packed[self.order]
        # by name alone: only if all documents of that name have one length
        by_name = np.lexsort((references.tokens, references.document))
        names, first, size = np.unique(references.document[by_name], return_index=True, return_counts=True)
        rows = by_name[first]
        one = references.tokens[rows] == references.tokens[by_name[first + size - 1]]
        self.any_row = np.full(self.width + 1, -1, dtype=np.int64)
        self.any_row[names[one]] = rows[one]

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """Return the number of each document: int64; -1 for an unknown one."""
        return np.array([self.numbers.get(docid, -1) for docid in docids], dtype=np.int64)

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """Return the row of each (annotation, document) among the references' documents; -1 if there is none."""
        rows: np.ndarray = self.any_row[doc]
        if self.packed.size:
            wanted = annotation * self.width + doc
            at = np.minimum(np.searchsorted(self.packed, wanted), self.packed.size - 1)
            known = (self.packed[at] == wanted) & (annotation >= 0) & (doc >= 0)
            rows[known] = self.order[at[known]]
        return rows

    def lengths(self, annotation: np.ndarray, doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, sentences) of each (annotation, document); -1 if there is no such document."""
        rows = self.find(annotation, doc)
        tokens, sentences = (
            np.where(rows < 0, -1, values[rows]) if values.size else np.full(rows.size, -1, dtype=np.int64)
            for values in (self.tokens, self.sentences)
        )
        return tokens, sentences

    def sentence_spans(
        self, annotation: np.ndarray, doc: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the sentences of which each span covers at least one token: [first, last) of each span.

        Args:
            annotation: the annotation of each span.
            doc: the document of each span, a known one.
            start: the first token of each span, within the document.
            end: the token behind its last one, start <= end; an empty span covers no sentence.
        """
        first_sentence, reached = self.sentence_places
        first = first_sentence[self.find(annotation, doc)]
        before = reached[first]
        low = np.searchsorted(reached, before + start, side="right") - 1 - first
        high = np.searchsorted(reached, before + end, side="left") - first
        return low, np.where(end > start, high, low)
