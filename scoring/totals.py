"""Scores of whole files in one pass: a part of the predictions is joined, checked, summed up, and forgotten.

The sums are those that `score.assess` makes of everything at once, where no value per instance is asked for. Whatever
is not in order (an offence, an id twice, a field in some parts and not in others) raises `gold.Unclear`: the caller
then reads everything, and tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from eraser_hub.metrics import erasure
from eraser_hub.metrics.checks import Used, check_classes, check_documents, check_fields
from eraser_hub.metrics.flat import Predictions
from eraser_hub.metrics.joining import Documents, EvidenceIndex, Join
from eraser_hub.metrics.offences import Offences
from eraser_hub.metrics.pool import Pool

from .gold import Gold, Unclear
from .instances import Part
from .pools import pool_agreement
from .soft import WIDTH, Ranking


class _PartDocuments(Documents):
    """The documents as a part's annotations number them."""

    def __init__(self, whole: Any, rows: np.ndarray) -> None:
        self.whole, self.rows, self.docs, self.n_docs = whole, rows, whole.docs, whole.n_docs
        self.tokens, self.sentences = whole.tokens, whole.sentences

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        return self.whole.find(self.rows[annotation], doc)

    def sentence_spans(
        self, annotation: np.ndarray, doc: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.whole.sentence_spans(self.rows[annotation], doc, start, end)


class Totals:
    """Sums over all instances, a part at a time.

    Args:
        gold: the annotations.
        documents: `corpus.CorpusDocuments` or `tables.RowDocuments`.
        label_names: the labels there are, where that is known.
        ranking: of soft scores.
        iou_thresholds, main_iou, aopc_thresholds: as `score.Settings` has them.
    """

    def __init__(
        self,
        gold: Gold,
        documents: Any,
        label_names: Sequence[str] | None,
        ranking: Ranking,
        iou_thresholds: Sequence[float],
        main_iou: float,
        aopc_thresholds: Sequence[float],
    ) -> None:
        self.gold, self.documents, self.label_names, self.ranking = gold, documents, label_names, ranking
        self.iou_thresholds, self.main_iou, self.aopc_thresholds = iou_thresholds, main_iou, aopc_thresholds
        self.seen = np.zeros(len(gold.ids), dtype=bool)
        self.first: tuple[Used, list[str], Pool, Pool] | None = None

    def add(self, part: Predictions) -> None:
        """Add a part of the predictions.

        Raises:
            Unclear: something is not in order.
        """
        gold, documents = self.gold, self.documents
        rows = gold.ids.find(part.ids)
        if (rows < 0).any() or self.seen[rows].any() or np.unique(rows).size != rows.size:
            raise Unclear
        self.seen[rows] = True
        part.doc, part.docids = documents.docs.add(part.docids)[part.doc], documents.docs
        documents.read()
        offences, r, here = Offences(), gold.part(rows), _PartDocuments(documents, rows)
        used = check_fields(part, offences)
        own = np.arange(rows.size)
        joined = Join(own, own, part.doc, len(documents.docs))
        check_documents(part, r, joined, used, here, offences)
        known = check_classes(part, r, used, self.label_names, offences, gold.labels)
        if offences.total or used.draws:
            raise Unclear
        soft = self.ranking.rank(part, own, EvidenceIndex(r, WIDTH), r, here, offences)
        if offences.total:
            raise Unclear
        agreement = pool_agreement(
            part, r, joined, used, soft, here, self.iou_thresholds, self.main_iou, True, gold.start_sentence is not None
        )
        evidence = here.evidence_tokens(r) if used.tokens_to_flip else None
        faithfulness, good = erasure.pool(part, r, own, known, self.aopc_thresholds, evidence, True)
        if used.thresholds and not good.all():
            raise Unclear
        self._merge(used, known, agreement, faithfulness)

    def _merge(self, used: Used, known: list[str], agreement: Pool, faithfulness: Pool) -> None:
        if self.first is None:
            self.first = used, known, agreement, faithfulness
            return
        if (used, known) != self.first[:2]:
            raise Unclear
        for sums, pool in zip(self.first[2:], (agreement, faithfulness), strict=True):
            if not sums.add_pool(pool):
                raise Unclear

    def merge(self, other: Totals) -> None:
        """Add the sums over other instances of the same annotations, as unpickled.

        Raises:
            Unclear: an annotation has an instance on both sides, or the fields differ.
        """
        if (self.seen & other.seen).any():
            raise Unclear
        self.seen |= other.seen
        if other.first is not None:
            self._merge(*other.first)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to `merge`: not the annotations and documents, which it has."""
        return {"seen": self.seen, "first": self.first}

    def finish(self) -> tuple[Used, Pool, Pool]:
        """The fields there are, and the sums.

        Raises:
            Unclear: there were no predictions, or an annotation has none.
        """
        if self.first is None or not self.seen.all():
            raise Unclear
        used, _, agreement, faithfulness = self.first
        return used, agreement, faithfulness


def add_all(totals: Totals, parts: Iterable[Part], offences: Offences) -> None:
    """Add the sums of all parts; ``offences`` is where their reader tells what is wrong.

    Raises:
        Unclear: something is not in order.
    """
    for part in parts:
        if offences.total:
            raise Unclear
        totals.add(part.predictions)
    if offences.total:
        raise Unclear
