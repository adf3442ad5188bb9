"""Agreement of annotators with their majority: Cohen's kappa, precision, recall and F1 over the tokens of one text.

Source: DeYoung et al. (2020), Table 2 ("mean agreement of individual annotators with the majority vote per token").
"""

from __future__ import annotations

import numpy as np

from .nominal_agreement import KEYS as NOMINAL_KEYS
from .statistics_builder import ScoreInfo, divide

KEYS = ("cohen_kappa", "p", "r", "f1")
SCORES: ScoreInfo = {key: (True, -1.0 if key == "cohen_kappa" else 0.0, 1.0) for key in KEYS}
SCORES |= {f"{key}_std": (None, 0.0, 1.0) for key in KEYS}
SCORES |= {f"{prefix}{key}": (True, -1.0, 1.0) for prefix in ("", "label_") for key in NOMINAL_KEYS}
SCORES |= {"cohen_kappa_random": (None, -1.0, 1.0)}


def majority(marks: np.ndarray) -> np.ndarray:
    """Return True for each token that more than half of the annotators mark: bool (tokens,).

    A tie is no majority: the majority of two annotators marks the tokens that both mark.

    Args:
        marks: 0/1, (annotators, tokens).
    """
    return np.asarray(2 * marks.sum(axis=0) > len(marks))


def agreement(marks: np.ndarray) -> dict[str, np.ndarray]:
    """Compare each annotator with the majority.

    Args:
        marks: 0/1, (annotators, tokens), at least two annotators.

    Returns:
        {"cohen_kappa", "p", "r", "f1"}: arrays (annotators,). kappa in [-1, 1], NaN where both the annotator and the
        majority mark everything or both mark nothing (chance agreement is then complete); p, r and f1 in [0, 1],
        0 where a side is empty.

    >>> {key: value.round(3).tolist() for key, value in agreement(np.array([[1, 1, 0, 0], [1, 0, 0, 0]])).items()}
    {'cohen_kappa': [0.5, 1.0], 'p': [0.5, 1.0], 'r': [1.0, 1.0], 'f1': [0.667, 1.0]}
    """
    marks = np.asarray(marks, dtype=bool)
    truth = majority(marks)
    n = marks.shape[1]
    both = (marks & truth).sum(axis=1)
    marked, gold = marks.sum(axis=1), int(truth.sum())
    observed = (marks == truth).sum(axis=1) / max(n, 1)
    by_chance = (marked * gold + (n - marked) * (n - gold)) / max(n, 1) ** 2
    return {
        "cohen_kappa": divide(observed - by_chance, 1 - by_chance, np.nan),
        "p": divide(both, marked),
        "r": divide(both, gold),
        "f1": divide(2 * both, marked + gold),
    }
