"""Chance and ceiling of agreement scores: what random rationales of the same size reach, and the best of the same form.

Chance. A document has N tokens, G gold ones and P predicted ones. A random rationale of the same size is P tokens drawn
without replacement, so that P G / N hits are expected; precision, recall and F1 = 2 hits / (P + G) are linear in the
hits, and their expected values are exact, micro and macro. The same holds for sentences. For exact match and IOU each
predicted span of L tokens is put at one of its N - L + 1 places, each as probable as the others and independently; the
places at which it is a hit are counted. Their macro F1 is that of the expected p and r. Rankings: see
`rankings.expect_rankings`. One-to-one matches and evidence groups have no closed form, and no chance here.

Ceiling. The form of hard rationales is read from them: "sentences" (whole sentences), "top-k" (the same share of the
tokens of each text, rounded up) or "spans" (anything else). The ceiling of spans is the gold itself, 1. The best
sentences are as many as the system gave in that document, chosen for the highest token F1. The best top-k has
min(P, G) hits, and hits the shortest spans first. The ceiling of a ranking is 1 if the document has gold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .agreement_scores import add_iou, add_prf, format_iou_suffix
from .joining import MatchedChunk
from .spans import SpanCounts, Spans, count_covered_tokens, count_spans, expand_ranges, unique_spans
from .statistics_builder import StatisticsBuilder, divide
from .tokens import masks

SPANS, SENTENCES, TOP_K = "spans", "sentences", "top-k"
# annotations from which a constant share of tokens is no coincidence
FEWEST = 10
ROUNDS = 50

# entries of a result: scores of random rationales, and of the best of their form
LEVELS = ("chance", "ceiling")
Levels = dict[str, float]


@dataclass
class PredictedForm:
    """Evidence on the form of hard rationales, over all chunks.

    Attributes:
        whole_sentences: every predicted span consists of whole sentences.
        choices: number of predicted spans in documents of several sentences.
        low, high: a share k of tokens explains all rationales if low < k <= high.
        sizes: the distinct numbers of tokens of texts with a rationale, up to two.
        texts: number of texts with a rationale.
    """

    whole_sentences: bool = True
    choices: int = 0
    low: float = 0.0
    high: float = 1.0
    sizes: tuple[int, ...] = ()
    texts: int = 0

    @property
    def name(self) -> str:
        """The form: sentences, top-k or spans."""
        if self.whole_sentences and self.choices:
            return SENTENCES
        is_constant = self.low < self.high and len(self.sizes) > 1 and self.texts >= FEWEST
        return TOP_K if is_constant else SPANS


class ScoreLevels:
    """Collects chance and ceiling of the scores of `agreement.Agreement`, a chunk at a time.

    Args:
        marked: True for each annotation with gold tokens; bool (annotations,).
        thresholds: the thresholds of IOU.
        main_iou: the threshold whose keys have no suffix.

    Attributes:
        form: what is known of the form of the rationales.
        chance: columns of the scores of random rationales.
        rankings: columns of the best values of ranking scores, one per rationale.
        builders: all columns; `StatisticsBuilder.rows` of each is set to a chunk's annotations before these are added.
    """

    def __init__(self, marked: np.ndarray, thresholds: Sequence[float], main_iou: float) -> None:
        self.thresholds, self.main = thresholds, main_iou
        groups = marked.astype(np.int8)
        self.chance, self.rankings = (StatisticsBuilder(marked.size, groups, 2) for _ in range(2))
        self.best = {form: StatisticsBuilder(marked.size, groups, 2) for form in (SENTENCES, TOP_K)}
        self.builders = (self.chance, self.rankings, *self.best.values())
        self.form = PredictedForm()

    def add_spans(
        self,
        chunk: MatchedChunk,
        owner: np.ndarray,
        doc: np.ndarray,
        truth: Spans,
        predicted: Spans,
        counts: SpanCounts,
    ) -> None:
        """Add the levels of span scores of a chunk; owner and doc belong to each key of the spans."""
        size = np.maximum(chunk.documents.lengths(chunk.rows[owner], doc)[0], 0)
        n_gold, n_predicted, _ = counts.token
        sums = (np.bincount(owner, weights=each, minlength=chunk.rows.size) for each in (n_predicted, size))
        chosen, tokens = (each.astype(np.int64) for each in sums)
        chosen, tokens = chosen[(chosen > 0) & (tokens > 0)], tokens[(chosen > 0) & (tokens > 0)]
        form = self.form
        form.texts += int(tokens.size)
        form.low = float(max([form.low, *((chosen - 1) / tokens)]))
        form.high = float(min([form.high, *(chosen / tokens)]))
        form.sizes = tuple(np.unique([*form.sizes, *tokens.tolist()]).tolist()[:2])
        distinct, placed = unique_spans(truth), unique_spans(predicted)
        n_truth, n_spans, _ = counts.exact
        add_prf(self.chance, "token", (n_gold, n_predicted, divide(n_gold * n_predicted, size)), owner)
        add_prf(self.chance, "exact", (n_truth, n_spans, expect_span_hits(distinct, placed, size, 1.0)), owner)
        top = self.best[TOP_K]
        add_prf(top, "token", (n_gold, n_predicted, np.minimum(n_gold, n_predicted)), owner)
        reached = count_reachable_spans(distinct, n_gold, n_predicted, 1.0)
        add_prf(top, "exact", (n_truth, np.maximum(reached, n_predicted > 0), reached), owner)
        matched = np.full(size.shape, np.nan)  # one-to-one matches have no level
        for threshold in self.thresholds:
            end = format_iou_suffix(threshold, self.main)
            hits = expect_span_hits(distinct, placed, size, threshold)
            add_iou(self.chance, end, (n_truth, n_spans, hits, matched), owner)
            reached = count_reachable_spans(distinct, n_gold, n_predicted, threshold)
            add_iou(top, end, (n_truth, np.maximum(reached, n_predicted > 0), reached, matched), owner)
        if self.form.whole_sentences:
            self._add_sentence_form(chunk, owner, doc, truth, predicted, n_gold)

    def _add_sentence_form(
        self,
        chunk: MatchedChunk,
        owner: np.ndarray,
        doc: np.ndarray,
        truth: Spans,
        predicted: Spans,
        n_gold: np.ndarray,
    ) -> None:
        documents, annotation = chunk.documents, chunk.rows[owner]
        place = documents.find(annotation, doc)
        known = place >= 0
        first_sentence, reached = documents.sentence_places
        first = np.where(known, first_sentence[place], 0)
        n_sentences = np.where(known, np.maximum(documents.sentences[place], 0), 0)
        # the sentences that each predicted span touches, and whether they are covered in full
        low, high = documents.sentence_spans(
            annotation[predicted.key], doc[predicted.key], predicted.start, predicted.end
        )
        own = first[predicted.key]
        begin, end = (reached[own + at] - reached[own] for at in (low, high))
        if not ((begin == predicted.start) & (end == predicted.end) & (predicted.end > predicted.start)).all():
            self.form.whole_sentences = False
            return
        self.form.choices += int((n_sentences[predicted.key] > 1).sum())
        chosen = count_covered_tokens(Spans(predicted.key, low, high), owner.size)
        best = choose_sentences(truth, chosen, n_gold, reached, first, n_sentences)
        counts = count_spans(truth, best, owner.size, self.thresholds)
        builder = self.best[SENTENCES]
        add_prf(builder, "exact", counts.exact, owner)
        add_prf(builder, "token", counts.token, owner)
        n_truth, n_best, _ = counts.exact
        for threshold, hits, _ in counts.iou:
            end = format_iou_suffix(threshold, self.main)
            add_iou(builder, end, (n_truth, n_best, hits, np.full(hits.shape, np.nan)), owner)

    def add_sentences(
        self, chunk: MatchedChunk, owner: np.ndarray, doc: np.ndarray, counts: np.ndarray, by_spans: bool = False
    ) -> None:
        """Add the levels of p, r and F1 of sentences.

        Args:
            chunk: the chunk.
            owner: the annotation of each key.
            doc: the document of each key.
            counts: gold and predicted sentences of each key, and those in both: int (3, keys).
            by_spans: spans predict the sentences.
        """
        size = np.maximum(chunk.documents.lengths(chunk.rows[owner], doc)[1], 0)
        gold, predicted, _ = counts
        add_prf(self.chance, "sentence", (gold, predicted, divide(gold * predicted, size)), owner)
        for builder in self.best.values() if by_spans else ():
            add_prf(builder, "sentence", (gold, predicted, np.minimum(gold, predicted)), owner)

    def compute(self, keys: Sequence[str], marked_only: bool) -> dict[str, Levels]:
        """Return ``chance`` and ``ceiling`` of those of the scores whose levels are known.

        Args:
            keys: the scores.
            marked_only: leave out annotations without gold.
        """
        chance, rankings = (_finalize(builder, marked_only) for builder in (self.chance, self.rankings))
        form = self.form.name
        if form == SPANS:
            best = {key: 1.0 for key in keys if not key.endswith("_random")}
        else:
            best = {key: 1.0 for key in keys if key.startswith("sentence_") and not key.endswith("_random")}
            best |= _finalize(self.best[form], marked_only)
        own = (chance, {**best, **rankings})
        return {name: {key: each[key] for key in keys if key in each} for name, each in zip(LEVELS, own, strict=True)}


def _finalize(builder: StatisticsBuilder, marked_only: bool) -> Levels:
    values = builder.values()
    with np.errstate(invalid="ignore"):
        scores = builder.finalize(values[1] if marked_only else values.sum(axis=0))
    return {key: float(score) for key, score in scores.items() if not np.isnan(score)}


def expect_span_hits(truth: Spans, predicted: Spans, size: np.ndarray, threshold: float) -> np.ndarray:
    """Return the expected hits per key if each predicted span stands at a random place of its document.

    A span [s, s + L) and a truth span [a, b) of g tokens share at least c tokens where a - L + c <= s <= b - c; c is
    the least number with c / (L + g - c) >= threshold. The share of such places among N - L + 1 is the probability.

    Args:
        truth: distinct spans in order, as `unique_spans` returns them.
        predicted: likewise.
        size: the tokens N of each key's document: int (keys,).
        threshold: the least IOU of a hit, in (0, 1]; 1 is exact match.

    Returns:
        float64 (keys,).
    """
    base = int(size.max(initial=0)) + 2
    kinds, count = np.unique(predicted.key * base + predicted.end - predicted.start, return_counts=True)
    key, length = np.divmod(kinds, base)
    kind, other = expand_ranges(*(np.searchsorted(truth.key, key, side=side) for side in ("left", "right")))
    real = (truth.end > truth.start)[other] & (length > 0)[kind]
    kind, other = kind[real], other[real]
    own, start, end = length[kind], truth.start[other], truth.end[other]
    total = own + end - start
    shared = np.maximum(np.floor(threshold * total / (1 + threshold)).astype(np.int64), 1)
    shared += shared / (total - shared) < threshold
    first = np.maximum(start - own + shared, 0)
    last = np.minimum(end - shared, size[key[kind]] - own)
    fits = (shared <= np.minimum(own, end - start)) & (last >= first)
    places = count_covered_tokens(Spans(kind[fits], first[fits], last[fits] + 1), kinds.size)
    expected = count * divide(places, np.maximum(size[key] - length + 1, 0))
    return np.bincount(key, weights=expected, minlength=size.size)


def count_reachable_spans(truth: Spans, n_gold: np.ndarray, budget: np.ndarray, threshold: float) -> np.ndarray:
    """Count the truth spans that so many tokens per key can hit at most, the shortest first: int64 (keys,).

    A span of g tokens needs ceil(threshold g) of them. If the tokens suffice for all gold tokens, every span is hit.

    Args:
        truth: distinct spans.
        n_gold: gold tokens of each key.
        budget: tokens of the rationale in each key.
        threshold: the least IOU of a hit.
    """
    length = truth.end - truth.start
    key, length = truth.key[length > 0], length[length > 0]
    need = np.ceil(threshold * length - 1e-9).astype(np.int64)
    order = np.lexsort((need, key))
    key, spent = key[order], np.cumsum(need[order])
    before = np.append(0, spent)[np.searchsorted(key, key, side="left")]
    fits = (spent - before <= budget[key]) | (budget >= n_gold)[key]
    return np.bincount(key[fits], minlength=budget.size).astype(np.int64)


def choose_sentences(
    truth: Spans,
    number: np.ndarray,
    n_gold: np.ndarray,
    reached: np.ndarray,
    first: np.ndarray,
    n_sentences: np.ndarray,
) -> Spans:
    """Choose the sentences of each key that have the highest token F1 together.

    F1 = 2 hits / (tokens + gold tokens) is a ratio of sums over the chosen sentences; Dinkelbach's method finds its
    maximum: sentences are ranked by 2 hits - F1 tokens until F1 stays.

    Args:
        truth: the truth spans.
        number: how many sentences to choose in each key: int (keys,).
        n_gold: gold tokens of each key.
        reached: tokens before each sentence of all documents.
        first: the place of each key's first sentence in ``reached``.
        n_sentences: the sentences of each key's document.

    Returns:
        The chosen sentences as spans.
    """
    size = np.where(number > 0, n_sentences, 0)
    key, rank = expand_ranges(np.zeros_like(size), size)
    at = first[key] + rank
    start, end = (reached[at + more] - reached[first[key]] for more in (0, 1))
    tokens = np.where(size > 0, reached[first + size] - reached[first], 0)
    offsets = np.append(0, np.cumsum(tokens))
    inside = size[truth.key] > 0
    gold = masks(truth.key[inside], truth.start[inside], truth.end[inside], offsets)
    before = np.append(0, np.cumsum(gold, dtype=np.int64))
    hits = before[offsets[key] + end] - before[offsets[key] + start]
    f1, chosen = np.zeros(size.size), np.zeros(0, dtype=np.int64)
    for _ in range(ROUNDS):
        value = 2 * hits - f1[key] * (end - start)
        order = np.lexsort((-value, key))
        chosen = order[rank < number[key]]  # order keeps the keys together, so that ranks count within them
        sums = (np.bincount(key[chosen], weights=each[chosen], minlength=size.size) for each in (hits, end - start))
        new = divide(2 * next(sums), next(sums) + n_gold)
        if (new <= f1 + 1e-12).all():
            break
        f1 = new
    return Spans(key[chosen], start[chosen], end[chosen])
