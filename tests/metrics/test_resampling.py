"""Resampling, held against scipy and against the textbook definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eraser_hub.metrics import resampling
from eraser_hub.metrics.resampling import (
    against_chance,
    approximate_randomisation,
    bootstrap_intervals,
    bootstrap_weights,
    holm,
    intervals,
    paired_bootstrap,
    replicates,
)


def ratio(sums):
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"ratio": sums[..., 0] / sums[..., 1]}


def sample(n=60, seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack([random.gamma(2, size=n), np.ones(n)])


def quantile_noise(n_resamples: int, level: float = 0.95) -> float:
    """Four standard errors of the difference of two estimates of an interval's end, in widths of the interval.

    The end is a quantile of about normal replicates: its standard error is sqrt(q (1 - q) / n) over their density there.
    """
    q = (1 - level) / 2
    error = np.sqrt(q * (1 - q) / n_resamples) / stats.norm.pdf(stats.norm.ppf(q))
    return 4 * np.sqrt(2) * error / (2 * stats.norm.ppf(1 - q))


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_agree_with_scipy(method):
    values = sample()
    ours = bootstrap_intervals(values, ratio, n_resamples=9000, seed=1, ci_method=method)["ratio"]
    theirs = stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=9000, method=method, rng=np.random.default_rng(2)
    ).confidence_interval
    assert np.allclose(ours, [theirs.low, theirs.high], atol=quantile_noise(9000) * (theirs.high - theirs.low))


def test_bca_moves_a_skewed_interval_and_percentile_does_not_depend_on_it():
    values = sample(seed=4)
    percentile = bootstrap_intervals(values, ratio, n_resamples=4000)["ratio"]
    bca = bootstrap_intervals(values, ratio, n_resamples=4000, ci_method="bca")["ratio"]
    assert bca[0] > percentile[0] and bca[1] > percentile[1]


def test_same_seed_same_interval_and_chunks_do_not_matter(monkeypatch):
    values = sample(500)
    whole = bootstrap_intervals(values, ratio, n_resamples=300, seed=3)["ratio"]
    monkeypatch.setattr(resampling, "CHUNK_BYTES", 8 * 500 * 7)
    small = list(bootstrap_weights(500, 300, 3))
    assert len(small) == 43 and max(len(weights) for weights in small) == 7
    assert np.allclose(np.concatenate(small), np.concatenate(list(bootstrap_weights(500, 300, 3, 2**25))))
    assert np.allclose(bootstrap_intervals(values, ratio, n_resamples=300, seed=3)["ratio"], whole, atol=1e-12)
    assert not np.allclose(bootstrap_intervals(values, ratio, n_resamples=300, seed=4)["ratio"], whole)


def test_weights_are_multinomial_draws():
    weights = np.concatenate(list(bootstrap_weights(40, 200, 0)))
    assert weights.shape == (200, 40)
    assert (weights.sum(axis=1) == 40).all() and (weights >= 0).all() and (weights == np.rint(weights)).all()


def test_a_replicate_is_the_score_of_the_drawn_rows():
    values = sample(12)
    drawn = replicates(values, ratio, n_resamples=5, seed=9)["ratio"]
    weights = np.concatenate(list(bootstrap_weights(12, 5, 9)))
    for row, score in zip(weights.astype(int), drawn, strict=True):
        assert score == pytest.approx(np.repeat(values[:, 0], row).mean(), abs=1e-12)


def test_keys_that_are_lists_have_an_interval_per_entry():
    values = np.column_stack([sample(30), sample(30, 1)[:, 0]])
    found = bootstrap_intervals(values, lambda s: {"points": s[..., [0, 2]] / s[..., [1]]}, n_resamples=100)
    bca = bootstrap_intervals(
        values, lambda s: {"points": s[..., [0, 2]] / s[..., [1]]}, n_resamples=100, ci_method="bca"
    )
    assert found["points"].shape == bca["points"].shape == (2, 2)
    assert (found["points"][:, 0] < found["points"][:, 1]).all()


def test_one_instance_and_equal_instances_have_an_interval_of_no_width():
    for values in (np.array([[0.25, 1.0]]), np.tile([0.25, 1.0], (9, 1))):
        for method in ("percentile", "bca"):
            assert bootstrap_intervals(values, ratio, n_resamples=20, ci_method=method)["ratio"].tolist() == [
                0.25,
                0.25,
            ]


def test_an_undefined_score_has_an_undefined_interval_and_undefined_replicates_are_left_out():
    assert np.isnan(bootstrap_intervals(np.zeros((4, 2)), ratio, n_resamples=20)["ratio"]).all()
    rare = np.zeros((6, 2))
    rare[0] = 0.5, 1  # a resample without the first row has no score
    assert bootstrap_intervals(rare, ratio, n_resamples=200)["ratio"].tolist() == [0.5, 0.5]


def test_infinite_statistics_stay_infinite_and_never_become_nan():
    values = sample(30)
    values[3, 0] = np.inf
    drawn = replicates(values, ratio, n_resamples=400)["ratio"]
    assert not np.isnan(drawn).any() and np.isinf(drawn).any() and np.isfinite(drawn).any()
    for method in ("percentile", "bca"):
        low, high = bootstrap_intervals(values, ratio, n_resamples=400, ci_method=method)["ratio"]
        assert np.isfinite(low) and high == np.inf
    values[4, 0] = -np.inf
    assert np.isnan(ratio(resampling._weighted_sums(np.ones((1, 30)), values))["ratio"]).all()


def test_no_interval_unless_asked_for():
    assert intervals(sample(), ratio) is None
    assert np.allclose(
        intervals(sample(), ratio, n_resamples=50)["ratio"], bootstrap_intervals(sample(), ratio, 0.95, 50)["ratio"]
    )
    narrow = intervals(sample(), ratio, confidence_level=0.5)["ratio"]
    wide = intervals(sample(), ratio, confidence_level=0.99)["ratio"]
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"confidence_level": 0.0}, "confidence_level"),
        ({"confidence_level": 1}, "confidence_level"),
        ({"confidence_level": 95}, "confidence_level"),
        ({"confidence_level": float("nan")}, "confidence_level"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"n_resamples": 2.5}, "n_resamples"),
        ({"n_resamples": True}, "n_resamples"),
        ({"n_resamples": 5, "ci_method": "basic"}, "ci_method"),
    ],
)
def test_settings_out_of_range_are_named(wrong, field):
    with pytest.raises(ValueError, match=field):
        intervals(sample(), ratio, **wrong)


def test_no_instance_is_an_error():
    with pytest.raises(ValueError, match="at least one row"):
        bootstrap_intervals(np.zeros((0, 2)), ratio)
    with pytest.raises(ValueError, match="same instances"):
        approximate_randomisation(sample(3), sample(4), ratio)


# ------------------------------------------------------------------------------------------------- paired tests
def paired(n, shift=0.35, seed=5):
    random = np.random.default_rng(seed)
    first, noise = random.normal(size=n), random.normal(size=n)
    return np.column_stack([first, np.ones(n)]), np.column_stack([first + shift + 0.8 * noise, np.ones(n)])


def test_randomisation_agrees_with_scipy_when_exact():
    first, second = paired(9)
    ours = approximate_randomisation(first, second, ratio, n_resamples=2**9)["ratio"]
    theirs = stats.permutation_test(
        (first[:, 0], second[:, 0]),
        lambda a, b: a.mean() - b.mean(),
        permutation_type="samples",
        n_resamples=10**5,
    ).pvalue
    assert float(ours) == pytest.approx(theirs, abs=1e-12)


def test_randomisation_agrees_with_scipy_when_sampled():
    first, second = paired(60)
    ours = float(approximate_randomisation(first, second, ratio, n_resamples=20000)["ratio"])
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
    forth, back = (approximate_randomisation(a, b, ratio, 500)["ratio"] for a, b in ((first, second), (second, first)))
    assert float(forth) == float(back)
    assert float(approximate_randomisation(first, first, ratio, 500)["ratio"]) == 1.0


def test_a_ratio_of_sums_is_recomputed_from_exchanged_sums():
    # 2 instances: the exchanges of (3/4, 1/4) against (1/1, 1/3), by hand
    first, second = np.array([[3.0, 4], [1, 4]]), np.array([[1.0, 1], [1, 3]])
    differences = [4 / 8 - 2 / 4, 2 / 5 - 4 / 7, 4 / 7 - 2 / 5, 2 / 4 - 4 / 8]
    assert differences[0] == 0
    assert float(approximate_randomisation(first, second, ratio, 4)["ratio"]) == 1.0
    swapped = approximate_randomisation(np.array([[3.0, 4], [1, 1]]), np.array([[1.0, 1], [1, 3]]), ratio, 4)["ratio"]
    # 4/5 - 2/4 = .3; 4/7 - 2/2 and back: larger; so all four count
    assert float(swapped) == 1.0


def test_paired_bootstrap_agrees_with_scipy_on_the_interval_of_the_difference():
    first, second = paired(50)
    ours = paired_bootstrap(first, second, ratio, n_resamples=9000)["ratio"]
    theirs = stats.bootstrap(
        (first[:, 0] - second[:, 0],), np.mean, n_resamples=9000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert np.allclose(ours["ci"], [theirs.low, theirs.high], atol=quantile_noise(9000) * (theirs.high - theirs.low))
    assert float(ours["difference"]) == pytest.approx((first - second)[:, 0].mean())
    assert ours["p_value"] < 0.05 and ours["win_share"] < 0.05
    # a shift test: close to the t test's p-value for a mean of 50 numbers
    assert float(ours["p_value"]) == pytest.approx(stats.ttest_rel(first[:, 0], second[:, 0]).pvalue, abs=0.02)


def test_paired_bootstrap_of_a_system_with_itself():
    first, _ = paired(20)
    found = paired_bootstrap(first, first, ratio, n_resamples=50)["ratio"]
    assert (found["difference"], found["p_value"], found["win_share"]) == (0, 1, 0.5)
    assert np.asarray(found["ci"]).tolist() == [0, 0]


def test_paired_tests_of_keys_that_are_lists_and_of_undefined_ones():
    first, second = paired(20)
    both = lambda s: {"points": np.stack([s[..., 0] / s[..., 1]] * 2, axis=-1), "none": s[..., 0] * np.nan}  # noqa: E731
    found = paired_bootstrap(first, second, both, n_resamples=50)
    p = approximate_randomisation(first, second, both, n_resamples=50)
    assert found["points"]["ci"].shape == (2, 2) and p["points"].shape == (2,)
    assert np.isnan(found["none"]["p_value"]) and np.isnan(p["none"])


# ------------------------------------------------------------------------------------------------ Holm, and chance
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
    with pytest.raises(ValueError, match="p_values"):
        holm([1.5])


def test_against_chance_per_instance_and_direction():
    observed, draws = np.array([0.9, 0.1]), np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]])
    high = against_chance(observed, draws)
    assert high["p_value"].tolist() == [0.25, 1.0] and high["win_rate"].tolist() == [1.0, 0.0]
    assert high["effect_size"][0] == pytest.approx((0.9 - 0.2) / 0.1)
    low = against_chance(observed, draws, higher_is_better=False)
    assert low["p_value"].tolist() == [1.0, 0.5]  # a draw that ties is as good
    assert low["win_rate"] == pytest.approx([0.0, 2 / 3])
    assert low["effect_size"][1] == pytest.approx(1.0)


def test_against_chance_leaves_missing_draws_out_and_says_what_is_undefined():
    found = against_chance(np.array([0.5, 0.5, np.nan]), np.array([[0.1, np.nan], [np.nan, np.nan], [0.1, 0.2]]))
    assert found["p_value"][0] == 0.5 and found["win_rate"][0] == 1.0 and np.isnan(found["effect_size"][0])
    assert np.isnan(found["p_value"][1:]).all() and np.isnan(found["win_rate"][1:]).all()
    assert np.isnan(against_chance(np.array(1.0), np.array([0.2, 0.2]))["effect_size"])
    with pytest.raises(ValueError, match="draws"):
        against_chance(np.array([0.5]), np.array([0.1, 0.2]))


def test_p_values_of_chance_itself_are_uniform():
    random = np.random.default_rng(0)
    found = against_chance(random.normal(size=4000), random.normal(size=(4000, 19)))["p_value"]
    assert stats.chisquare(np.bincount(np.rint(found * 20).astype(int), minlength=21)[1:]).pvalue > 0.01
