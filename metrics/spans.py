"""Rationales of gold and predictions side by side, and scores of spans.

Exact match, tokens, intersection over union (IOU), evidence groups, sentences.

Everything is counted per key, an (annotation, document) pair, and summed per annotation; `span_scores` divides, last.
Truth spans may overlap, be repeated or be empty. Nothing loops over tokens or spans in Python, but for the cycles of a
matching.

Sources: DeYoung et al., ERASER (ACL 2020), section 4 (IOU, token P/R/F1); its first version, section 5.1 (exact match,
sentence P/R/F1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .match import Match
from .predictions import NOTHING, PATHS, Predictions
from .rows import check
from .statistics import Columns, Score, add_up, divide, mean, mean_columns

Compute = Callable[[Columns], np.ndarray]


class Spans(NamedTuple):
    """Spans [start, end) of (instance, document) pairs, which ``key`` numbers; int64 (spans,) each."""

    key: np.ndarray
    start: np.ndarray
    end: np.ndarray


NO_SPANS = Spans(NOTHING, NOTHING, NOTHING)


class Ranked(NamedTuple):
    """Soft scores of m documents: keys, int64 (m,), offsets, int64 (m + 1,), and values, float64 (offsets[-1],)."""

    key: np.ndarray
    offsets: np.ndarray
    values: np.ndarray


@dataclass
class Rationales:
    """Gold and predicted rationales of n instances; a key numbers an (instance, document) pair of either, from 0.

    Attributes:
        n: the number of instances.
        owner: the instance of each key; ``tokens``, ``sentences``: the lengths of its document.
        evidence: the key has gold evidence: bool (keys,).
        truth: gold spans, empty ones included; ``group``: the evidence group of each; ``group_owner``: the instance of
            each group; ``truth_sentences``: the sentences of each span, -1 where they are not known.
        predicted: distinct spans, disjoint, by key and start; None: instances have no such field.
        predicted_sentences: the sentences that each predicted span touches.
        soft: scores of tokens; ``sentence_soft``: of sentences; None: instances have no such field.
    """

    n: int
    owner: np.ndarray = field(default_factory=lambda: NOTHING)
    tokens: np.ndarray = field(default_factory=lambda: NOTHING)
    sentences: np.ndarray = field(default_factory=lambda: NOTHING)
    evidence: np.ndarray = field(default_factory=lambda: NOTHING)
    truth: Spans = NO_SPANS
    group: np.ndarray = field(default_factory=lambda: NOTHING)
    group_owner: np.ndarray = field(default_factory=lambda: NOTHING)
    truth_sentences: Spans = NO_SPANS
    predicted: Spans | None = None
    predicted_sentences: Spans = NO_SPANS
    soft: Ranked | None = None
    sentence_soft: Ranked | None = None


def expand_ranges(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (range, number) for each number of the ranges [low, high), in their order: int64 (numbers,) each."""
    size = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(size.size), size)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(size) - size - low, size)


def match_rationales(match: Match) -> Rationales:
    """Return the rationales of a chunk beside those of its gold.

    Raises:
        DataError: at the first rationale of the first kind of fault.
    """
    p, gold, rows, path = match.predictions, match.gold, match.rows, "rationales.docid"
    if gold is None or not gold.documents.numbers:
        return Rationales(rows.size)
    owner, at = expand_ranges(gold.offsets[rows], gold.offsets[rows + 1])
    rationale_doc = gold.documents.number(p.docids)
    check(rationale_doc < 0, p.error, p.owner, path, "no document {!r}", p.docids)
    width = len(gold.documents.numbers)
    packed = np.concatenate([owner * width + gold.doc[at], p.owner * width + rationale_doc])
    keys, number = np.unique(packed, return_inverse=True)
    truth_key, rationale_key = number[: at.size], number[at.size :]
    key_owner, doc = np.divmod(keys, width)
    annotation = rows[key_owner]
    tokens, sentences = gold.documents.lengths(annotation, doc)
    check(tokens[rationale_key] < 0, p.error, p.owner, path, "no document {!r}", p.docids)
    again = np.ones(rationale_key.size, dtype=bool)
    again[np.unique(rationale_key, return_index=True)[1]] = False
    check(again, p.error, p.owner, path, "expected each document once, found {!r} again", p.docids)
    found = Rationales(rows.size, key_owner, tokens, sentences, np.isin(np.arange(keys.size), truth_key))
    found.truth = Spans(truth_key, gold.start[at].astype(np.int64), gold.end[at].astype(np.int64))
    found.truth_sentences = Spans(truth_key, gold.first[at].astype(np.int64), gold.last[at].astype(np.int64))
    groups, found.group = np.unique(gold.group[at], return_inverse=True)
    found.group_owner = np.zeros(groups.size, np.int64)
    found.group_owner[found.group] = owner
    # of chunks without any answer a field is not known yet
    if match.present.get("hard", True):
        key, start, end = found.predicted = read_predicted_spans(p, rationale_key, found)
        touched = gold.documents.sentence_spans(annotation[key], doc[key], start, end)
        found.predicted_sentences = Spans(key, *touched)
    if match.present.get("soft", not p.answered.all()):
        found.soft = read_ranked(p, "soft", rationale_key, tokens, found)
    if match.present.get("sentence"):
        found.sentence_soft = read_ranked(p, "sentence", rationale_key, sentences, found)
    return found


