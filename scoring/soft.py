"""Soft scores, ranked as they are read: a document's scores become three numbers and are forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eraser_hub.metrics.checks import check_finite, check_score_lengths
from eraser_hub.metrics.flat import Predictions, References
from eraser_hub.metrics.joining import EvidenceIndex, pairs
from eraser_hub.metrics.rankings import Ranked, baseline_seeds, joined, rank_rationales


class SoftScores(NamedTuple):
    """Per rationale, its token scores and its sentence scores ranked."""

    token: Ranked
    sentence: Ranked


# wide enough for every vocabulary of documents, so that it may grow
WIDTH = 1 << 31


class Ranking(NamedTuple):
    """How soft scores are ranked.

    Attributes:
        no_positives: AUPRC of a document without positives.
        n_shuffles: shuffles of the random baseline; 0: none.
        sentence_threshold: of sentences' decisions.
    """

    no_positives: float
    n_shuffles: int = 0
    sentence_threshold: float = 0.5

    def rank(
        self,
        part: Predictions,
        rows: np.ndarray,
        index: EvidenceIndex,
        r: References,
        documents: Any,
        offences: Any,
        first: int = 0,
    ) -> SoftScores:
        """Check and rank the scores of a part of the predictions.

        Args:
            part: with documents numbered as in ``documents``.
            rows: the annotation of each instance in ``r``; -1: none.
            index: of ``r``, `WIDTH` wide.
            documents: a `joining.Documents`.
            offences: where what is wrong is told.
            first: the row of the part's first instance, as offences tell it.
        """
        owner, docs = rows[part.instance], documents.docs
        where, evidence = index.find(pairs(owner, part.doc, WIDTH))
        lengths = documents.lengths(owner, part.doc)
        seeds = baseline_seeds(_named(part, docs)) if self.n_shuffles else None
        # the rules speak of rationales by position: they are shown this part alone
        view = _View(part.instance + first, part.doc, docs)
        ranked = []
        for sizes, scores, length, field, unit, bounds, threshold in (
            (part.soft, part.soft_scores, lengths[0], "soft_rationale_predictions", "tokens", (r.start, r.end), None),
            (
                part.sentence, part.sentence_scores, lengths[1], "soft_sentence_predictions", "sentences",
                (r.start_sentence, r.end_sentence), self.sentence_threshold,
            ),
        ):  # fmt: skip
            if (sizes >= 0).any():
                check_score_lengths(view, sizes, length, field, unit, offences)  # type: ignore[arg-type]
                check_finite(view, sizes, scores, field, offences)  # type: ignore[arg-type]
            spans = where, bounds[0][evidence], bounds[1][evidence]
            ranked.append(rank_rationales(sizes, scores, spans, self.no_positives, seeds, self.n_shuffles, threshold))
        return SoftScores(*ranked)


class SoftReducer:
    """Ranks the soft scores of prediction files, a part at a time.

    Args:
        references: the annotations (documents need not be there).
        documents: `corpus.CorpusDocuments` or `tables.RowDocuments`.
        offences: where what is wrong is told.
        ranking: how.
    """

    def __init__(self, references: References, documents: Any, offences: Any, ranking: Ranking) -> None:
        self.references, self.documents, self.offences, self.ranking = references, documents, offences, ranking
        self.places = {name: row for row, name in enumerate(references.ids)}
        self.evidence = EvidenceIndex(references, WIDTH)
        self.rows = 0
        self.parts: list[SoftScores] = []

    def reduce(self, part: Predictions) -> None:
        """Rank a part's scores, and let go of them; its documents are numbered as ``documents`` does from then on."""
        part.doc, part.docids = self.documents.docs.add(part.docids)[part.doc], []
        self.documents.read()
        rows = np.array([self.places.get(name, -1) for name in part.ids], dtype=np.int64)
        self.parts.append(
            self.ranking.rank(part, rows, self.evidence, self.references, self.documents, self.offences, self.rows)
        )
        self.rows += len(part.ids)
        part.soft_scores = part.sentence_scores = np.zeros(0)

    def finish(self) -> SoftScores:
        """The scores of all rationales."""
        return SoftScores(joined([part.token for part in self.parts]), joined([part.sentence for part in self.parts]))


class _View:
    """What the rules on scores look at: some rationales."""

    def __init__(self, instance: np.ndarray, doc: np.ndarray, docids: Sequence[str]) -> None:
        self.instance, self.doc, self.docids = instance, doc, docids


def _named(part: Predictions, docids: Sequence[str]) -> list[str]:
    """What the shuffles of each rationale are seeded by: its annotation and its document."""
    pairs = zip(part.instance.tolist(), part.doc.tolist(), strict=True)
    return [f"{part.ids[i]}\0{docids[d]}" for i, d in pairs]
