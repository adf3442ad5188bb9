"""Counts of spans: exact match, tokens, intersection over union, matching, evidence groups.

Spans are three flat integer arrays (`Spans`): the key of their (annotation, document) pair, the first token, and the
token after the last. Everything here counts per key; `agreement_scores` divides, last. Nothing
loops over tokens, spans or pairs in Python; overlapping, repeated and empty spans are all allowed.

Sources: DeYoung et al., ERASER (ACL 2020), section 4 (IOU, token P/R/F1); its first version, section 5.1 (exact match).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .issues import InputError
from .statistics_builder import divide

# candidate pairs that are compared at a time: bounds the memory, not the result
PAIRS_AT_ONCE = 1 << 17
COPIES_AT_ONCE = 1 << 15


class Spans(NamedTuple):
    """Flat spans: ``key[i]`` names the (annotation, document) pair, ``[start[i], end[i])`` the tokens; all int64."""

    key: np.ndarray
    start: np.ndarray
    end: np.ndarray


def expand_ranges(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (range, number) for each number of the ranges [low, high), one range after another: int (m,) each."""
    size = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(size.size), size)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(size) - size - low, size)


def _compute_base(*several: Spans) -> int:
    """Return a number above every end: ``key * base + start`` then orders spans by key, then by start."""
    base = max((int(s.end.max()) for s in several if s.end.size), default=0) + 2
    top = max((int(s.key.max()) for s in several if s.key.size), default=0) + 1
    if top * base >= 2**62:
        raise InputError(f"spans reach too far: {top} documents with offsets up to {base - 2}", "range")
    return base


def unique_spans(spans: Spans) -> Spans:
    """Return the distinct spans, ordered by key, start and end."""
    if not spans.key.size:
        return spans
    base = _compute_base(spans)
    first = spans.key * base + spans.start
    if (np.diff(first) > 0).all():  # most spans are in order already
        return spans
    order = np.lexsort((spans.end, first))
    first, end = first[order], spans.end[order]
    keep = np.ones(first.size, dtype=bool)
    keep[1:] = (np.diff(first) != 0) | (np.diff(end) != 0)
    order = order[keep]
    return Spans(spans.key[order], spans.start[order], spans.end[order])


def count_covered_tokens(spans: Spans, n_keys: int) -> np.ndarray:
    """Count the distinct tokens that the spans of each key cover: int64 (n_keys,)."""
    if not spans.key.size:
        return np.zeros(n_keys, dtype=np.int64)
    base = _compute_base(spans)
    first = spans.key * base + spans.start
    order = np.argsort(first, kind="stable")
    first, key = first[order], spans.key[order]
    last = key * base + spans.end[order]
    # tokens before `reached` are counted already; it never runs into the next key, whose first token is >= key * base
    reached = np.concatenate([first[:1], np.maximum.accumulate(last)[:-1]])
    added = np.maximum(last - np.maximum(first, reached), 0)
    return np.bincount(key, weights=added, minlength=n_keys).astype(np.int64)


