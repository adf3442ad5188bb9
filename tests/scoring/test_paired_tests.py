"""Paired tests, held against scipy, the golden values and the textbook definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eraser_hub.scoring.paired_tests import Pair, benjamini_hochberg, holm, paired_bootstrap, randomisation

from ..metrics.clustered import case_weights, clustered_cases, sums_of
from ..metrics.test_resampling import quantile_noise, ratio
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


def test_paired_bootstrap_agrees_with_scipy_on_the_interval_of_the_difference():
    first, second = paired(50)
    ours = paired_bootstrap(pair(first, second), n_resamples=9000)["ratio"]
    theirs = stats.bootstrap(
        (first[:, 0] - second[:, 0],), np.mean, n_resamples=9000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    assert np.allclose(ours["ci"], [theirs.low, theirs.high], atol=quantile_noise(9000) * (theirs.high - theirs.low))
    assert ours["difference"] == pytest.approx((first - second)[:, 0].mean())
    assert ours["p_bootstrap"] < 0.05 and ours["win_share"] < 0.05
    # a shift test: close to the t test's p-value for a mean of 50 numbers
    assert ours["p_bootstrap"] == pytest.approx(stats.ttest_rel(first[:, 0], second[:, 0]).pvalue, abs=0.02)


def test_a_system_with_itself_differs_by_nothing_and_shows_nothing():
    first, _ = paired(20)
    test = paired_bootstrap(pair(first, first), n_resamples=50, margin=0.1)["ratio"]
    assert (test["difference"], test["p_bootstrap"], test["win_share"], test["ci"]) == (0, 1, 0.5, [0, 0])
    assert np.isnan(test["detectable"]) and test["p_equivalence"] == 1 / 51


def test_undefined_scores_have_undefined_tests():
    first, second = paired(20)
    both = lambda sums: {**ratio(sums), "none": sums[..., 0] * np.nan}  # noqa: E731
    test = paired_bootstrap(pair(first, second, both), n_resamples=50, margin=1)["none"]
    assert all(np.isnan(test[key]) for key in ("p_bootstrap", "win_share", "detectable", "p_equivalence"))
    assert np.isnan(randomisation(pair(first, second, both), 50)["none"])
    with refused("length", "[("):
        pair(*paired(3)[:1], paired(4)[0])


def test_the_detectable_difference_is_found_four_times_of_five():
    n, found, detectable = 40, 0, []
    random = np.random.default_rng(2)
    for _ in range(300):
        differences = random.normal((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) / np.sqrt(n), size=n)
        first = np.column_stack([differences, np.ones(n)])
        test = paired_bootstrap(pair(first, first * [0, 1]), n_resamples=200)["ratio"]
        detectable.append(test["detectable"])
        found += test["p_bootstrap"] <= 0.05
    assert np.mean(detectable) == pytest.approx(2.8016 / np.sqrt(n), rel=0.05)
    # a share of 300 at .8: four standard errors, and what a bootstrap of 40 is too bold by
    assert found / 300 == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 300) + 0.03)


def test_equivalence_is_two_one_sided_tests():
    first, second = paired(60, shift=0.05)
    ours = paired_bootstrap(pair(first, second), n_resamples=20000, margin=0.4)["ratio"]["p_equivalence"]
    differences = (first - second)[:, 0]
    sides = [
        stats.ttest_1samp(differences, -0.4, alternative="greater").pvalue,
        stats.ttest_1samp(differences, 0.4, alternative="less").pvalue,
    ]
    assert ours == pytest.approx(max(sides), abs=0.005)
    wide, narrow = (
        paired_bootstrap(pair(first, second), 500, margin=margin)["ratio"]["p_equivalence"] for margin in (9, 0.001)
    )
    assert wide == 1 / 501 and narrow > 0.3


def test_several_runs_count_their_mean_and_the_seeds_spread():
    same = Pair(runs([0, 0, 0]), runs([0.3]), ratio)
    assert float(same.observed["ratio"]) == pytest.approx(-0.3)
    assert np.isnan(paired_bootstrap(same, 200)["ratio"]["detectable"])
    # documents agree to the last digit, seeds do not: what differs by less than the seeds do is no difference
    apart = Pair(runs([-0.4, 0.0, 0.4]), runs([-0.3, 0.1, 0.5]), ratio)
    assert randomisation(apart, 2000)["ratio"] > 0.5 and paired_bootstrap(apart, 2000)["ratio"]["p_bootstrap"] > 0.5
    one_run = Pair(runs([0.0]), runs([0.1]), ratio)
    assert randomisation(one_run, 2000)["ratio"] < 0.01
    far = Pair(runs([-0.01, 0.0, 0.01]), runs([0.99, 1.0, 1.01]), ratio)
    assert randomisation(far, 2000)["ratio"] < 0.01 and paired_bootstrap(far, 2000)["ratio"]["p_bootstrap"] < 0.01
    error = paired_bootstrap(apart, 20000)["ratio"]["detectable"] / (stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
    # the standard error of the difference of two means of three shifts with standard deviation .4
    assert error == pytest.approx(np.sqrt(2 * 0.4**2 / 3), rel=0.05)


# ----------------------------------------------------------------------------------------------------- several tests
def test_corrections_meet_the_golden_values(golden):
    for family in json.loads((golden / "statistics" / "clustered.json").read_text())["families"]:
        assert holm(family["p"]) == pytest.approx(family["expected"]["holm"], abs=1e-9)
        assert benjamini_hochberg(family["p"]) == pytest.approx(family["expected"]["benjamini_hochberg"], abs=1e-9)


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
