"""Soft scores, ranked as they are read: a document's scores become three numbers and are forgotten."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from eraser_hub.metrics.input_policy import check_finite, check_score_lengths
from eraser_hub.metrics.inputs import PredictionFlattener, Predictions, References
from eraser_hub.metrics.joining import EvidenceIndex, pairs
from eraser_hub.metrics.rankings import Rankings, decisions, random_baseline, rank_documents
from eraser_hub.metrics.spans import Spans, mark

ENOUGH = 1 << 18


class SoftScores:
    """Per rationale: its rankings over tokens and over sentences; NaN where it has none.

    Attributes:
        token, sentence: float64 (rationales, 3): AUPRC, average precision, ROC-AUC.
        token_random, sentence_random: the same for shuffled scores.
        decided: int64 (rationales, 3): true sentences, sentences scored at least the threshold, both.
    """

    def __init__(self, size: int, n_shuffles: int) -> None:
        self.token, self.sentence = np.full((size, 3), np.nan), np.full((size, 3), np.nan)
        self.token_random = np.full((size if n_shuffles else 0, 3), np.nan)
        self.sentence_random = np.full((size if n_shuffles else 0, 3), np.nan)
        self.decided = np.zeros((size, 3), dtype=np.int64)

    @staticmethod
    def joined(parts: list[SoftScores]) -> SoftScores:
        """The parts, one after another."""
        whole = SoftScores(0, 0)
        for name in ("token", "sentence", "token_random", "sentence_random", "decided"):
            setattr(whole, name, np.concatenate([getattr(whole, name), *(getattr(part, name) for part in parts)]))
        whole.decided = whole.decided.astype(np.int64)
        return whole

    def rankings(self, name: str, chosen: np.ndarray) -> Rankings:
        """The columns of ``token``, ``sentence`` or their random baselines, for the chosen rationales."""
        return Rankings(*getattr(self, name)[chosen].T)


class SoftReducer:
    """Ranks the soft scores that a flattener has gathered since the last call.

    Args:
        flattener: of the predictions.
        references: their annotations (documents need not be complete).
        counts: docids to {docid: (tokens, sentences)}; unknown ones stay out.
        no_positives: AUPRC of a document without positives.
        n_shuffles: shuffles of the random baseline; 0: none.
    """

    def __init__(
        self,
        flattener: PredictionFlattener,
        references: References,
        counts: Callable[[list[str]], dict[str, tuple[int, int]]],
        no_positives: float,
        n_shuffles: int = 0,
        sentence_threshold: float = 0.5,
    ) -> None:
        self.flattener, self.references, self.counts = flattener, references, counts
        self.no_positives, self.n_shuffles, self.sentence_threshold = no_positives, n_shuffles, sentence_threshold
        self.places = {name: row for row, name in enumerate(references.ids)}
        self.codes = {docid: code for code, docid in enumerate(references.docids)}
        self.width = len(self.codes) + 1
        self.evidence = EvidenceIndex(references, self.width)
        self.rationales = self.rows = 0
        self.reference = np.zeros(0, dtype=np.int64)
        self.doc_code = np.zeros(0, dtype=np.int64)
        self.doc_tokens = np.zeros(0, dtype=np.int64)
        self.doc_sentences = np.zeros(0, dtype=np.int64)
        self.parts: list[SoftScores] = []

    def enough(self) -> bool:
        return len(self.flattener.soft_scores) + len(self.flattener.sentence_scores) >= ENOUGH

    def _know(self, docids: list[str]) -> None:
        """Look up the documents that are new."""
        if not docids:
            return
        counts = self.counts(docids)
        lengths = np.array([counts.get(docid, (-1, -1)) for docid in docids], dtype=np.int64).reshape(-1, 2)
        self.doc_tokens = np.concatenate([self.doc_tokens, lengths[:, 0]])
        self.doc_sentences = np.concatenate([self.doc_sentences, lengths[:, 1]])
        codes = np.array([self.codes.get(docid, -1) for docid in docids], dtype=np.int64)
        self.doc_code = np.concatenate([self.doc_code, codes])

    def reduce(self) -> None:
        """Rank what the flattener has gathered since the last call."""
        f = self.flattener
        self._know(list(islice(f.docs, self.doc_code.size, None)))
        first_row, first = self.rows, self.rationales
        self.rows, self.rationales = f.n, len(f.doc)
        tokens, sentences = f.take_floats()
        instance, doc = np.array(f.instance[first:], dtype=np.int64), np.array(f.doc[first:], dtype=np.int64)
        columns = (np.array(f.soft[first:]), tokens, np.array(f.sentence[first:]), sentences)
        self._rank(f.ids[first_row:], first_row, instance - first_row, doc, f.docs, columns)

    def reduce_batch(self, batch: Predictions) -> None:
        """Rank one batch of predictions that came flat; its soft scores are not needed afterwards."""
        self.doc_code = self.doc_tokens = self.doc_sentences = np.zeros(0, dtype=np.int64)
        self._know(batch.docids)
        columns = (batch.soft, batch.soft_scores, batch.sentence, batch.sentence_scores)
        docs = dict.fromkeys(batch.docids)
        self._rank(batch.ids, self.rows, batch.instance, batch.doc, docs, columns)
        self.rows += len(batch.ids)

    def _rank(
        self,
        ids: list[str],
        first_row: int,
        instance: np.ndarray,
        doc: np.ndarray,
        docs: Mapping[str, object],
        columns: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        part = SoftScores(doc.size, self.n_shuffles)
        self.parts.append(part)
        if not doc.size:
            return
        rows = np.array([self.places.get(name, -1) for name in ids], dtype=np.int64)
        key = pairs(rows[instance], self.doc_code[doc], self.width)
        where, evidence = self.evidence.find(key)
        seeds = self._seeds(ids, instance, list(docs), doc) if self.n_shuffles else None
        # the rules speak of rationales by position: they are shown this part alone
        view = _View(instance + first_row, doc, docs)
        offences, r = self.flattener.offences, self.references
        soft, tokens, sentence, sentences = columns
        for kind, scores, size, lengths, field, unit in (
            ("token", tokens, soft, self.doc_tokens, "soft_rationale_predictions", "tokens"),
            ("sentence", sentences, sentence, self.doc_sentences, "soft_sentence_predictions", "sentences"),
        ):
            given = np.flatnonzero(size >= 0)
            if not given.size:
                continue
            check_score_lengths(view, size, lengths[doc], field, unit, offences)
            check_finite(view, 0, size, scores, field, offences)
            offsets = np.concatenate([[0], np.cumsum(np.maximum(size, 0))])
            start, end = (r.start, r.end) if kind == "token" else (r.start_sentence, r.end_sentence)
            start, end = start[evidence], end[evidence]
            # what lies outside is an offence of the references, told elsewhere
            inside = (start >= 0) & (end >= start) & (end <= np.maximum(size, 0)[where])
            truth = mark(Spans(where[inside], start[inside], end[inside]), offsets)
            own = np.concatenate([offsets[:-1][given], offsets[-1:]])
            getattr(part, kind)[given] = np.stack(rank_documents(scores, truth, own, self.no_positives), axis=1)
            if seeds is not None:
                random = random_baseline(scores, truth, own, seeds[given], self.n_shuffles, self.no_positives)
                getattr(part, f"{kind}_random")[given] = np.stack(random, axis=1)
            if kind == "sentence":
                part.decided[given] = np.stack(decisions(scores, truth, own, self.sentence_threshold), axis=1)

    @staticmethod
    def _seeds(ids: list[str], instance: np.ndarray, docids: list[str], doc: np.ndarray) -> np.ndarray:
        return baseline_seeds([ids[i] for i in instance.tolist()], [docids[d] for d in doc.tolist()])

    def finish(self) -> SoftScores:
        """The scores of all rationales."""
        self.reduce()
        return SoftScores.joined(self.parts)


class _View:
    """What the rules on scores look at: some rationales."""

    def __init__(self, instance: np.ndarray, doc: np.ndarray, docs: Mapping[str, object]) -> None:
        self.instance, self.doc, self.docs = instance, doc, docs

    @property
    def docids(self) -> list[str]:
        return list(self.docs)


def baseline_seeds(ids: list[str], docids: list[str]) -> np.ndarray:
    """A seed per (annotation, document): by name, so that no order and no batching matters."""
    return np.array(
        [zlib.crc32(f"{name}\0{docid}".encode()) for name, docid in zip(ids, docids, strict=True)], dtype=np.uint64
    )


def lookup(documents: Any) -> Callable[[list[str]], dict[str, tuple[int, int]]]:
    """A corpus' documents as the function that `SoftReducer` asks."""

    def counts(docids: list[str]) -> dict[str, tuple[int, int]]:
        documents.count(docids)
        return documents.counts

    return counts
