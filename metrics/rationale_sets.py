"""A predicted set of tokens against several alternative gold sets: which truth it is compared with, F1 and IOU.

Source: Wang et al. (2022), equations 1 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np


def f1(truth: Set[int], predicted: Set[int]) -> float:
    """2 abs(truth & predicted) / (abs(truth) + abs(predicted)); 0 where a side is empty."""
    size = len(truth) + len(predicted)
    return 2 * len(truth & predicted) / size if size else 0.0


def iou(truth: Set[int], predicted: Set[int]) -> float:
    """Tokens in both over tokens in either; 0 where both are empty."""
    union = len(truth | predicted)
    return len(truth & predicted) / union if union else 0.0


def find_truth(gold_sets: Sequence[Set[int]], predicted: Set[int]) -> Set[int]:
    """The gold tokens that a prediction is compared with.

    A lone gold set is the truth. Of several it is the one with the best F1 (the first of equals), or a union with a
    better one: from each start but the last the sets are walked in order, and one that meets the prediction, is not
    yet contained in the union and raises its F1 joins it; what is skipped stays out. Without any overlap the truth is
    empty.

    Args:
        gold_sets: at least one set of token indices.
        predicted: token indices.

    >>> sorted(truth_for([{1, 2}, {4, 5}, {8}], {1, 2, 4}))
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
    """(token F1, that of the best single set, whether IOU >= the threshold) of one prediction.

    The first and the last are against ``truth_for``; the second is equation 1 as it is printed, without unions.
    """
    truth = find_truth(gold_sets, predicted)
    single = max(f1(gold, predicted) for gold in gold_sets)
    return f1(truth, predicted), single, iou(truth, predicted) >= iou_threshold


def new_p(full: np.ndarray, rationale: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Whether label(rationale) = label(full) != label(rest): bool (n,), of arrays of class numbers or answers (n,)."""
    return np.asarray((rationale == full) & (rest != full))
