"""Power from a pilot's components, held against simulation and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from eraser_hub.metrics.statistics_builder import Statistics, divide
from eraser_hub.scoring.comparison import compare
from eraser_hub.scoring.scores import Comparison, Scores, average_runs
from eraser_hub.scoring.uncertainty.mixed_model import fit_difference
from eraser_hub.scoring.uncertainty.power import Pilot, describe_power, make_pilot, make_score_pilot

from ...refusals import refused
from ..test_comparison import system


def test_documents_for_an_effect_are_those_of_the_paired_t_test():
    pilot = Pilot(1.0)
    n = pilot.documents_for(0.5)
    assert 33 <= n <= 35, "34 by the noncentral t distribution"
    assert pilot.power(0.5, n) >= 0.8 > pilot.power(0.5, n - 1)
    assert pilot.power(pilot.effect(50), 50) == pytest.approx(0.8)
    assert pilot.effect(50) == pytest.approx((stats.t.ppf(0.975, 49) + stats.t.ppf(0.8, 49)) / np.sqrt(50))


def test_more_documents_do_not_replace_runs():
    pilot = Pilot(0.04, 0.02, 0.01)
    assert pilot.documents_for(0.05, 3) is None and pilot.documents_for(0.3, 5) is not None
    assert pilot.error(100, 5) ** 2 == pytest.approx(0.04 / 100 + 0.02 / 5 + 0.01 / 500)
    assert pilot.df(100, 5) < 12 < Pilot(0.04, 0.0001, 0).df(100, 5)
    rows = describe_power(pilot, 100, [0.3], [3, 10])
    assert [row["runs"] for row in rows] == [3, 10] and rows[0]["detectable"] > rows[1]["detectable"]


def test_the_power_that_is_promised_is_the_power_that_is_found():
    random, n, runs = np.random.default_rng(1), 40, 4
    pilot = Pilot(2 * 0.3**2, 2 * 0.05**2, 2 * 0.1**2)

    def draw():
        own = random.normal(0, 0.3, (2000, n, 1))
        return own + random.normal(0, 0.05, (2000, 1, runs)) + random.normal(0, 0.1, (2000, n, runs))

    effect = pilot.effect(n, runs)
    assert np.mean(fit_difference(draw() + effect, draw()).p_value() <= 0.05) == pytest.approx(0.8, abs=0.03)


def test_a_comparison_is_a_pilot():
    random = np.random.default_rng(0)
    base = random.normal(size=30)
    ours = [system(base + shift + 0.1 * random.normal(size=30)) for shift in (-0.1, 0.0, 0.1)]
    theirs = [system(base + shift + 0.5 * random.normal(size=30)) for shift in (-0.1, 0.0, 0.1)]
    result = Comparison(compare(ours, theirs))
    test, pilot = result["comparisons"][0]["keys"]["f1"], make_pilot(result, "f1")
    assert result["runs"] == {"A": 3, "B": 3}
    assert pilot.error(30, 3) == pytest.approx(test["standard_error"])
    assert result.power("f1", effects=[0.5], runs=[3])[0]["documents for 0.5"] == pilot.documents_for(0.5, 3)
    with refused("option-value", "f1", "'none'", argument="key"):
        make_pilot(result, "none")
    assert [row["runs"] for row in result.power("f1")] == [1, 3, 5, 10]


def test_the_power_of_a_comparison_names_its_systems():
    values = np.random.default_rng(0).normal(size=(3, 30))
    result = Comparison(compare(*map(system, values)))
    rows = [(row["first"], row["second"], row["runs"]) for row in result.power("f1")]
    assert rows == [("A", "B", 1), ("A", "C", 1), ("B", "C", 1)], "one run knows nothing of more"
    alike = Comparison(compare(*map(system, values[[0, 0, 1]])))
    same, *others = alike.power("f1")
    assert "varies" in same["why"] and math.isnan(same["detectable"]) and not any("why" in row for row in others)
    with refused("score-missing", "varies"):
        alike.power("f1", pair=0)
    (row,) = result.power("f1", pair=2)
    assert row["second"] == "C" and row["detectable"] == result["comparisons"][2]["keys"]["f1"]["detectable"]
    frame = result.to_frame().set_index(["first", "second"]).loc[("A", "C")]
    assert frame["first_value"] - frame["second_value"] == pytest.approx(frame["difference"])
    assert [frame["low"], frame["high"]] == frame["ci"]


def make_scores(values):
    run = system(values)
    return Scores(statistics={"agreement": run}, scores={key: float(one) for key, one in run.scores().items()})


def test_scores_are_a_pilot_for_their_difference_from_a_fixed_value():
    random = np.random.default_rng(0)
    values = random.uniform(size=30)
    n, error = 30, values.std(ddof=1) / np.sqrt(30)
    (row,) = make_scores(values).power("f1", effects=[0.1], runs=[1])
    assert row["detectable"] == pytest.approx((stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) * error)
    one_sample = Pilot(values.var(ddof=1), kurtosis=1.0)  # a uniform score keeps n - 1 degrees of freedom
    assert row["documents for 0.1"] == pytest.approx(one_sample.documents_for(0.1), abs=1)
    runs = average_runs([make_scores(values + shift + 0.02 * random.normal(size=30)) for shift in (-0.1, 0.0, 0.1)])
    three, many = runs.power("f1", runs=[3, 30])
    assert three["detectable"] > 1.3 * row["detectable"] and many["detectable"] < 0.75 * three["detectable"]


def test_documents_that_a_score_does_not_count_are_no_pilot():
    rows = np.column_stack([[0.5, 0.7, 0.2, 0.4] + [0.0] * 20, [1.0] * 4 + [0.0] * 20])
    run = Statistics(list(map(str, range(24))), rows, lambda sums: {"f1": divide(sums[..., 0], sums[..., 1], np.nan)})
    with refused("score-missing", "6 documents or more", "found 4"):
        make_score_pilot([run], "f1")


def test_the_power_of_one_system_is_the_power_that_is_found():
    random, n = np.random.default_rng(2), 25
    found, promised = [], []
    for _ in range(300):
        values = 0.5 + 0.2 * random.normal(size=n)
        promised.append(make_scores(values).power("f1", runs=[1])[0]["detectable"])
        found.append(stats.ttest_1samp(values, 0.5 - promised[-1]).pvalue <= 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.08)


def test_scores_without_rows_or_with_too_few_are_no_pilot():
    whole = make_scores(np.random.default_rng(0).normal(size=30))
    with refused("option-value", "f1", "'none'", argument="key"):
        whole.power("none")
    with refused("score-missing", "f1", "6 documents or more", "found 3"):
        make_scores([0.1, 0.2, 0.4]).power("f1")
    with refused("score-missing", "f1", "confidence_level"):
        make_scores([0.1]).power("f1")
    with refused("score-missing", "f1", "varies"):
        make_scores([0.25] * 9).power("f1")
