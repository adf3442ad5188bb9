"""Power from a pilot's components, held against simulation and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eraser_hub.scoring.comparison import compare
from eraser_hub.scoring.scores import Comparison
from eraser_hub.scoring.uncertainty.mixed_model import fit_difference
from eraser_hub.scoring.uncertainty.power import Pilot, describe_power, make_pilot

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
