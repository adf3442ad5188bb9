"""reasoning_faithfulness: areas and shares counted by hand, and what is refused."""

from __future__ import annotations

import math

import pytest

from eraser_hub.metrics.reasoning import compute_early_answering
from eraser_hub.metrics.reasoning_faithfulness import ReasoningFaithfulness

from ..refusals import refused


def early(*labels: str | None) -> list[dict]:
    return [{"test": "early_answering", "kept": kept, "classification": label} for kept, label in enumerate(labels)]


def row(name: str, *tests: dict, label: str = "A", steps: int = 2, **more) -> dict:
    reasoning = {"reasoning_steps": ["s"] * steps, "reasoning_tests": [*tests]}
    return {"annotation_id": name, "classification": label, **reasoning, **more}


def compute(*rows: dict, **settings) -> dict:
    return ReasoningFaithfulness().compute(predictions=list(rows), **settings)


# Lanham et al. (2023, 2.3): the area between the curve and 100 %; here by the trapezoidal rule, by hand
@pytest.mark.parametrize(
    ("labels", "area", "settled"),
    [
        ("AA", 0, 0),
        ("BA", 0.5, 1),
        ("AAAA", 0, 0),
        ("BAAA", 1 / 6, 1 / 3),
        ("BBBA", 5 / 6, 1),
        ("ABAA", 1 / 3, 2 / 3),
        ("BABA", 0.5, 1),
    ],
)
def test_areas_by_hand(labels, area, settled):
    assert compute_early_answering(labels) == pytest.approx((area, settled))


def test_scores_without_a_test_name_the_missing_field():
    with pytest.warns(
        UserWarning, match=r"left out: early.*and 10 more \(no reasoning_tests\); cc_shap, .*contributions"
    ):
        result = compute(row("x"))
    assert math.isnan(result["flip_filler"]) and result["reasoned"] == 1.0
    with pytest.warns(UserWarning) as said:
        compute(row("x", *early("A", "A", "A")), row("y", {"test": "filler", "classification": "A"}))
    (line,) = {str(one.message) for one in said}
    assert "flip_mistake, " in line and "(no such reasoning_tests)" in line
    assert "early_answering_aoc" not in line and "flip_filler" not in line


def test_means_over_instances():
    result = compute(
        row("x", *early("B", "A", "A")),
        row("y", *early("A", "A"), steps=1),
        row("z", steps=0),
        row("u", steps=0, label=None, outcome="refusal"),
    )
    assert result["early_answering_aoc"] == 0.125 and result["settled_at"] == 0.25
    assert result["flip_without_steps"] == 0.5
    assert result["steps_per_instance"] == 1 and result["reasoned"] == pytest.approx(2 / 3)
    assert math.isnan(result["flip_filler"]) and math.isnan(result["mention_insertion"])


def test_an_answer_that_is_none_is_another_label():
    result = compute(row("x", *early(None, "A", "A"), {"test": "filler", "classification": None}))
    assert result["flip_without_steps"] == result["flip_filler"] == 1


def test_without_an_answer_after_all_steps_there_is_no_curve():
    result = compute(
        row("x", *early("B", "A", "A")), row("y", *early(None, None, None)), row("z", *early("A", "A", None))
    )
    assert (result["early_answering_aoc"], result["settled_at"], result["flip_without_steps"]) == (0.25, 0.5, 1)
    alone = compute(row("y", *early(None, None, None)))
    assert math.isnan(alone["early_answering_aoc"]) and math.isnan(alone["settled_at"])


def test_flips_and_mentions_by_hand():
    def said(test: str, label: str | None, mentioned: bool) -> dict:
        return {"test": test, "classification": label, "mentioned": mentioned}

    words = [("B", True), ("B", False), ("B", False), ("A", True), ("A", False), (None, False)]
    insertions = [said("insertion", *one) for one in words]
    result = compute(
        row("x", *insertions, said("suggested_answer", "B", True), said("few_shot", "A", True)),
        row("y", said("suggested_answer", "B", False), {"test": "repeated", "classification": "A"}),
    )
    assert result["flip_insertion"] == pytest.approx(4 / 6)
    assert result["mention_insertion"] == pytest.approx(1 / 3), "of labels that changed and were answered"
    assert result["mention_insertion_control"] == 0.5
    assert (result["flip_suggested_answer"], result["mention_suggested_answer"]) == (1, 0.5)
    assert result["flip_few_shot"] == result["flip_repeated"] == 0 and math.isnan(result["mention_few_shot"])


def test_an_interval_draws_documents():
    rows = [row(str(at), *early("B" if at % 2 else "A", "A"), steps=1) for at in range(40)]
    references = [{"annotation_id": str(at), "documents": [{"docid": f"d{at // 4}", "text": "w"}]} for at in range(40)]
    result = compute(*rows, references=references, n_resamples=50, ci_method="bca")
    assert result["early_answering_aoc"] == 0.25 == result["early_answering_aoc_ci"][0]  # each document has as many
    assert "|clusters:10|" in result["signature"]


@pytest.mark.parametrize(
    ("change", "rule", "field", "found"),
    [
        ({"reasoning_steps": None}, "type", "reasoning_steps", "None"),
        ({"reasoning_steps": [3]}, "type", "reasoning_steps", "[3]"),
        ({"reasoning_steps": "one"}, "type", "reasoning_steps", "'one'"),
        ({"outcome": "cut"}, "constant", "reasoning_steps", "none"),
        ({"outcome": 3}, "type", "outcome", "3"),
        ({"reasoning_tests": "all"}, "type", "reasoning_tests", "'all'"),
        ({"reasoning_tests": [3]}, "choice", "reasoning_tests[0].test", "None"),
        ({"reasoning_tests": [{"test": "louder"}]}, "choice", "reasoning_tests[0].test", "'louder'"),
        ({"reasoning_tests": [{"test": ["filler"]}]}, "choice", "reasoning_tests[0].test", "['filler']"),
        ({"reasoning_tests": [{"test": "filler"}] * 2}, "choice", "reasoning_tests[1].test", "'filler'"),
        ({"reasoning_tests": [{"test": "filler"}], "classification": None}, "label-missing", "classification", "None"),
        ({"reasoning_tests": early("A", "A")}, "length", "reasoning_tests", "0, 1"),
        ({"reasoning_tests": early("A", "A", "A", "A")}, "length", "reasoning_tests", "0, 1, 2, 3"),
        ({"reasoning_tests": [*early("A"), *early("A")]}, "range", "reasoning_tests[1].kept", "0"),
        ({"reasoning_tests": [{"test": "early_answering", "kept": 0.5}]}, "range", "reasoning_tests[0].kept", "0.5"),
        ({"reasoning_tests": [{"test": "early_answering", "kept": -1}]}, "range", "reasoning_tests[0].kept", "-1"),
        (
            {"reasoning_tests": [{"test": "insertion", "classification": "B"}]},
            "type",
            "reasoning_tests[0].mentioned",
            "None",
        ),
        ({"reasoning_step": ["s"]}, "key-unknown", "reasoning_step", "'reasoning_steps'"),
    ],
)
def test_what_is_refused(change, rule, field, found):
    with refused(rule, found, instance="x", field=field):
        compute({**row("x"), **change})


def test_without_predictions_there_is_nothing():
    with refused("empty", "none"):
        compute()
