"""Scores of labels that are no single classes: F1 of several labels a text, and errors of a number.

Predictions of a regression have one output, `VALUE`, in place of probabilities. Its comprehensiveness and sufficiency
are absolute changes of this output, in the units of the gold values: a rationale may raise or lower the number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eraser_hub.schema.label_tasks import PRESENT, VALUE

from .statistics_builder import Column, Score, ScoreInfo, StatisticsBuilder, divide

# key -> (higher is better, lowest, highest)
LABEL_SCORES: ScoreInfo = {
    "label_micro_f1": (True, 0.0, 1.0),
    "label_macro_f1": (True, 0.0, 1.0),
    "mean_absolute_error": (False, 0.0, None),
    "root_mean_squared_error": (False, 0.0, None),
    "pearson_r": (True, -1.0, 1.0),
}
_PARTS = ("truth", "predicted", "hits")
_SUMS = ("count", "absolute", "squared", "x", "y", "xx", "yy", "xy")


def is_regression(outputs: Sequence[str], labels: Sequence[str] | None) -> bool:
    """Return True if predictions with these outputs are numbers: `VALUE` alone, and the gold labels are numbers."""
    return list(outputs) == [VALUE] and all(map(_is_number, labels or ()))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def compute_label_f1(column: Column, *labels: str) -> dict[str, np.ndarray]:
    """Return F1 of the present labels of texts: over all pairs of a text and a label, and the mean of the labels' own.

    A label that no text has and that is never predicted counts as 0 in the macro F1, as in scikit-learn.
    """
    truth, predicted, hits = (np.stack([column(f"query {label}.{part}") for label in labels], -1) for part in _PARTS)
    micro = divide(2 * hits.sum(axis=-1), (truth + predicted).sum(axis=-1))
    return {"label_micro_f1": micro, "label_macro_f1": divide(2 * hits, truth + predicted).mean(axis=-1)}


def add_label_f1(
    builder: StatisticsBuilder, labels: Sequence[str], queries: Sequence[str], truth: np.ndarray, predicted: np.ndarray
) -> None:
    """Add the counts of `compute_label_f1`.

    Args:
        builder: the columns to extend.
        labels: all labels of the corpus.
        queries: the label of each annotation.
        truth: the gold class of each annotation, str (n,).
        predicted: the predicted class, likewise.
    """
    own, true, chosen = np.asarray(queries, dtype=object), truth == PRESENT, predicted == PRESENT
    for label in labels:
        here = own == label
        columns = {"truth": here & true, "predicted": here & chosen, "hits": here & true & chosen}
        builder.add(None, columns, source=f"query {label}")
    builder.add(Score(4, compute_label_f1, tuple(labels)), {})


def compute_number_errors(column: Column) -> dict[str, np.ndarray]:
    """Return mean absolute error, root of the mean squared error, and Pearson's r; NaN where a side is constant."""
    n, absolute, squared, x, y, xx, yy, xy = (column(f"number.{part}") for part in _SUMS)
    with np.errstate(invalid="ignore"):
        spread = np.sqrt(np.maximum(n * xx - x * x, 0.0) * np.maximum(n * yy - y * y, 0.0))
        squared = np.sqrt(divide(squared, n, empty=np.nan))
    return {
        "mean_absolute_error": divide(absolute, n, empty=np.nan),
        "root_mean_squared_error": squared,
        # a spread that rounding leaves of a constant side is none
        "pearson_r": divide(n * xy - x * y, np.where(spread > 1e-9 * np.abs(n * xy), spread, 0.0), empty=np.nan),
    }


def add_number_errors(builder: StatisticsBuilder, truth: np.ndarray, values: np.ndarray) -> None:
    """Add the sums of `compute_number_errors`.

    Args:
        builder: the columns to extend.
        truth: the gold value of each annotation, float64 (n,).
        values: the predicted one, likewise.
    """
    errors = values - truth
    parts = (np.ones(truth.size), np.abs(errors), errors**2, truth, values, truth**2, values**2, truth * values)
    builder.add(Score(4, compute_number_errors), dict(zip(_SUMS, parts, strict=True)), source="number")
