"""Quotes as citations: cited documents and sentences against groups of evidence, by hand."""

from __future__ import annotations

import math

import pytest

from eraser_hub.metrics.citations import EvidenceGroups, compute_citation
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness

DOCUMENTS = [{"docid": "d", "text": "a b c\nd e\nf"}, {"docid": "e", "text": "g h\ni j"}]


def span(docid: str, start: int, end: int) -> dict:
    return {"docid": docid, "start_token": start, "end_token": end}


def quote(docid: str, start: int, end: int) -> dict:
    return {"text": "q", "status": "exact", "similarity": 1.0, **span(docid, start, end)}


REFERENCES = [
    # two alternatives: the first two sentences of d, or the last one of e
    {"annotation_id": "x", "documents": DOCUMENTS, "evidences": [[span("d", 1, 4)], [span("e", 3, 4)]]},
    {"annotation_id": "y", "documents": DOCUMENTS, "evidences": [[span("d", 5, 6)]]},
    {"annotation_id": "z", "documents": DOCUMENTS, "evidences": []},
]


@pytest.mark.parametrize(
    ("cited", "groups", "expected"),
    [
        ("ab", ["ab"], (1, 1, 1)),
        ("a", ["ab", "c"], (1, 0.5, 2 / 3)),
        ("cx", ["ab", "c"], (0.5, 1, 2 / 3)),
        ("", ["a"], (0, 0, 0)),
        ("x", ["a"], (0, 0, 0)),
    ],
)
def test_a_citation_by_hand(cited, groups, expected):
    units = [[(letter, 0) for letter in letters] for letters in (cited, *groups)]
    assert compute_citation(units[0], units[1:]) == pytest.approx(expected)


def test_sentences_of_tokens():
    evidence = EvidenceGroups(REFERENCES[0])
    assert evidence.groups == [{("d", 0), ("d", 1)}, {("e", 1)}]
    assert evidence.find_sentences("d", 2, 6) == {("d", 0), ("d", 1), ("d", 2)}
    assert evidence.find_sentences("d", 3, 3) == set()


def test_means_over_instances_with_evidence():
    rows = [
        {"annotation_id": "x", "quotes": [quote("d", 0, 2), quote("e", 0, 1)]},
        {"annotation_id": "y", "quotes": [quote("d", 5, 6)]},
        {"annotation_id": "z", "quotes": [quote("d", 0, 1)]},
    ]
    result = QuoteFaithfulness().compute(predictions=rows, references=REFERENCES)
    # x: documents d and e, both of them evidence; sentences d0 (of a group of two) and e0 (of none)
    assert result["citation_document_p"] == result["citation_document_r"] == 1
    assert result["citation_sentence_p"] == result["citation_sentence_r"] == 0.75
    assert result["citation_sentence_f1"] == 0.75 and result["citation_complete"] == 0.5


def test_answers_without_quotes_cite_nothing_and_references_without_evidence_are_left_out():
    rows = [{"annotation_id": name, "quotes": [], "outcome": "refusal"} for name in "xyz"]
    result = QuoteFaithfulness().compute(predictions=rows, references=REFERENCES)
    assert result["citation_sentence_f1"] == result["citation_complete"] == 0
    alone = QuoteFaithfulness().compute(predictions=rows[2:], references=REFERENCES[2:])
    assert math.isnan(alone["citation_sentence_f1"])


@pytest.mark.parametrize("evidences", [None, 3, [3], [[3]], [[{"docid": "d"}]], [[{"start_token": "a"}]]])
def test_evidence_of_another_form_is_none(evidences):
    assert EvidenceGroups({"documents": DOCUMENTS, "evidences": evidences}).groups == []


def test_quotes_of_declared_distractors_are_wrong_and_of_others_an_error():
    place = {"start_token": 0, "end_token": 2, "similarity": 1.0, "text": "x", "status": "exact"}
    quotes = [{"docid": "d", **place}, {"docid": "other", **place}]
    gold = {
        "annotation_id": "a",
        "documents": [{"docid": "d", "text": "one two\nthree four"}],
        "evidences": [[{"docid": "d", "start_token": 0, "end_token": 2}]],
    }
    row = {"annotation_id": "a", "quotes": quotes}
    result = QuoteFaithfulness().compute(predictions=[{**row, "distractors": ["other"]}], references=[gold])
    assert result["citation_document_p"] == result["citation_sentence_p"] == 0.5
    assert result["citation_document_r"] == result["citation_complete"] == 1
    assert result["coverage"] == 0.5
    for distractors in (None, [], ["third"]):
        with pytest.raises(ValueError, match="no document 'other'"):
            QuoteFaithfulness().compute(predictions=[{**row, "distractors": distractors}], references=[gold])
    for wrong in ("other", 7, [3]):
        with pytest.raises(ValueError, match="a list of documents' ids"):
            QuoteFaithfulness().compute(predictions=[{**row, "distractors": wrong}], references=[gold])
