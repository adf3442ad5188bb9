"""Masks, scores, spans and quotes become the instances and dataset rows that say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

from eraser_hub.metrics import plain
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.plain import instances_from, to_instances

TEXT = "a warm and funny film .\nit drags a little ."
GOLD = {"id": "x", "documents": [{"docid": "p", "text": "a man plays"}, {"docid": "h", "text": "he sleeps"}]}


def spans_of(instance: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """Return docid -> predicted spans."""
    fields = ("docid", "hard_rationale_predictions")
    rationales = [[rationale[field] for field in fields] for rationale in instance["rationales"]]
    return {docid: [(span["start_token"], span["end_token"]) for span in spans] for docid, spans in rationales}


@pytest.mark.parametrize(
    "row",
    [
        [0, 1, 1, 0, 1],
        np.array([0, 1, 1, 0, 1]),
        pandas.Series([0, 1, 1, 0, 1]),
        pa.array([0, 1, 1, 0, 1]),
        {"rationale": [(1, 3), (4, 5)], "tokens": list("abcde")},
        {"rationale": [{"start_token": 1, "end_token": 3}, {"start_token": 4, "end_token": 5}], "text": "a b c d e"},
        {"rationale": [[2, 5], [8, 9]], "text": "a b c d e"},  # characters
        {"rationale": [{"start": 2, "end": 5}, {"begin": 8, "end": 9}], "text": "a b c d e"},
        {"quotes": ["b c", "e"], "text": "a b c d e"},
    ],
)
def test_every_form_of_a_mask(row: Any) -> None:
    (instance,) = instances_from([row], ids=["n"])
    assert spans_of(instance) == {"n": [(1, 3), (4, 5)]}
    instances, rows, notes = to_instances([row], [row])
    assert spans_of(instances[0]) == {"0": [(1, 3), (4, 5)]} and not notes
    assert rows is not None
    (group,) = rows[0]["evidences"]
    assert [(evidence["start_token"], evidence["end_token"]) for evidence in group] == [(1, 3), (4, 5)]


def test_scores_stand_alone_or_beside_a_mask() -> None:
    alone, both = to_instances([[0.5, 1.0], {"rationale": [0, 1], "scores": [0, 1]}])[0]
    assert alone["rationales"] == [{"docid": "0", "soft_rationale_predictions": [0.5, 1.0]}]
    assert spans_of(both) == {"1": [(1, 2)]} and both["rationales"][0]["soft_rationale_predictions"] == [0.0, 1.0]


def test_a_reference_keeps_its_sentences_label_and_further_columns() -> None:
    row = {"text": TEXT, "rationale": ["drags"], "label": "bad", "genre": "one"}
    ((annotation,), notes) = to_instances([], [row])[1:]
    place = {"docid": "0", "text": "drags", "start_token": 7, "end_token": 8, "start_sentence": 1, "end_sentence": 2}
    assert annotation["evidences"] == [[place]] and annotation["documents"] == [{"docid": "0", "text": TEXT}]
    assert (annotation["classification"], annotation["genre"], notes) == ("bad", "one", [])


def test_rows_of_human_rationales_are_references() -> None:
    row = {"id": 7, "tokens": ["x y", "", "z"], "rationale_mask": [0, 1, 1], "label": 1}
    (annotation,) = to_instances([], [row])[1] or ()
    assert annotation["documents"] == [{"docid": "7", "text": "x\u00a0y \u200b z"}], "a token stays one"
    (((evidence,),), label) = annotation["evidences"], annotation["classification"]
    assert (evidence["start_token"], evidence["end_token"], label) == (1, 3, 1)


def test_instances_and_dataset_rows_stay_as_they_are() -> None:
    instances = [{"annotation_id": "a", "rationales": []}, {"annotation_id": "b", "quotes": [], "outcome": "refusal"}]
    rows = [{"annotation_id": "a", "rationale": "words", "documents": [], "evidences": []}]
    made = to_instances(instances, rows)
    assert made[0] == instances and made[1] == rows and made[0][0] is instances[0]
    assert not plain.is_plain({"id": "a", "rationale": [{"docid": "d"}]}) and not plain.is_plain("text")


def test_a_mask_covers_the_documents_in_order_and_docid_names_one() -> None:
    ((mask, quote, one), _, _) = to_instances(
        [[0, 0, 1, 0, 1], {"id": "x", "quotes": ["He sleeps"]}, {"id": "x", "docid": "h", "rationale": [[1, 2]]}],
        [GOLD],
    )
    assert spans_of(mask) == {"p": [(2, 3)], "h": [(1, 2)]} and spans_of(quote) == {"p": [], "h": [(0, 2)]}
    assert spans_of(one) == {"h": [(1, 2)]}


def test_quotes_elsewhere_or_nowhere_are_counted() -> None:
    gold = [{"text": "good film and good cast", "rationale": ["cast"]}] * 2
    instances, _, notes = to_instances([["good"], ["Good film", "goo", "dull"]], gold)
    assert [spans_of(instance) for instance in instances] == [{"0": [(0, 1)]}, {"1": [(0, 2)]}]
    assert notes == [
        "predicted quotes in several places, put at the first: 1",
        "predicted quotes that are not in the text, left out: 2",
    ]
    with pytest.warns(UserWarning, match="left out: 1"):
        instances_from([["b"]], texts=["a c"])
    assert instances_from([["b"]], gold=[{"id": "a", "text": "a b", "rationale": ["a"]}])[0]["annotation_id"] == "a"


def test_labels_and_probabilities() -> None:
    (made,) = instances_from([[0, 1]], ids=["a"], labels=["good"], probabilities=[{"good": 1.0}])
    assert (made["classification"], made["classification_scores"]) == ("good", {"good": 1.0})
    assert "classification" not in instances_from([{"rationale": [0, 1], "label": None}])[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_module_takes_plain_rows_of_every_container() -> None:
    masks, gold = [[0, 1, 0], [1, 1, 0]], [[0, 1, 1], [1, 0, 0]]
    expected = EraserAgreement().compute(predictions=masks, references=gold)
    assert expected["token_micro_p"] == 2 / 3
    column = {"rationale": masks}
    forms = (np.array(masks), pandas.Series(masks), pandas.DataFrame(column), column, pa.table(column), iter(masks))
    for data in forms:
        assert EraserAgreement().compute(predictions=data, references=gold) == expected


@pytest.mark.parametrize(
    ("predictions", "references", "field", "words"),
    [
        ([[0, 2, 0]], [[0, 1, 0]], "rationale", "0 or 1"),
        ([[0, 1]], [[0, 1, 0]], "rationale", "3 values, one a token, found 2"),
        ([[0.1, 10**400, 1.0]], [[0, 1, 0]], "rationale[1]", "finite"),
        ([[0, 1, 0]], [[0.0, 0.5, 1.0]], "rationale", "0 or 1"),
        ([[[0, 4]]], [[0, 1, 0]], "rationale[0]", "<= 3 (the text's tokens)"),
        ([[[0, "1"]]], [[0, 1, 0]], "rationale[0]", "a span [start, end]"),
        ([[[0, 1]]], [GOLD], "rationale", "`docid` beside spans"),
        ([{"rationale": [0], "docid": "q"}], [GOLD], "docid", "found 'q'"),
        ([["warm"]], [[0, 1, 0]], "rationale", "`text` or `tokens`"),
        ([["0", "1", "0"]], [[0, 1, 0]], "rationale", "a mask has numbers"),
        ([{"quotes": ["warm"]}], None, "quotes", "`text` or `tokens`"),
        ([], [{"rationale": [[0, 1]]}], "rationale", "need the text"),
        ([{"rationale": [0, 1], "text": "a b c"}], [{"rationale": [0, 1], "text": "a b"}], "text", "2 tokens"),
        ([[0, 1], [0, 1]], [[0, 1]], "predictions", "found more"),
        ([{"id": "b", "quotes": ["b"]}], [{"id": "a", "rationale": [0, 1]}], "annotation_id", "ids like 'a'"),
        ([{"rationle": [0, 1]}], [[0, 1]], "rationle", "'rationale'"),
        ([[0]], [{"id": "a", "documents": [{"docid": "d"}]}], "documents[0]", "docid and text"),
    ],
)
def test_what_does_not_fit_names_the_row(predictions: Any, references: Any, field: str, words: str) -> None:
    with pytest.raises(DataError) as error:
        to_instances(predictions, references)
    assert error.value.field == field and words in str(error.value)
    assert error.value.instance is not None or field == "predictions"


def test_instances_from_refuses() -> None:
    with pytest.raises(DataError, match="ids: expected one for each of 1 rows, found 2"):
        instances_from([[0, 1]], ids=["a", "b"])
    with pytest.raises(DataError, match="rationales: expected rows of masks"):
        instances_from([{"annotation_id": "a", "rationales": []}])
