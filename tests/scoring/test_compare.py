"""Verdicts on two systems or more, from additive columns."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.statistics import Score, Statistics, mean, mean_columns
from eraser_hub.scoring.compare import compare

HEADLINE = "token_macro_f1"


def make_run(values, *keys, metric="eraser_agreement", ids=None, up=True, **more):
    """A run whose scores are all the mean of these values."""
    columns, scores = {}, {}
    for key in keys or (HEADLINE,):
        columns |= mean_columns(key, np.asarray(values, dtype=float))
        scores[key] = Score(mean(key), higher_is_better=up, low=None)
    return {metric: Statistics(ids or [f"i{at}" for at in range(len(values))], columns, scores, **more)}


def keys_of(result, pair=0):
    return result["comparisons"][pair]["keys"]


def compare_shifted(*shifts, n=60, noise=0.02, key=HEADLINE, up=True, **settings):
    random = np.random.default_rng(0)
    base = random.normal(size=n)
    systems = {
        f"s{at}": [make_run(base + shift + noise * random.normal(size=n), key, up=up)]
        for at, shift in enumerate(shifts)
    }
    return compare(systems, **settings)


@pytest.mark.parametrize(
    ("shift", "settings", "verdict", "reason"),
    [
        (0.1, {}, "worse", "p 0.0001 after Holm's correction"),
        (-0.1, {}, "better", "p 0.0001 after Holm's correction"),
        (-0.1, {"up": False}, "worse", "p 0.0001 after Holm's correction"),
        (0.1, {"up": None}, "undecided", "neither direction is better"),
        (0.0, {}, "undecided", "interval holds 0"),
        (0.0, {"minimum_effect": 0.05}, "equivalent", "90 % interval within ±0.05"),
        (0.05, {"minimum_effect": 0.051}, "undecided", "below the minimum effect 0.051"),
        (0.05, {"minimum_effect": 0.02}, "worse", "p 0.0001 after Holm's correction"),
        (1.0, {"n": 5}, "undecided", "5 of 5 documents differ: too few"),
        (math.nan, {}, "undecided", "undefined"),
    ],
)
def test_a_verdict_weighs_the_test_and_the_size_that_matters(shift, settings, verdict, reason):
    test = keys_of(compare_shifted(0, shift, **settings))[HEADLINE]
    assert (test["verdict"], test["reason"], test["star"]) == (verdict, reason, verdict == "better")


def test_few_differing_documents_have_no_verdict_and_a_constant_difference_no_interval():
    base = np.random.default_rng(0).normal(size=40)
    other = base + np.r_[np.ones(4), np.zeros(36)]
    test = keys_of(compare({"a": [make_run(base)], "b": [make_run(other)]}))[HEADLINE]
    assert (test["p"], test["verdict"], test["differing_clusters"]) == (1 / 8, "undecided", 4)
    test = keys_of(compare({"a": [make_run(base[:6])], "b": [make_run(base[:6] - 1)]}))[HEADLINE]
    assert np.isnan(test["ci"]).all() and (test["p"], test["verdict"]) == (1 / 32, "better")
    values = np.r_[base[:8], [math.nan] * 20]  # documents that a score does not count
    first, alone = (
        keys_of(compare({"a": [make_run(own)], "b": [make_run(own**2)]}))[HEADLINE] for own in (values, values[:8])
    )
    assert first["ci"] == pytest.approx(alone["ci"]) and (first["clusters"], first["p"]) == (8, alone["p"])


def test_holm_counts_the_tested_scores_and_pairs():
    random = np.random.default_rng(0)
    values = random.normal(size=(3, 40)) + np.array([[0], [1], [1]])
    systems = {f"s{at}": [make_run(own, HEADLINE, "iou_macro_f1", "auprc", "any")] for at, own in enumerate(values)}
    found = compare(systems)
    assert found["family"] == [HEADLINE, "iou_macro_f1", "auprc"] and "|tests:9|" in found["signature"]
    test = keys_of(found)[HEADLINE]
    assert test["p_holm"] == pytest.approx(
        9 * min(one["p"] for pair in range(3) for one in keys_of(found, pair).values())
    )
    other = keys_of(found)["any"]
    assert (other["exploratory"], other["p_holm"], other["verdict"], other["p"]) == (True, None, "undecided", test["p"])
    declared = compare(systems, primary="any")
    assert declared["family"] == ["any"] and keys_of(declared)["any"]["p_holm"] == pytest.approx(3 * test["p"])
    assert compare(systems, paper="eraser")["family"] == found["family"]


def test_equal_systems_leave_the_family_and_are_named_once():
    random = np.random.default_rng(0)
    one, other = random.normal(size=(2, 40))
    found = compare(
        {name: [make_run(own, HEADLINE, "macro_f1")] for name, own in (("a", one), ("b", one), ("c", other))}
    )
    assert keys_of(found)[HEADLINE]["reason"] == "equal in every document" and "|tests:4|" in found["signature"]
    assert [line for line in found["notes"] if "not tested" in line] == [
        "a and b give the same rationales: token_macro_f1 not tested",
        "a and b give the same labels: macro_f1 not tested",
    ]


def test_faithfulness_of_different_models_is_shown_and_not_tested():
    values, key = np.random.default_rng(0).normal(size=(2, 40)) + np.array([[0], [1]]), "comprehensiveness"
    runs = [make_run(own, key, metric="eraser_faithfulness") for own in values]
    systems = {"a": [runs[0]], "b": [runs[1]]}
    assert keys_of(compare(systems))[key]["verdict"] == "worse"
    by_digest = compare(systems, models={"a": ["1"], "b": ["2"]})
    for at, run in enumerate(runs):
        run["eraser_faithfulness"].columns["full_input"] = np.full(40, 0.5 + 0.1 * at)
    for found in (by_digest, compare(systems)):
        test = keys_of(found)[key]
        assert (test["verdict"], test["reason"], test["p_holm"]) == ("undecided", "different models", None)
        assert any("grow with a model's confidence" in line for line in found["notes"])
    assert keys_of(compare(systems, primary=key))[key]["verdict"] == "worse", "declared"


def test_what_a_design_cannot_show_is_said(monkeypatch):
    def lines(found, start):
        return [line for line in found["notes"] if line.startswith(start)]

    assert lines(compare_shifted(0, 1, resamples=19), "no star is possible")
    found = compare_shifted(0, 0.1)
    assert lines(found, "each system has one run") and not lines(found, "no star")
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert compare_shifted(0, 0.1)["notes"] == found["notes"], "one run needs no scipy"
    with pytest.raises(DataError, match=r"several runs need scipy.*eraser-hub\[stats\]"):
        compare({"a": make_runs(0.2, 0.1, 1), "b": make_runs(0, 0.1, 2)})
    monkeypatch.undo()
    pytest.importorskip("scipy")
    assert lines(compare({"a": make_runs(0.2, 0.1, 1), "b": make_runs(0, 0.1, 2, runs=1)}), "one run of b: ")


def make_runs(shift, spread, seed, runs=3, n=40):
    random = np.random.default_rng(seed)
    base = np.random.default_rng(9).normal(size=n)
    moves = spread * np.linspace(-1, 1, runs)
    return [make_run(base + shift + move + 0.05 * random.normal(size=n)) for move in moves]


def test_several_runs_widen_what_another_seed_would_change():
    pytest.importorskip("scipy")
    steady, unsteady = (compare({"a": make_runs(0.2, spread, 1), "b": make_runs(0, spread, 2)}) for spread in (0, 0.3))
    assert keys_of(steady)[HEADLINE]["verdict"] == "better" and keys_of(unsteady)[HEADLINE]["verdict"] == "undecided"
    assert unsteady["spread"]["a"][HEADLINE] == pytest.approx(0.3, rel=0.1) and unsteady["runs"] == {"a": 3, "b": 3}
    components = keys_of(unsteady)[HEADLINE]["components"]
    assert components["runs"] > 0.9 * sum(components.values()) and "runs 100 %  undecided" in str(unsteady)
    digests = {"a": ["1", "2", "3"], "b": ["1", "2", "3"]}
    paired = compare({"a": make_runs(0.2, 0.3, 1), "b": make_runs(0, 0.3, 2)}, models=digests)
    assert keys_of(paired)[HEADLINE]["verdict"] == "better"
    assert "a and b explain the same trainings: their runs are paired" in paired["notes"]
    draws = compare(
        {"a": make_runs(0.2, 0.3, 1) + make_runs(0.2, 0.3, 3), "b": make_runs(0, 0, 2)},
        models={"a": ["1"] * 3 + ["2"] * 3},
    )
    assert keys_of(draws)[HEADLINE]["df"] > 30, "draws of a training are averaged: two trainings do not differ here"


def test_detectable_is_found_in_four_cases_of_five():
    random = np.random.default_rng(3)

    def draw(effect):
        systems = [make_run(values) for values in random.uniform(size=(2, 30)) + np.array([[effect], [0]])]
        return keys_of(compare({"a": systems[:1], "b": systems[1:]}, resamples=499))[HEADLINE]

    effect = np.mean([draw(0)["detectable"] for _ in range(40)])
    assert np.mean([draw(effect)["star"] for _ in range(200)]) == pytest.approx(0.8, abs=0.07)


def test_systems_are_joined_on_ids_and_by_what_they_share():
    values = np.arange(1.0, 4)
    found = compare({"a": [make_run(values, ids=list("xyz"))], "b": [make_run(values[::-1], ids=list("zyx"))]})
    assert keys_of(found)[HEADLINE]["difference"] == 0 and found["instances"] == 3
    more = {**make_run(values, HEADLINE, "extra"), **make_run(values, "map", metric="perturbation_map")}
    assert compare({"a": [more], "b": [make_run(values)]})["left_out"] == {"a": ["extra"]}
    part = compare({"a": [make_run(values)], "b": [make_run(values[:2])]}, only_predicted=True)
    assert part["instances"] == 2


def test_clusters_are_exchanged_as_one():
    values, clusters = np.random.default_rng(4).normal(size=(2, 24)), np.repeat(np.arange(8), 3)
    pairs = list(zip("ab", values, strict=True))
    found = compare({name: [make_run(own, clusters=clusters, clustering="documents")] for name, own in pairs})
    sums = compare({name: [make_run(own.reshape(8, 3).mean(axis=1))] for name, own in pairs})
    assert keys_of(found)[HEADLINE]["p"] == keys_of(sums)[HEADLINE]["p"]
    assert (found["instances"], found["clusters"]) == (24, 8) and "|cluster:documents|clusters:8|" in found["signature"]


def test_forms(tmp_path):
    found = compare_shifted(0, -0.1, chance={"s0": {HEADLINE: 0.3}})
    text = str(found)
    assert "better" in text and "*" in text and "Chance" in text and "each system has one run" in text
    row = found.to_frame().set_index(["first", "second", "score"]).loc[("s0", "s1", HEADLINE)]
    assert row["verdict"] == "better" and row["low"] < row["difference"] < row["high"]
    assert "<table" in found._repr_html_()
    found.save(tmp_path / "comparison.json")
    saved = json.loads((tmp_path / "comparison.json").read_text())
    assert saved["comparisons"][0]["keys"][HEADLINE]["verdict"] == "better"


BASE = np.arange(8.0)


@pytest.mark.parametrize(
    ("other", "settings", "words"),
    [
        ([], {}, "expected two systems or more"),
        ([make_run(BASE[1:])], {}, "b: expected the annotations of a, found 1 on one side"),
        ([make_run(BASE, metric="other")], {}, "expected systems that share a score"),
        ([make_run(BASE, clusters=np.arange(8) % 2)], {}, "expected the same clusters"),
        ([make_run(BASE)], {"primary": "token_f1"}, "primary: expected one of"),
        ([make_run(BASE)], {"resamples": 0}, "^resamples: expected"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, settings, words):
    with pytest.raises(DataError, match="(?s)" + words):
        compare({"a": [make_run(BASE)], "b": other}, **settings)
