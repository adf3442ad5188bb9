"""Predicted set of tokens against several alternative gold sets: choice of the truth, F1 and IOU.

Source: Wang et al. (2022), equations 1 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from .statistics_builder import ScoreInfo

SETS = ("token_f1", "token_f1_single", "iou_f1")
SCORES: ScoreInfo = {
    **dict.fromkeys(SETS, (True, 0.0, 1.0)),
    "sufficiency": (False, -1.0, 1.0),
    "comprehensiveness": (True, -1.0, 1.0),
    **dict.fromkeys(("new_p", "accuracy_rationale"), (True, 0.0, 1.0)),
    "accuracy_no_rationale": (False, 0.0, 1.0),
    "answer_f1": (True, 0.0, 1.0),
}


def f1(truth: Set[int], predicted: Set[int]) -> float:
    """Return 2 abs(truth & predicted) / (abs(truth) + abs(predicted)); 0 if a side is empty."""
    size = len(truth) + len(predicted)
    return 2 * len(truth & predicted) / size if size else 0.0


def iou(truth: Set[int], predicted: Set[int]) -> float:
    """Return the number of tokens in both over that in either; 0 if both are empty."""
    union = len(truth | predicted)
    return len(truth & predicted) / union if union else 0.0


def find_truth(gold_sets: Sequence[Set[int]], predicted: Set[int]) -> Set[int]:
    """Find the gold tokens to compare a prediction with.

    A single gold set is the truth. Among several it is the set with the best F1 (the first of equals), or a union with
    a better one. A union starts at each set but the last and walks the sets in order: a set that overlaps the
    prediction, is not yet contained in the union and raises its F1 joins it. Without any overlap the truth is empty.

    Args:
        gold_sets: at least one set of token indices.
        predicted: token indices.

    >>> sorted(find_truth([{1, 2}, {4, 5}, {8}], {1, 2, 4}))
    [1, 2, 4, 5]
    """
    if len(gold_sets) == 1:
        return gold_sets[0]
    best: Set[int] = frozenset()
    best_f1 = 0.0
    for gold in gold_sets:
        score = f1(gold, predicted)
        if score > best_f1:
            best, best_f1 = gold, score
    meeting = [bool(gold & predicted) for gold in gold_sets]
    for start in range(len(gold_sets) - 1):
        union: Set[int] = frozenset()
        union_f1 = 0.0
        for gold, meets in zip(gold_sets[start:], meeting[start:], strict=True):
            if meets and not gold <= union:
                score = f1(union | gold, predicted)
                if score > union_f1:
                    union, union_f1 = union | gold, score
        if union_f1 > best_f1:
            best, best_f1 = union, union_f1
    return best


def score_against_sets(
    gold_sets: Sequence[Set[int]], predicted: Set[int], iou_threshold: float = 0.5
) -> tuple[float, float, bool]:
    """Return (token F1, token F1 of the best single set, IOU >= the threshold) of one prediction.

    The first and the last compare with `find_truth`; the second is equation 1 as printed, without unions.
    """
    truth = find_truth(gold_sets, predicted)
    single = max(f1(gold, predicted) for gold in gold_sets)
    return f1(truth, predicted), single, iou(truth, predicted) >= iou_threshold


def new_p(full: np.ndarray, rationale: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return label(rationale) = label(full) != label(rest): bool (n,), for arrays of class numbers or answers (n,)."""
    return np.asarray((rationale == full) & (rest != full))
