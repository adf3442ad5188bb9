"""The layout that terminal, notebook and report draw from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.reports.marks import (
    MarkedDocument,
    choose_evidences,
    find_lost_partners,
    mark_instance,
    mark_pair,
    pair_rows,
    read_answers,
)
from eraser_hub.scoring.scored_split import open_split

from ..refusals import refused

pytestmark = pytest.mark.unit

NAMES = ("NEG", "POS")


def test_marks_of_a_row(row, instance):
    marked = mark_instance(row, instance, label_names=NAMES)
    first, second = marked.documents
    assert (marked.label, marked.predicted_label, marked.right) == ("POS", "POS", True)
    assert first.gold == ((1, 3, 0), (2, 4, 1)) and first.empty_gold == 1
    assert second.gold == ((0, 1, 1),) and second.predicted == ()
    assert first.predicted == ((2, 5),), "equal spans count once"
    assert first.shades(100)[0] == 0 and first.shades(100)[-1] == 99 and second.shades() == [0]
    alone = mark_instance(row, label_names=NAMES)
    assert alone.right is None and alone.documents[0].predicted is None and alone.documents[0].soft is None


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
    assert mark_instance(row | fields, instance, label_names=names).right is right


def test_quotes_and_faults_of_fields_that_scoring_does_not_read(row, instance):
    found = {"text": "fine film", "status": "exact", "docid": "d1", "start_token": 1, "end_token": 3}
    quotes = mark_instance(row, instance | {"quotes": [found, {"text": "bad", "status": "invented"}]}).quotes
    assert quotes == (("fine film", "exact", "d1 1–3"), ("bad", "invented", ""))
    with refused("7", instance="one", field="quotes[0]"):
        mark_instance(row, instance | {"quotes": [7]})
    with refused("0 to 1", "found 7", instance="one", field="classification"):
        mark_instance(row | {"classification": 7}, label_names=NAMES)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.integers(2, 100))
def test_shades_keep_the_order(scores, levels):
    shades = MarkedDocument("d", (("x",) * len(scores),), soft=tuple(scores)).shades(levels)
    assert all(0 <= shade < levels for shade in shades)
    assert [shade for _, shade in sorted(zip(scores, shades, strict=True))] == sorted(shades)


def test_sides_ranks_and_shared_tokens_of_a_pair():
    text = {"tokens": [["very", "good", "film", "good"]], "rationale_ids": [[[0, 1], [3]]], "language": "en"}
    original = {"id": "1", "sample_type": "ori", "rel_ids": ["2", "3"], "label": 1, **text}
    perturbed = {"id": "2", "tokens": [["good", "movie"]], "sample_type": "disturb", "rel_ids": None, "label": 1}
    ranking = [["good", "good", "film", "very"]]
    outputs = {
        "1": {"id": "1", "rationale": [[3, 1]], "rationale_tokens": ranking, "pred_label": 0},
        "2": {"id": "2", "rationale": [[0]], "rationale_tokens": [["good", "movie"]], "pred_label": 1},
    }
    (pair,) = pair_rows([original, perturbed])
    assert pair == (original, perturbed) and find_lost_partners([original, perturbed]) == ["3"]
    marked = mark_pair(pair, outputs, ("neg", "pos"))
    assert (marked.annotation_id, marked.language, marked.titles) == ("1 / 2", "en", ("original", "perturbed"))
    assert (marked.label, marked.predicted_label, marked.right) == ("pos", "neg", False)
    assert marked.documents[0].gold == ((0, 2, 0), (3, 4, 1)) and marked.documents[0].predicted == ((1, 2), (3, 4))
    assert marked.ranks == ({1: 1, 3: 2}, {0: 1}) and marked.tops == (("good", "good"), ("good",))
    alone = mark_pair(pair, None)
    assert (alone.predicted_label, alone.tops, alone.documents[0].predicted) == (None, (), None)


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
        mark_pair(rows, outputs)


def test_answers_and_gold_of_a_split(hub, samples, tmp_path):
    split = open_split(hub / "eraser", "movies", "validation")
    answers = read_answers(split, samples / "predictions" / "eraser" / "movies.val.jsonl")
    assert list(answers) == split.ids and choose_evidences(split, "evidence") == ({}, "")
    file, name = tmp_path / "p.jsonl", split.ids[0]
    file.write_text(f'{{"id": "{name}", "rationale": [[0, 4]]}}\n')
    ((docid, spans),) = [rationale.values() for rationale in read_answers(split, file)[name]["rationales"]]
    assert docid == split.rows[0]["documents"][0]["docid"] and len(spans) == 1, "a plain row"
    file.write_text(file.read_text() * 2)
    with refused(name, file=file):
        read_answers(split, file)
