"""Faithfulness leaves: closed forms, scipy and scikit-learn as second opinions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.erasure import (
    add_labels,
    classification_report,
    compute_curve,
    count_labels,
    drop,
    entropy,
    find_threshold_columns,
    kl_divergence,
)
from eraser_hub.metrics.statistics_builder import Score, StatisticsBuilder

pytestmark = pytest.mark.unit

row = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda p: sum(p) > 0.01)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.tuples(row, row), min_size=1, max_size=5))
def test_scipy_agrees(rows: list[tuple[list[float], list[float]]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    full, erased = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    for k in range(len(rows)):
        assert entropy(full)[k] == pytest.approx(stats.entropy(full[k]), abs=1e-9)
        assert kl_divergence(erased, full)[k] == pytest.approx(stats.entropy(erased[k], full[k]), abs=1e-9, rel=1e-9)


def test_nothing_erased_changes_nothing() -> None:
    full, label = np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0])
    assert drop(full, full, label).tolist() == [0.0, 0.0]
    assert kl_divergence(full, full) == pytest.approx([0.0, 0.0])
    assert drop(full, full[:, None, :].repeat(3, axis=1), label).tolist() == [[0.0] * 3] * 2


def test_kl_is_infinite_where_the_original_is_zero() -> None:
    assert kl_divergence(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])).tolist() == [np.inf]
    assert kl_divergence(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])) == pytest.approx([np.log(2)])


def test_thresholds_in_any_order_and_within_rounding() -> None:
    thresholds = np.array([0.3, 0.1, 0.1, 0.1 + 0.2, 0.1, 0.1, 0.3])
    positions, good = find_threshold_columns(thresholds, np.array([0, 2, 4, 6, 7]), np.array([0.1, 0.3]))
    assert good.tolist() == [True, True, False, False]
    assert positions[:2].tolist() == [[1, 0], [2, 3]]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20))
def test_scikit_learn_report_agrees(pairs: list[tuple[int, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels = ["a", "b", "c"]
    truth, predicted = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    builder = StatisticsBuilder(len(pairs))
    add_labels(builder, labels, (labels, truth), (labels, predicted))
    count_labels(builder, sorted({labels[code] for pair in pairs for code in pair}))
    scores = builder.statistics(["all"] * builder.n).scores()
    names = [[labels[k] for k in column] for column in (truth, predicted)]
    expected = metrics.classification_report(*names, output_dict=True, zero_division=0)
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(*names))
    assert scores["macro_f1"] == pytest.approx(expected["macro avg"]["f1-score"])
    report = classification_report(builder)
    assert report.keys() == expected.keys() | {"accuracy"} if "accuracy" in expected else True
    for key, value in expected.items():
        assert report[key] == pytest.approx(value)


def test_sums_of_parts_give_the_parts_scores() -> None:
    builder = StatisticsBuilder(4)
    builder.add_mean("x", np.array([1.0, np.nan, 3.0, np.nan]))
    points = {"y_aopc.sum0": np.array([0.0, 1.0, 0.5, 0.0]), "y_aopc.sum1": np.array([1.0, 1.0, 0.5, 0.0])}
    builder.add(Score(3, compute_curve, ("y_aopc", 2)), points | {"y_aopc.count": np.ones(4)})
    values = builder.statistics([str(k) for k in range(builder.n)]).values
    whole = builder.finalize(values.sum(axis=0))
    assert whole["x"] == 2.0 and whole["y_aopc_points"].tolist() == [0.375, 0.625] and whole["y_aopc"] == 0.5
    assert np.isnan(builder.finalize(values[1])["x"])
    rows = builder.finalize(values)
    assert rows["x"].shape == (4,) and rows["y_aopc_points"].shape == (4, 2)
