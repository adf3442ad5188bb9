"""Findings in words, from the verdicts of a comparison."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from eraser_hub.reports.findings import describe_findings, list_tests

COMPREHENSIVENESS, SUFFICIENCY = "comprehensiveness_aopc", "sufficiency_aopc"


def make_comparison(verdicts: dict[tuple[str, str, str], str], names: str = "abc") -> dict[str, Any]:
    """A comparison with the verdicts on (first, second, score); the others are undecided."""
    family = [COMPREHENSIVENESS, SUFFICIENCY, "token_macro_f1"]
    signs = {"better": 0.2, "worse": -0.2}
    pairs = []
    for first, second in combinations(names, 2):
        keys = {}
        for key in family:
            verdict = verdicts.get((first, second, key), "undecided")
            difference = signs.get(verdict, 0.01)
            ends = [difference - 0.05, difference + 0.05]
            keys[key] = {"verdict": verdict, "difference": difference, "ci": ends}
        pairs.append({"first": first, "second": second, "keys": keys})
    return {"family": family, "comparisons": pairs, "scores": {name: {} for name in names}}


@pytest.mark.parametrize(
    ("verdicts", "names", "words"),
    [
        (
            {("a", "b", COMPREHENSIVENESS): "better", ("a", "c", SUFFICIENCY): "better"},
            "abc",
            "a explains the model more faithfully than b and c: Comprehensiveness (AOPC) is better by 0.200 "
            "[0.150, 0.250] (a against b).",
        ),
        (
            {("a", "b", SUFFICIENCY): "worse"},  # a lower score that is better
            "ab",
            "b explains the model more faithfully than a: Sufficiency (AOPC) is better by 0.200 [0.150, 0.250].",
        ),
        (
            {("a", "b", COMPREHENSIVENESS): "better", ("a", "b", SUFFICIENCY): "worse"},
            "ab",
            "no system leads",
        ),
        (
            {("a", "b", key): "equivalent" for key in (COMPREHENSIVENESS, SUFFICIENCY)},
            "ab",
            "In faithfulness the systems are equivalent: all 2 differences are too small to matter.",
        ),
    ],
)
def test_a_finding_names_the_leader_and_its_smallest_difference(verdicts, names, words):
    faithfulness, agreement = describe_findings(make_comparison(verdicts, names))
    assert words in faithfulness
    assert "no system is shown to be better: " in agreement


def test_faithfulness_is_compared_within_a_model():
    verdicts = {("a", other, COMPREHENSIVENESS): "better" for other in "bcd"}
    comparison = make_comparison(verdicts, "abcd")
    lines = describe_findings(comparison, models={"a": "LR", "b": "LR", "c": "BERT", "d": "BERT"})
    assert lines[0].startswith("LR: a explains the model more faithfully than b: ")
    assert lines[1].startswith("BERT: In faithfulness no system is shown to be better: 2 of 2")
    assert "Faithfulness of different models is not compared" in lines[-1]


def test_each_test_is_seen_from_both_sides():
    comparison = make_comparison({("a", "b", "token_macro_f1"): "better"}, "ab")
    tests = list(list_tests(comparison))
    assert [(one.system, one.verdict) for one in tests if one.key == "token_macro_f1"] == [
        ("a", "better"),
        ("b", "worse"),
    ]
    first, second = tests[-2:]
    assert (second.difference, second.low, second.high) == (-first.difference, -first.high, -first.low)
