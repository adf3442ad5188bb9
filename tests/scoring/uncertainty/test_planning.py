"""Plans from pilots: predictions, comparisons and score files."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import eraser_hub
from eraser_hub.__main__ import _register, app
from eraser_hub.scoring.comparison import compare
from eraser_hub.scoring.uncertainty.planning import compute_power_curves, make_plan
from eraser_hub.scoring.uncertainty.power import Pilot, make_pilot

from ...refusals import refused
from ..test_comparison import system


@pytest.fixture(scope="module")
def files(samples):
    folder = samples / "predictions" / "eraser"
    return [f"ours={folder}/movies.val.jsonl", f"theirs={folder}/movies.val.baseline.jsonl"]


@pytest.fixture(scope="module")
def source(samples):
    return {"source": samples / "eraser" / "movies", "split": "val"}


def make_runs(shifts, noise=0.4, n=30, seed=0):
    random = np.random.default_rng(seed)
    base = np.random.default_rng(5).normal(size=n) ** 3
    return [system(base + shift + noise * random.normal(size=n)) for shift in shifts]


@pytest.mark.parametrize("shifts", [[0.0], [-0.2, 0.0, 0.3], [-0.2, 0.3]])
def test_with_the_pilots_own_numbers_a_plan_is_the_comparison(shifts):
    result = compare(make_runs(shifts), make_runs([2 * one for one in shifts], 0.8, seed=1), n_resamples=10)
    test, pilot = result["comparisons"][0]["keys"]["f1"], make_pilot(result, "f1")
    assert pilot.error(30, len(shifts)) == pytest.approx(test["standard_error"], rel=1e-12)
    assert pilot.df(30, len(shifts)) == pytest.approx(test["df"], rel=1e-9)
    assert pilot.effect(30, len(shifts)) == pytest.approx(test["detectable"], rel=1e-9)
    assert pilot.kurtosis > 3, "few documents carry the difference"


def test_documents_that_carry_little_count_less():
    few, even = Pilot(1.0, kurtosis=12.0), Pilot(1.0)
    assert few.document_df(30) == pytest.approx(2 / (11 / 30 + 2 / (30 * 29))) and even.document_df(
        30
    ) == pytest.approx(29)
    assert few.documents_for(0.5) > even.documents_for(0.5)


def test_what_compare_refuses_has_no_power():
    pilot = Pilot(1e-6)
    assert pilot.power(1.0, 5) == 0 and math.isnan(pilot.effect(5)) and pilot.documents_for(1.0) == 6
    result = compare(system(range(5)), system([0, 0, 1, 0, 2]), n_resamples=10)
    with refused("score-missing", "6 documents", "5"):
        make_pilot(result, "f1")
    with refused("score-missing", "known variances", "none"):
        make_plan(result)


def test_one_run_each_plans_as_many_documents_as_the_exchange_needs():
    few, half = Pilot(1e-6, differing=1.0), Pilot(1e-6, differing=0.5)
    for alpha, least in ((0.05, 6), (0.01, 8), (0.0001, 15)):
        assert few.documents_for(1.0, alpha=alpha) == least and 2 / 2**least <= alpha < 2 / 2 ** (least - 1)
        assert half.documents_for(1.0, alpha=alpha) == 2 * least, "half of the documents differ"
        assert few.documents_for(1.0, 3, alpha=alpha) == 6, "of several runs the model decides"
    assert few.power(1.0, 7, alpha=0.01) == 0 and math.isnan(few.effect(7, alpha=0.01))
    assert few.effect(8, alpha=0.01) == Pilot(1e-6).effect(8, alpha=1 / 128)


def test_what_a_plan_promises_the_exchange_of_compare_finds():
    """Seven normal differences: three pairs of exchanges are extreme enough at .05."""
    random, n = np.random.default_rng(4), 7
    effect = Pilot(1.0, differing=1.0).effect(n)
    results = [compare(system(random.normal(size=n) + effect), system(np.zeros(n))) for _ in range(300)]
    assert np.mean([one["comparisons"][0]["keys"]["f1"]["p"] <= 0.05 for one in results]) == pytest.approx(
        0.8, abs=0.07
    )


def test_an_effect_that_no_score_can_have_is_refused(files, source):
    chosen = {"primary": "token_macro_f1", "predictions": files, **source}
    with refused("range", "at most 1", "token_macro_f1 lies in [0, 1]", "found 2", argument="effect"):
        eraser_hub.power(effect=[0.1, 2.0], **chosen)
    assert (
        eraser_hub.power(effect=[1.0], **chosen)["pairs"][0]["scores"]["token_macro_f1"]["needed"][0]["documents"] == 6
    )


def test_a_pilot_file_names_its_own_split(files, source, tmp_path):
    eraser_hub.compare(*files, **source, resamples=10).save(tmp_path / "compared.json")
    _register()
    done = CliRunner().invoke(app, ["power", "--comparison", str(tmp_path / "compared.json")])
    assert done.exit_code == 0 and "split:validation" in done.output and "split: test" not in done.stderr


def test_the_level_of_several_tests_needs_more_documents():
    pilot = Pilot(1.0)
    assert pilot.documents_for(0.5, alpha=0.01) > pilot.documents_for(0.5)
    assert pilot.power(pilot.effect(40, alpha=0.01), 40, alpha=0.01) == pytest.approx(0.8)


def test_three_forms_of_a_pilot_give_one_plan(files, source, tmp_path):
    chosen = {"primary": "token_macro_f1", "effect": [0.05]}
    by_predictions = eraser_hub.power(predictions=files, **source, **chosen)
    eraser_hub.compare(*files, **source, resamples=10).save(tmp_path / "compared.json")
    by_comparison = eraser_hub.power(comparison=tmp_path / "compared.json", **chosen)
    named = []
    for name, file in (one.split("=") for one in files):
        scores = eraser_hub.score(file, **source, per_instance=True)
        scores.save(tmp_path / f"{name}.json")
        named.append(f"{name}={tmp_path / name}.json")
    by_scores = eraser_hub.power(scores=named, **chosen)
    plans = [one["pairs"][0]["scores"]["token_macro_f1"] for one in (by_predictions, by_comparison, by_scores)]
    assert by_predictions["pairs"][0]["first"] == "ours" and by_predictions["clusters"] == 24
    for plan in plans:
        assert plan["needed"] == [{"difference": 0.05, "runs": 1, "documents": 65}]
        assert [row["documents"] for row in plan["detectable"]] == [24, 48, 120, 240]
        assert plan["detectable"][0]["difference"] == pytest.approx(plans[0]["detectable"][0]["difference"], rel=1e-9)
        assert plan["minimum_effect"] == pytest.approx(plans[0]["minimum_effect"])
    assert by_predictions["signature"].startswith("power|data:e2322d99a1b6|split:validation|n:24|cluster:documents|")
    assert "|power:0.8|alpha:0.05|version:" in by_comparison["signature"]


def test_a_plan_without_several_runs_says_what_it_does_not_know(files, source):
    plan = eraser_hub.power(predictions=files, **source)
    assert plan["runs"] == [1] and any("one run of each system" in note for note in plan["notes"])
    assert any(note.startswith("macro_f1: its minimum effect is unknown") for note in plan["notes"])
    several = eraser_hub.power(predictions=files, **source, runs=[3])
    assert any("figures for several runs are too small" in note for note in several["notes"])


def test_runs_that_differ_are_no_matter_of_documents():
    result = compare(make_runs([-0.3, 0.0, 0.3]), make_runs([-0.3, 0.0, 0.3], seed=1), n_resamples=10)
    plan = make_plan(result, effects=[0.05])
    rows = plan["pairs"][0]["scores"]["f1"]["needed"]
    assert [row["runs"] for row in rows] == [1, 3, 5, 10] and rows[1]["documents"] is None
    assert any("more runs do" in note for note in plan["notes"])
    text = plan.table().written("text")
    assert "f1     0.05" in text and "–" in text and "runs" in text


def test_more_than_a_million_documents_is_not_for_lack_of_runs():
    pilot = Pilot(1.0)
    assert pilot.documents_for(0.002) is None and not pilot.lacks_runs(0.002)
    assert Pilot(0.04, 0.02, 0.01).lacks_runs(0.05, 3) and not Pilot(0.04, 0.02, 0.01).lacks_runs(0.3, 5)
    result = compare(make_runs([0.0]), make_runs([0.0], 0.8, seed=1), n_resamples=10)
    plan = make_plan(result, effects=[0.0001])
    row = plan["pairs"][0]["scores"]["f1"]["needed"][0]
    assert row == {"difference": 0.0001, "runs": 1, "documents": None, "lacking": "documents"}
    assert "> 1,000,000" in plan.table().written("text") and not any("more runs do" in note for note in plan["notes"])


def test_a_pilot_without_a_difference_says_that_it_plans_nothing():
    even = [1.0, -1.0] * 10
    plan = make_plan(compare(system(even), system([-one for one in even]), n_resamples=10))
    assert plan["pairs"][0]["scores"]["f1"]["needed"] == []
    assert any("difference is 0: no documents are planned; `effect`" in note for note in plan["notes"])


def test_a_curve_counts_runs_as_the_pilot_does():
    result = compare(make_runs([-0.2, 0.3]), make_runs([-0.4, 0.0, 0.1, 0.2, 0.2, 0.6], 0.8, seed=1), n_resamples=10)
    test = result["comparisons"][0]["keys"]["f1"]
    test["minimum_effect"] = test["detectable"]
    curve, pilot = compute_power_curves(result)["f1"], make_pilot(result, "f1")
    assert pilot.own_runs == pytest.approx(3) and pilot.error(30, 3) == pytest.approx(test["standard_error"])
    assert curve["power"][curve["documents"].index(30.0)] == pytest.approx(0.8)


FOREIGN = {"comparisons": [{"first": "a"}], "clusters": 1, "runs": {}, "family": [], "instances": 3}
TEST = {"components": {}, "effective_clusters": 9.0, "df": 8.0, "minimum_effect": 0.1, "difference": 0.1}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"comparisons": ["a"]},
        {"comparisons": {"first": "a"}},
        {"comparisons": [{"first": "a", "second": "b", "keys": {"f1": 3}}], "runs": {"a": 1, "b": 1}},
        {"comparisons": [{"first": "a", "second": "b", "keys": {"f1": TEST}}], "runs": {"a": 1, "b": 1}},
        {"comparisons": [{"first": "a", "second": "b", "keys": {"f1": TEST}}], "runs": []},
    ],
)
def test_a_foreign_comparison_is_refused(change, tmp_path):
    path = tmp_path / "foreign.json"
    path.write_text(json.dumps({**FOREIGN, **change}))
    with refused("key-missing", "a comparison that `compare` of this release wrote", "no variance", file=path):
        eraser_hub.power(comparison=path)


def test_power_curves_rise_and_start_at_the_pilot(files, source):
    curves = compute_power_curves(eraser_hub.compare(*files, **source, resamples=10))
    assert "macro_f1" not in curves, "its minimum effect is unknown"
    for one in curves.values():
        assert one["power"] == sorted(one["power"]) and one["documents"][0] == 6 and max(one["power"]) <= 1


@pytest.mark.parametrize(
    ("settings", "rule", "words"),
    [
        ({}, "option-missing", "one of `predictions`, `comparison` and `scores`"),
        ({"comparison": "a.json", "scores": ["b.json"]}, "option-conflict", "expected a pilot"),
        ({"comparison": "a.json", "dataset": "hub/eraser"}, "option-conflict", "it goes with `predictions`"),
        ({"comparison": "a.json", "power": 0.3}, "option-value", "0.5"),
        ({"comparison": "a.json", "effect": [0.0]}, "option-value", "found 0.0"),
        ({"scores": ["a.json"]}, "option-missing", "at least two systems"),
    ],
)
def test_odd_arguments_are_refused(settings, rule, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text("{}")
    with refused(rule, words):
        eraser_hub.power(**settings)


def test_files_that_are_no_pilot_are_refused(files, source, tmp_path):
    path = tmp_path / "scores.json"
    other = tmp_path / "other.json"
    for file, place in zip(files, (path, other), strict=True):
        eraser_hub.score(file.split("=")[1], **source).save(place)
    with refused("key-missing", "`compare`", "comparisons", file=path):
        eraser_hub.power(comparison=path)
    with refused("key-missing", "per-instance scores", "none", file=path):
        eraser_hub.power(scores=[f"a={path}", f"b={other}"])


def test_scores_of_other_data_are_refused(tmp_path):
    for name, digest in (("a", "1" * 64), ("b", "2" * 64)):
        columns = {"annotation_id": ["x", "y"], "f1": [0.0, 1.0]}
        content = {"data_digest": digest, "agreement": {"f1": 0.5, "per_instance": columns}}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    with refused("data-mismatch", "111111111111", "222222222222", file=tmp_path / "b.json"):
        eraser_hub.power(scores=[str(tmp_path / "a.json"), str(tmp_path / "b.json")])
