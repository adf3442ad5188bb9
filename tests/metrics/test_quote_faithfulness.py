"""quote_faithfulness: shares counted by hand, and what is refused."""

from __future__ import annotations

import pandas as pd
import pytest

from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness

from ..refusals import refused


def quote(status: str, start: int | None = None, end: int | None = None) -> dict:
    return {"text": "t", "status": status, "docid": "d", "start_token": start, "end_token": end, "similarity": 0.0}


REFERENCES = [{"annotation_id": name, "documents": [{"docid": "d", "text": "a b c d e\nf g h i j"}]} for name in "xyz"]


def compute(*instances: dict, **settings) -> dict:
    return QuoteFaithfulness().compute(predictions=list(instances), **settings)


def test_counts_by_hand():
    quotes = {
        "x": [quote("exact", 0, 4), quote("fuzzy", 2, 6), quote("not_found")],
        "y": [quote("ambiguous", 0, 1), quote("empty")],
    }
    answered = [{"annotation_id": name, "quotes": own, "outcome": "answered"} for name, own in quotes.items()]
    result = compute(*answered, {"annotation_id": "z", "quotes": [], "outcome": "cut"}, references=REFERENCES)
    shares = {key: result[key] for key in ("in_text", "exact", "normalised", "fuzzy", "ambiguous", "invented")}
    assert shares == {
        "in_text": 0.75,
        "exact": 0.25,
        "normalised": 0,
        "fuzzy": 0.25,
        "ambiguous": 0.25,
        "invented": 0.25,
    }
    assert (result["instances_with_invented"], result["quotes_per_instance"], result["quote_length"]) == (0.5, 2, 3)
    assert (result["coverage"], result["answered"]) == (7 / 30, 2 / 3)
    assert (result["quotes"], result["empty"]) == (4, 1)


def test_scores_of_questions_that_were_not_asked_name_the_missing_field():
    rows = [{"annotation_id": "x", "quotes": [quote("exact", 0, 4)]}]
    with pytest.warns(UserWarning, match=r"left out: label_flip_redacted, .*label_kept_alone \(no asked_again\)"):
        compute(*rows)
    asked = [{"kind": "redacted", "classification": "A"}]
    with pytest.warns(
        UserWarning, match=r"left out: label_flip_removed, .*label_kept_alone \(no such asked_again\)"
    ) as said:
        compute({**rows[0], "classification": "A", "asked_again": asked})
    assert "label_flip_redacted" not in str(said[0].message)


def test_without_references_there_is_no_coverage():
    result = compute({"annotation_id": "x", "quotes": [quote("exact", 0, 4)]})
    assert result["in_text"] == 1
    assert result["coverage"] != result["coverage"]
    assert "coverage" not in result["signature"]


def nested(depth: int) -> list:
    inner: list = []
    for _ in range(depth):
        inner = [inner]
    return inner


def test_docids_that_are_no_ids():
    row = {"annotation_id": "x", "quotes": [quote("exact", 0, 4)]}
    documents = [{"docid": nested(5000), "text": "a b c d e"}]
    with refused("type", "found ", instance="x", field="documents[0].docid"):
        compute(row, references=[{"annotation_id": "x", "documents": documents}])
    assert compute({**row, "rationales": [{"docid": nested(5000)}]}, confidence_level=0.95)["in_text"] == 1


def test_the_invented_rate_has_an_interval_over_instances():
    rows = [
        {"annotation_id": at, "quotes": [quote("exact", 0, 1) if at % 4 else quote("not_found")]} for at in range(40)
    ]
    result = compute(*rows, confidence_level=0.95, n_resamples=200, seed=1)
    low, high = result["invented_ci"]
    assert 0 < low < result["invented"] == 0.25 < high < 1


@pytest.mark.parametrize(
    ("row", "rule", "field", "found"),
    [
        ({"quotes": None}, "type", "quotes", "None"),
        ({"quotes": [quote(pd.NA)]}, "choice", "quotes[0].status", "<NA>"),
        ({"quotes": [quote("seen")]}, "choice", "quotes[0].status", "'seen'"),
        ({"quotes": [quote("exact", 3, 3)]}, "span-order", "quotes[0]", "[3, 3]"),
        ({"quotes": [quote("exact", 0, 11)]}, "span-bounds", "quotes.end_token", "11"),
        ({"quotes": [{**quote("exact", 0, 1), "docid": "e"}]}, "document-unknown", "quotes.docid", "'e'"),
        ({"quotes": [{**quote("exact", 0, 1), "docid": None}]}, "type", "quotes[0].docid", "None"),
        ({"quotes": [quote("empty")], "outcome": "refusal"}, "constant", "quotes", "none"),
        ({"quotes": [], "outcome": 3}, "type", "outcome", "3"),
        ({"quotes": [], "outcom": "cut"}, "key-unknown", "outcom", "'outcome'"),
    ],
)
def test_what_is_refused(row, rule, field, found):
    shown = {"choice": ["exact, normalised,"], "span-bounds": ["10"]}.get(rule, [])
    with refused(rule, found, *shown, instance="x", field=field):
        compute({"annotation_id": "x", **row}, references=REFERENCES[:1])


def asked(label: str, **kinds: str | None) -> dict:
    again = [{"kind": kind, "classification": other, "outcome": "answered"} for kind, other in kinds.items()]
    return {"classification": label, "quotes": [], "asked_again": again}


def test_answers_to_changed_questions_by_hand():
    result = compute(
        {"annotation_id": "x", **asked("A", redacted="B", alone="A", random="A")},
        {"annotation_id": "y", **asked("A", redacted=None, alone=None, random="B")},
        {"annotation_id": "z", **asked("B", redacted="B", alone="B", random="B")},
        {"annotation_id": "u", "quotes": [], "outcome": "refusal", "classification": None, "asked_again": []},
    )
    keys = ("label_flip_redacted", "label_kept_alone", "label_flip_random")
    assert [result[key] for key in keys] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert result["label_flip_removed"] != result["label_flip_removed"]  # nobody was asked


AGAIN = asked("A", alone="A")["asked_again"]


@pytest.mark.parametrize(
    ("row", "rule", "field", "found"),
    [
        (asked("A", quoted="B"), "choice", "asked_again[0].kind", "'quoted'"),
        ({"asked_again": [{"kind": ["alone"]}], "classification": "A"}, "choice", "asked_again[0].kind", "['alone']"),
        ({"asked_again": AGAIN}, "label-missing", "classification", "None"),
        ({"asked_again": AGAIN * 2, "classification": "A"}, "choice", "asked_again[1].kind", "'alone'"),
        ({"asked_again": "alone", "classification": "A"}, "type", "asked_again", "'alone'"),
    ],
)
def test_further_answers_that_are_none(row, rule, field, found):
    shown = ["redacted, removed,"] if rule == "choice" else []
    with refused(rule, f"found {found}", *shown, instance="x", field=field):
        compute({"annotation_id": "x", "quotes": [], **row})