def read_predicted_spans(p: Predictions, rationale_key: np.ndarray, rationales: Rationales) -> Spans:
    """Return the distinct predicted spans by key and start, checked.

    Args:
        p: the predictions.
        rationale_key: the key of each rationale.
        rationales: the keys.
    """
    rationale, path = np.repeat(np.arange(rationale_key.size), np.maximum(p.hard.size, 0)), PATHS["hard"]
    owner, key, (start, end) = p.owner[rationale], rationale_key[rationale], p.hard.values
    tokens = rationales.tokens
    order = "expected 0 <= start_token < end_token, found [{}, {})"
    check((start < 0) | (end <= start), p.error, owner, f"{path}.start_token", order, start, end)
    past = "expected at most {} (the document's tokens), found {}"
    check(end > tokens[key], p.error, owner, f"{path}.end_token", past, tokens[key], end)
    spans = unique_spans(Spans(key, start, end))
    overlap = (spans.key[1:] == spans.key[:-1]) & (spans.start[1:] < spans.end[:-1])
    apart = "expected spans that do not overlap, found [{}, {}) and [{}, {})"
    shown = spans.start[:-1], spans.end[:-1], spans.start[1:], spans.end[1:]
    check(overlap, p.error, rationales.owner[spans.key[1:]], path, apart, *shown)
    return spans


def read_ranked(
    p: Predictions, name: str, rationale_key: np.ndarray, lengths: np.ndarray, rationales: Rationales
) -> Ranked:
    """Return soft scores: finite, one for each token (or sentence) of the document, in every document with evidence.

    An instance without answer has scores of 0 in its documents with evidence.

    Args:
        p: the predictions.
        name: "soft" or "sentence".
        rationale_key: the key of each rationale.
        lengths: the tokens (or sentences) of each key's document.
        rationales: the keys.
    """
    sizes, values = p.soft if name == "soft" else p.sentence
    unit, path, wanted = "tokens" if name == "soft" else "sentences", PATHS[name], lengths[rationale_key]
    expected = f"expected {{}} scores (the document's {unit}), found {{}} for {{!r}}"
    check((sizes >= 0) & (sizes != wanted), p.error, p.owner, path, expected, wanted, sizes, p.docids)
    owner = np.repeat(p.owner, np.maximum(sizes, 0))
    check(~np.isfinite(values), p.error, owner, path, "expected finite numbers, found {}", values)
    answered, scored = p.answered[rationales.owner], rationale_key[sizes >= 0]
    lacking = rationales.evidence & answered & ~np.isin(np.arange(lengths.size), scored)
    message = f"expected scores in every document with evidence, found none in one of {{}} {unit}"
    check(lacking, p.error, rationales.owner, path, message, lengths)
    silent = np.flatnonzero(rationales.evidence & ~answered)
    offsets = np.append(0, np.cumsum(np.concatenate([lengths[scored], lengths[silent]])))
    values = np.concatenate([values, np.zeros(int(lengths[silent].sum()))]) if silent.size else values
    return Ranked(np.concatenate([scored, silent]), offsets, values)


def unique_spans(spans: Spans) -> Spans:
    """Return the distinct spans, in order of key, start and end."""
    order = np.lexsort((spans.end, spans.start, spans.key))
    key, start, end = spans.key[order], spans.start[order], spans.end[order]
    new = np.ones(key.size, dtype=bool)
    new[1:] = (np.diff(key) != 0) | (np.diff(start) != 0) | (np.diff(end) != 0)
    return Spans(key[new], start[new], end[new])


