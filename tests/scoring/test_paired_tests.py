"""Paired tests, held against scipy, the golden values and the textbook definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eraser_hub.scoring.paired_tests import (
    Pair,
    find_differing,
    holm,
    randomisation,
)

from ..metrics.clustered import case_weights, clustered_cases, sums_of
from ..metrics.test_resampling import ratio
from ..refusals import refused

pytestmark = pytest.mark.unit


def paired(n, shift=0.35, seed=5):
    random = np.random.default_rng(seed)
    first, noise = random.normal(size=n), random.normal(size=n)
    return np.column_stack([first, np.ones(n)]), np.column_stack([first + shift + 0.8 * noise, np.ones(n)])


def pair(first, second, finalize=ratio):
    return Pair([first], [second], finalize)


def runs(shifts, n=200, seed=0, noise=0.0):
    """Runs on the same documents, each moved by its seed's shift."""
    random = np.random.default_rng(seed)
    base = np.random.default_rng(99).normal(size=n)
    return [np.column_stack([base + shift + noise * random.normal(size=n), np.ones(n)]) for shift in shifts]


def test_tests_meet_the_golden_values(golden):
    for case in clustered_cases(golden):
        (first, finalize), (second, _) = sums_of(case, "a"), sums_of(case, "b")
        both, expected = pair(first, second, finalize), case["expected"]["difference"]
        assert float(both.observed["value"]) == pytest.approx(expected["value"], abs=1e-9)
        assert randomisation(both, 2 ** len(first))["value"] == pytest.approx(expected["exchange_p"], abs=1e-9)
        drawn = both.differences(case_weights(case) @ both.rows)["value"]
        assert drawn.std(ddof=1) == pytest.approx(expected["standard_error"], abs=1e-9)


def test_randomisation_agrees_with_scipy_when_exact():
    first, second = paired(9)
    theirs = stats.permutation_test(
        (first[:, 0], second[:, 0]),
        lambda a, b: a.mean() - b.mean(),
        permutation_type="samples",
        n_resamples=10**5,
    ).pvalue
    assert randomisation(pair(first, second), 2**9)["ratio"] == pytest.approx(theirs, abs=1e-12)


def test_randomisation_agrees_with_scipy_when_sampled():
    first, second = paired(60)
    ours = randomisation(pair(first, second), 20000)["ratio"]
    theirs = stats.permutation_test(
        (first[:, 0], second[:, 0]),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20000,
        rng=np.random.default_rng(1),
    ).pvalue
    # two shares of 20000 draws: four standard errors of their difference, and one draw
    assert ours == pytest.approx(theirs, abs=4 * np.sqrt(2 * max(theirs, 1 / 20000) / 20000) + 1 / 20000)


def test_randomisation_is_symmetric_and_one_for_equal_systems():
    first, second = paired(30)
    assert randomisation(pair(first, second), 500) == randomisation(pair(second, first), 500)
    assert randomisation(pair(first, first), 500)["ratio"] == 1.0


def macro_and_micro(sums):
    return {"mean": sums[..., 0] / sums[..., 2], "ratio": sums[..., 0] / sums[..., 1], "spread": sums[..., 1]}


def test_few_clusters_that_differ_are_exchanged_exactly():
    """6 of 40 differ in the first column, always to one side: 2 of the 64 exchanges are as far apart."""
    first = np.column_stack([np.r_[np.ones(6), np.zeros(34)], np.arange(40) + 1.0, np.ones(40)])
    second = first + np.column_stack([-np.r_[np.ones(6), np.zeros(34)], np.arange(40) % 3 - 1.0, np.zeros(40)])
    both = pair(first, second, macro_and_micro)
    found = [randomisation(both, 10_000, seed) for seed in range(3)]
    assert [one["mean"] for one in found] == [2 / 64] * 3
    assert {key: int(own.sum()) for key, own in find_differing(both).items()} == {"mean": 6, "ratio": 6, "spread": 27}
    assert len({one["ratio"] for one in found}) == 3, "equal ratios of other counts change the ratio of sums: drawn"
    alone = find_differing(pair(first, second, lambda sums: {"none": sums[..., 0] * np.nan}))
    assert alone["none"].sum() == 29, "what has no score alone counts if its statistics differ"


def test_infinite_statistics_are_exchanged_and_never_become_nan():
    first, second = paired(12)
    first[3, 0] = np.inf
    p = randomisation(pair(first, second), 2**12)["ratio"]
    assert p == 1.0  # every exchange is infinitely apart


def test_a_ratio_of_sums_is_recomputed_from_exchanged_sums():
    # 2 instances: the exchanges of (3/4, 1/4) against (1/1, 1/3), by hand
    first, second = np.array([[3.0, 4], [1, 4]]), np.array([[1.0, 1], [1, 3]])
    differences = [4 / 8 - 2 / 4, 2 / 5 - 4 / 7, 4 / 7 - 2 / 5, 2 / 4 - 4 / 8]
    assert differences[0] == 0
    assert randomisation(pair(first, second), 4)["ratio"] == 1.0
    # 4/5 - 2/4 = .3; 4/7 - 2/2 and back: larger; so all four count
    assert randomisation(pair(np.array([[3.0, 4], [1, 1]]), second), 4)["ratio"] == 1.0


def test_a_system_with_itself_differs_by_nothing_and_shows_nothing():
    first, _ = paired(20)
    both = pair(first, first)
    model = both.models()["ratio"]
    assert (float(model.difference), float(model.clusters)) == (0, 0)
    assert np.isnan([*model.interval(0.95), model.p_value(), model.detectable()]).all()


def test_undefined_scores_have_undefined_tests():
    first, second = paired(20)
    both = pair(first, second, lambda sums: {**ratio(sums), "none": sums[..., 0] * np.nan})
    assert np.isnan(randomisation(both, 50)["none"])
    model = both.models()["none"]
    assert np.isnan([model.detectable(), *model.interval(0.95), model.p_value()]).all()
    with refused("length", "[("):
        pair(*paired(3)[:1], paired(4)[0])


def test_one_document_decides_nothing():
    both = pair(np.array([[1.0, 1]]), np.array([[0.0, 1]]))
    model = both.models()["ratio"]
    assert np.isnan([*model.interval(0.95), model.p_value()]).all()
    assert randomisation(both, 50)["ratio"] == 1.0


# ----------------------------------------------------------------------------------------------------- several tests
def test_holm_meets_the_golden_values(golden):
    for family in json.loads((golden / "statistics" / "clustered.json").read_text())["families"]:
        assert holm(family["p"]) == pytest.approx(family["expected"]["holm"], abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_holm_is_the_definition(p_values):
    adjusted = holm(p_values)
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    for rank, at in enumerate(order):
        steps = [(len(p_values) - k) * p_values[order[k]] for k in range(rank + 1)]
        assert adjusted[at] == pytest.approx(min(1, max(steps)))
    assert all(after >= before for before, after in zip(p_values, adjusted, strict=True))


def test_holm_leaves_undefined_tests_out_of_the_family():
    assert holm([0.02, float("nan"), 0.01])[0::2] == [0.02, 0.02]
    assert np.isnan(holm([0.02, float("nan"), 0.01])[1])
    assert holm([]) == []
    with refused("range", "p_values", "[0, 1]"):
        holm([1.5])
