"""Methods that ask for erased inputs: golden values, closed forms, the stated error of what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution.methods.kernel_shap import draw_kernel_sets
from eraser_hub.attribution.methods.lime import Lime

from ..closed_form import EXACT, cases, explain_masks, worth_of

pytestmark = pytest.mark.unit
DRAWN = ("shapley(draws=2)", "kernel-shap(samples=50)")
WEIGHTS = np.random.default_rng(5).normal(size=14) / 20


def linear(masks):
    return 0.5 + np.asarray(masks, float) @ WEIGHTS[: np.shape(masks)[1]]


@pytest.mark.parametrize("method", DRAWN)
@pytest.mark.parametrize("case", cases("shapley"))
def test_golden_shapley_values(case, method):
    """Expected values: golden/beyond/shapley.json. To ten units both look at every set, and no error is told."""
    found, model = explain_masks(worth_of(case), case["tokens"], method)
    assert found["scores"] == pytest.approx(case["expected"]["shapley"], abs=EXACT)
    assert model.asked == 2 ** case["tokens"] and not model.notes.maxima


@pytest.mark.parametrize("method", ["occlusion", *DRAWN])
@pytest.mark.parametrize("size", [1, 2, 11, 14])
def test_scores_of_a_linear_p_are_its_weights(method, size):
    found, _ = explain_masks(linear, size, method)
    assert found["scores"] == pytest.approx(WEIGHTS[:size], abs=EXACT)
    sentences, _ = explain_masks(linear, size, method, sentences=(1, size - 1)[: min(size, 2)], units="sentences")
    sums = [WEIGHTS[0], *([WEIGHTS[1:size].sum()] if size > 1 else [])]
    assert sentences["rationales"][0]["soft_sentence_predictions"] == pytest.approx(sums, abs=EXACT)


def test_lime_weighs_by_ridge_regression():
    """Of a linear p the weights shrink by the penalty alone, which 5,000 samples make small."""
    found, model = explain_masks(linear, 14, "lime")
    assert found["scores"] == pytest.approx(WEIGHTS, rel=0.02, abs=2e-4) and model.asked <= 5000
    assert explain_masks(linear, 14, "lime(samples=50, tokens=3)")[0]["scores"].shape == (14,)


def test_lime_draws_uniform_numbers_of_tokens_and_keeps_other_sequences():
    random = np.random.default_rng(0)
    sets = Lime(samples=4001).draw(random, [0, 10])
    assert sets[0].all() and np.bincount(sets[1:].sum(axis=1)) == pytest.approx([400] * 10, abs=100)  # five errors
    assert sets[1:].mean(axis=0) == pytest.approx([0.45] * 10, abs=0.04)
    assert set(Lime(samples=50, tokens=3).draw(random, [0, 10])[1:].sum(axis=1)) == {3}
    pair = Lime(samples=50).draw(random, [0, 4, 10])
    assert pair[1::2, 4:].all() and pair[2::2, :4].all() and not pair[1::2, :4].all(axis=1).any()


def long_game():
    """A game above the exact size, and its Shapley values by the definition."""
    random = np.random.default_rng(5)
    pairs = [[i, i + 1, float(random.normal())] for i in range(0, 9, 2)]
    worth = worth_of({"bias": -0.5, "weights": random.normal(size=10).tolist(), "target": 1, "pairs": pairs})
    exact = explain_masks(worth, 10, "shapley")[0]["scores"]
    return lambda masks: worth(np.asarray(masks)[:, :10]), np.append(exact, [0.0] * 4)  # four tokens say nothing


def test_permutations_keep_the_sum_and_their_stated_error():
    worth, exact = long_game()
    found, model = explain_masks(worth, 14, "shapley(draws=400)")
    ends = worth(np.array([[True] * 14, [False] * 14]))
    assert found["scores"].sum() == pytest.approx(ends[0] - ends[1], abs=1e-8)
    error = model.notes.maxima["largest standard error of a Shapley value"]
    # the largest of 14 errors, each of which passes five standard errors once in two million
    assert error > 0 and np.abs(found["scores"] - exact).max() < 5 * error
    assert not explain_masks(worth, 14, "shapley(draws=1)")[1].notes.maxima


def test_kernel_shap_keeps_the_sum_and_nears_the_values():
    worth, exact = long_game()
    ends = worth(np.array([[True] * 14, [False] * 14]))
    errors = []
    for samples in (200, 12_800):
        found, model = explain_masks(worth, 14, f"kernel-shap(samples={samples})")
        assert found["scores"].sum() == pytest.approx(ends[0] - ends[1], abs=1e-8) and model.asked <= samples + 4
        errors.append(np.abs(found["scores"] - exact).max())
    # 64 times the samples: an eighth of the error, and half of that is left to chance
    assert errors[1] < errors[0] / 4
    sets = draw_kernel_sets(20, 101, np.random.default_rng(0))
    assert sets.shape == (101, 20) and (sets[:100:2] ^ sets[1:100:2]).all()
    assert sets.sum(axis=1).min() > 0 and sets.sum(axis=1).max() < 20
