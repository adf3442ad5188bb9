"""Findings in words, from the verdicts of a comparison."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest

from eraser_hub.metrics.statistics import Statistics
from eraser_hub.reports.catalogue import metric
from eraser_hub.reports.findings import describe_alone, describe_findings
from eraser_hub.scoring.result import HEADLINE, Scores

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
            {("a", "c", COMPREHENSIVENESS): "better", ("b", "d", COMPREHENSIVENESS): "better"},
            "abcd",
            "a explains the model more faithfully than c: Comprehensiveness (AOPC) is better by 0.200 [0.150, 0.250].",
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


@pytest.mark.parametrize(
    ("low", "texts", "words"),
    [
        (0.4, 6, "s better than chance"),
        (0.2, 6, "no better than chance"),
        (0.4, 5, ": Token"),
        (math.nan, 6, ": Token"),
    ],
)
def test_one_system_beside_chance(low, texts, words):
    known = {"statistics": {"eraser_agreement": Statistics(range(texts), {}, {})}, "chance": {"token_macro_f1": 0.3}}
    scores = {"token_macro_f1": 0.5, "comprehensiveness_aopc": 0.2, "sufficiency_aopc": 0.1}
    system = Scores("ours", scores=scores, intervals={"token_macro_f1": (low, 0.6)}, **known)
    agreement, faithfulness = describe_alone(system)
    assert words in agreement and ("chance" in agreement) == ("chance" in words)
    assert faithfulness == "ours: Comprehensiveness (AOPC) 0.200, Sufficiency (AOPC) 0.100."


def test_every_headline_score_has_a_definition():
    assert not [key for choices in HEADLINE for key in choices if not (metric(key).meaning and metric(key).formula)]


def test_systems_that_are_equal_in_every_text_are_not_undecided():
    comparison = make_comparison({}, "ab")
    for key in (COMPREHENSIVENESS, SUFFICIENCY):
        comparison["comparisons"][0]["keys"][key] |= {"difference": 0.0, "ci": [math.nan, math.nan]}
    assert describe_findings(comparison)[0] == "In faithfulness the systems are equal in every text."
