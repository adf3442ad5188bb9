"""Soft scores: the golden values by enumeration, drawn ones within their stated error, no division by nothing."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution.measures.soft_scores import compute_soft_scores, normalise_losses

from ..closed_form import EXACT, cases, full_of, result_of, worth_of

pytestmark = pytest.mark.unit

CASES = [case for case in cases("soft") if case["mask"] == "token"]


def worth_of_elements(case):
    """p of masks over the numbers of a case's embeddings, token after token: its sum h bends by tanh and squares."""
    embeddings, a, b = (np.array(case[name]) for name in ("embeddings", "a", "b"))

    def worth(coalitions):
        h = (np.asarray(coalitions, dtype=np.float64).reshape(-1, *embeddings.shape) * embeddings).sum(axis=1)
        p = 1 / (1 + np.exp(-(case["bias"] + np.tanh(h) @ a + h**2 @ b)))
        return p if case["target"] == 1 else 1 - p

    return worth


@pytest.mark.parametrize("case", [case for case in cases("soft") if case["mask"] == "element"])
def test_golden_values_of_masked_embeddings(case):
    """The same where each number of an embedding is drawn by itself, with its token's importance."""
    expected, width = case["expected"], len(case["a"])
    scores, worth = np.repeat(case["scores"], width), worth_of_elements(case)
    full = float(worth(np.ones((1, len(scores))))[0])
    assert full == pytest.approx(expected["p_full"], abs=EXACT)
    search = compute_soft_scores(scores, full, 2, np.random.default_rng(0), exact_up_to=len(scores))
    result, _ = result_of(search, worth)
    for side in ("comprehensiveness", "sufficiency"):
        assert getattr(result, side) == pytest.approx(expected[side]["expected_normalized"], abs=EXACT)


def test_drawn_scores_keep_their_stated_error():
    """Nine units, of which the last says nothing: the exact value is that of the first eight."""
    case = next(
        case for case in CASES if case["tokens"] == 8 and case["expected"]["sufficiency"]["variance_of_one_draw"] > 0.01
    )
    worth = lambda sets: worth_of(case)(np.asarray(sets)[:, :8])  # noqa: E731
    scores = np.array([*case["scores"], min(case["scores"])])
    for seed in range(3):
        result, inputs = result_of(compute_soft_scores(scores, full_of(case), 2000, np.random.default_rng(seed)), worth)
        assert result.draws == 2000 and inputs <= 4001
        for side in ("comprehensiveness", "sufficiency"):
            # the stated error is the larger of both sides'; five of them are passed once in two million
            assert (
                abs(getattr(result, side) - case["expected"][side]["expected_normalized"]) < 5 * result.standard_error
            )


def test_nothing_to_normalise_by():
    p = np.array([0.1, 0.9])
    assert [values.tolist() for values in normalise_losses(0.5, p, 0.5)] == [[0, 0], [0, 0]]
    assert [values.tolist() for values in normalise_losses(0.5, p, 0.8)] == [[0, 0], [0, 0]]
    empty, _ = result_of(
        compute_soft_scores(np.zeros(0), 0.5, 2, np.random.default_rng(0)), lambda sets: np.full(len(sets), 0.5)
    )
    assert empty == (0, 0, 0, 0)
