"""Agreement: parts of predictions become the columns of `eraser_agreement`, rows per annotation or their sums.

This is the one path from instances to agreement, whether all come at once or some at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eraser_hub.schema.instance import HARD_FIELD, SOFT_FIELDS

from .agreement_scores import SENTENCES_BY_SPANS, SOFT, add_prf, add_spans, group_coverage
from .checks import Used, check_documents, check_own_documents, check_scores
from .joining import evidence_of, number_keys, pairs, touched_sentences, unsaid_sentences
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
        self.says_sentences = bool((parts.r.start_sentence >= 0).any())
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
        used = self.parts.fields.used
        part = _with_zeros(part, used)
        p, r, joined, documents = part.p, part.r, part.joined, part.documents
        owner = joined.reference[p.instance]
        lengths = dict(zip(SOFT_FIELDS, documents.lengths(owner, joined.doc), strict=True))
        for name in SOFT_FIELDS:
            check_scores(p, name, lengths[name], self.rules["lengths"])
        if not self.rules.broken("fields"):
            check_documents(p, r, joined, used, documents, self.rules["documents"])
        if self.rules.broken():
            return
        self.pool.at(part.rows)
        if used.hard:
            self._add_spans(part)
        if used.soft or used.sentence:
            self._add_rankings(part, owner)

    def _add_spans(self, part: Part) -> None:
        p, r, joined, documents = part.p, part.r, part.joined, part.documents
        keys = number_keys(r, p, joined)
        truth, predicted = as_spans(keys.evidence, r.start, r.end), as_spans(keys.span, p.start, p.end)
        counts = count_spans(truth, predicted, keys.owner.size, self.settings.iou_thresholds)
        add_spans(self.pool, counts, self.settings.main_iou, keys.owner)
        groups = group_counts(r.group, truth, predicted, r.group_instance.size)
        whole, best = group_coverage(r.group_instance, *groups, len(r.ids))
        self.pool.add_mean("any_group_coverage", whole)
        self.pool.add_mean("best_group_recall", best)
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
        p, r, joined, settings, used = part.p, part.r, part.joined, self.settings, self.parts.fields.used
        width = max(joined.docs, 1)
        where, evidence = evidence_of(r, width, pairs(owner, joined.doc, width))
        bounds = {"soft": (r.start, r.end), "sentence": (r.start_sentence, r.end_sentence)}
        # a rationale is seeded by its annotation and its document
        places = zip(p.instance.tolist(), p.doc.tolist(), strict=True) if settings.shuffles else ()
        seeds = baseline_seeds([f"{p.ids[row]}\0{p.docids[doc]}" for row, doc in places]) if settings.shuffles else None
        no_positives = AUPRC_POLICIES[settings.auprc_policy]
        for name, soft in SOFT_FIELDS.items():
            if not getattr(used, name):
                continue
            sizes, scores, sentences = getattr(p, name), getattr(p, f"{name}_scores"), name == "sentence"
            spans = where, bounds[name][0][evidence], bounds[name][1][evidence]
            decide = settings.sentence_threshold if sentences else None
            ranked = rank_rationales(sizes, scores, spans, no_positives, seeds, settings.shuffles, decide)
            chosen = np.flatnonzero(sizes >= 0)
            if sentences:
                chosen = chosen[~self.unsaid[part.rows[owner[chosen]]]]
                decided = chosen[self._with_sentences(part, owner[chosen], joined.doc[chosen])]
                if decided.size:
                    add_prf(self.pool, "sentence", tuple(ranked.decided[decided].T), owner[decided])
            for end, each in (("", ranked.scores), ("_random", ranked.random)):
                for key, values in zip(SOFT, each[chosen].T, strict=True) if not end or len(each) else ():
                    self.pool.add_mean(f"{soft.prefix}{key}{end}", values, owner[chosen])

    def signature_settings(self) -> dict[str, object]:
        """The settings that made a difference, as the signature has them."""
        s, used = self.settings, self.parts.fields.used
        told: dict[str, object] = {}
        if used.hard:
            # the main threshold, then the others in ascending order, each once
            told["iou"] = [
                float(s.main_iou),
                *sorted({float(value) for value in s.iou_thresholds} - {float(s.main_iou)}),
            ]
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
        used, by_spans = self.parts.fields.used, self.sentences_by_spans
        soft, sentence = (field.field for field in SOFT_FIELDS.values())
        needs = [
            (used.hard, "exact, token and IOU scores", HARD_FIELD),
            (used.soft, "AUPRC, AP, ROC-AUC", soft),
            (used.sentence, "sentence AUPRC, AP, ROC-AUC" if by_spans else "sentence scores", sentence),
            (not self.settings.shuffles or used.soft or used.sentence, "the random baseline", soft),
        ]
        return [LeftOut(scores, field) for there, scores, field in needs if not there]

    def notes(self) -> list[str]:
        """A line for whatever else sentence scores leave out."""
        if not self.parts.fields.used.sentence and not self.sentences_by_spans:
            return []
        unsaid = int(self.unsaid.sum())
        told = f"sentence scores leave out {unsaid:,} annotations whose evidence has no sentence offsets"
        short = f"sentence p, r and f1 leave out {self.short:,} documents of one sentence"
        return [told] * (unsaid > 0) + [short] * (self.short > 0)


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
    columns: dict[str, np.ndarray] = {"hard": np.append(p.hard, np.full(doc.size, 0 if used.hard else -1))}
    for name, lengths in zip(SOFT_FIELDS, part.documents.lengths(annotation, doc), strict=True):
        size = np.maximum(lengths, 0) if getattr(used, name) else np.full(doc.size, -1)
        columns[name] = np.append(getattr(p, name), size)
        columns[f"{name}_scores"] = np.append(getattr(p, f"{name}_scores"), np.zeros(np.maximum(size, 0).sum()))
    number = {name: at for at, name in enumerate(p.docids)}
    codes = np.array([number.setdefault(str(r.docids[code]), len(number)) for code in doc.tolist()], dtype=np.int64)
    columns |= {"instance": np.append(p.instance, joined.row[annotation]), "doc": np.append(p.doc, codes)}
    more = replace(p, docids=list(number), **columns)  # type: ignore[arg-type]
    return replace(part, p=more, joined=joined._replace(doc=np.append(joined.doc, doc)))
