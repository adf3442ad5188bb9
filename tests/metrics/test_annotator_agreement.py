"""Annotators against their majority, with scikit-learn as the second opinion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.annotator_columns import LEAST_VARIANCE
from eraser_hub.metrics.annotators import agreement, majority

from ..refusals import refused

marks = st.tuples(st.integers(2, 5), st.integers(1, 12)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(0, 1))
)


def compute(rows, **settings):
    return AnnotatorAgreement().compute(references=rows, **settings)


def test_majority_is_strict():
    assert majority(np.array([[1, 1, 0], [1, 0, 0]])).tolist() == [True, False, False]
    assert majority(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1]])).tolist() == [True, True, False]


@given(marks)
@settings(max_examples=150, deadline=None, derandomize=True)
@pytest.mark.filterwarnings("ignore")
def test_agrees_with_scikit_learn(given_marks):
    found, truth = agreement(given_marks), majority(given_marks)
    for at, own in enumerate(given_marks):
        p, r, f1, _ = precision_recall_fscore_support(truth, own, average="binary", zero_division=0)
        assert (found["p"][at], found["r"][at], found["f1"][at]) == pytest.approx((p, r, f1), abs=1e-12)
        if np.isnan(found["cohen_kappa"][at]):
            assert len({*own.tolist(), *truth.astype(int).tolist()}) == 1
        else:
            kappa = cohen_kappa_score(truth, own.astype(bool), labels=[False, True])
            assert found["cohen_kappa"][at] == pytest.approx(kappa, abs=1e-12)


@given(st.lists(marks, min_size=1, max_size=5))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_means_and_spreads_are_over_all_comparisons(texts):
    rows = [{"annotation_id": at, "annotators": one.tolist()} for at, one in enumerate(texts)]
    found = compute(rows)
    parts = [agreement(one) for one in texts]
    for key in ("cohen_kappa", "p", "r", "f1"):
        values = np.concatenate([part[key] for part in parts])
        values = values[~np.isnan(values)]
        if not len(values):
            assert np.isnan(found[key]) and np.isnan(found[f"{key}_std"])
            continue
        assert found[key] == pytest.approx(values.mean(), abs=1e-9)
        # a variance that is a difference of means of numbers up to 1 is off by some spacings, or is taken for 0
        off = max(LEAST_VARIANCE, 4 * len(values) * np.spacing(1.0))
        assert found[f"{key}_std"] == pytest.approx(values.std(), abs=np.sqrt(off))
    assert found["comparisons"] == sum(map(len, texts))


def test_equal_annotators_agree_fully_and_without_spread():
    found = compute([{"annotation_id": at, "annotators": [[0, 1, 1, 0][at % 2 :]] * 3} for at in range(7)])
    assert (found["cohen_kappa"], found["p"], found["r"], found["f1"]) == (1, 1, 1, 1)
    assert all(found[f"{key}_std"] == 0 for key in ("cohen_kappa", "p", "r", "f1"))


def test_kappas_that_are_undefined_are_counted():
    rows = [
        {"annotation_id": "all", "annotators": [[1, 1], [1, 1]]},
        {"annotation_id": "none", "annotators": [[0, 0], [0, 0]]},
        {"annotation_id": "some", "annotators": [[1, 0], [1, 0]]},
    ]
    found = compute(rows, per_instance=True)
    assert (found["undefined_kappas"], found["comparisons"], found["cohen_kappa"]) == (4, 6, 1.0)
    assert found["f1"] == pytest.approx(2 / 3)  # an empty side counts 0
    assert np.isnan(found["per_instance"]["cohen_kappa"]).tolist() == [True, True, False]
    assert np.isnan(compute(rows[:1])["cohen_kappa"])


def test_rows_may_be_predictions_and_references_may_lend_columns():
    rows = [{"annotation_id": at, "annotators": [[0, 1], [1, 1]]} for at in range(3)]
    lent = [{"annotation_id": str(at), "label": "ab"[at % 2]} for at in range(3)]
    found = AnnotatorAgreement().compute(predictions=rows, references=lent, by="label")
    assert set(found["by"]) == {"a", "b"}
    assert found["f1"] == compute(rows)["f1"] == AnnotatorAgreement().compute(predictions=[], references=rows)["f1"]


@pytest.mark.parametrize(
    ("annotators", "rule", "place", "found"),
    [
        (None, "length", "", "None"),
        ([], "length", "", "[]"),
        ([[0, 1]], "length", "", "[[0, 1]]"),
        ([[0, 1], [0]], "length", "[1]", "[0]"),
        ([[], []], "length", "[0]", "[]"),
        ([[0, 1], "01"], "length", "[1]", "'01'"),
        ([[0, 1], [0, 2]], "choice", "[1]", "2"),
        ([[0, 1], [0, 0.5]], "choice", "[1]", "0.5"),
        ([[0, None], [0, 1]], "choice", "[0]", "None"),
        ([[0, "1"], [0, 1]], "choice", "[0]", "'1'"),
    ],
)
def test_wrong_rows_are_named(annotators, rule, place, found):
    shown = "0 or 1" if rule == "choice" else "2 marks" if place == "[1]" else ""
    with refused(rule, f"found {found}", shown, instance="a", field=f"annotators{place}", total=1) as seen:
        compute([{"annotation_id": "a", "annotators": annotators}])
    assert seen.first.side == "reference"


def test_numbers_of_numpy_are_marks():
    plain = [{"annotation_id": 1, "annotators": [[1, 0, 1], [1, 1, 0]]}]
    arrays = [{"annotation_id": 1, "annotators": [list(np.array([1, 0, 1])), np.array([True, True, False])]}]
    found = [AnnotatorAgreement().compute(references=one) for one in (plain, arrays)]
    assert found[0] == found[1]
