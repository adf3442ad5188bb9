"""Agreement: parts of predictions become the columns of `eraser_agreement`, rows per annotation or their sums.

This is the one path from instances to agreement, whether all come at once or some at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from .checks import Used, check_documents, check_finite, check_own_documents, check_score_lengths
from .fields import HARD_FIELD, SOFT_FIELDS
from .flat import Predictions
from .joining import EvidenceIndex, Keys, number_keys, pairs, says_sentences, touched_sentences, unsaid_sentences
from .offences import InputError
from .parts import LeftOut, Part, Parts
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
            raise InputError("expected references, found none", "empty")
        self.parts, self.settings, self.rules = parts, settings, parts.rules
        self.pool = Pool(len(parts.r.ids), totals)
        self.says_sentences = says_sentences(parts.r)
        # annotations with evidence that does not say its sentences, and documents of one sentence that were left out
        self.unsaid, self.short = unsaid_sentences(parts.r), 0
        # instances without a rationale, from before any instance had one: annotations, lines, whether they are answers
        self.waiting: list[tuple[np.ndarray, Sequence[int], np.ndarray]] = []
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
            self.waiting.append((annotation, part.sides["prediction"].numbers, part.p.answered[part.joined.row]))

    def finish(self) -> None:
        """Add what waited."""
        for waiting in self.waiting:
            self._add(self.parts.without_rationales(*waiting))

    def _add(self, part: Part) -> None:
        part = _with_zeros(part, self.parts.fields.used)
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
            sentences = np.stack(token_counts(as_spans(*gold), as_spans(*touched), keys.owner.size))
            kept = self._with_sentences(part, keys.owner, keys.doc)
            if kept.any():
                add_prf(self.pool, "sentence", tuple(sentences * kept), keys.owner, SENTENCES_BY_SPANS)

    def _with_sentences(self, part: Part, owner: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """Which (annotation, document) pairs count in the precision and recall of sentences: bool.

        Those whose annotation says the sentences of its evidence, and whose document has more than one.
        """
        said = ~self.unsaid[part.rows[owner]]
        long = part.documents.lengths(owner, doc)[1] > 1
        self.short += int((said & ~long).sum())
        counted: np.ndarray = said & long
        return counted

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
            decided = None
            if name == "sentence":
                chosen = chosen[~self.unsaid[part.rows[owner[chosen]]]]
                decided = chosen[self._with_sentences(part, owner[chosen], joined.doc[chosen])]
            add_ranked(self.pool, ranked, chosen, owner, soft.prefix, decided)

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
        return told | self.parts.signature_settings()

    def left_out(self) -> list[LeftOut]:
        """The scores that these predictions do not give, each with the field that it would take."""
        used, s = self.parts.fields.used, self.settings
        hard, soft, sentence = HARD_FIELD, SOFT_FIELDS["soft"].field, SOFT_FIELDS["sentence"].field
        told = [] if used.hard else [LeftOut("exact, token and IOU scores", hard)]
        if not used.soft:
            told.append(LeftOut("AUPRC, AP, ROC-AUC", soft))
        if not used.sentence:
            by_spans = self.sentences_by_spans
            told.append(LeftOut("sentence AUPRC, AP, ROC-AUC" if by_spans else "sentence scores", sentence))
        if s.shuffles and not used.soft and not used.sentence:
            told.append(LeftOut("the random baseline", soft))
        return told

    def notes(self) -> list[str]:
        """A line for whatever else sentence scores leave out."""
        used, told = self.parts.fields.used, []
        if used.sentence or self.sentences_by_spans:
            unsaid = int(self.unsaid.sum())
            if unsaid:
                told.append(f"sentence scores leave out {unsaid:,} annotations whose evidence has no sentence offsets")
            if self.short:
                told.append(f"sentence p, r and f1 leave out {self.short:,} documents of one sentence")
        return told


def _with_zeros(part: Part, used: Used) -> Part:
    """The part, in which what is no answer has no spans, and scores of zero for each document with evidence."""
    p, r, joined = part.p, part.r, part.joined
    if p.answered.all():
        return part
    silent = p.answered[joined.row] == 0
    width = max(joined.docs, 1)
    wanted = np.unique(pairs(r.group_instance[r.group], r.doc, width))
    wanted = wanted[silent[wanted // width]]
    annotation, doc = wanted // width, wanted % width
    lengths = dict(zip(SOFT_FIELDS, part.documents.lengths(annotation, doc), strict=True))
    columns: dict[str, np.ndarray] = {"hard": np.append(p.hard, np.full(doc.size, 0 if used.hard else -1))}
    for name in SOFT_FIELDS:
        size = np.maximum(lengths[name], 0) if getattr(used, name) else np.full(doc.size, -1)
        scores = getattr(p, f"{name}_scores")
        columns |= {
            name: np.append(getattr(p, name), size),
            f"{name}_scores": np.append(scores, np.zeros(np.maximum(size, 0).sum())),
        }
    number = {name: at for at, name in enumerate(p.docids)}
    held: list[int] = doc.tolist()
    names = [r.docids[code] for code in held]
    codes = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
    columns |= {"instance": np.append(p.instance, joined.row[annotation]), "doc": np.append(p.doc, codes)}
    more = replace(p, docids=list(number), **columns)  # type: ignore[arg-type]
    return replace(part, p=more, joined=joined._replace(doc=np.append(joined.doc, doc)))


def _names(p: Predictions) -> list[str]:
    """What each rationale is seeded by: its annotation and its document."""
    return [f"{p.ids[i]}\0{p.docids[d]}" for i, d in zip(p.instance.tolist(), p.doc.tolist(), strict=True)]
