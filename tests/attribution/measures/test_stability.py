"""Infidelity and sensitivity with fixed perturbations: the golden values, captum's signs."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution.measures.infidelity import compute_infidelity, draw_perturbations, evaluate_infidelity
from eraser_hub.attribution.measures.sensitivity import compute_max_sensitivity

from ..closed_form import EXACT, cases, full_of, result_of, worth_of

pytestmark = pytest.mark.unit


def gradient_times_mask(case, mask):
    """d p / d m x m of the closed form."""
    m = np.asarray(mask, dtype=np.float64)
    slope = np.array(case["weights"], dtype=np.float64)
    for i, j, v in case["pairs"]:
        slope[i] += v * m[j]
        slope[j] += v * m[i]
    p = worth_of(case)(m)
    sign = 1 if case["target"] == 1 else -1
    return sign * p * (1 - p) * slope * m


@pytest.mark.parametrize("case", cases("shapley"))
def test_golden_values(case):
    """Expected values: golden/beyond/shapley.json."""
    expected, ones, scores = case["expected"], np.ones(case["tokens"]), np.array(case["scores"])
    steps = np.array(case["perturbations"])
    drops = full_of(case) - worth_of(case)(ones - steps)
    assert compute_infidelity(scores, steps, drops) == pytest.approx(expected["infidelity"], abs=EXACT)
    normalised = compute_infidelity(scores, steps, drops, normalise=True)
    assert normalised == pytest.approx(expected["infidelity_normalized"], abs=EXACT)
    gradient = gradient_times_mask(case, ones)
    assert gradient == pytest.approx(expected["gradient_x_input"], abs=EXACT)
    moved = [gradient_times_mask(case, ones + step) for step in steps]
    largest = expected["sensitivity_max_of_gradient_x_input"]
    assert compute_max_sensitivity(gradient, moved) == pytest.approx(largest, abs=EXACT)


def test_exact_scores_of_an_additive_model_have_no_infidelity():
    weights = np.arange(1.0, 21.0) / 400
    coalitions = draw_perturbations(20, 7, np.random.default_rng(0))
    assert coalitions.shape == (7, 20) and (~coalitions).sum(axis=1).tolist() == [2] * 7
    worth = lambda sets: np.asarray(sets, float) @ weights  # noqa: E731
    (plain, scaled), _ = result_of(evaluate_infidelity(weights, weights.sum(), coalitions), worth)
    assert plain < EXACT and scaled < EXACT
    (plain, scaled), _ = result_of(evaluate_infidelity(100 * weights, weights.sum(), coalitions), worth)
    assert plain > 1 and scaled < EXACT  # another scale of the same scores


def test_scores_of_zero_are_scores():
    coalitions = draw_perturbations(5, 3, np.random.default_rng(0))
    (plain, scaled), _ = result_of(
        evaluate_infidelity(np.zeros(5), 0.9, coalitions), lambda sets: np.full(len(sets), 0.4)
    )
    assert plain == scaled == pytest.approx(0.25)
    assert compute_max_sensitivity(np.zeros(2), [np.array([0.0, 3.0])]) == 3.0
    assert compute_max_sensitivity(np.zeros(0), []) == 0.0