def merge_spans(spans: Spans) -> Spans:
    """Return disjoint spans that cover the same tokens, in order of key and start, none of them empty."""
    base = int(spans.end.max(initial=0)) + 1  # key * base + start orders spans by key, then by start
    order = np.argsort(spans.key * base + spans.start, kind="stable")
    key = spans.key[order]
    first, reached = key * base + spans.start[order], np.maximum.accumulate(key * base + spans.end[order])
    opens = np.ones(key.size, dtype=bool)
    opens[1:] = first[1:] >= reached[:-1]
    key, first, last = key[opens], first[opens], reached[np.roll(opens, -1)]
    full = last > first
    return Spans(key[full], (first - key * base)[full], (last - key * base)[full])


def count_shared_tokens(spans: Spans, merged: Spans) -> np.ndarray:
    """Count the tokens of each span that the merged ones cover: int64 (spans,)."""
    base = int(max(spans.end.max(initial=0), merged.end.max(initial=0))) + 1
    first, last = merged.key * base + merged.start, np.append(0, merged.key * base + merged.end)
    covered = np.append(0, np.cumsum(merged.end - merged.start))

    counts = []
    for place in (spans.start, spans.end):
        position = spans.key * base + place
        n_before = np.searchsorted(first, position)
        counts.append(covered[n_before] - np.maximum(last[n_before] - position, 0))
    return np.asarray(counts[1] - counts[0])