def count_tokens(truth: Spans, predicted: Spans, n_keys: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count per key the distinct tokens of the truth, of the prediction, and those in both."""
    either = Spans(*map(np.concatenate, zip(truth, predicted, strict=True)))
    n_truth, n_predicted, n_either = (count_covered_tokens(spans, n_keys) for spans in (truth, predicted, either))
    return n_truth, n_predicted, n_truth + n_predicted - n_either


def find_overlapping_pairs(truth: Spans, predicted: Spans) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find all pairs of a predicted and a truth span of one key that share a token.

    Args:
        truth: distinct spans in order, as `unique_spans` returns them.
        predicted: likewise.

    Returns:
        (index into predicted, index into truth, intersection over union in (0, 1]), ordered by predicted span.
    """
    empty = np.zeros(0, dtype=np.int64)
    if not truth.key.size or not predicted.key.size:
        return empty, empty, np.zeros(0)
    # of each predicted span the range [low, high) of truth spans outside which none overlaps it; where truth spans do
    # not overlap one another, it holds exactly those that overlap it
    base = _compute_base(truth, predicted)
    reached = np.maximum.accumulate(truth.key * base + truth.end)
    low = np.searchsorted(reached, predicted.key * base + predicted.start, side="right")
    high = np.searchsorted(truth.key * base + truth.start, predicted.key * base + predicted.end, side="left")
    total = np.cumsum(np.maximum(high - low, 0))
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    begin = 0
    while begin < total.size:
        before = total[begin - 1] if begin else 0
        stop = max(int(np.searchsorted(total, before + PAIRS_AT_ONCE, side="right")), begin + 1)
        p, t = expand_ranges(low[begin:stop], high[begin:stop])
        p += begin
        shared = np.minimum(predicted.end[p], truth.end[t]) - np.maximum(predicted.start[p], truth.start[t])
        keep = shared > 0
        p, t, shared = p[keep], t[keep], shared[keep]
        union = (predicted.end[p] - predicted.start[p]) + (truth.end[t] - truth.start[t]) - shared
        parts.append((p, t, shared / union))
        begin = stop
    p, t, iou = (np.concatenate(column) for column in zip(*parts, strict=True))
    return p, t, iou


def match_pairs(p: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the positions i of a largest one-to-one matching of the pairs ``(p[i], t[i])``.

    Pairs with a side that has no other partner are matched first, until none is left: that is always optimal, and
    complete for spans that do not overlap among themselves. Augmenting paths match the rest (cycles). The number of
    matches is unique; the choice of pairs depends on their order.
    """
    alive = np.arange(p.size)
    chosen: list[np.ndarray] = []
    while alive.size:
        taken = np.zeros(0, dtype=np.int64)
        for one, other in ((p, t), (t, p)):
            _, position, degree = np.unique(one[alive], return_inverse=True, return_counts=True)
            leaves = alive[degree[position] == 1]
            if leaves.size:
                # several leaves on one partner: the first takes it
                taken = leaves[np.unique(other[leaves], return_index=True)[1]]
                break
        if not taken.size:
            break
        chosen.append(taken)
        alive = alive[~np.isin(p[alive], p[taken]) & ~np.isin(t[alive], t[taken])]
    if alive.size:
        chosen.append(_augment(p, t, alive))
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)


def _augment(p: np.ndarray, t: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Find a maximum matching by augmenting paths (breadth first), over the few pairs that cycles leave."""
    edges: dict[int, list[int]] = {}
    for i in alive.tolist():
        edges.setdefault(int(p[i]), []).append(i)
    owner: dict[int, int] = {}  # truth span -> the pair that holds it
    mate: dict[int, int] = {}  # predicted span -> its truth span
    for root in sorted(edges):
        via: dict[int, int] = {}  # truth span -> the pair by which it was reached
        queue, free = [root], None
        for node in queue:
            for i in edges[node]:
                target = int(t[i])
                if target in via:
                    continue
                via[target] = i
                if target not in owner:
                    free = target
                    break
                queue.append(int(p[owner[target]]))
            if free is not None:
                break
        while free is not None:
            i = via[free]
            owner[free] = i
            mate[int(p[i])], free = free, mate.get(int(p[i]))
    return np.array(sorted(owner.values()), dtype=np.int64)


class SpanCounts(NamedTuple):
    """Counts per key, int64 (keys,) each; ``exact`` and ``token`` are (truth, predicted, both)."""

    exact: tuple[np.ndarray, np.ndarray, np.ndarray]
    token: tuple[np.ndarray, np.ndarray, np.ndarray]
    iou: list[tuple[float, np.ndarray, np.ndarray]]  # (threshold, hits, one-to-one matches)


def count_spans(truth: Spans, predicted: Spans, n_keys: int, thresholds: Sequence[float]) -> SpanCounts:
    """Compute all counts of span scores: exact match, tokens, and IOU at each threshold.

    Exact match counts per key the distinct truth spans, the distinct predicted ones, and those in both. IOU counts the
    predicted spans whose best IOU over the truth spans of their key reaches the threshold, and the size of a largest
    one-to-one matching of spans that reach it; a threshold of 0 or below lets any two spans match.
    """
    token = count_tokens(truth, predicted, n_keys)
    truth, predicted = unique_spans(truth), unique_spans(predicted)
    either = unique_spans(Spans(*map(np.concatenate, zip(truth, predicted, strict=True))))
    n_truth, n_predicted, n_either = (np.bincount(spans.key, minlength=n_keys) for spans in (truth, predicted, either))
    p, t, iou = find_overlapping_pairs(truth, predicted)
    best = np.zeros(predicted.key.size)
    np.maximum.at(best, p, iou)
    counts = []
    for threshold in thresholds:
        hits = np.bincount(predicted.key[best >= threshold], minlength=n_keys)
        reaching = iou >= threshold
        chosen = p[reaching][match_pairs(p[reaching], t[reaching])]
        matched = np.bincount(predicted.key[chosen], minlength=n_keys)
        counts.append((float(threshold), hits, matched if threshold > 0 else np.minimum(n_truth, n_predicted)))
    return SpanCounts((n_truth, n_predicted, n_truth + n_predicted - n_either), token, counts)


def cover_groups(
    groups: np.ndarray, owner: np.ndarray, truth: Spans, predicted: Spans, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return per annotation 1 if the prediction covers any evidence group (else 0), and the best group's token recall.

    Groups are alternatives, each jointly sufficient, so a prediction that covers ANY one of them suffices. Groups
    without tokens do not count; an annotation without a group that has tokens gives NaN for both.

    Args:
        groups: the group of each truth span, numbered over all annotations: int (spans,).
        owner: the annotation of each group: int (groups,).
        truth: the truth spans. A token that two documents of a group share by number counts once for each.
        predicted: the predicted spans, with the same keys.
        n: the number of annotations.
    """
    # a place is one document within one group: predicted spans are copied to every place of their key
    n_keys = int(max(truth.key.max(initial=0), predicted.key.max(initial=0))) + 1
    packed, place = np.unique(groups.astype(np.int64) * n_keys + truth.key, return_inverse=True)
    place_group, place_key = packed // n_keys, packed % n_keys
    order = np.argsort(predicted.key, kind="stable")
    low, high = (np.searchsorted(predicted.key[order], place_key, side=side) for side in ("left", "right"))
    by_place = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[by_place], np.arange(place_key.size + 1))
    copies = np.cumsum(high - low)
    n_truth, hits = np.zeros((2, place_key.size), dtype=np.int64)
    begin = 0
    while begin < place_key.size:
        # some places at a time: the copies of one round stay few
        before = int(copies[begin] - high[begin] + low[begin])
        stop = max(begin + 1, int(np.searchsorted(copies, before + COPIES_AT_ONCE, side="right")))
        copy_place, at = expand_ranges(low[begin:stop], high[begin:stop])
        there = Spans(copy_place, predicted.start[order[at]], predicted.end[order[at]])
        some_truth = by_place[bounds[begin] : bounds[stop]]
        gold = Spans(place[some_truth] - begin, truth.start[some_truth], truth.end[some_truth])
        n_truth[begin:stop], _, hits[begin:stop] = count_tokens(gold, there, stop - begin)
        begin = stop
    tokens, covered = (np.bincount(place_group, weights=each, minlength=owner.size) for each in (n_truth, hits))
    real = tokens > 0
    recall, owner = divide(covered, tokens)[real], owner[real]
    whole, best = np.full(n, np.nan), np.full(n, np.nan)
    whole[owner], best[owner] = 0.0, 0.0
    np.maximum.at(best, owner, recall)
    whole[owner[recall >= 1.0]] = 1.0
    return whole, best
