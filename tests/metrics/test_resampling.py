"""Resampling, held against scipy and against the textbook definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from eraser_hub.metrics import resampling
from eraser_hub.metrics.intervals import clopper_pearson, describe_small_counts, intervals
from eraser_hub.metrics.resampling import (
    against_chance,
    bootstrap_intervals,
    bootstrap_weights,
    compute_bounds,
    jackknife,
    replicates,
)
from eraser_hub.metrics.statistics_builder import Statistics, divide

from ..refusals import refused
from .clustered import case_weights, clustered_cases, sums_of

pytestmark = pytest.mark.unit


def ratio(sums):
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"ratio": sums[..., 0] / sums[..., 1]}


def sample(n=60, seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack([random.gamma(2, size=n), np.ones(n)])


def of(values, finalize=ratio, **more):
    return Statistics([f"i{at}" for at in range(len(values))], values, finalize, **more)


def quantile_noise(n_resamples: int, level: float = 0.95) -> float:
    """Four standard errors of the difference of two estimates of an interval's end, in widths of the interval.

    The end is a quantile of about normal replicates: its standard error is sqrt(q (1 - q) / n) over their density
    there.
    """
    q = (1 - level) / 2
    error = np.sqrt(q * (1 - q) / n_resamples) / stats.norm.pdf(stats.norm.ppf(q))
    return 4 * np.sqrt(2) * error / (2 * stats.norm.ppf(1 - q))


def test_intervals_agree_with_scipy():
    values = sample()
    ours = bootstrap_intervals(values, ratio, n_resamples=9000, seed=1)["ratio"]
    theirs = stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=9000, method="bca", rng=np.random.default_rng(2)
    ).confidence_interval
    assert np.allclose(ours, [theirs.low, theirs.high], atol=quantile_noise(9000) * (theirs.high - theirs.low))


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
    assert found["points"].shape == (2, 2)
    assert (found["points"][:, 0] < found["points"][:, 1]).all()


def test_equal_instances_have_an_interval_of_no_width_and_one_has_none():
    assert bootstrap_intervals(np.tile([0.25, 1.0], (9, 1)), ratio, n_resamples=20)["ratio"].tolist() == [0.25, 0.25]
    assert np.isnan(bootstrap_intervals(np.array([[0.25, 1.0]]), ratio, n_resamples=20)["ratio"]).all()


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
    low, high = bootstrap_intervals(values, ratio, n_resamples=400)["ratio"]
    assert np.isfinite(low) and high == np.inf
    values[4, 0] = -np.inf
    assert np.isnan(ratio(resampling.weighted_sums(np.ones((1, 30)), values))["ratio"]).all()


def test_intervals_have_the_level_asked_for():
    statistics = of(sample())
    assert np.allclose(
        intervals(statistics, n_resamples=50)["ratio"],
        bootstrap_intervals(sample(), ratio, 0.95, 50)["ratio"],
    )
    narrow = intervals(statistics, confidence_level=0.5)["ratio"]
    wide = intervals(statistics, confidence_level=0.99)["ratio"]
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
    ],
)
def test_settings_out_of_range_are_named(wrong, field):
    with refused("option-value", f"{field}: ", f"found {wrong[field]!r}", field=field):
        intervals(of(sample()), **wrong)


def test_no_instance_is_an_error():
    with refused("length", "(0, 2)", field="values"):
        bootstrap_intervals(np.zeros((0, 2)), ratio)


# ------------------------------------------------------------------------------------------------ clusters and shares
def test_intervals_meet_the_stored_resamples(golden):
    for case in clustered_cases(golden):
        for side in "ab":
            values, finalize = sums_of(case, side)
            drawn, scores = finalize(case_weights(case) @ values), finalize(values.sum(axis=0))
            expected = case["expected"][side]
            assert float(scores["value"]) == pytest.approx(expected["value"], abs=1e-9)
            assert drawn["value"].std(ddof=1) == pytest.approx(expected["standard_error"], abs=1e-9)
            assert np.allclose(compute_bounds(scores, drawn)["value"], expected["percentile"], atol=1e-9)
            left_out = jackknife(values, finalize)
            assert np.allclose(compute_bounds(scores, drawn, left_out=left_out)["value"], expected["bca"], atol=1e-9)


def test_shares_have_their_exact_bounds(golden):
    for case in json.loads((golden / "statistics" / "clustered.json").read_text())["proportions"]:
        assert np.allclose(clopper_pearson(case["hits"], case["n"]), case["expected"], atol=1e-9)


def test_clusters_are_drawn_as_one():
    values, clusters = sample(12), np.repeat(np.arange(4), 3)
    statistics = of(values, clusters=clusters)
    sums = np.array([values[clusters == k].sum(axis=0) for k in range(4)])
    assert np.allclose(statistics.cluster_sums(), sums)
    assert np.allclose(
        intervals(statistics, n_resamples=99)["ratio"],
        bootstrap_intervals(sums, ratio, 0.95, 99)["ratio"],
    )
    assert statistics.take([11, 0, 9]).clusters.tolist() == [1, 0, 1] and statistics.take([11, 0]).n_clusters == 2


def test_a_tie_hangs_on_no_order_of_summation():
    random = np.random.default_rng(0)
    values = np.column_stack([np.repeat([0.1, 0.7], 9), np.ones(18)])
    drawn = replicates(values, ratio, n_resamples=400)["ratio"]
    score = {"ratio": np.array(0.4)}
    left_out = jackknife(values, ratio) | {"ratio": jackknife(values, ratio)["ratio"] + random.normal(0, 1e-4, 18)}
    exact = compute_bounds(score, {"ratio": np.round(drawn, 9)}, left_out=left_out)["ratio"]
    for noise in (-1e-15, 1e-15):
        moved = compute_bounds(score, {"ratio": np.round(drawn, 9) + noise}, left_out=left_out)["ratio"]
        assert np.allclose(moved, exact, atol=1e-9)


def shares(hits, clusters=None):
    finalize = lambda sums: {"accuracy": divide(sums[..., 0], sums[..., 1], np.nan)}  # noqa: E731
    return of(np.column_stack([hits, np.ones(len(hits))]).astype(float), finalize, clusters=clusters)


def test_a_share_without_hits_has_exact_bounds_of_annotations_or_clusters():
    assert intervals(shares([0] * 50), n_resamples=20)["accuracy"] == pytest.approx([0, 0.07112173646419767], abs=1e-12)
    assert intervals(shares([1] * 10), n_resamples=20)["accuracy"] == pytest.approx([0.6915028921812392, 1], abs=1e-12)
    bounds = intervals(shares([0] * 4, np.array([0, 0, 1, 2])), n_resamples=20, ranges={"accuracy": (0.0, 1.0)})
    assert bounds["accuracy"] == pytest.approx([0, 1 - 0.025 ** (1 / 3)])
    low, high = intervals(shares([0, 1] * 9), n_resamples=200)["accuracy"]
    assert 0 < low < 0.5 < high < 1


def test_few_annotations_of_a_class_and_few_hits_are_said():
    names = [f"label {label}.{part}" for label in ("NEG", "POS", "NONE") for part in ("truth", "predicted", "hits")]
    table = np.array([[9.0, 8, 7, 4, 5, 3, 0, 0, 0, 2, 30]])
    statistics = Statistics(["a"], table, lambda sums: {}, columns=[*names, "exact.hits", "token.hits"])
    classes, hits = describe_small_counts(statistics)
    assert " 5 annotations of POS (4):" in classes and "macro F1" in classes
    assert " 5 hits of exact (2):" in hits


# -------------------------------------------------------------------------------------------------------- chance
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
    with refused("length", "(1,)", "(2,)", field="draws"):
        against_chance(np.array([0.5]), np.array([0.1, 0.2]))


def test_p_values_of_chance_itself_are_uniform():
    random = np.random.default_rng(0)
    found = against_chance(random.normal(size=4000), random.normal(size=(4000, 19)))["p_value"]
    assert stats.chisquare(np.bincount(np.rint(found * 20).astype(int), minlength=21)[1:]).pvalue > 0.01


@pytest.mark.parametrize("n_resamples", [0, -1, 10**11])
def test_a_number_of_resamples_out_of_range_is_refused(n_resamples: int) -> None:
    with pytest.raises(ValueError, match="1 to 10,000,000, found"):
        resampling.check_settings(n_resamples=n_resamples)
