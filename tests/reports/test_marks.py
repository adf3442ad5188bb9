"""The layout that terminal, notebook and report draw from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.reports.marks import join_outputs, join_records, mark_answer, mark_text, pair_records, to_steps
from eraser_hub.reports.texts import choose_evidences, read_answers
from eraser_hub.scoring.scored_split import open_split

from ..refusals import refused

pytestmark = pytest.mark.unit

NAMES = ("NEG", "POS")


def mark(row, instance, names=None):
    text = mark_text(row, names)
    text.answers["it"] = mark_answer(text, instance)
    return text, text.answers["it"]


def test_marks_of_a_row(row, instance):
    text, answer = mark(row, instance, NAMES)
    assert (text.label, answer.label, text.is_right("it")) == ("POS", "POS", True)
    assert text.gold == [(0, 1, 3, 0), (0, 2, 4, 1), (1, 0, 1, 1)] and text.empty_gold == 1
    assert answer.hard == [(0, 2, 5)], "equal spans count once"
    assert answer.soft == ["0011223344", "0"]
    alone, none = mark(row, None, NAMES)
    assert alone.is_right("it") is None and none.hard is none.soft is None


@pytest.mark.parametrize(
    ("fields", "names", "right"),
    [
        ({}, None, None),  # a number without its name
        ({"classification": -1}, NAMES, None),  # a split without gold labels
        ({"classification": None}, NAMES, None),
        ({"classification": "POS"}, None, True),
        ({"label": "NEG"}, None, False),  # the built datasets hold the name, too
    ],
)
def test_right_needs_the_name_of_the_label(row, instance, fields, names, right):
    assert mark(row | fields, instance, names)[0].is_right("it") is right


def test_quotes_and_faults_of_fields_that_scoring_does_not_read(row, instance):
    found = {"text": "fine film", "status": "exact", "docid": "d1", "start_token": 1, "end_token": 3}
    quotes = mark(row, instance | {"quotes": [found, {"text": "bad", "status": "invented"}]})[1].quotes
    assert quotes == [("fine film", "exact", "d1 1–3"), ("bad", "invented", "")]
    with refused("7", instance="one", field="quotes[0]"):
        mark(row, instance | {"quotes": [7]})
    with refused("0 to 1", "found 7", instance="one", field="classification"):
        mark_text(row | {"classification": 7}, NAMES)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_steps_keep_the_order(scores):
    steps = to_steps(scores)
    assert set(steps) <= set("01234")
    assert [step for _, step in sorted(zip(scores, steps, strict=True))] == sorted(steps)


def test_sides_and_top_tokens_of_a_pair():
    text = {"tokens": [["very", "good", "film", "good"]], "rationale_ids": [[[0, 1], [3]]], "language": "en"}
    original = {"id": "1", "sample_type": "ori", "rel_ids": ["2", "3"], "label": 1, **text}
    perturbed = {"id": "2", "tokens": [["good", "movie"]], "sample_type": "disturb", "rel_ids": None, "label": 1}
    ranking = [["good", "good", "film", "very"]]
    outputs = {
        "1": {"id": "1", "rationale": [[3, 1]], "rationale_tokens": ranking, "pred_label": 0},
        "2": {"id": "2", "rationale": [[0]], "rationale_tokens": [["good", "movie"]], "pred_label": 1},
    }
    assert pair_records([original, perturbed]) == ([(original, perturbed)], ["3"])
    names, pair = ("neg", "pos"), (original, perturbed)
    marked, answer = mark(join_records(pair), join_outputs(pair, outputs, names), names)
    assert (marked.annotation_id, marked.language, marked.label) == ("1 / 2", "en", "pos")
    assert [document.docid for document in marked.documents] == ["original · 1", "perturbed · 2"]
    assert marked.gold == [(0, 0, 2, 0), (0, 3, 4, 1)] and answer.hard == [(0, 1, 2), (0, 3, 4), (1, 0, 1)]
    assert (answer.label, marked.is_right("it"), answer.tops) == ("neg", False, [["good", "good"], ["good"]])


@pytest.mark.parametrize(
    ("change", "instance", "field", "mentions"),
    [
        (lambda o: o.pop("2"), "2", None, ()),
        (lambda o: o["1"].update(rationale=[[9]]), "1", "rationale[0]", ("from 0 to 1,", "found 9")),
        (lambda o: o["1"].update(rationale=[[True]]), "1", "rationale[0][0]", ("found True",)),
        (lambda o: o["1"].update(rationale=[[0], [0]]), "1", "rationale", ("1 sequences", "[[0], [0]]")),
        (lambda o: o["1"].update(rationale_tokens="word"), "1", "rationale_tokens", ("'word'",)),
    ],
)
def test_outputs_that_do_not_fit_a_pair(change, instance, field, mentions):
    rows = [{"id": name, "tokens": [["a", "b"]], "sample_type": "ori", "label": None} for name in "12"]
    outputs = {row["id"]: {"id": row["id"], "rationale": [[0]], "rationale_tokens": [["a", "b"]]} for row in rows}
    change(outputs)
    with refused(*mentions, instance=instance, field=field):
        join_outputs(rows, outputs)


def test_answers_and_gold_of_a_split(hub, samples, tmp_path):
    split = open_split(hub / "eraser", "movies", "validation")
    answers = read_answers(split, samples / "predictions" / "eraser" / "movies.val.jsonl")
    assert list(answers) == split.ids and choose_evidences(split, "evidence") == (split.rows, "")
    file, name = tmp_path / "p.jsonl", split.ids[0]
    file.write_text(f'{{"id": "{name}", "rationale": [[0, 4]]}}\n')
    ((docid, spans),) = [rationale.values() for rationale in read_answers(split, file)[name]["rationales"]]
    assert docid == split.rows[0]["documents"][0]["docid"] and len(spans) == 1, "a plain row"
    file.write_text(file.read_text() * 2)
    with refused(name, file=file):
        read_answers(split, file)
