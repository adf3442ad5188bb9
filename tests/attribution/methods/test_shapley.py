"""Shapley values: golden, the efficiency axiom, the stated error of drawn ones."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution.methods._shapley_values import compute_exact_shapley
from eraser_hub.attribution.methods.kernel_shap import compute_kernel_shapley, draw_kernel_coalitions
from eraser_hub.attribution.methods.shapley import compute_permutation_shapley

from ..closed_form import EXACT, cases, result_of, worth_of

pytestmark = pytest.mark.unit

CASES = cases("shapley")
solve = lambda left, right: np.linalg.lstsq(left, right, rcond=None)[0]  # noqa: E731


@pytest.mark.parametrize("case", CASES)
def test_golden_values(case):
    """Expected values: golden/beyond/shapley.json. To ten units the kernel's fit is exact too, and both stop there."""
    expected, size = case["expected"], case["tokens"]
    random = np.random.default_rng(0)
    for search in (
        compute_exact_shapley(size),
        compute_permutation_shapley(size, 1, random),
        compute_kernel_shapley(size, 0, random, solve),
    ):
        (values, error), inputs = result_of(search, worth_of(case))
        assert values == pytest.approx(expected["shapley"], abs=EXACT)
        assert error == 0 and inputs == 2**size


def long_game(size=14):
    """A game above the exact size, and its Shapley values by the definition."""
    random = np.random.default_rng(5)
    case = {
        "tokens": size,
        "bias": -0.5,
        "weights": random.normal(size=size).tolist(),
        "target": 1,
        "pairs": [[i, i + 1, float(random.normal())] for i in range(0, size - 1, 2)],
    }
    return worth_of(case), result_of(compute_exact_shapley(size), worth_of(case))[0].values


def test_permutations_keep_the_sum_and_their_stated_error():
    worth, exact = long_game()
    (values, error), _ = result_of(compute_permutation_shapley(14, 400, np.random.default_rng(1)), worth)
    ends = worth(np.array([[True] * 14, [False] * 14]))
    assert values.sum() == pytest.approx(ends[0] - ends[1], abs=EXACT)
    # the largest of 14 errors, each of which passes five standard errors once in two million
    assert error > 0 and np.abs(values - exact).max() < 5 * error
    assert np.isnan(result_of(compute_permutation_shapley(14, 1, np.random.default_rng(1)), worth)[0].standard_error)


def test_antithetic_pairs_are_exact_for_pairwise_games():
    """What a unit adds before and after the others averages to its Shapley value where only pairs interact."""
    random = np.random.default_rng(2)
    single, pairs = random.normal(size=12), np.triu(random.normal(size=(12, 12)), 1)

    def worth(sets):
        coalitions = np.asarray(sets, float)
        return ((coalitions @ pairs) * coalitions).sum(axis=1) + coalitions @ single

    (values, error), _ = result_of(compute_permutation_shapley(12, 2, random), worth)
    assert values == pytest.approx(single + (pairs + pairs.T).sum(axis=1) / 2, abs=EXACT)
    assert error < EXACT


def test_kernel_keeps_the_sum_and_nears_the_values():
    worth, exact = long_game()
    errors = []
    for samples in (200, 12_800):
        (values, error), inputs = result_of(compute_kernel_shapley(14, samples, np.random.default_rng(1), solve), worth)
        ends = worth(np.array([[True] * 14, [False] * 14]))
        assert values.sum() == pytest.approx(ends[0] - ends[1], abs=EXACT)
        assert np.isnan(error) and inputs <= samples + 2
        errors.append(np.abs(values - exact).max())
    # 64 times the samples: an eighth of the error, and half of that is left to chance
    assert errors[1] < errors[0] / 4


def test_kernel_sets_come_with_their_complements():
    sets = draw_kernel_coalitions(20, 101, np.random.default_rng(0))
    assert sets.shape == (101, 20)
    assert (sets[:100:2] ^ sets[1:100:2]).all()
    assert sets.sum(axis=1).min() > 0 and sets.sum(axis=1).max() < 20


@pytest.mark.parametrize("size", [0, 1, 2, 11])
def test_sizes(size):
    worth = lambda sets: np.asarray(sets, float).sum(axis=1)  # noqa: E731
    for search in (
        compute_permutation_shapley(size, 2, np.random.default_rng(0)),
        compute_kernel_shapley(size, 50, np.random.default_rng(0), solve),
    ):
        assert result_of(search, worth)[0].values == pytest.approx(np.ones(size), abs=EXACT)
