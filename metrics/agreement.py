"""Agreement: parts of predictions become the columns of `eraser_agreement`, rows per annotation or their sums.

This is the one path from instances to agreement, whether all come at once or some at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .agreement_scores import (
    SENTENCES_BY_SPANS,
    add_coverage,
    add_prf,
    add_ranked,
    add_spans,
    group_coverage,
    thresholds_said,
)
from .checks import check_documents, check_finite, check_own_documents, check_score_lengths
from .fields import SOFT_FIELDS
from .flat import Predictions
from .joining import EvidenceIndex, Keys, has_sentences, number_keys, pairs, says_sentences, touched_sentences
from .parts import Part, Parts
from .pool import Pool
from .rankings import AUPRC_POLICIES, baseline_seeds, rank_rationales
from .spans import as_spans, count_spans, group_counts, token_counts


@dataclass(frozen=True)
class AgreementSettings:
    """What makes the numbers.

    Attributes:
        iou_thresholds: of IOU, each in (0, 1].
        main_iou: the one whose keys have no suffix.
        auprc_policy: AUPRC of a document without evidence, see `rankings.AUPRC_POLICIES`.
        shuffles: of the soft scores, for the random baseline; 0: none.
        sentence_threshold: a sentence is predicted from this score on.
    """

    iou_thresholds: Sequence[float] = (0.5,)
    main_iou: float = 0.5
    auprc_policy: str = "reference"
    shuffles: int = 0
    sentence_threshold: float = 0.5


class Agreement:
    """Gathers agreement, a part at a time.

    Args:
        parts: which hand out the parts; there are references.
        settings: what makes the numbers.
        totals: keep one row, the sums over all annotations.

    Attributes:
        pool: the columns; whole once `finish` was called.
    """

    def __init__(self, parts: Parts, settings: AgreementSettings, totals: bool = False) -> None:
        if parts.r is None:
            raise ValueError("expected references, found none")
        self.parts, self.settings, self.rules = parts, settings, parts.rules
        self.pool = Pool(len(parts.r.ids), totals)
        self.says_sentences, self.has_sentences = says_sentences(parts.r), has_sentences(parts.r)
        # instances without a rationale, from before any instance had one: their annotations and lines
        self.waiting: list[tuple[np.ndarray, Sequence[int]]] = []
        check_own_documents(parts.r, self.rules["own documents"])

    @property
    def sentences_by_spans(self) -> bool:
        """Whether sentences are predicted by spans."""
        used = self.parts.fields.used
        return used.hard and not used.sentence and self.says_sentences

    def add(self, part: Part) -> None:
        """Check a part, and add its statistics if nothing is wrong so far."""
        if self.parts.fields.any_rationale:
            self._add(part)
        elif not self.rules.broken():
            annotation = part.rows[part.joined.reference]
            self.waiting.append((annotation, part.sides["prediction"].numbers))

    def finish(self) -> None:
        """Add what waited."""
        for annotation, lines in self.waiting:
            self._add(self.parts.without_rationales(annotation, lines))

    def _add(self, part: Part) -> None:
        p, r, joined, documents = part.p, part.r, part.joined, part.documents
        used = self.parts.fields.used
        owner = joined.reference[p.instance]
        lengths = dict(zip(SOFT_FIELDS, documents.lengths(owner, joined.doc), strict=True))
        for name, soft in SOFT_FIELDS.items():
            sizes, scores = getattr(p, name), getattr(p, f"{name}_scores")
            check_score_lengths(p, sizes, lengths[name], soft.field, soft.unit, self.rules["lengths"])
            check_finite(p, sizes, scores, soft.field, self.rules["lengths"])
        if not self.rules.broken("fields"):
            check_documents(p, r, joined, used, documents, self.rules["documents"])
        if self.rules.broken():
            return
        self.pool.at(part.rows)
        if used.hard:
            self._add_spans(part, number_keys(r, p, joined))
        if used.soft or used.sentence:
            self._add_rankings(part, owner)

    def _add_spans(self, part: Part, keys: Keys) -> None:
        p, r, joined, documents = part.p, part.r, part.joined, part.documents
        truth, predicted = as_spans(keys.evidence, r.start, r.end), as_spans(keys.span, p.start, p.end)
        counts = count_spans(truth, predicted, keys.owner.size, self.settings.iou_thresholds)
        add_spans(self.pool, counts, self.settings.main_iou, keys.owner)
        tokens, covered = group_counts(r.group, truth, predicted, r.group_instance.size)
        add_coverage(self.pool, *group_coverage(r.group_instance, tokens, covered, len(r.ids)))
        if self.sentences_by_spans:
            gold, touched = touched_sentences(r, p, joined, keys, documents)
            sentences = token_counts(as_spans(*gold), as_spans(*touched), keys.owner.size)
            add_prf(self.pool, "sentence", sentences, keys.owner, SENTENCES_BY_SPANS)

    def _add_rankings(self, part: Part, owner: np.ndarray) -> None:
        p, r, joined, settings = part.p, part.r, part.joined, self.settings
        width = max(joined.docs, 1)
        where, evidence = EvidenceIndex(r, width).find(pairs(owner, joined.doc, width))
        bounds = {"soft": (r.start, r.end), "sentence": (r.start_sentence, r.end_sentence)}
        decide = {"soft": None, "sentence": settings.sentence_threshold}
        seeds = baseline_seeds(_names(p)) if settings.shuffles else None
        for name, soft in SOFT_FIELDS.items():
            if not getattr(self.parts.fields.used, name):
                continue
            sizes, scores = getattr(p, name), getattr(p, f"{name}_scores")
            spans = where, bounds[name][0][evidence], bounds[name][1][evidence]
            no_positives = AUPRC_POLICIES[settings.auprc_policy]
            ranked = rank_rationales(sizes, scores, spans, no_positives, seeds, settings.shuffles, decide[name])
            chosen = np.flatnonzero(sizes >= 0)
            add_ranked(self.pool, ranked, chosen, owner[chosen], soft.prefix, self.has_sentences)

    def signature_settings(self) -> dict[str, object]:
        """The settings that made a difference, as the signature has them."""
        s, used = self.settings, self.parts.fields.used
        told: dict[str, object] = {"iou": thresholds_said(s.iou_thresholds, s.main_iou)} if used.hard else {}
        if used.soft or used.sentence:
            told["auprc_no_positives"] = s.auprc_policy
        if used.sentence:
            told["sentence_threshold"] = s.sentence_threshold
        elif self.sentences_by_spans:
            told["sentences_from"] = "spans"
        if used.sentence or self.sentences_by_spans:
            told["sentences"] = "[start,end)"
        if s.shuffles:
            told["shuffles"] = s.shuffles
        return told


def _names(p: Predictions) -> list[str]:
    """What each rationale is seeded by: its annotation and its document."""
    return [f"{p.ids[i]}\0{p.docids[d]}" for i, d in zip(p.instance.tolist(), p.doc.tolist(), strict=True)]
