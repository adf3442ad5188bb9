"""Calibration of a model's probabilities on its full inputs: Brier score and expected calibration error.

Sources: Brier (1950); Naeini, Cooper and Hauskrecht (2015) and Guo et al. (2017) (expected calibration error).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .statistics_builder import Column, Score, ScoreInfo, StatisticsBuilder, divide

# bins of equal width of the predicted label's probability
BINS = 10
SCORES: ScoreInfo = {"brier": (False, 0.0, 2.0), "ece": (False, 0.0, 1.0)}


def compute_calibration_error(column: Column) -> dict[str, np.ndarray]:
    """Return the expected calibration error: the mean over instances of each bin's absolute mean of (right - p)."""
    gaps = sum(np.abs(column(f"ece.gap{at}")) for at in range(BINS))
    return {"ece": divide(np.asarray(gaps), column("ece.count"), empty=np.nan)}


def add_calibration(
    builder: StatisticsBuilder,
    full: np.ndarray,
    predicted: np.ndarray,
    names: Sequence[str],
    gold: np.ndarray,
    gold_names: Sequence[str],
) -> None:
    """Add Brier score and expected calibration error of instances with a gold label.

    ``brier`` is the mean of ``sum_c (p_c - [c is gold])^2``, in [0, 2]. A gold label without a probability has p 0.

    Args:
        builder: the columns to extend.
        full: probabilities on the full input, float64 (n, labels).
        predicted: the predicted label of each instance, int (n,).
        names: the labels of the probabilities' columns.
        gold: the gold label of each, a place in ``gold_names``; -1: none.
        gold_names: names of the gold labels.
    """
    places = {name: code for code, name in enumerate(names)}
    truth = np.array([*(places.get(name, -1) for name in gold_names), -1])[gold]
    rows, known = np.arange(truth.size), gold >= 0
    of_truth = np.where(truth >= 0, full[rows, truth], 0.0)
    brier = (full**2).sum(axis=1) - 2 * of_truth + 1
    builder.add_mean("brier", np.where(known, brier, np.nan))
    p = full[rows, predicted]
    bins = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    gap = np.where(known, (truth == predicted) - p, 0.0)
    columns = {f"gap{at}": np.where(bins == at, gap, 0.0) for at in range(BINS)}
    builder.add(Score(4, compute_calibration_error), {**columns, "count": known.astype(float)}, source="ece")
