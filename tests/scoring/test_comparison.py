"""Two systems on the same instances."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import eraser_hub
from eraser_hub.__main__ import _register, app
from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.statistics_builder import Statistics, divide
from eraser_hub.scoring.comparison import (
    Inference,
    align_systems,
    compare,
    compare_files,
    correct_chance_tests,
    from_result,
)
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.result import to_json_bytes
from eraser_hub.scoring.tables import make_comparison_tables

from ..refusals import refused


def text_of(result):
    return make_comparison_tables(result).written("text")


def system(values, ids=None, *keys, **more):
    """A system whose scores are all the mean of these values."""
    values = np.asarray(values, dtype=float)
    table = np.column_stack([values, np.ones(len(values))])
    return Statistics(
        ids or [f"i{at}" for at in range(len(values))],
        table,
        lambda sums: dict.fromkeys(keys or ("f1",), divide(sums[..., 0], sums[..., 1], np.nan)),
        **more,
    )


def keys_of(result):
    return result["comparisons"][0]["keys"]


def test_agrees_with_scipys_permutation_test():
    random = np.random.default_rng(3)
    one, two = random.normal(size=10), random.normal(0.6, size=10)
    found = compare(system(one), system(two), n_resamples=2**10)["comparisons"][0]["keys"]["f1"]
    theirs = stats.permutation_test(
        (one, two), lambda a, b: a.mean() - b.mean(), permutation_type="samples", n_resamples=10**5
    )
    assert found["p"] == pytest.approx(theirs.pvalue, abs=1e-12)
    assert found["difference"] == pytest.approx(theirs.statistic)


def test_systems_are_joined_on_their_ids():
    ids = ["a", "b", "c"]
    found = compare(system([1, 2, 3], ids), system([3, 1, 2], ["c", "a", "b"]), n_resamples=50)
    assert found["comparisons"][0]["keys"]["f1"]["difference"] == 0 and found["instances"] == 3


def test_holm_over_the_pairs_of_a_key():
    random = np.random.default_rng(0)
    base = random.normal(size=40)
    found = compare(
        system(base),
        system(base + 1),
        system(base + 0.05 * random.normal(size=40)),
        names=["x", "y", "z"],
        n_resamples=400,
    )
    pairs = {(one["first"], one["second"]): one["keys"]["f1"] for one in found["comparisons"]}
    assert list(pairs) == [("x", "y"), ("x", "z"), ("y", "z")]
    smallest = min(one["p"] for one in pairs.values())
    assert pairs["x", "y"]["p_holm"] == pytest.approx(3 * smallest)
    assert all(one["p_holm"] >= one["p"] for one in pairs.values())


def test_stars_stand_at_the_headline_scores_after_holm_over_them_and_the_pairs():
    random = np.random.default_rng(0)
    base = random.normal(size=40)
    keys = ("map", "token_f1", "accuracy")
    systems = [system(base + shift, None, *keys) for shift in (0, 1, 1 + 0.05 * random.normal(size=40))]
    found = compare(*systems, n_resamples=400)
    assert found["family"] == ["map", "token_f1"] and "|family:map,token_f1|tests:6|" in found["signature"]
    first = keys_of(found)
    assert first["map"]["p_holm"] == pytest.approx(6 / 401) and first["map"]["verdict"] == "worse"
    assert not first["map"]["star"], "a star means better"
    assert first["accuracy"]["p_holm"] is None and first["accuracy"]["verdict"] == "undecided"
    turned = keys_of(compare(systems[1], systems[0], n_resamples=400))
    assert turned["map"]["star"] and turned["map"]["verdict"] == "better" and not turned["accuracy"]["star"]
    assert first["accuracy"]["p"] == first["map"]["p"]
    declared = compare(*systems, n_resamples=400, primary="accuracy")
    assert declared["family"] == ["accuracy"] and keys_of(declared)["map"]["p_holm"] is None
    assert keys_of(declared)["accuracy"]["p_holm"] == pytest.approx(3 / 401)
    with refused("option-value", "map, token_f1, accuracy,", "'nothing'", field="primary"):
        compare(*systems, primary=["nothing"])


def about_stars(result):
    return [note for note in result["notes"] if note.startswith("no star")]


def test_too_few_resamples_or_clusters_for_a_star_are_said():
    random = np.random.default_rng(0)
    one, two = (system(random.normal(size=40), None, "map", "token_f1") for _ in range(2))
    assert about_stars(compare(one, two, n_resamples=39)) == []
    (note,) = about_stars(compare(one, two, n_resamples=38))
    assert re.findall(r"\d+", note) == ["2", "39", "38"]
    six, seven = ([system(random.normal(size=n), None, "map", "token_f1") for _ in range(2)] for n in (6, 7))
    (note,) = about_stars(compare(*six))
    assert re.findall(r"[\d.]+", note) == ["6", "0.0312", "2"]
    assert about_stars(compare(*seven)) == []
    assert note in text_of(compare(*six))


def test_unnamed_resamples_grow_until_a_star_is_possible(monkeypatch):
    monkeypatch.setattr("eraser_hub.scoring.paired_tests.RESAMPLES", 20)
    random = np.random.default_rng(0)
    one, two = (system(random.normal(size=40), None, "a", "b", "c") for _ in range(2))

    def exchanges(*systems, **more):
        return int(re.findall(r"resamples:(\d+)", compare(*systems, **more)["signature"])[0])

    assert exchanges(one, two) == 60, "3 tests need 59"
    assert about_stars(compare(one, two)) == []
    assert exchanges(one, two, n_resamples=7) == 7
    assert exchanges(one, two, primary="a") == 20 and exchanges(one, two, one) == 180
    monkeypatch.setattr("eraser_hub.scoring.paired_tests.MOST_RESAMPLES", 40)
    (note,) = about_stars(compare(one, two))
    assert note.endswith("3 tests need 59 resamples or more, not 40, the most that are taken unasked")


def test_annotations_of_a_cluster_are_exchanged_together():
    random = np.random.default_rng(4)
    values, clusters = random.normal(size=(2, 12)), np.repeat(np.arange(4), 3)
    one, two = (system(own, clusters=clusters, clustering="documents") for own in values)
    found = compare(one, two)
    sums = [system(own.reshape(4, 3).sum(axis=1)) for own in values]
    assert keys_of(found)["f1"]["p"] == keys_of(compare(*sums))["f1"]["p"]
    assert (found["instances"], found["clusters"]) == (12, 4) and "|cluster:documents|clusters:4|" in found["signature"]
    assert "12 instances in 4 clusters" in text_of(found)
    alone = compare(one, two, cluster_by="none")
    assert alone["clusters"] == 12 and "|cluster:none|clusters:12|" in alone["signature"]
    unknown = compare(one, system(values[1]))
    assert json.dumps(keys_of(unknown)) == json.dumps(keys_of(found)), "who knows the clusters tells them"
    with refused("constant", "cluster_by", field="B"):
        compare(one, system(values[1], clusters=np.arange(12) % 3))
    with refused("option-value", "cluster_by", "'auto'", "'none'", "'topic'"):
        compare(one, two, cluster_by="topic")


def test_results_bring_their_clusters():
    def result(values):
        ids = [f"i{at}" for at in range(len(values))]
        columns = {"annotation_id": ids, "f1": values, "cluster": [0, 0, 1, 1]}
        return {"f1": sum(values) / 4, "per_instance": columns, "signature": "m|cluster:documents|clusters:2|version:2"}

    found = compare(result([1.0, 0.5, 0.5, 1.0]), result([0.5, 0.5, 0.0, 0.5]))
    assert found["clusters"] == 2 and keys_of(found)["f1"]["p"] == 0.5
    assert "|cluster:documents|" in found["signature"]
    short = result([1.0, 0.5, 0.5, 1.0])
    short["per_instance"]["cluster"] = [0]
    with refused("length", "4 clusters", "found 1", field="A.per_instance.cluster"):
        compare(short, result([0.5, 0.5, 0.0, 0.5]))


def test_verdicts_weigh_the_test_and_the_size_that_matters():
    random = np.random.default_rng(0)
    base = random.normal(size=60)
    near = system(base + 0.01 * random.normal(size=60), None, "map", "other")
    found = compare(system(base, None, "map", "other"), near, minimum_effect=0.05)
    assert keys_of(found)["map"]["verdict"] == keys_of(found)["other"]["verdict"] == "equivalent"
    assert "|minimum_effect:0.05|" in found["signature"]
    assert "verdict" in text_of(found) and "equivalent" in text_of(found).splitlines()[2]
    assert keys_of(compare(system(base, None, "map"), near, minimum_effect=0.001))["map"]["verdict"] == "undecided"
    shifted = system(base - 0.0201 + 1e-5 * random.normal(size=60), None, "map")
    verdicts = [
        keys_of(compare(system(base, None, "map"), shifted, minimum_effect=x))["map"] for x in (0.01, 0.02, 0.03)
    ]
    assert [one["verdict"] for one in verdicts] == ["better", "better", "equivalent"]
    assert [one["star"] for one in verdicts] == [True, True, False]
    assert all(one["p_holm"] < 0.001 for one in verdicts)
    with refused("option-value", "minimum_effect", "found -1"):
        compare(near, near, minimum_effect=-1)
    assert keys_of(compare(system(base, None, "map"), shifted))["map"]["minimum_effect"] == 0


def test_a_lower_sufficiency_is_better_and_an_undirected_score_is_neither():
    base = np.random.default_rng(0).normal(size=40)
    keys = ("sufficiency_aopc", "null_difference")
    systems = [system(base + shift, None, *keys) for shift in (0, 1)]
    found = keys_of(compare(*systems, primary=keys))
    assert found["sufficiency_aopc"]["verdict"] == "better" and found["null_difference"]["verdict"] == "undecided"
    assert found["null_difference"]["p_holm"] < 0.01


def test_fewer_than_six_clusters_have_no_interval_and_no_verdict():
    for n in (1, 2, 3, 5):
        found = compare(system(np.arange(n) + 1.0), system(np.zeros(n)), minimum_effect=5)
        test = keys_of(found)["f1"]
        assert np.isnan([*test["ci"], test["detectable"]]).all()
        assert test["verdict"] == "undecided" and test["p"] == 2.0 ** (1 - n)
        (note,) = [note for note in found["notes"] if "no interval" in note]
        assert re.findall(r"\d+", note) == ["1", "6"]
    sparse = np.zeros(40)
    sparse[:2] = 1
    assert keys_of(compare(system(sparse), system(np.zeros(40))))["f1"]["verdict"] == "undecided"


def test_documents_that_a_score_does_not_count_carry_no_interval():
    lacking = [math.nan] * 20

    def with_missing(values):
        rows = np.array([[value, 1.0] if value == value else [0.0, 0.0] for value in [*values, *lacking]])
        ids = [f"i{at}" for at in range(len(rows))]
        return Statistics(ids, rows, lambda sums: {"auprc": divide(sums[..., 0], sums[..., 1], np.nan)})

    four = compare(with_missing([1.0, 0.8, 1.0, 1.0]), with_missing([0.4, 0.6, 0.5, 0.6]))
    test = keys_of(four)["auprc"]
    assert np.isnan([*test["ci"], test["detectable"]]).all() and test["verdict"] == "undecided"
    assert (test["clusters"], test["differing_clusters"]) == (4, 4)
    assert "A and B: no interval and no verdict of auprc: 4 of 24 clusters count, fewer than 6" in four["notes"]
    values = [1.0, 0.8, 1.0, 0.9, 0.7, 0.6, 0.8], [0.4, 0.6, 0.5, 0.6, 0.6, 0.3, 0.4]
    seven, alone = (
        keys_of(compare(make(values[0]), make(values[1]))) for make in (with_missing, lambda own: system(own))
    )
    assert seven["auprc"]["ci"] == pytest.approx(alone["f1"]["ci"])


def test_an_interval_ends_at_the_greatest_possible_difference():
    one, two = [1.0, 1.0, 1.0, 0.9, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.9, 0.0, 0.8, 0.0, 0.1, 0.0]
    assert keys_of(compare(system(one, None, "own"), system(two, None, "own")))["own"]["ci"][1] > 1
    assert keys_of(compare(system(one, None, "auprc"), system(two, None, "auprc")))["auprc"]["ci"][1] == 1


def test_differences_that_are_all_the_same_have_no_interval_and_the_exchange_decides():
    """Six equal differences do not show that others are equal; that all six favour one system has p 1/32."""
    found = compare(system(np.arange(6) + 1.0), system(np.arange(6)))
    test = keys_of(found)["f1"]
    assert np.isnan([*test["ci"], *test["ci_90"]]).all() and test["p"] == 1 / 32 and test["verdict"] == "better"
    (note,) = [note for note in found["notes"] if "no interval" in note]
    assert note == "A and B: no interval of f1: all 6 clusters differ by the same"
    small = keys_of(compare(system(np.arange(6) + 0.01), system(np.arange(6)), minimum_effect=0.5))["f1"]
    assert small["verdict"] == "undecided"


def test_few_clusters_that_carry_a_verdict_are_said_and_runs_that_vary_decide_nothing():
    values = np.zeros(46)
    values[:13] = 1
    found = compare(system(values), system(np.zeros(46)))
    assert keys_of(found)["f1"]["verdict"] == "better"
    (note,) = [note for note in found["notes"] if "carry the difference" in note]
    assert keys_of(found)["f1"]["differing_clusters"] == 13 and "about 13 of 46 clusters" in note
    random = np.random.default_rng(0)
    base = random.normal(size=60)
    seeds = [[system(base + shift) for shift in own] for own in ((-0.2, 0, 0.2), (-0.1, 0.1, 0.3))]
    found = compare(*seeds, n_resamples=400)
    assert keys_of(found)["f1"]["p"] > 0.1 and keys_of(found)["f1"]["verdict"] == "undecided"


def test_one_run_is_said_and_several_are_told_apart_by_source():
    random = np.random.default_rng(0)
    base = random.normal(size=50)
    ours = [system(base + shift) for shift in (-0.1, 0.0, 0.1)]
    found = compare(ours, system(base + 2), names=["ours", "theirs"])
    assert found["scores"]["ours"]["f1"] == pytest.approx(base.mean())
    assert found["spread"] == {"ours": {"f1": pytest.approx(0.1)}}
    test = keys_of(found)["f1"]
    assert test["difference"] == pytest.approx(-2) and test["verdict"] == "worse" and not test["star"]
    assert "ours ±" in text_of(found) and "  0.1000  " in text_of(found) and "runs 100 %" in text_of(found)
    assert test["components"] == {
        "documents": pytest.approx(0, abs=1e-12),
        "runs": pytest.approx(0.01 / 3),
        "interaction": pytest.approx(0, abs=1e-12),
        "draws": 0,
    }
    assert any(note.startswith("one run of theirs:") for note in found["notes"])
    single = compare(system(base), system(base + 2))
    assert any(note.startswith("each system has one run:") for note in single["notes"])
    assert not any("one run" in note for note in compare(ours, ours)["notes"])


def test_a_list_in_place_of_two_systems_is_told_apart():
    with refused("length", "found 1", "compare(a, b)"):
        compare([system([1, 2]), system([1, 3])])
    with refused("type", "found int", field="A"):
        compare(3, system([1, 2]))  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_numbers():
    random = np.random.default_rng(1)
    one, two = system(random.normal(size=30)), system(random.normal(size=30))
    assert compare(one, two, seed=5, n_resamples=100) == compare(one, two, seed=5, n_resamples=100)
    assert compare(one, two, seed=5, n_resamples=100) != compare(one, two, seed=6, n_resamples=100)


def test_results_of_modules_and_their_statistics_are_the_same_input():
    def rows(swap):
        tokens = [["a", "b", "c"]] * 4
        return [{"id": at, "rationale_tokens": [own]} for at, own in enumerate(tokens)] + [
            {"id": f"p{at}", "rationale_tokens": [own[::-1] if at < swap else own]} for at, own in enumerate(tokens)
        ]

    references = [{"id": at, "sample_type": "ori", "rel_ids": [f"p{at}"]} for at in range(4)]
    metric = PerturbationMap()
    statistics = [metric.statistics(rows(swap), references) for swap in (1, 3)]
    results = [metric.compute(predictions=rows(swap), references=references, per_instance=True) for swap in (1, 3)]
    one, two = eraser_hub.compare(*statistics), eraser_hub.compare(*results)
    for key in ("map", "map_prefix_hits"):
        first, second = (found["comparisons"][0]["keys"][key] for found in (one, two))
        assert first["difference"] == pytest.approx(second["difference"])
        assert first["p"] == pytest.approx(second["p"])


def test_from_result_keeps_means_leaves_out_micro_averages_and_undefined_values():
    columns = {"f1": [1, 0], "micro": [0.1, 0.2], "auc": [1.0, None], "nothing": [None, None]}
    whole = {"f1": 0.5, "micro": 0.7, "auc": 1.0, "nothing": math.nan, "signature": "s"}
    statistics = from_result({**whole, "per_instance": {"annotation_id": [1, 2], **columns}})
    assert statistics.ids == ["1", "2"]
    assert {key: float(value) for key, value in statistics.scores().items()} == {"f1": 0.5, "auc": 1.0}


@pytest.mark.parametrize(
    ("score", "columns", "rule"),
    [
        (1.0, None, "key-missing"),
        (1.0, {"f1": [1.0]}, "key-missing"),
        (1.0, {"f1": [1.0, 1.0], "annotation_id": ["a", "a"]}, "id-twice"),
        (1.0, {"f1": [1.0], "annotation_id": ["a", "b"]}, "length"),
        (0.3, {"f1": [1.0], "annotation_id": ["a"]}, "score-missing"),
    ],
)
def test_results_that_do_not_serve_are_refused(score, columns, rule):
    with refused(rule):
        from_result({"f1": score, "per_instance": columns})


def test_other_instances_are_refused_by_name_and_number():
    with refused("id-missing", "instances of A", "found 2 ", "'i0', 'j0'", field="B"):
        compare(system([1, 2]), system([1, 2], ["j0", "i1"]))
    with refused("id-missing", "instances of x", "found 30 ", ", …", field="y"):
        align_systems({"x": [system(range(31))], "y": [system([1])]})
    with refused("length", "found 1 "):
        compare(system([1]))
    with refused("option-value", "2 different names", "['a', 'a']"):
        compare(system([1]), system([1]), names=["a", "a"])


def test_systems_whose_columns_mean_other_things_are_refused():
    one, two = system([1, 2]), system([1, 2])
    turned = Statistics(two.ids, two.values[:, ::-1], lambda sums: two.finalize(sums[..., ::-1]))
    wider = Statistics(two.ids, np.column_stack([two.values, [1, 1]]), two.finalize)
    for other in (turned, wider):
        with refused("constant", "settings"):
            compare(one, other)


def test_text_and_json_of_undefined_scores():
    found = compare(system([np.nan, 1.0]), system([1.0, 1.0]), n_resamples=20)
    assert "–" in text_of(found)
    assert json.loads(to_json_bytes(found))["scores"]["A"]["f1"] is None
    (note,) = [line for line in found["notes"] if "undefined" in line]
    assert note.startswith("undefined in A: f1 (") and "no verdict" in note
    both = compare(system([np.nan, 1.0]), system([1.0, np.nan]), n_resamples=20)["notes"]
    assert [line.partition(":")[0] for line in both if "undefined" in line] == ["undefined in all systems"]
    assert not any("undefined" in line for line in compare(system([0.0, 1.0]), system([1.0, 1.0]))["notes"])


def test_chance_is_corrected_by_holm_over_systems():
    def told(p):
        return {"p_value": p, "win_rate": 1.0, "mean_win_rate": 0.9, "effect_size": 2.0, "draws": 99}

    both = {"comprehensiveness": told(0.01), "sufficiency": told(0.5)}
    rows = correct_chance_tests({"a": both, "b": {"comprehensiveness": told(0.03)}, "plain": {}})
    adjusted = {(row["score"], row["system"]): row["p_holm"] for row in rows}
    assert adjusted == {
        ("comprehensiveness", "a"): pytest.approx(0.02),
        ("comprehensiveness", "b"): pytest.approx(0.03),
        ("sufficiency", "a"): pytest.approx(0.5),
    }
    assert "p Holm 0.0200" in text_of({"comparisons": [], "signature": "s", "against_chance": rows})


# ------------------------------------------------------------------------------------------------------ command line
@pytest.fixture(scope="module")
def run():
    _register(("compare", "stats"))
    return lambda *words: CliRunner().invoke(app, ["compare", *map(str, words)])


@pytest.fixture
def movies(samples):
    folder = samples / "predictions" / "eraser"
    return ("--source", samples / "eraser" / "movies", "--split", "val", "--resamples", 60), [
        folder / "movies.val.jsonl",
        folder / "movies.val.baseline.jsonl",
    ]


def test_command_line_prints_a_table_and_json(run, movies):
    common, (ours, baseline) = movies
    table = run(*common, "--predictions", ours, "--predictions", baseline)
    assert table.exit_code == 0, table.output
    assert "token_macro_f1" in table.output and "movies.val against movies.val.baseline" in table.output
    found = run(*common, "--predictions", ours, "--predictions", baseline, "--format", "json", "--seed", 3)
    parsed = json.loads(found.stdout)
    headline = "token_macro_f1,sentence_macro_f1,iou_macro_f1,auprc,macro_f1"
    assert any(note.startswith("different models (movies.val and movies.val.baseline)") for note in parsed["notes"])
    assert parsed["signature"].startswith(
        "compare|data:914ebab402fa|split:validation|n:24|test:randomisation,mixed model|ci:mixed model|level:0.95|"
        "resamples:60|seed:3|systems:2|cluster:documents|"
        f"clusters:24|family:{headline}|tests:5|version:"
    )
    keys = parsed["comparisons"][0]["keys"]
    assert {"token_macro_f1", "comprehensiveness", "auprc"} <= keys.keys()
    assert keys["token_macro_f1"]["difference"] == pytest.approx(
        parsed["scores"]["movies.val"]["token_macro_f1"] - parsed["scores"]["movies.val.baseline"]["token_macro_f1"]
    )


def test_a_system_may_be_called_as_a_column_is(run, movies, tmp_path):
    common, (ours, baseline) = movies
    found = run(*common, "--predictions", f"self={ours}", "--predictions", f"difference={baseline}")
    assert found.exit_code == 0 and "self (system)" in found.output and "self against difference" in found.output


def test_a_third_system_and_the_order_of_lines_do_not_matter(run, movies, tmp_path):
    common, (ours, baseline) = movies
    third = tmp_path / "third.jsonl"
    third.write_text("".join(reversed(ours.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    found = run(*common, "--predictions", ours, "--predictions", baseline, "--predictions", third, "--format", "json")
    pairs = {(one["first"], one["second"]): one["keys"] for one in json.loads(found.stdout)["comparisons"]}
    assert len(pairs) == 3
    same = pairs["movies.val", "third"]["token_macro_f1"]
    assert same["difference"] == 0 and same["p"] == 1 and same["p_holm"] == 1 and not same["star"]


def test_wrong_usage_and_wrong_data(run, movies, tmp_path):
    common, (ours, baseline) = movies
    assert run(*common, "--predictions", ours).exit_code == 2
    assert run(*common, "--predictions", ours, "--predictions", baseline, "--confidence-level", 1).exit_code == 2
    assert run(*common, "--predictions", ours, "--predictions", baseline, "--format", "xml").exit_code == 2
    assert run("--split", "val", "--predictions", ours, "--predictions", baseline).exit_code == 2
    cut = tmp_path / "cut.jsonl"
    cut.write_text(ours.read_text(encoding="utf-8")[:500], encoding="utf-8")
    wrong = run(*common, "--predictions", ours, "--predictions", cut)
    assert wrong.exit_code == 1
    with refused("syntax", file="cut.jsonl", line=1):
        raise wrong.exception
    with refused("file-twice"):
        raise run(*common, "--predictions", ours, "--predictions", ours).exception


def test_runs_clusters_and_the_family_on_the_command_line(run, movies, tmp_path):
    common, (ours, baseline) = movies
    second = tmp_path / "second.jsonl"
    second.write_text(ours.read_text(encoding="utf-8"), encoding="utf-8")
    files = ("--predictions", f"ours={ours},{second}", "--predictions", f"theirs={baseline}")
    family = ("--primary", "auprc", "--minimum-effect", "0.1")
    found = run(*common, *files, *family, "--format", "json", "--cluster-by", "classification")
    parsed = json.loads(found.stdout)
    tested = parsed["comparisons"][0]["keys"]["auprc"]
    assert tested["p_holm"] is None and tested["verdict"] == "undecided", "two clusters decide nothing"
    assert tested["minimum_effect"] == 0.1 and tested["components"].keys() == {
        "documents",
        "runs",
        "interaction",
        "draws",
    }
    assert set(parsed["spread"]) == {"ours"} and parsed["spread"]["ours"]["auprc"] == 0
    assert parsed["family"] == ["auprc"]
    assert "|cluster:classification|clusters:2|" in parsed["signature"]
    assert run(*common, "--predictions", ours, "--predictions", baseline, "--minimum-effect", "-1").exit_code == 2
    with refused("key-missing", "'nothing'", file="val.jsonl", line=1):
        raise run(*common, "--predictions", ours, "--predictions", baseline, "--cluster-by", "nothing").exception
    with refused("type", file="val.jsonl", line=1, field="evidences"):
        raise run(*common, "--predictions", ours, "--predictions", baseline, "--cluster-by", "evidences").exception


def test_systems_with_other_optional_fields_share_what_both_have(run, movies, tmp_path):
    common, (ours, baseline) = movies
    poorer = tmp_path / "poorer.jsonl"
    with baseline.open() as lines, poorer.open("w") as out:
        for record in map(json.loads, lines):
            for rationale in record["rationales"]:
                del rationale["soft_rationale_predictions"]
            del record["thresholded_scores"], record["tokens_to_flip"]
            print(json.dumps(record), file=out)
    whole, shared = (
        json.loads(run(*common, "--predictions", ours, "--predictions", other, "--format", "json").stdout)
        for other in (baseline, poorer)
    )
    first, second = whole["comparisons"][0]["keys"], shared["comparisons"][0]["keys"]
    assert set(first) - set(second) == set(shared["left_out"]["movies.val"])
    assert {"auprc", "tokens_to_flip_ratio", "comprehensiveness_aopc"} <= set(first) - set(second)
    uncorrected = ("difference", "ci", "p", "detectable")
    assert all(second[key][name] == first[key][name] for key in second for name in uncorrected)
    turned = run(*common, "--predictions", poorer, "--predictions", ours)
    assert "not compared, movies.val alone has them:" in turned.output and "auprc" in turned.output


def test_sentences_by_scores_and_by_spans_are_not_compared(run, movies, tmp_path):
    common, (ours, baseline) = movies
    spans = tmp_path / "spans.jsonl"
    with baseline.open() as lines, spans.open("w") as out:
        for record in map(json.loads, lines):
            for rationale in record["rationales"]:
                del rationale["soft_sentence_predictions"]
            print(json.dumps(record), file=out)
    for pair in ((ours, spans), (spans, ours)):
        files = [word for path in pair for word in ("--predictions", path)]
        found = json.loads(run(*common, *files, "--format", "json").stdout)
        keys = found["comparisons"][0]["keys"]
        assert "token_micro_f1" in keys and not any(key.startswith("sentence") for key in keys)
        assert "sentence_macro_f1" in found["left_out"]["movies.val"]
        assert "sentence_macro_f1" in found["left_out"]["spans"]
    quick, source = Inference(n_resamples=5), ScoredSplit(movies[0][1], "val")
    found = compare_files(source, [System(path.stem, (path,)) for path in (spans, baseline)], None, quick)
    assert "token_micro_f1" in found["comparisons"][0]["keys"]
    twice = tmp_path / "twice.jsonl"
    twice.write_text(spans.read_text())
    found = compare_files(source, [System(path.stem, (path,)) for path in (spans, twice)], None, quick)
    assert found["comparisons"][0]["keys"]["sentence_micro_f1"]["difference"] == 0


def test_results_with_other_keys_share_what_both_have():
    one = {"f1": 0.75, "p": 0.5, "per_instance": {"annotation_id": ["a", "b"], "f1": [1.0, 0.5], "p": [0.5, 0.5]}}
    two = {"f1": 0.25, "per_instance": {"annotation_id": ["b", "a"], "f1": [0.0, 0.5]}}
    for pair, sign in (((one, two), 1), ((two, one), -1)):
        found = compare(*pair, n_resamples=20)
        assert found["comparisons"][0]["keys"]["f1"]["difference"] == sign * 0.5
        assert list(found["left_out"].values()) == [["p"]]
