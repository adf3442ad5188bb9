"""Calibration on full inputs, held against scikit-learn and the definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from eraser_hub.metrics.calibration import add_calibration
from eraser_hub.metrics.statistics_builder import StatisticsBuilder

pytestmark = pytest.mark.unit
NAMES = ("a", "b", "c")


def calibrate(full, predicted, gold, gold_names=NAMES):
    full = np.asarray(full, dtype=float)
    builder = StatisticsBuilder(len(full))
    add_calibration(builder, full, np.asarray(predicted), NAMES, np.asarray(gold), gold_names)
    scores = builder.statistics([str(at) for at in range(len(full))]).scores()
    return float(scores["brier"]), float(scores["ece"])


def test_brier_is_scikit_learns():
    random = np.random.default_rng(0)
    full = random.dirichlet([1, 1, 1], 50)
    gold = random.integers(0, 3, 50)
    brier, _ = calibrate(full, full.argmax(axis=1), gold)
    assert brier == pytest.approx(brier_score_loss(gold, full, labels=[0, 1, 2]))


def test_the_calibration_error_weighs_bins_by_their_size():
    # two instances of p .75, one right: |.5 - .75|; two of .95, both right: .05
    full = [[0.75, 0.25, 0], [0.75, 0.25, 0], [0.95, 0.05, 0], [0.95, 0.05, 0]]
    _, ece = calibrate(full, [0, 0, 0, 0], [0, 1, 0, 0])
    assert ece == pytest.approx((2 * 0.25 + 2 * 0.05) / 4)
    assert calibrate([[1, 0, 0]], [0], [0]) == (0, 0), "a probability of 1 is in the last bin"
    assert calibrate([[1, 0, 0]], [0], [1]) == (2, 1)


def test_a_gold_label_without_a_probability_has_none_and_a_missing_one_does_not_count():
    brier, ece = calibrate([[0.5, 0.5, 0], [0.9, 0.1, 0]], [0, 0], [1, -1], ("a", "other"))
    assert brier == pytest.approx(0.25 + 0.25 + 1) and ece == pytest.approx(0.5)
    assert np.isnan(calibrate([[1, 0, 0]], [0], [-1])).all()
