"""Ranking quality of soft scores: AUPRC, average precision and ROC-AUC, one value per document.

Scores and truth are flat arrays; those of document k are at ``[offsets[k], offsets[k + 1])``. Only the places of
positives among the negatives matter: both are sorted per document (rows of padded matrices, documents of like length
together), and each distinct positive score is looked up among the negatives, so that no Python loop runs over tokens.

With P positives, and for each distinct positive score v: tp(v) positives and fp(v) negatives at or above it, tp'(v)
and fp'(v) strictly above it:

- average precision = sum over v of (tp - tp') / P * tp / (tp + fp)
- AUPRC (trapezoid) = sum over v of (tp - tp') / P * (tp / (tp + fp) + tp' / (tp' + fp')) / 2, where 0 / 0 is 1
- ROC-AUC = share of (positive, negative) pairs in the right order, ties counting half

Source: DeYoung et al., ERASER (ACL 2020), section 4; the curves are scikit-learn's.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from .statistics_builder import divide
from .tokens import masks

# AUPRC of a document without positives: "reference" is the value of the reference scorer with a current scikit-learn
# (the trapezoid from (1, 0) to (0, 1)); "skip" leaves the document out
AUPRC_POLICIES: dict[str, float] = {"reference": 0.5, "skip": float("nan"), "zero": 0.0, "one": 1.0}

# entries of one padded matrix: small enough to stay in a cache
MAX_MATRIX_CELLS = 1 << 17
# tokens ranked at a time
TOKENS_AT_ONCE = 1 << 18
# above this many negatives a document is searched by itself
LONG_DOCUMENT = 1024


class Rankings(NamedTuple):
    """Scores per document, float64 (n,); NaN if undefined (AP and ROC-AUC with one class only)."""

    auprc: np.ndarray
    average_precision: np.ndarray
    roc_auc_score: np.ndarray


def _sort_segments(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the values, ascending within each segment."""
    sizes = np.diff(offsets)
    out = np.empty_like(values)
    if not values.size:
        return out
    order = np.argsort(sizes, kind="stable")
    order = order[np.searchsorted(sizes[order], 1) :]
    lengths = sizes[order]
    begin = 0
    while begin < order.size:
        # segments of like length: at most an eighth of padding, and at most MAX_MATRIX_CELLS entries
        widest = lengths[begin] + lengths[begin] // 8
        stop = int(np.searchsorted(lengths, widest, side="right"))
        stop = min(stop, begin + max(1, MAX_MATRIX_CELLS // int(widest)))
        members, size = order[begin:stop], lengths[begin:stop]
        width = int(size[-1])
        if size[0] == width and members[-1] - members[0] == members.size - 1 and (np.diff(members) == 1).all():
            # one block of equal rows that stand side by side
            block = slice(offsets[members[0]], offsets[members[-1] + 1])
            out[block] = np.sort(values[block].reshape(-1, width), axis=1).reshape(-1)
        else:
            column = np.arange(width)
            place = offsets[members][:, None] + column
            inside = column < size[:, None]
            if size[0] == width:
                out[place] = np.sort(values[place], axis=1)
            else:
                matrix = np.full(place.shape, np.inf)
                matrix[inside] = values[place[inside]]
                matrix.sort(axis=1)
                out[place[inside]] = matrix[inside]
        begin = stop
    return out


def _count_below(
    haystack: np.ndarray, offsets: np.ndarray, needles: np.ndarray, needle_offsets: np.ndarray, right: bool
) -> np.ndarray:
    """Count for each needle the values of its segment below it (``right``: at or below it)."""
    sizes = np.diff(offsets)
    counts = np.empty(needles.size, dtype=np.int64)
    long = np.flatnonzero(sizes > LONG_DOCUMENT)
    side: Literal["left", "right"] = "right" if right else "left"
    for k in long.tolist():
        within = slice(needle_offsets[k], needle_offsets[k + 1])
        counts[within] = np.searchsorted(haystack[offsets[k] : offsets[k + 1]], needles[within], side=side)
    short = np.repeat(sizes <= LONG_DOCUMENT, np.diff(needle_offsets)) if long.size else slice(None)
    wanted = needles[short]
    if not wanted.size:
        return counts
    segment = np.repeat(np.arange(sizes.size), np.diff(needle_offsets))[short]
    first = offsets[segment]
    low, high = first.copy(), offsets[segment + 1]
    padded = haystack if haystack.size else np.zeros(1)
    for _ in range(int(min(sizes.max(), LONG_DOCUMENT)).bit_length()):
        middle = (low + high) >> 1
        value = padded[np.minimum(middle, padded.size - 1)]
        below = (value <= wanted if right else value < wanted) & (middle < high)
        low = np.where(below, middle + 1, low)
        high = np.where(below, high, middle)
    counts[short] = low - first
    return counts


def _negatives_below(
    negatives: np.ndarray, offsets: np.ndarray, values: np.ndarray, value_offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Count for each value the negatives of its document below it, and those below or equal."""
    negatives = _sort_segments(negatives, offsets)
    below = _count_below(negatives, offsets, values, value_offsets, right=False)
    # ties between a positive and a negative are rare: only where the next negative equals is it searched again
    not_above = below.copy()
    segment = np.repeat(np.arange(offsets.size - 1), np.diff(value_offsets))
    inside = below < np.diff(offsets)[segment]
    tied = np.zeros(values.size, dtype=bool)
    tied[inside] = negatives[(offsets[segment] + below)[inside]] == values[inside]
    if tied.any():
        tied_offsets = np.concatenate([[0], np.cumsum(tied)])[value_offsets]
        not_above[tied] = _count_below(negatives, offsets, values[tied], tied_offsets, right=True)
    return below, not_above


def rank_documents(
    scores: np.ndarray, truth: np.ndarray, offsets: np.ndarray, no_positives: float = AUPRC_POLICIES["reference"]
) -> Rankings:
    """Compute AUPRC, average precision and ROC-AUC of each document.

    Args:
        scores: float64 (n,), finite; higher means more likely evidence.
        truth: bool (n,).
        offsets: int64 (documents + 1,), from 0 to n.
        no_positives: the AUPRC of a document without positives (NaN: it is left out), see `AUPRC_POLICIES`.

    Returns:
        Rankings, each in [0, 1] or NaN. An empty document counts as one without positives.

    >>> import numpy as np
    >>> rank_documents(np.array([.9, .1, .8]), np.array([True, False, False]), np.array([0, 3])).auprc.tolist()
    [1.0]
    """
    n = offsets.size - 1
    positive_offsets = np.concatenate([[0], np.cumsum(truth, dtype=np.int64)])[offsets]
    negative_offsets = offsets - positive_offsets
    n_positive, n_negative = np.diff(positive_offsets), np.diff(negative_offsets)
    positives = _sort_segments(scores[truth], positive_offsets)

    # one entry per distinct positive score of a document, ascending
    segment = np.repeat(np.arange(n), n_positive)
    new = np.ones(positives.size, dtype=bool)
    new[1:] = (positives[1:] != positives[:-1]) | (segment[1:] != segment[:-1])
    first = np.flatnonzero(new)
    segment = segment[first]
    same = np.diff(np.append(first, positives.size))
    value_offsets = np.concatenate([[0], np.cumsum(np.bincount(segment, minlength=n))])
    below, not_above = _negatives_below(scores[~truth], negative_offsets, positives[first], value_offsets)

    total, others = n_positive[segment], n_negative[segment]
    tp = total - (first - positive_offsets[segment])
    tp_above = tp - same
    fp, fp_above = others - below, others - not_above
    step = same / np.maximum(total, 1)
    precision = tp / (tp + fp)
    above = tp_above + fp_above
    precision_above = np.where(above > 0, tp_above / np.maximum(above, 1), 1.0)

    # sums over the positive scores of each document
    terms = (step * (precision + precision_above) / 2, step * precision, same * (below + not_above) / 2)
    trapezoids, steps, area = (np.bincount(segment, weights=term, minlength=n) for term in terms)
    one_class = (n_positive == 0) | (n_negative == 0)
    auprc = np.where(n_positive == 0, no_positives, trapezoids)
    average_precision = np.where(one_class, np.nan, steps)
    roc = np.where(one_class, np.nan, area / np.maximum(n_positive * n_negative, 1))
    return Rankings(auprc, average_precision, roc)


def _mix(x: np.ndarray) -> np.ndarray:
    """Mix 64-bit numbers (splitmix64's finaliser): equal input, equal output, no state."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def shuffle(scores: np.ndarray, offsets: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Return the scores, shuffled within each document.

    The shuffle of a document depends on its seed and length alone, not on other documents.

    Args:
        scores: float64 (n,).
        offsets: int64 (documents + 1,).
        seeds: uint64 (documents,).
    """
    sizes = np.diff(offsets)
    segment = np.repeat(np.arange(sizes.size), sizes)
    place = (np.arange(scores.size) - offsets[:-1][segment]).astype(np.uint64)
    with np.errstate(over="ignore"):
        keys = _mix(_mix(seeds.astype(np.uint64))[segment] + (place + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
    return scores[np.lexsort((keys, segment))]


def compute_random_baseline(
    scores: np.ndarray,
    truth: np.ndarray,
    offsets: np.ndarray,
    seeds: np.ndarray,
    n_shuffles: int = 10,
    no_positives: float = AUPRC_POLICIES["reference"],
) -> Rankings:
    """Compute the papers' random baseline: each document's mean over ``n_shuffles`` shuffles of its scores."""
    total = [np.zeros(offsets.size - 1) for _ in range(3)]
    with np.errstate(over="ignore"):
        for draw in range(n_shuffles):
            mixed = seeds.astype(np.uint64) + np.uint64(draw) * np.uint64(0xD1342543DE82EF95)
            for sums, column in zip(
                total, rank_documents(shuffle(scores, offsets, mixed), truth, offsets, no_positives), strict=True
            ):
                sums += column
    return Rankings(*(sums / n_shuffles for sums in total))


def expect_rankings(
    n_positive: np.ndarray, size: np.ndarray, no_positives: float = AUPRC_POLICIES["reference"]
) -> Rankings:
    """Return the expected scores of random rankings without ties.

    Of N tokens G are positive, and H is the N-th harmonic number. The token at rank k is positive with probability
    G / N, and then (1 + (k - 1) (G - 1) / (N - 1)) / k of the tokens up to rank k are expected to be positive. The sum
    over ranks is the expected average precision, (H + (N - H) (G - 1) / (N - 1)) / N. The trapezoids average it with
    the precision before each positive, whose expected value is G / N. ROC-AUC is 0.5.

    Args:
        n_positive: the positives G of each document: int (n,).
        size: the tokens N of each document.
        no_positives: see `rank_documents`.

    >>> expect_rankings(np.array([1]), np.array([2])).average_precision.tolist()
    [0.75]
    """
    harmonic = np.append(0, np.cumsum(1 / np.arange(1, int(size.max(initial=0)) + 1)))[np.maximum(size, 0)]
    others = np.where(size > 1, divide(n_positive - 1, size - 1), 1.0)
    precision = divide(harmonic + (size - harmonic) * others, size)
    auprc = np.where(n_positive == 0, no_positives, (precision + divide(n_positive, size)) / 2)
    one_class = (n_positive == 0) | (n_positive >= size)
    return Rankings(auprc, np.where(one_class, np.nan, precision), np.where(one_class, np.nan, 0.5))


class Ranked(NamedTuple):
    """Results per rationale; NaN (or 0 decided, 0 positives) if it has no scores."""

    scores: np.ndarray  # float64 (m, 3): AUPRC, average precision, ROC-AUC
    random: np.ndarray  # the same for shuffled scores; (0, 3) without a baseline
    decided: np.ndarray  # int64 (m, 3): true, scored at least the threshold, both
    positives: np.ndarray  # int64 (m,): true


def rank_rationales(
    sizes: np.ndarray,
    scores: np.ndarray,
    spans: tuple[np.ndarray, np.ndarray, np.ndarray],
    no_positives: float = AUPRC_POLICIES["reference"],
    seeds: np.ndarray | None = None,
    n_shuffles: int = 0,
    threshold: float | None = 0.5,
) -> Ranked:
    """Rank each rationale's scores against the evidence in its document.

    Args:
        sizes: the number of scores of each rationale, -1 for none: int64 (m,).
        scores: all scores, flat.
        spans: (rationale, start, end) of the evidences in the rationales' documents. Spans outside are ignored here;
            `checks` refuses them.
        no_positives: see `rank_documents`.
        seeds: one per rationale, for the random baseline.
        n_shuffles: the shuffles of the random baseline; 0: none.
        threshold: the threshold of the decisions; None: no decisions (all 0).
    """
    m = sizes.size if (sizes >= 0).any() else 0  # an absent field has no rows
    result = Ranked(
        np.full((m, 3), np.nan),
        np.full((m if n_shuffles else 0, 3), np.nan),
        np.zeros((m, 3), dtype=np.int64),
        np.zeros(m, dtype=np.int64),
    )
    length = np.maximum(sizes, 0)
    ends = np.cumsum(length)
    where, start, end = spans
    inside = (start >= 0) & (end >= start) & (end <= length[where])
    where, start, end = where[inside], start[inside], end[inside]
    begin = 0
    while begin < m:
        before = int(ends[begin] - length[begin])
        stop = max(begin + 1, int(np.searchsorted(ends, before + TOKENS_AT_ONCE, side="right")))
        low, high = np.searchsorted(where, [begin, stop])
        offsets = np.concatenate([[0], ends[begin:stop] - before])
        truth = masks(where[low:high] - begin, start[low:high], end[low:high], offsets)
        part = scores[before : int(ends[stop - 1])]
        scored = np.flatnonzero(sizes[begin:stop] >= 0)
        offsets = np.concatenate([offsets[:-1][scored], offsets[-1:]])
        rows = scored + begin
        result.positives[rows] = np.diff(np.append(0, np.cumsum(truth, dtype=np.int64))[offsets])
        result.scores[rows] = np.stack(rank_documents(part, truth, offsets, no_positives), axis=1)
        if n_shuffles and seeds is not None:
            drawn = compute_random_baseline(part, truth, offsets, seeds[rows], n_shuffles, no_positives)
            result.random[rows] = np.stack(drawn, axis=1)
        if threshold is not None:
            chosen = part >= threshold
            sums = [np.append(0, np.cumsum(flags, dtype=np.int64)) for flags in (truth, chosen, truth & chosen)]
            result.decided[rows] = np.diff(np.stack(sums)[:, offsets]).T
        begin = stop
    return result


def baseline_seeds(names: Sequence[str]) -> np.ndarray:
    """Return a seed per name, uint64; shuffles therefore do not depend on order or batches."""
    return np.array([zlib.crc32(name.encode()) for name in names], dtype=np.uint64)