def count_tokens(truth: Spans, predicted: Spans, n_keys: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count per key the distinct tokens of the truth, of the prediction, and those in both: float64 (keys,) each."""
    truth, predicted = merge_spans(truth), merge_spans(predicted)
    sizes = [add_up(spans.key, spans.end - spans.start, n_keys) for spans in (truth, predicted)]
    return sizes[0], sizes[1], add_up(truth.key, count_shared_tokens(truth, predicted), n_keys)


def find_overlaps(truth: Spans, predicted: Spans) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the pairs of a predicted and a truth span of one key that share a token.

    Args:
        truth: the truth spans.
        predicted: the predicted spans, in order of key and start.

    Returns:
        Index into predicted, index into truth, and IOU in (0, 1] of each pair.
    """
    base = int(max(truth.end.max(initial=0), predicted.end.max(initial=0))) + 1
    reached = np.maximum.accumulate(predicted.key * base + predicted.end)
    # outside these ranges no predicted span overlaps; within them all do, where predicted spans are disjoint
    low = np.searchsorted(reached, truth.key * base + truth.start, side="right")
    high = np.searchsorted(predicted.key * base + predicted.start, truth.key * base + truth.end)
    t, p = expand_ranges(low, high)
    shared = np.minimum(predicted.end[p], truth.end[t]) - np.maximum(predicted.start[p], truth.start[t])
    overlaps = shared > 0
    t, p, shared = t[overlaps], p[overlaps], shared[overlaps]
    union = (predicted.end[p] - predicted.start[p]) + (truth.end[t] - truth.start[t]) - shared
    return p, t, shared / union


def match_spans(p: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the predicted spans of a largest one-to-one matching of the pairs ``(p[i], t[i])``: int64 (matches,).

    Pairs with a side that has no other partner are matched first, until none is left: that is always optimal, and
    complete where spans do not overlap among themselves. Augmenting paths match the rest (cycles).
    """
    matched = [np.zeros(0, dtype=np.int64)]
    while p.size:
        for side, other in ((p, t), (t, p)):
            leaves = np.flatnonzero(np.bincount(side)[side] == 1)
            if leaves.size:  # several leaves on one partner: the first takes it
                leaves = leaves[np.unique(other[leaves], return_index=True)[1]]
                break
        if not leaves.size:
            matched.append(find_matching(p, t))
            break
        matched.append(p[leaves])
        left = ~np.isin(p, p[leaves]) & ~np.isin(t, t[leaves])
        p, t = p[left], t[left]
    return np.concatenate(matched)


def find_matching(p: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the predicted spans of a largest matching, found by augmenting paths, breadth first: int64 (matches,)."""
    neighbours: dict[int, list[int]] = {}
    for predicted, truth in zip(p.tolist(), t.tolist(), strict=True):
        neighbours.setdefault(predicted, []).append(truth)
    partner: dict[int, int] = {}  # of a matched truth span
    for root in neighbours:
        reached_from: dict[int, int] = {}  # truth span -> predicted span
        previous: dict[int, int] = {}  # predicted span -> the truth span that it gives up
        queue, free = [root], None
        for predicted in queue:
            for truth in neighbours[predicted]:
                if free is not None or truth in reached_from:
                    continue
                reached_from[truth] = predicted
                if truth in partner:
                    previous[partner[truth]] = truth
                    queue.append(partner[truth])
                else:
                    free = truth
        while free is not None:
            partner[free] = reached_from[free]
            free = previous.get(partner[free])
    return np.array(list(partner.values()), dtype=np.int64)


def cover_groups(rationales: Rationales, predicted: Spans) -> tuple[np.ndarray, np.ndarray]:
    """Return whether any whole evidence group of an annotation is covered (1 or 0), and the best group's token recall.

    Groups are alternatives, each jointly sufficient. Groups without tokens do not count; an annotation without a group
    that has tokens gives NaN for both: float64 (n,) each.
    """
    # the same document is another place in each group, so that the group's spans merge among themselves
    n_keys = rationales.owner.size
    places, place = np.unique(rationales.group * n_keys + rationales.truth.key, return_inverse=True)
    gold = merge_spans(Spans(place, rationales.truth.start, rationales.truth.end))
    hits = count_shared_tokens(Spans(places[gold.key] % n_keys, gold.start, gold.end), merge_spans(predicted))
    group = places[gold.key] // n_keys
    tokens, covered = (add_up(group, values, rationales.group_owner.size) for values in (gold.end - gold.start, hits))
    recall = divide(covered, tokens)[tokens > 0]
    best = np.full(rationales.n, -1.0)
    np.maximum.at(best, rationales.group_owner[tokens > 0], recall)
    best = np.where(best < 0, np.nan, best)
    return np.where(np.isnan(best), np.nan, best >= 1), best


def prf_columns(name: str, counts: Iterable[np.ndarray], owner: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Return the columns of `prf_scores`.

    Args:
        name: the prefix of the columns.
        counts: truth, predicted and hits of each key: (keys,) each.
        owner: the annotation of each key.
        n: the number of annotations.
    """
    truth, predicted, hits = counts
    p, r = divide(hits, predicted), divide(hits, truth)
    values = {"truth": truth, "predicted": predicted, "hits": hits, "keys": (truth > 0) | (predicted > 0)}
    values |= {"sum_p": p, "sum_r": r, "sum_f1": divide(2 * p * r, p + r)}
    return {f"{name}.{part}": add_up(owner, value, n) for part, value in values.items()}


def quotient(dividend: str, divisor: str) -> Compute:
    """Return the function that divides two columns' sums; 0 where the divisor is 0."""
    return lambda sums: divide(sums[dividend], sums[divisor])


def f1_of(p: Compute, r: Compute) -> Compute:
    """Return the function that computes F1 of precision and recall; 0 where both are 0."""
    return lambda sums: divide(2 * p(sums) * r(sums), p(sums) + r(sums))


def prf_scores(key: str, name: str, empty: float = 0.0) -> dict[str, Score]:
    """Return micro and macro precision, recall and F1 (``KEY_micro_p`` ..) of the columns ``NAME.truth`` ..

    Macro scores are means over the keys that have truth or prediction. Without such a key all are ``empty``.
    """
    p, r = quotient(f"{name}.hits", f"{name}.predicted"), quotient(f"{name}.hits", f"{name}.truth")
    computes = {"micro_p": p, "micro_r": r, "micro_f1": f1_of(p, r)}
    computes |= {f"macro_{part}": quotient(f"{name}.sum_{part}", f"{name}.keys") for part in ("p", "r", "f1")}

    def fill(compute: Compute) -> Compute:
        return lambda sums: np.where(np.asarray(sums[f"{name}.keys"]) == 0, empty, compute(sums))

    return {f"{key}_{part}": Score(fill(compute)) for part, compute in computes.items()}


def span_scores(thresholds: Sequence[float], main: float, columns: Columns | None = None) -> dict[str, Score]:
    """Return the scores of the columns of `measure_spans`.

    IOU is micro, macro (F1 of the mean precision and recall) and one-to-one matched. Its recall divides hits of
    predicted spans by truth spans. Two predicted spans may hit one truth span, so that micro and macro recall have no
    upper end, and their F1 ends at 2.

    Args:
        thresholds: of IOU.
        main: the threshold whose keys have no suffix; the keys of others end with ``@0.1``.
        columns: tell where no truth span is hit twice: recall and F1 end at 1 there.
    """
    scores = prf_scores("exact", "exact") | prf_scores("token", "token")
    for threshold in thresholds:
        name, end = f"iou@{threshold!r}", "" if threshold == main else f"@{threshold!r}"
        once = columns is not None and np.array_equal(columns[f"{name}.hits"], columns[f"{name}.matched"])
        for kind, p, r in (
            ("micro", quotient(f"{name}.hits", "exact.predicted"), quotient(f"{name}.hits", "exact.truth")),
            ("macro", quotient(f"{name}.sum_p", "exact.keys_p"), quotient(f"{name}.sum_r", "exact.keys_r")),
            ("matched", quotient(f"{name}.matched", "exact.predicted"), quotient(f"{name}.matched", "exact.truth")),
        ):
            bounded = once or kind == "matched"
            scores[f"iou_{kind}_p{end}"] = Score(p)
            scores[f"iou_{kind}_r{end}"] = Score(r, high=1.0 if bounded else None)
            scores[f"iou_{kind}_f1{end}"] = Score(f1_of(p, r), high=1.0 if bounded else 2.0)
    scores["any_group_coverage"] = Score(mean("any_group_coverage"), units="any_group_coverage.count")
    return scores | {"best_group_recall": Score(mean("best_group_recall"))}


def find_sentence_documents(
    rationales: Rationales, key: np.ndarray, name: str
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return which documents count in sentence scores, and how many do not.

    Args:
        rationales: of predictions and gold.
        key: some keys: int (keys,).
        name: the prefix of the columns.

    Returns:
        0 where the annotation has evidence without sentence offsets, 1 where the document has but one sentence (which
        counts in rankings, not in P/R/F1), else 2: int (keys,); and the columns ``NAME.unknown``, annotations without
        offsets, ``NAME.single``, documents of one sentence in the others, ``NAME.documents``, the rest, and
        ``NAME.spans``, evidence with offsets.
    """
    n, truth, owner = rationales.n, rationales.owner[rationales.truth.key], rationales.owner[key]
    known = rationales.truth_sentences.start >= 0
    unknown = add_up(truth, ~known, n) > 0
    kind = np.where(unknown[owner], 0, np.where(rationales.sentences[key] > 1, 2, 1))
    columns = {f"{name}.{part}": add_up(owner, kind == at, n) for at, part in ((1, "single"), (2, "documents"))}
    return kind, columns | {
        f"{name}.unknown": unknown.astype(float),
        f"{name}.spans": add_up(truth, known, n),
    }


def measure_spans(rationales: Rationales, thresholds: Sequence[float], chance: bool = False) -> dict[str, np.ndarray]:
    """Return the columns of `span_scores`, float64 (n,) each.

    Without predicted spans in the chunk all are those of empty predictions, so that chunks add up.

    Args:
        rationales: of predictions and gold.
        thresholds: of IOU, each in (0, 1].
        chance: add the columns of `chance_scores`.
    """
    n, n_keys, owner = rationales.n, rationales.owner.size, rationales.owner
    truth, predicted = unique_spans(rationales.truth), rationales.predicted or NO_SPANS
    tokens = count_tokens(truth, predicted, n_keys)
    n_truth, n_predicted = (np.bincount(spans.key, minlength=n_keys) for spans in (truth, predicted))
    p, t, iou = find_overlaps(truth, predicted)
    columns = prf_columns("token", tokens, owner, n)
    n_exact = np.bincount(predicted.key[p[iou == 1]], minlength=n_keys)
    columns |= prf_columns("exact", (n_truth, n_predicted, n_exact), owner, n)
    columns["exact.keys_p"], columns["exact.keys_r"] = (add_up(owner, size > 0, n) for size in (n_predicted, n_truth))
    best = np.zeros(predicted.key.size)
    np.maximum.at(best, p, iou)
    for threshold in thresholds:
        hits = np.bincount(predicted.key[best >= threshold], minlength=n_keys)
        matches = match_spans(p[iou >= threshold], t[iou >= threshold])
        columns[f"iou@{threshold!r}.hits"] = add_up(owner, hits, n)
        columns[f"iou@{threshold!r}.matched"] = np.bincount(owner[predicted.key[matches]], minlength=n)
        columns[f"iou@{threshold!r}.sum_p"] = add_up(owner, divide(hits, n_predicted), n)
        columns[f"iou@{threshold!r}.sum_r"] = add_up(owner, divide(hits, n_truth), n)
    whole, recall = cover_groups(rationales, predicted)
    columns |= mean_columns("any_group_coverage", whole) | mean_columns("best_group_recall", recall)
    if chance:
        # as many tokens, drawn without replacement: K R / N of them are expected to be gold
        expected = divide(tokens[0] * tokens[1], rationales.tokens)
        columns |= prf_columns("chance.token", (tokens[0], tokens[1], expected), owner, n)
    if rationales.sentence_soft is None:
        kind, counted = find_sentence_documents(rationales, np.arange(n_keys), "span_sentence")
        known = rationales.truth_sentences.start >= 0
        gold = Spans(*(values[known] for values in rationales.truth_sentences))
        counts = count_tokens(gold, rationales.predicted_sentences if rationales.predicted else NO_SPANS, n_keys)
        columns |= counted | prf_columns("span_sentence", [values * (kind == 2) for values in counts], owner, n)
    return columns
