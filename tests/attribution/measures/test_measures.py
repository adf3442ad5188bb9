"""Measures of rankings: golden values, bounds over all orders, the stated error of what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution import explain_texts
from eraser_hub.attribution.measures import soft
from eraser_hub.attribution.measures.infidelity import compute_infidelity
from eraser_hub.attribution.measures.sensitivity import compute_max_sensitivity

from ..closed_form import EXACT, cases, explain_masks, worth_of

pytestmark = pytest.mark.unit
SIDES = ("comprehensiveness", "sufficiency")
NAOPC = cases("naopc")


def measured(worth, size, *measures, scores=None, **more):
    """The prediction with these measures of a ranking, and the model."""
    given = {"scores": np.zeros(size) if scores is None else scores} if "method" not in more else {}
    return explain_masks(worth, size, measures=measures, **given, **more)


@pytest.mark.parametrize("case", NAOPC)
def test_golden_naopc(case):
    """Expected values: golden/beyond/naopc.json; above ten tokens a beam's bounds enclose the authors'."""
    expected, size = case["expected"], case["tokens"]
    found, model = measured(worth_of(case), size, "aopc-bounds(beam=5)", scores=case["scores"])
    bounds = found["aopc_bounds"]
    for side in SIDES:
        assert bounds[side] == pytest.approx(expected[side], abs=EXACT)
    assert (bounds["sufficiency_lower"], bounds["sufficiency_upper"]) == (bounds["lower"], bounds["upper"])
    if size <= 10:
        assert (bounds["method"], bounds["beam"]) == ("exact", 0)
        assert (bounds["lower"], bounds["upper"]) == pytest.approx((expected["lower"], expected["upper"]), abs=EXACT)
        assert model.asked <= 2**size
    else:
        assert (bounds["method"], bounds["beam"]) == ("beam", 5)
        theirs = expected["beam"]["5"]
        assert bounds["lower"] <= theirs["lower"] + EXACT and bounds["upper"] >= theirs["upper"] - EXACT
        assert model.asked <= 2 * (size + 5 * size * (size - 1) // 2) + 2 * size + 2


@pytest.mark.parametrize("case", [case for case in cases("soft") if case["mask"] == "token"])
def test_golden_soft_scores(case):
    """Expected values: golden/beyond/soft.json."""
    found, _ = measured(worth_of(case), case["tokens"], "soft(draws=2)", scores=case["scores"])
    for side in SIDES:
        assert found["soft_scores"][side] == pytest.approx(case["expected"][side]["expected_normalized"], abs=EXACT)


@pytest.mark.parametrize("case", [case for case in cases("soft") if case["mask"] == "element"])
def test_golden_soft_scores_of_masked_embeddings(case, monkeypatch):
    """The same where each number of an embedding is drawn by itself, with its token's importance."""
    embeddings, a, b = (np.array(case[name]) for name in ("embeddings", "a", "b"))

    def worth(masks):
        h = (np.asarray(masks, dtype=np.float64).reshape(-1, *embeddings.shape) * embeddings).sum(axis=1)
        p = 1 / (1 + np.exp(-(case["bias"] + np.tanh(h) @ a + h**2 @ b)))
        return p if case["target"] == 1 else 1 - p

    monkeypatch.setattr(soft, "EXACT_UNITS", 99)
    scores = np.repeat(case["scores"], len(a))
    found, _ = measured(worth, len(scores), "soft(draws=2)", scores=scores)
    assert found["classification_scores"]["1"] == pytest.approx(case["expected"]["p_full"], abs=EXACT)
    for side in SIDES:
        assert found["soft_scores"][side] == pytest.approx(case["expected"][side]["expected_normalized"], abs=EXACT)


def test_drawn_soft_scores_keep_their_stated_error(monkeypatch):
    variance = lambda case: case["expected"]["sufficiency"].get("variance_of_one_draw", 0)  # noqa: E731
    case = next(case for case in cases("soft") if case["mask"] == "token" and variance(case) > 0.01)
    monkeypatch.setattr(soft, "EXACT_UNITS", 0)
    for seed in range(3):
        found, model = measured(worth_of(case), case["tokens"], "soft(draws=2000)", scores=case["scores"], seed=seed)
        values = found["soft_scores"]
        assert values["draws"] == 2000 and model.asked <= 4002 and values["standard_error"] > 0
        for side in SIDES:  # five standard errors are passed once in two million
            error = abs(values[side] - case["expected"][side]["expected_normalized"])
            assert error < 5 * values["standard_error"]


def gradient_times_mask(case, mask):
    """d p / d m x m of the closed form."""
    m = np.asarray(mask, dtype=np.float64)
    slope = np.array(case["weights"], dtype=np.float64)
    for i, j, v in case["pairs"]:
        slope[i] += v * m[j]
        slope[j] += v * m[i]
    p = worth_of(case)(m)
    return (1 if case["target"] == 1 else -1) * p * (1 - p) * slope * m


@pytest.mark.parametrize("case", cases("shapley"))
def test_golden_infidelity_and_sensitivity(case):
    """Expected values: golden/beyond/shapley.json, by the same perturbations; captum's signs."""
    expected, ones, worth = case["expected"], np.ones(case["tokens"]), worth_of(case)
    steps = np.array(case["perturbations"])
    both = compute_infidelity(np.array(case["scores"]), steps, worth(ones) - worth(ones - steps))
    assert both == pytest.approx((expected["infidelity"], expected["infidelity_normalized"]), abs=EXACT)
    gradient = gradient_times_mask(case, ones)
    assert gradient == pytest.approx(expected["gradient_x_input"], abs=EXACT)
    moved = np.array([gradient_times_mask(case, ones + step) for step in steps])
    largest = expected["sensitivity_max_of_gradient_x_input"]
    assert compute_max_sensitivity(gradient, moved) == pytest.approx(largest, abs=EXACT)
    assert compute_max_sensitivity(np.zeros(2), np.array([[0.0, 3.0]])) == 3


def test_scores_are_computed_anew_without_a_paper_s_filler_as_they_were():
    class Lengths:
        label_names = ("0", "1")

        def predict_proba(self, texts):
            return [[1 - len(text) / 9, len(text) / 9] for text in texts]

    settings = {"paper": "wang2022", "method": "occlusion", "measure": "sensitivity", "target": "1"}
    assert explain_texts(Lengths(), ["a b"], **settings)[0]["sensitivity_max"] < EXACT


def test_tokens_to_flip_is_the_first_change():
    """Between the 8th and the 24th of the ranking the label is another; beyond all tokens it is never."""

    def worth(masks):
        gone = (~masks[:, ::-1]).cumprod(axis=1).sum(axis=1)
        return np.where((gone >= 9) & (gone < 24), 0.1, 0.9)

    found, _ = measured(worth, 30, "tokens-to-flip", scores=np.arange(30.0))
    assert found["tokens_to_flip"] == 9
    found, model = measured(lambda masks: np.full(len(masks), 0.9), 30, "tokens-to-flip", scores=np.arange(30.0))
    assert found["tokens_to_flip"] == 30 and list(model.notes.counts.values()) == [1]
