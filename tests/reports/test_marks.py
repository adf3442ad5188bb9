"""The layout that terminal, notebook and report draw from."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.reports.marked_instances import MarkedDocument, mark_instance

from ..refusals import refused

pytestmark = pytest.mark.unit

NAMES = ("NEG", "POS")
SPANS = "rationales[0].hard_rationale_predictions"
SPAN = f"{SPANS}[0]"


def first_span(instance):
    return instance["rationales"][0]["hard_rationale_predictions"][0]


def test_marks_of_a_row(row, instance):
    marked = mark_instance(row, instance, label_names=NAMES)
    first, second = marked.documents
    assert (marked.label, marked.predicted_label, marked.right) == ("POS", "POS", True)
    assert first.gold == ((1, 3, 0), (2, 4, 1)) and first.empty_gold == 1
    assert second.gold == ((0, 1, 1),)
    assert first.predicted == ((2, 5),), "identical spans collapse to one"
    assert second.predicted == ()
    assert first.groups_at()[2] == (0, 1)
    assert first.predicted_at() == [False, False, True, True, True, False, False, False, False, False]
    assert first.shades(100)[0] == 0 and first.shades(100)[-1] == 99
    assert second.shades() == [0], "a document without contrast has no shade"


def test_gold_alone(row):
    marked = mark_instance(row, label_names=NAMES)
    assert marked.right is None and marked.documents[0].predicted is None and marked.documents[0].soft is None


@pytest.mark.parametrize(
    ("change", "field", "mentions"),
    [
        (lambda i: i.update(annotation_id="two"), "annotation_id", ("'two'",)),
        (lambda i: i["rationales"][0].update(docid="d9"), "rationales[0].docid", ("'d9'",)),
        (lambda i: i["rationales"][1].update(docid="d1"), "rationales[1].docid", ("'d1'",)),
        (lambda i: first_span(i).update(end_token=99), SPAN, ("10 tokens", "[2, 99)")),
        (lambda i: first_span(i).update(start_token=-1), SPAN, ("[-1, 5)",)),
        (lambda i: first_span(i).update(start_token=2.0), f"{SPAN}.start_token", ("2.0",)),
        (
            lambda i: i["rationales"][0].update(soft_rationale_predictions=[1.0]),
            "rationales[0].soft_rationale_predictions",
            ("10 scores", "found 1"),
        ),
        (
            lambda i: i["rationales"][1].update(soft_rationale_predictions=[math.nan]),
            "rationales[1].soft_rationale_predictions[0]",
            ("nan",),
        ),
        (lambda i: i.update(classification=1), "classification", ("found 1",)),
    ],
)
def test_an_output_that_does_not_fit(row, instance, change, field, mentions):
    change(instance)
    with refused(*mentions, instance="one", field=field):
        mark_instance(row, instance, label_names=NAMES)


@pytest.mark.parametrize(
    ("change", "field", "mentions"),
    [
        (lambda r: r.pop("evidences"), "evidences", ("'evidences'",)),
        (lambda r: r["evidences"][0][0].update(docid="d7"), "evidences[0][0]", ("'d7'",)),
        (lambda r: r.update(classification=7), "classification", ("0 to 1,", "found 7")),
    ],
)
def test_a_row_that_is_none(row, change, field, mentions):
    change(row)
    with refused(*mentions, field=field):
        mark_instance(row, label_names=NAMES)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.integers(2, 100))
def test_shades_keep_the_order(scores, levels):
    document = MarkedDocument("d", (tuple("x" for _ in scores),), soft=tuple(scores))
    shades = document.shades(levels)
    assert all(0 <= shade < levels for shade in shades)
    for (a, s), (b, t) in zip(
        sorted(zip(scores, shades, strict=True)), sorted(zip(scores, shades, strict=True))[1:], strict=False
    ):
        assert a == b or s <= t


def test_a_label_without_a_name_is_neither_right_nor_wrong(row, instance):
    assert mark_instance(row, instance).right is None, "a number without its name"
    row["classification"] = -1
    assert mark_instance(row, instance, label_names=NAMES).right is None, "a split without gold labels"
    row["classification"] = None
    assert mark_instance(row, instance, label_names=NAMES).right is None
    row["classification"] = "POS"
    assert mark_instance(row, instance).right is True
