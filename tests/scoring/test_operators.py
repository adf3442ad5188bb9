"""Verdicts by way of erasing: Kendall's W in closed form, flips that are flagged, runs that are told apart."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from typer.testing import CliRunner

from eraser_hub.__main__ import _register, app
from eraser_hub.records.operators import find_operator_files, read_operator
from eraser_hub.scoring.operators import (
    compute_operator_sensitivity,
    describe_better_system,
    describe_flips,
    kendalls_w,
)
from eraser_hub.scoring.runs import System, group_by_operator, parse_systems

from ..refusals import refused

pytestmark = pytest.mark.unit

ROUNDING = 2.0**-40  # sums of a few dozen small whole numbers and halves, one division


def test_kendalls_w_in_closed_form():
    assert kendalls_w([[1, 2, 3]] * 4) == 1 and kendalls_w([[1, 2, 3], [3, 2, 1]]) == 0
    # three judges of six things without ties, by the definition
    ranks = [[1, 6, 3, 2, 5, 4], [1, 5, 6, 4, 2, 3], [6, 3, 2, 5, 4, 1]]
    sums = np.sum(ranks, axis=0)
    expected = 12 * ((sums - 10.5) ** 2).sum() / (9 * (6**3 - 6))
    assert kendalls_w(ranks) == pytest.approx(expected, abs=ROUNDING)
    # ranks 1.5 1.5 3 and 1 2 3: sums 2.5 3.5 6 around 4, S = 6.5; one tie of two, T = 6
    assert kendalls_w([[1, 1, 2], [1, 2, 3]]) == pytest.approx(12 * 6.5 / (4 * 24 - 2 * 6), abs=ROUNDING)
    assert kendalls_w([[0.1 + 0.2, 0.3, 1.0], [0.3, 0.3, 1.0]]) == pytest.approx(1, abs=ROUNDING), "rounding is a tie"
    for nothing in ([[1, 2]], [[1], [2]], [[1, 1], [2, 2]], [[1, math.nan], [1, 2]], []):
        assert math.isnan(kendalls_w(nothing))


@given(arrays(np.int8, st.tuples(st.integers(2, 5), st.integers(2, 6)), elements=st.integers(0, 3)))
def test_kendalls_w_is_a_share_and_sees_ranks_alone(values):
    w = kendalls_w(values)
    assert math.isnan(w) or -ROUNDING <= w <= 1 + ROUNDING
    again = kendalls_w(np.exp(values.astype(float))[::-1])
    assert math.isnan(w) if math.isnan(again) else abs(w - again) <= ROUNDING


def compared(differences: dict[str, tuple[float, float, float]]) -> dict[str, dict]:
    """Results of two systems whose sufficiency differs so, by way."""
    results = {}
    for way, (low, middle, high) in differences.items():
        keys = {"sufficiency": {"difference": middle, "ci": [low, high]}, "accuracy": {"difference": 0.0, "ci": [0, 0]}}
        scores = {"a": {"sufficiency": middle, "accuracy": 1.0}, "b": {"sufficiency": 0.0, "accuracy": 1.0}}
        results[way] = {"scores": scores, "comparisons": [{"first": "a", "second": "b", "keys": keys}]}
    return results


def test_a_verdict_that_flips():
    told = compute_operator_sensitivity(
        compared({"remove": (0.1, 0.2, 0.3), "mask": (-0.3, -0.2, -0.1), "pad": (-0.1, 0.1, 0.3)})
    )
    assert list(told["scores"]) == ["sufficiency"], "what no way changes is no matter of ways"
    score = told["scores"]["sufficiency"]
    (pair,) = score["pairs"]
    better = {way: one["better"] for way, one in pair["verdicts"].items()}
    assert pair["flips"] and better == {"remove": "b", "mask": "a", "pad": None}
    assert describe_better_system(pair) == "b by remove; a by mask; – by pad"
    assert score["better"] == "lower" and score["kendall_w"] == pytest.approx(1 / 9, abs=ROUNDING)
    (note,) = describe_flips(told)
    assert note.startswith("sufficiency flips ") and "b by remove; a by mask" in note


def test_a_verdict_that_holds_by_some_and_one_that_holds_by_all():
    told = compute_operator_sensitivity(compared({"remove": (0.1, 0.2, 0.3), "mask": (-0.1, 0.1, 0.3)}))
    assert not told["scores"]["sufficiency"]["pairs"][0]["flips"]
    (note,) = describe_flips(told)
    assert note.startswith("1 verdicts ") and "flips" not in note
    told = compute_operator_sensitivity(compared({"remove": (0.1, 0.2, 0.3), "mask": (0.2, 0.3, 0.4)}))
    assert describe_flips(told) == [] and describe_better_system(told["scores"]["sufficiency"]["pairs"][0]) == "b"


def write(path: Path, way: str = "", text: str = "{}\n") -> Path:
    path.write_text(text, "utf-8")
    if way:
        path.with_name(path.name + ".run.json").write_text(json.dumps({"signature": f"kd:1|erase:{way}|seed:1"}))
    return path


def test_files_of_several_ways_are_told_apart(tmp_path):
    one, two, seed = (
        write(tmp_path / "a.remove.jsonl", "remove"),
        write(tmp_path / "a.mask.jsonl", "mask"),
        tmp_path / "s",
    )
    write(seed, "mask")
    assert read_operator(one) == "remove" and find_operator_files(tmp_path / "a.jsonl") == [one, two]
    a, b = System("a", (one, two, seed)), System("b", (two, one))
    by_way = {
        "remove": [System("a", (one,)), System("b", (one,))],
        "mask": [System("a", (two, seed)), System("b", (two,))],
    }
    assert group_by_operator([a, b]) == by_way
    seeds = [System("a", (two, seed)), System("b", (one,))]
    assert group_by_operator(seeds) == {"": seeds}, "seeds of one way"
    with refused("score-missing", "(remove, mask)", "none by mask", field="b"):
        group_by_operator([System("a", (one, two)), System("b", (one,))])
    bare = write(tmp_path / "bare.jsonl")
    with refused("score-missing", "(remove, mask)", "none by unknown", field="a"):
        group_by_operator([System("a", (one, two)), System("b", (bare,))])
    asked = [str(tmp_path / "a.jsonl"), f"b={bare}"]
    assert [system.paths for system in parse_systems(asked, several_operators=True)] == [(one, two), (bare,)]
    write(tmp_path / "a.jsonl")
    assert parse_systems(asked, several_operators=True)[0].paths == (tmp_path / "a.jsonl",), "what is there is meant"
    two.with_name("a.mask.jsonl.run.json").write_text("{")
    with refused("syntax", "JSON object", file="a.mask.jsonl.run.json"):
        read_operator(two)


def test_compare_tells_each_way_and_flags_the_flips(samples, ways):
    _register(("compare",))
    where = ["--source", str(samples / "eraser" / "movies"), "--split", "val", "--resamples", "60"]
    words = ["compare", *where, "--predictions", str(ways / "ours.jsonl"), "--predictions", str(ways / "theirs.jsonl")]
    done = CliRunner().invoke(app, [*words, "--format", "json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["operators"]["names"] == ["remove", "mask"]
    (pair,) = told["operators"]["scores"]["comprehensiveness"]["pairs"]
    assert (pair["first"], pair["second"]) == ("ours", "theirs")
    for way, one in pair["verdicts"].items():
        theirs = ["--predictions", str(ways / f"theirs.{way}.jsonl"), "--format", "json"]
        other = CliRunner().invoke(app, [*words[:-3], str(ways / f"ours.{way}.jsonl"), *theirs])
        alone = json.loads(other.stdout)["comparisons"][0]["keys"]["comprehensiveness"]
        assert one["difference"] == alone["difference"] and one["ci"] == alone["ci"]
    assert "token_macro_f1" not in told["operators"]["scores"]
    table = CliRunner().invoke(app, words).output
    assert "By way of erasing" in table and "W: Kendall's" in table
    mixed = [*where, "--predictions", str(ways / "ours.mask.jsonl"), "--predictions", str(ways / "theirs.remove.jsonl")]
    assert "(ours.mask by mask, theirs.remove by remove)" in CliRunner().invoke(app, ["compare", *mixed]).output
