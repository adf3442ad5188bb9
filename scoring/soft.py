"""Soft scores, ranked as they are read: a document's scores become three numbers and are forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from eraser_hub.metrics.input_policy import check_finite, check_score_lengths
from eraser_hub.metrics.inputs import PredictionFlattener, Predictions, References
from eraser_hub.metrics.joining import EvidenceIndex, pairs
from eraser_hub.metrics.rankings import Ranked, baseline_seeds, joined, rank_rationales

# token scores that are gathered before they are ranked: few enough for a processor's cache, and for little memory
ENOUGH = 1 << 18


class SoftScores(NamedTuple):
    """Per rationale, its token scores and its sentence scores ranked."""

    token: Ranked
    sentence: Ranked


# wide enough for every vocabulary of documents, so that it may grow
WIDTH = 1 << 31


class SoftReducer:
    """Ranks the soft scores that a flattener has gathered since the last call.

    Args:
        flattener: of the predictions; its vocabulary of docids is that of the documents.
        references: their annotations (documents need not be there).
        documents: `corpus.CorpusDocuments` or `tables.RowDocuments`.
        no_positives: AUPRC of a document without positives.
        n_shuffles: shuffles of the random baseline; 0: none.
        sentence_threshold: of sentences' decisions.
    """

    def __init__(
        self,
        flattener: PredictionFlattener,
        references: References,
        documents: Any,
        no_positives: float,
        n_shuffles: int = 0,
        sentence_threshold: float = 0.5,
    ) -> None:
        self.flattener, self.references, self.documents = flattener, references, documents
        self.no_positives, self.n_shuffles, self.sentence_threshold = no_positives, n_shuffles, sentence_threshold
        self.places = {name: row for row, name in enumerate(references.ids)}
        self.evidence = EvidenceIndex(references, WIDTH)
        self.rationales = self.rows = 0
        self.parts: list[SoftScores] = []

    def enough(self) -> bool:
        return len(self.flattener.soft_scores) + len(self.flattener.sentence_scores) >= ENOUGH

    def reduce(self) -> None:
        """Rank what the flattener has gathered since the last call."""
        f = self.flattener
        first_row, first = self.rows, self.rationales
        self.rows, self.rationales = f.n, len(f.doc)
        tokens, sentences = f.take_floats()
        instance, doc = np.array(f.instance[first:], dtype=np.int64), np.array(f.doc[first:], dtype=np.int64)
        columns = (np.array(f.soft[first:]), tokens, np.array(f.sentence[first:]), sentences)
        self._rank(f.ids[first_row:], first_row, instance - first_row, doc, columns)

    def reduce_batch(self, batch: Predictions) -> None:
        """Rank one batch of predictions that came flat; its soft scores are not needed afterwards."""
        docs = self.documents.docs
        codes = np.array([*(docs.setdefault(docid, len(docs)) for docid in batch.docids), -1], dtype=np.int64)
        columns = (batch.soft, batch.soft_scores, batch.sentence, batch.sentence_scores)
        self._rank(batch.ids, self.rows, batch.instance, codes[batch.doc], columns)
        self.rows += len(batch.ids)

    def _rank(
        self,
        ids: list[str],
        first_row: int,
        instance: np.ndarray,
        doc: np.ndarray,
        columns: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        rows = np.array([self.places.get(name, -1) for name in ids], dtype=np.int64)
        where, evidence = self.evidence.find(pairs(rows[instance], doc, WIDTH))
        docs = self.documents.docs
        doc_tokens, doc_sentences = self.documents.lengths()
        seeds = self._seeds(ids, instance, list(docs), doc) if self.n_shuffles else None
        # the rules speak of rationales by position: they are shown this part alone
        view = _View(instance + first_row, doc, docs)
        offences, r = self.flattener.offences, self.references
        soft, tokens, sentence, sentences = columns
        if (soft >= 0).any():
            check_score_lengths(view, soft, doc_tokens[doc], "soft_rationale_predictions", "tokens", offences)
            check_finite(view, 0, soft, tokens, "soft_rationale_predictions", offences)
        if (sentence >= 0).any():
            field = "soft_sentence_predictions"
            check_score_lengths(view, sentence, doc_sentences[doc], field, "sentences", offences)
            check_finite(view, 0, sentence, sentences, field, offences)
        spans = where, r.start[evidence], r.end[evidence]
        lines = where, r.start_sentence[evidence], r.end_sentence[evidence]
        settings = self.no_positives, seeds, self.n_shuffles, self.sentence_threshold
        self.parts.append(
            SoftScores(
                rank_rationales(soft, tokens, spans, *settings), rank_rationales(sentence, sentences, lines, *settings)
            )
        )

    @staticmethod
    def _seeds(ids: list[str], instance: np.ndarray, docids: list[str], doc: np.ndarray) -> np.ndarray:
        pairs = zip(instance.tolist(), doc.tolist(), strict=True)
        return baseline_seeds([f"{ids[i]}\0{docids[d]}" for i, d in pairs])

    def finish(self) -> SoftScores:
        """The scores of all rationales."""
        self.reduce()
        return SoftScores(joined([part.token for part in self.parts]), joined([part.sentence for part in self.parts]))


class _View:
    """What the rules on scores look at: some rationales."""

    def __init__(self, instance: np.ndarray, doc: np.ndarray, docs: Mapping[str, object]) -> None:
        self.instance, self.doc, self.docs = instance, doc, docs

    @property
    def docids(self) -> list[str]:
        return list(self.docs)
