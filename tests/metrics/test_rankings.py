"""AUPRC, average precision, ROC-AUC: the golden cases and scikit-learn as a second opinion."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.issues import check_choice
from eraser_hub.metrics.rankings import (
    AUPRC_POLICIES,
    Rankings,
    baseline_seeds,
    compute_random_baseline,
    rank_documents,
    rank_rationales,
    shuffle,
)

from ..refusals import refused

pytestmark = pytest.mark.unit

score = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.0]), st.floats(-5, 5, allow_nan=False))
document = st.lists(st.tuples(score, st.booleans()), min_size=1, max_size=30)


def flat(documents: list[list[tuple[float, bool]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in documents])]).astype(np.int64)
    pairs = [pair for one in documents for pair in one]
    return np.array([p[0] for p in pairs], dtype=float), np.array([p[1] for p in pairs], dtype=bool), offsets


def test_golden_cases(golden: Path) -> None:
    """Expected values: golden/small/soft_rationales.json (scikit-learn through the reference scorer)."""
    for case in json.loads((golden / "small" / "soft_rationales.json").read_text())["cases"]:
        documents = [list(zip(one["scores"], map(bool, one["truth"]), strict=True)) for one in case["documents"]]
        found = rank_documents(*flat(documents))
        for key, expected in case["expected"].items():
            values = getattr(found, key)
            values = values[~np.isnan(values)]
            assert (values.mean() if values.size else None) == (
                None if expected is None else pytest.approx(expected, abs=1e-9)
            )


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(document, min_size=1, max_size=6))
def test_scikit_learn_agrees(documents: list[list[tuple[float, bool]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    found = rank_documents(*flat(documents))
    for k, one in enumerate(documents):
        truth, scores = [int(t) for _, t in one], [s for s, _ in one]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            precision, recall, _ = metrics.precision_recall_curve(truth, scores)
        assert found.auprc[k] == pytest.approx(metrics.auc(recall, precision), abs=1e-9)
        if 0 < sum(truth) < len(truth):
            assert found.average_precision[k] == pytest.approx(metrics.average_precision_score(truth, scores), abs=1e-9)
            assert found.roc_auc_score[k] == pytest.approx(metrics.roc_auc_score(truth, scores), abs=1e-9)
        else:
            assert np.isnan(found.average_precision[k]) and np.isnan(found.roc_auc_score[k])


@pytest.mark.parametrize("sizes", [[3000], [1, 5000, 2, 40, 40, 1500], [17] * 300, [0, 5, 0]])
def test_long_short_and_mixed_documents_agree_with_one_at_a_time(sizes: list[int]) -> None:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores, truth = random.integers(0, 50, offsets[-1]) / 50, random.random(offsets[-1]) < 0.2
    found = rank_documents(scores, truth, offsets)
    for k in range(len(sizes)):
        part = slice(offsets[k], offsets[k + 1])
        alone = rank_documents(scores[part], truth[part], np.array([0, sizes[k]]))
        for name in Rankings._fields:
            assert getattr(found, name)[k] == pytest.approx(getattr(alone, name)[0], abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("value", AUPRC_POLICIES.values())
def test_policies_for_documents_without_positives(value: float) -> None:
    found = rank_documents(np.array([0.5, 0.1]), np.zeros(2, dtype=bool), np.array([0, 2]), value)
    assert found.auprc.tolist() == pytest.approx([value], nan_ok=True)


def test_unknown_policy() -> None:
    with refused("option-value", "reference, skip, zero, one", "'best'", field="auprc_policy"):
        check_choice("best", AUPRC_POLICIES, "auprc_policy")


def test_shuffles_depend_on_names_alone() -> None:
    random = np.random.default_rng(0)
    scores, offsets = random.random(30), np.array([0, 10, 30])
    seeds = baseline_seeds(["a\0d", "b\0d"])
    both = shuffle(scores, offsets, seeds)
    second = shuffle(scores[10:], np.array([0, 20]), seeds[1:])
    assert both[10:].tolist() == second.tolist()
    assert sorted(both[:10]) == sorted(scores[:10]) and both.tolist() != scores.tolist()


def test_random_baseline_is_near_chance() -> None:
    random = np.random.default_rng(0)
    truth, offsets = random.random(4000) < 0.3, np.arange(0, 4001, 100)
    scores = random.random(4000) + truth
    found = compute_random_baseline(scores, truth, offsets, baseline_seeds([str(k) for k in range(40)]))
    # the variance of one shuffle's ROC-AUC (Mann and Whitney), of 40 documents with about 30 positives, 10 shuffles
    error = np.sqrt((100 + 1) / (12 * 30 * 70) / (40 * 10))
    assert found.roc_auc_score.mean() == pytest.approx(0.5, abs=5 * error)
    assert rank_documents(scores, truth, offsets).roc_auc_score.min() > 0.9


def test_rationales_without_scores_stay_undefined() -> None:
    sizes, scores = np.array([-1, 3, -1, 0]), np.array([0.9, 0.1, 0.2])
    ranked = rank_rationales(sizes, scores, (np.array([1]), np.array([0]), np.array([1])))
    assert np.isnan(ranked.scores[[0, 2]]).all()
    assert ranked.scores[1].tolist() == [1.0, 1.0, 1.0]
    assert ranked.scores[3][0] == 0.5
    assert ranked.decided.tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]


def test_decisions() -> None:
    spans = np.array([0]), np.array([0]), np.array([2])
    ranked = rank_rationales(np.array([2, 1]), np.array([0.5, 0.4, 0.9]), spans)
    assert ranked.decided.tolist() == [[2, 1, 1], [0, 1, 0]]


@pytest.mark.parametrize("at_once", [1, 4, 7])
def test_rationales_in_many_rounds_are_those_of_one(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    sizes = np.array([3, -1, 0, 5, 2, 4])
    scores = random.random(int(np.maximum(sizes, 0).sum()))
    spans = np.array([0, 3, 3, 5]), np.array([0, 1, 4, 2]), np.array([2, 2, 5, 4])
    whole = rank_rationales(sizes, scores, spans, seeds=np.arange(6), n_shuffles=2)
    monkeypatch.setattr("eraser_hub.metrics.rankings.TOKENS_AT_ONCE", at_once)
    rounds = rank_rationales(sizes, scores, spans, seeds=np.arange(6), n_shuffles=2)
    for one, other in zip(whole, rounds, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.isfinite(whole.scores).any() and whole.decided.sum() > 0
