"""Agreement statistics: chunks of predictions become columns, with rows per annotation or their sums.

This is the one path from instances to agreement, for all instances at once and for chunks.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from eraser_hub.schema.instance import HARD_FIELD, SOFT_FIELDS

from .agreement_scores import SENTENCES_BY_SPANS, SOFT, add_iou, add_prf, format_iou_suffix
from .checks import check_documents, check_own_documents, check_scores
from .issues import InputError
from .joining import MatchedChunk
from .matching import LeftOut, Matcher
from .rankings import AUPRC_POLICIES, baseline_seeds, expect_rankings, rank_rationales
from .spans import Spans, count_covered_tokens, count_spans, count_tokens, cover_groups, expand_ranges
from .statistics_builder import StatisticsBuilder, divide

# what is done with rows without gold: they are scored, or left out
UNMARKED = ("score", "skip")


@dataclass(frozen=True)
class AgreementSettings:
    """Settings of agreement scores.

    Attributes:
        iou_thresholds: thresholds of IOU, each in (0, 1].
        main_iou: the threshold whose keys have no suffix.
        auprc_policy: AUPRC of a document without evidence, see `rankings.AUPRC_POLICIES`.
        shuffles: number of shuffles of the soft scores for the random baseline; 0: none.
        sentence_threshold: the least score of a predicted sentence.
        unmarked: "score" or "skip" annotations without a gold token.
        chance: also compute what random rationales of the same size reach.
    """

    iou_thresholds: Sequence[float] = (0.5,)
    main_iou: float = 0.5
    auprc_policy: str = "reference"
    shuffles: int = 0
    sentence_threshold: float = 0.5
    unmarked: str = "score"
    chance: bool = True


class Agreement:
    """Collects agreement statistics, a chunk at a time.

    Args:
        matcher: the matcher of the chunks; it has references.
        settings: the settings of the scores.
        totals: keep two rows, the sums over annotations without and with gold.

    Attributes:
        builder: the columns; complete after `finish`.
        marked: True for each annotation with a gold token; bool (annotations,).
        chance: columns of the scores of random rationales.
        density_sums: sum of the gold shares of annotations with gold, and their number.
    """

    def __init__(self, matcher: Matcher, settings: AgreementSettings, totals: bool = False) -> None:
        r = matcher.r
        if r is None:
            raise InputError("expected references, found none", "empty")
        self.matcher, self.settings, self.rules = matcher, settings, matcher.rules
        self.marked = np.zeros(len(r.ids), dtype=bool)
        self.marked[r.group_instance[r.group[r.end > r.start]]] = True
        self.builder = StatisticsBuilder(self.marked.size, self.marked.astype(np.int8) if totals else None, 2)
        self.chance = StatisticsBuilder(self.marked.size, self.marked.astype(np.int8), 2)
        self.density_sums = np.zeros(2)
        self.has_gold_sentences = bool((r.start_sentence >= 0).any())
        # annotations with evidence without sentence offsets, and the number of left out documents of one sentence
        self.lacks_sentences, self.n_single = np.zeros(len(r.ids), dtype=bool), 0
        self.lacks_sentences[r.group_instance[r.group[(r.start_sentence < 0) | (r.end_sentence < 0)]]] = True
        # instances without a rationale that came before any instance had one: annotations, lines, answered
        self.waiting: list[tuple[np.ndarray, Sequence[int], np.ndarray]] = []
        check_own_documents(r, self.rules["own documents"])

    @property
    def sentences_by_spans(self) -> bool:
        """True if spans predict the sentences."""
        used = self.matcher.fields.used
        return self.has_gold_sentences and "hard" in used and "sentence" not in used

    def add(self, chunk: MatchedChunk, waits: bool = True) -> None:
        """Check a chunk, and add its statistics if there are no issues so far.

        Args:
            chunk: the instances.
            waits: instances without a rationale wait until one has a rationale, or until `finish`.
        """
        if waits and "hard" not in self.matcher.fields.present:
            if not self.rules.collect():
                self.waiting.append((chunk.rows[chunk.reference], chunk.lines, chunk.p.answered[chunk.row]))
            return
        used = self.matcher.fields.used
        if not chunk.p.answered.all():
            chunk = fill_zeros(chunk, used)
        for name, lengths in zip(SOFT_FIELDS, chunk.lengths, strict=True):
            check_scores(chunk.p, name, lengths, self.rules["lengths"])
        if not self.rules.collect("fields"):
            check_documents(chunk, used, self.rules["documents"])
        if self.rules.collect():
            return
        self.builder.rows = self.chance.rows = chunk.rows
        if used & {"hard", *SOFT_FIELDS} and (self.settings.chance or not self.marked.all()):
            pairs, key = np.unique(chunk.evidence, return_inverse=True)
            gold = count_covered_tokens(Spans(key, chunk.r.start, chunk.r.end), pairs.size)
            per_annotation = np.bincount(pairs // chunk.width, weights=gold, minlength=chunk.rows.size)
            share = divide(per_annotation, np.maximum(chunk.count_evidence_tokens(), 0))[per_annotation > 0]
            self.density_sums += share.sum(), share.size
        if "hard" in used:
            self._add_spans(chunk)
        if used & SOFT_FIELDS.keys():
            self._add_rankings(chunk)

    def finish(self) -> None:
        """Add the instances that came before any instance had a rationale."""
        for waiting in self.waiting:
            self.add(self.matcher.without_rationales(*waiting), waits=False)

    def _add_spans(self, chunk: MatchedChunk) -> None:
        p, r = chunk.p, chunk.r
        # each (annotation, document) pair of either side has a number
        pairs, number = np.unique(np.concatenate([chunk.evidence, chunk.rationale]), return_inverse=True)
        owner, doc = np.divmod(pairs, chunk.width)
        rationale = np.repeat(np.arange(p.hard.size), np.maximum(p.hard, 0))
        evidence, span = number[: r.doc.size], number[r.doc.size :][rationale]
        truth, predicted = Spans(evidence, r.start, r.end), Spans(span, p.start, p.end)
        counts = count_spans(truth, predicted, owner.size, self.settings.iou_thresholds)
        add_prf(self.builder, "exact", counts.exact, owner)
        add_prf(self.builder, "token", counts.token, owner)
        n_truth, n_predicted, _ = counts.exact
        for threshold, hits, matched in counts.iou:
            end = format_iou_suffix(threshold, self.settings.main_iou)
            add_iou(self.builder, end, (n_truth, n_predicted, hits, matched), owner)
        if self.settings.chance:
            # as many tokens, drawn at random without replacement: precision, recall and F1 are linear in the hits
            size = np.maximum(chunk.documents.lengths(chunk.rows[owner], doc)[0], 0)
            n_gold, n_chosen, _ = counts.token
            add_prf(self.chance, "token", (n_gold, n_chosen, divide(n_gold * n_chosen, size)), owner)
        whole, best = cover_groups(r.group, r.group_instance, truth, predicted, chunk.rows.size)
        self.builder.add_mean("any_group_coverage", whole)
        self.builder.add_mean("best_group_recall", best)
        if self.sentences_by_spans and (counted := self._find_scored_sentences(chunk, owner, doc)).any():
            # sentences of the evidence with sentence offsets, and those that a predicted span touches
            known = np.flatnonzero((r.start_sentence >= 0) & (r.end_sentence >= r.start_sentence))
            gold = Spans(evidence[known], r.start_sentence[known], r.end_sentence[known])
            annotation = chunk.rows[chunk.owner[rationale]]
            touched = chunk.documents.sentence_spans(annotation, chunk.doc[rationale], p.start, p.end)
            sentences = np.stack(count_tokens(gold, Spans(span, *touched), owner.size))
            add_prf(self.builder, "sentence", tuple(sentences * counted), owner, SENTENCES_BY_SPANS)

    def _find_scored_sentences(self, chunk: MatchedChunk, owner: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """Return True for each (annotation, document) pair that counts in precision and recall of sentences.

        Its annotation has sentence offsets, and its document more than one sentence.
        """
        has_offsets = ~self.lacks_sentences[chunk.rows[owner]]
        long = chunk.documents.lengths(chunk.rows[owner], doc)[1] > 1
        self.n_single += int((has_offsets & ~long).sum())
        return np.asarray(has_offsets & long)

    def _add_rankings(self, chunk: MatchedChunk) -> None:
        p, r, settings, owner = chunk.p, chunk.r, self.settings, chunk.owner
        # the evidences in the document of each rationale
        order = np.argsort(chunk.evidence, kind="stable")
        bound = (np.searchsorted(chunk.evidence[order], chunk.rationale, side=side) for side in ("left", "right"))
        where, at = expand_ranges(*bound)
        evidence = order[at]
        bounds = {"soft": (r.start, r.end), "sentence": (r.start_sentence, r.end_sentence)}
        # a rationale is seeded by its annotation and its document
        places = zip(p.instance.tolist(), p.doc.tolist(), strict=True) if settings.shuffles else ()
        seeds = baseline_seeds([f"{p.ids[row]}\0{p.docids[doc]}" for row, doc in places]) if settings.shuffles else None
        no_positives = AUPRC_POLICIES[settings.auprc_policy]
        for name, soft in SOFT_FIELDS.items():
            if name not in self.matcher.fields.used:
                continue
            sizes, scores, sentences = getattr(p, name), getattr(p, f"{name}_scores"), name == "sentence"
            spans = where, bounds[name][0][evidence], bounds[name][1][evidence]
            decide = settings.sentence_threshold if sentences else None
            ranked = rank_rationales(sizes, scores, spans, no_positives, seeds, settings.shuffles, decide)
            chosen = np.flatnonzero(sizes >= 0)
            if sentences:
                chosen = chosen[~self.lacks_sentences[chunk.rows[owner[chosen]]]]
                decided = chosen[self._find_scored_sentences(chunk, owner[chosen], chunk.doc[chosen])]
                if decided.size:
                    add_prf(self.builder, "sentence", tuple(ranked.decided[decided].T), owner[decided])
            expected = expect_rankings(ranked.positives[chosen], sizes[chosen], no_positives)
            for key, values in zip(SOFT, expected, strict=True) if settings.chance else ():
                self.chance.add_mean(f"{soft.prefix}{key}", values, owner[chosen])
            for end, each in (("", ranked.scores), ("_random", ranked.random)):
                for key, values in zip(SOFT, each[chosen].T, strict=True) if not end or len(each) else ():
                    self.builder.add_mean(f"{soft.prefix}{key}{end}", values, owner[chosen])

    @property
    def counts(self) -> tuple[int, int]:
        """Number of annotations with a gold token, and of those without, among those that have an instance."""
        marked = self.marked if self.matcher.scored is None else self.marked[self.matcher.scored]
        return int(marked.sum()), int((~marked).sum())

    @property
    def rows(self) -> np.ndarray | None:
        """The annotations to take the scores of; None: all."""
        rows = self.matcher.scored
        if self.settings.unmarked == "score" or self.marked.all():
            return rows
        return np.flatnonzero(self.marked) if rows is None else rows[self.marked[rows]]

    def describe_gold(self) -> dict[str, object]:
        """Return ``marked_rows`` and ``unmarked_rows`` (annotations with and without a gold token) and ``density``.

        The density is the mean over annotations with gold of gold tokens / tokens of the documents with evidence; NaN
        without gold.
        """
        marked, unmarked = self.counts
        total, number = self.density_sums
        density = float(divide(total, number, np.nan))
        return {"marked_rows": marked, "unmarked_rows": unmarked, "density": density}

    def compute_chance(self) -> dict[str, float]:
        """Return the expected scores of random rationales of the same size, and of random rankings, where defined."""
        values = self.chance.values()
        with np.errstate(invalid="ignore"):
            scores = self.chance.finalize(values[1] if self.settings.unmarked == "skip" else values.sum(axis=0))
        return {key: float(score) for key, score in scores.items() if not np.isnan(score)}

    def extra(self) -> dict[str, object]:
        """Return ``gold`` and the scores of ``marked`` and ``all`` annotations; nothing if all have gold."""
        if not self.counts[1]:
            return {}
        return {"gold": self.describe_gold(), "marked": self._compute(True), "all": self._compute(False)}

    def _compute(self, marked_only: bool) -> dict[str, np.ndarray]:
        values, is_grouped = self.builder.values(), self.builder.groups is not None
        if marked_only:
            values = values[1:] if is_grouped else values[self.marked]
        with np.errstate(invalid="ignore"):
            return self.builder.finalize(values.sum(axis=0))

    def signature_settings(self) -> dict[str, object]:
        """Return the settings of the signature, without those that make no difference."""
        s, used = self.settings, self.matcher.fields.used
        shown: dict[str, object] = {}
        if "hard" in used:
            # the main threshold, then the others in ascending order, each once
            shown["iou"] = [
                float(s.main_iou),
                *sorted({float(value) for value in s.iou_thresholds} - {float(s.main_iou)}),
            ]
        if "soft" in used or "sentence" in used:
            shown["auprc_no_positives"] = s.auprc_policy
        if "sentence" in used:
            shown["sentence_threshold"] = s.sentence_threshold
        elif self.sentences_by_spans:
            shown["sentences_from"] = "spans"
        if "sentence" in used or self.sentences_by_spans:
            shown["sentences"] = "[start,end)"
        if s.shuffles:
            shown["shuffles"] = s.shuffles
        marked, unmarked = self.counts
        if unmarked:
            shown |= {"unmarked": s.unmarked, "marked_rows": marked, "unmarked_rows": unmarked}
        return shown | self.matcher.signature_settings()

    def left_out(self) -> LeftOut:
        """Return the scores that these predictions do not allow, each with its missing field."""
        used, by_spans = self.matcher.fields.used, self.sentences_by_spans
        soft, sentence = (field.field for field in SOFT_FIELDS.values())
        needs = [
            ("hard" in used, "exact, token and IOU scores", HARD_FIELD),
            ("soft" in used, "AUPRC, AP, ROC-AUC", soft),
            ("sentence" in used, "sentence AUPRC, AP, ROC-AUC" if by_spans else "sentence scores", sentence),
            (not self.settings.shuffles or "soft" in used or "sentence" in used, "the random baseline", soft),
        ]
        return {scores: field for there, scores, field in needs if not there}

    def notes(self) -> list[str]:
        """Return one line for each kind of annotations or documents that scores leave out."""
        marked, unmarked = self.counts
        lines = []
        if unmarked and self.settings.unmarked == "skip" and self.builder.columns:
            lines.append(
                f"agreement leaves out {unmarked:,} of {marked + unmarked:,} annotations without gold rationale"
            )
        elif unmarked and not marked and self.builder.columns:
            lines.append("no annotation has a gold rationale: scores of agreement are conventions, not measurements")
        if "sentence" not in self.matcher.fields.used and not self.sentences_by_spans:
            return lines
        lacking = int(self.lacks_sentences.sum())
        without_offsets = f"sentence scores leave out {lacking:,} annotations whose evidence has no sentence offsets"
        single = f"sentence p, r and f1 leave out {self.n_single:,} documents of one sentence"
        return lines + [without_offsets] * (lacking > 0) + [single] * (self.n_single > 0)


def fill_zeros(chunk: MatchedChunk, used: Set[str]) -> MatchedChunk:
    """Return the chunk; instances without answer have no spans, and scores of 0 for each document with evidence."""
    p, r = chunk.p, chunk.r
    wanted = np.unique(chunk.evidence)
    wanted = wanted[p.answered[chunk.row[wanted // chunk.width]] == 0]
    annotation, doc = np.divmod(wanted, chunk.width)
    columns: dict[str, np.ndarray] = {"hard": np.append(p.hard, np.full(doc.size, 0 if "hard" in used else -1))}
    for name, lengths in zip(SOFT_FIELDS, chunk.documents.lengths(chunk.rows[annotation], doc), strict=True):
        size = np.maximum(lengths, 0) if name in used else np.full(doc.size, -1)
        columns[name] = np.append(getattr(p, name), size)
        columns[f"{name}_scores"] = np.append(getattr(p, f"{name}_scores"), np.zeros(np.maximum(size, 0).sum()))
    number = {name: at for at, name in enumerate(p.docids)}
    codes = np.array([number.setdefault(str(r.docids[code]), len(number)) for code in doc.tolist()], dtype=np.int64)
    columns |= {"instance": np.append(p.instance, chunk.row[annotation]), "doc": np.append(p.doc, codes)}
    return replace(chunk, p=replace(p, docids=list(number), **columns))  # type: ignore[arg-type]
