"""Predictions and references, matched: instances by annotation id, documents by docid, both in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .flat import Predictions, References
from .offences import Offences


class Join(NamedTuple):
    """Which prediction belongs to which reference, and what each predicted document is."""

    row: np.ndarray  # (n references,) the prediction of each reference; -1: none
    reference: np.ndarray  # (n predictions,) the reference of each prediction; -1: none
    doc: np.ndarray  # (m,) the document of each rationale, as a code of the references; -1: unknown
    docs: int  # how many document codes there are


def _positions(names: Sequence[str], side: str, offences: Offences) -> dict[str, int]:
    places: dict[str, int] = {}
    for row, name in enumerate(names):
        if places.setdefault(name, row) != row:
            offences.say(side, row, "annotation_id", f"expected each id once, found {name!r} again")
    return places


def check_ids(predictions: Predictions, offences: Offences) -> None:
    """At least one instance, and each id once."""
    if not predictions.ids:
        offences.say("prediction", 0, "", "expected at least one instance, found none")
    _positions(predictions.ids, "prediction", offences)


def join(predictions: Predictions, references: References, offences: Offences) -> Join:
    """Match instances and annotations by id, and documents by docid; order does not matter."""
    if not predictions.ids:
        offences.say("prediction", 0, "", "expected at least one instance, found none")
    annotations = _positions(references.ids, "reference", offences)
    instances = _positions(predictions.ids, "prediction", offences)
    reference = np.array([annotations.get(name, -1) for name in predictions.ids], dtype=np.int64)
    row = np.array([instances.get(name, -1) for name in references.ids], dtype=np.int64)
    ids = predictions.ids
    lost = np.flatnonzero(reference < 0)
    offences.say_all("prediction", lost, "annotation_id", lambda k: f"no annotation has the id {ids[lost[k]]!r}")
    if predictions.ids:
        missing = np.flatnonzero(row < 0)
        offences.say_all("reference", missing, "annotation_id", "expected an instance for this annotation, found none")
    if predictions.docids is references.docids:  # one vocabulary for both
        return Join(row, reference, predictions.doc, len(references.docids))
    codes = {docid: code for code, docid in enumerate(references.docids)}
    known = np.array([*(codes.get(docid, -1) for docid in predictions.docids), -1], dtype=np.int64)
    return Join(row, reference, known[predictions.doc], len(references.docids))


class Keys(NamedTuple):
    """(annotation, document) pairs with evidence or a predicted rationale, numbered."""

    owner: np.ndarray  # (keys,) the annotation of each
    evidence: np.ndarray  # the key of each evidence
    rationale: np.ndarray  # the key of each rationale; -1 where instance or document are unknown
    span: np.ndarray  # the key of each predicted span


def number_keys(references: References, predictions: Predictions, joined: Join) -> Keys:
    """Number the (annotation, document) pairs that either side speaks of."""
    width = max(joined.docs, 1)
    evidence = pairs(references.group_instance[references.group], references.doc, width)
    rationale = pairs(joined.reference[predictions.instance], joined.doc, width)
    packed, number = np.unique(np.concatenate([evidence, rationale[rationale >= 0]]), return_inverse=True)
    places = np.full(rationale.size, -1, dtype=np.int64)
    places[rationale >= 0] = number[evidence.size :]
    span = places[np.repeat(np.arange(places.size), np.maximum(predictions.hard, 0))]
    return Keys(packed // width, number[: evidence.size], places, span)


def pairs(annotation: np.ndarray, doc: np.ndarray, width: int) -> np.ndarray:
    """(annotation, document) as one number; -1 where either is negative."""
    return np.where((annotation < 0) | (doc < 0), -1, annotation * width + doc)


class EvidenceIndex:
    """The evidences of (annotation, document) pairs, to be looked up for some rationales at a time."""

    def __init__(self, references: References, width: int) -> None:
        packed = pairs(references.group_instance[references.group], references.doc, width)
        self.order = np.argsort(packed, kind="stable")
        self.packed = packed[self.order]

    def find(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(position in ``wanted``, evidence) of every evidence of the wanted pairs."""
        low = np.searchsorted(self.packed, wanted, side="left")
        size = np.searchsorted(self.packed, wanted, side="right") - low
        size[wanted < 0] = 0
        where = np.repeat(np.arange(wanted.size), size)
        at = np.arange(where.size) - np.repeat(np.cumsum(size) - size - low, size)
        return where, self.order[at]


def has_sentences(references: References) -> bool:
    """Whether evidences say their sentences (a release that does not know them writes -1)."""
    return not references.start.size or bool((references.start_sentence >= 0).any())


def says_sentences(references: References) -> bool:
    """Whether some evidence says its sentences."""
    return bool((references.start_sentence >= 0).any())


def touched_sentences(
    r: References, p: Predictions, joined: Join, keys: Keys, documents: Documents
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


class Documents:
    """Lengths of documents: of an annotation's own ones first, else of the one document of that name."""

    def __init__(self, references: References, n_docs: int) -> None:
        self.n_docs = max(n_docs, 1)
        self.tokens, self.sentences = references.tokens, references.sentences
        self.first_sentence, self.sentence_tokens = references.first_sentence, references.sentence_tokens
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

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """The row of each (annotation, document) among the references' documents; -1 where there is none."""
        rows = self.any_row[doc]
        if self.packed.size:
            wanted = annotation * self.n_docs + doc
            at = np.minimum(np.searchsorted(self.packed, wanted), self.packed.size - 1)
            known = (self.packed[at] == wanted) & (annotation >= 0) & (doc >= 0)
            rows[known] = self.order[at[known]]
        return rows

    def lengths(self, annotation: np.ndarray, doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(tokens, sentences) of each (annotation, document); -1 where there is no such document."""
        rows = self.find(annotation, doc)
        return _at(self.tokens, rows), _at(self.sentences, rows)

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
        reached = self._reached()
        before = reached[first]
        low = np.searchsorted(reached, before + start, side="right") - 1 - first
        high = np.searchsorted(reached, before + end, side="left") - first
        return low, np.where(end > start, high, low)

    def _reached(self) -> np.ndarray:
        """Tokens before each sentence of all documents, one after another; made once for as long as they are the same."""
        source, reached = self.__dict__.get("_made", (None, None))
        if source is not self.sentence_tokens:
            reached = np.concatenate([[0], np.cumsum(self.sentence_tokens, dtype=np.int64)])
            self._made = self.sentence_tokens, reached
        return reached


def _at(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``values[rows]``, and -1 where a row is."""
    if not values.size:
        return np.full(rows.size, -1, dtype=np.int64)
    return np.where(rows < 0, -1, values[rows])
