"""One text in the terminal and in a notebook."""

from __future__ import annotations

import io
import math
import re

import pytest
from rich.console import Console

import eraser_hub
from eraser_hub.reports.highlight import highlight

from ..refusals import refused

pytestmark = pytest.mark.unit

NAMES = ("NEG", "POS")


def test_signs_stay_without_colour(row, instance):
    text = str(eraser_hub.highlight(row, instance, label_names=NAMES))
    assert "a ‹¹fine ‹²⟦film› with› a⟧ dull end" in text and "‹²short›" in text
    assert "gold POS  predicted POS p=0.750 (right)" in text and "query: what of it ?" in text
    assert "1 empty evidence span not drawn" in text and "\x1b" not in text
    assert "(wrong)" in str(highlight(row, instance | {"classification": "NEG"}, label_names=NAMES))
    assert "predicted" not in str(highlight(row, label_names=NAMES))
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, color_system="truecolor", width=80).print(highlight(row, instance))
    assert "\x1b[" in stream.getvalue()


def test_methods_side_by_side(row, instance):
    other = instance | {"rationales": [{"docid": "d1", "hard_rationale_predictions": []}], "classification": "NEG"}
    shown = highlight(row, {"lime": instance, "random": other}, label_names=NAMES)
    first, second = str(shown).split("d1 · 10 tokens\n")[1].split("\n\n")[:2]
    assert first.startswith("lime · predicted POS p=0.750 (right)\na ‹¹fine ‹²⟦film› with› a⟧ dull end")
    assert second.startswith("random · predicted NEG p=0.250 (wrong)\na ‹¹fine ‹²film› with› a dull end")
    assert shown._repr_html_().count("repeat(2,") == 4, "names and sentences of two documents"
    with refused(instance="one", argument="instance['b']", field="rationales.docid"):
        highlight(row, {"a": instance, "b": instance | {"rationales": [{"docid": "d9"}]}})


def test_texts_and_plain_rows():
    assert "a ⟦b⟧ c" in str(highlight("a b c", [0, 1, 0])) and "a ⟦b⟧ c" in str(highlight(["a", "b", "c"], ["b"]))
    assert "‹¹b c›" in str(highlight({"id": "7", "text": "a b c", "quotes": ["b c"]}))
    row = {"id": 7, "label": 1, "tokens": ["a", "b c", "", "d"], "rationale_mask": [True, True, False, True]}
    text = str(highlight(row))
    assert "‹¹a b\u00a0c›" in text and "‹¹d›" in text and "gold 1" in text
    assert "gold POS" in str(highlight(row, label_names=NAMES))
    record = {"id": "1", "sample_type": "ori", "tokens": [["a", "b"]], "rationale_ids": [[[0]]], "label": 1}
    output = {"id": "1", "rationale": [[1]], "rationale_tokens": [["b", "a"]], "pred_label": 1}
    assert "‹¹a› ⟦b⟧" in str(highlight(record, output))


class Counting:
    label_names = NAMES

    def predict_proba(self, token_lists):
        return [[0.1, 0.9] if "good" in tokens else [0.9, 0.1] for tokens in token_lists]


def test_explained_texts_are_shown_as_they_are():
    (prediction,) = eraser_hub.explain_texts(Counting(), ["a good film"], method="occlusion", kd=0.3)
    assert "a ⟦good⟧ film" in str(highlight("a good film", {"occlusion": prediction}))


SPAN = "rationales[0].hard_rationale_predictions[0]"


@pytest.mark.parametrize(
    ("change", "field", "mentions"),
    [
        ({"annotation_id": "two"}, "annotation_id", ("'one'",)),
        ({"rationales": [{"docid": "d9"}]}, "rationales.docid", ("'d9'",)),
        ({"rationales": [{"docid": "d1"}, {"docid": "d1"}]}, "rationales.docid", ("'d1' again",)),
        ([{"start_token": 2, "end_token": 99}], None, ("10", "99")),
        ([{"start_token": -1, "end_token": 2}], None, ("-1",)),
        ([{"start_token": 2.0, "end_token": 3}], f"{SPAN}.start_token", ("2.0",)),
        ([1.0], None, ("10", "found 1")),
        ([math.nan] * 10, None, ("nan",)),
        ({"classification": 1}, "classification", ("found 1",)),
        ({"rationale": [0, 1]}, "rationale", ("11 values", "found 2")),
    ],
)
def test_an_output_that_does_not_fit(row, instance, change, field, mentions):
    if isinstance(change, list):
        name = "soft_rationale_predictions" if isinstance(change[0], float) else "hard_rationale_predictions"
        change = {"rationales": [{"docid": "d1", name: change}]}
    changed = change if "rationale" in change else instance | change
    with refused(*mentions, field=field, argument="instance"):
        highlight(row, changed)


def test_a_row_that_is_none(row):
    for text in (3, None, {"x": 1}, ["a", 1], "\ud800"):
        with refused():
            highlight(text)
    row["evidences"][0][0]["docid"] = "d7"
    with refused("'d7'", field="evidences.docid"):
        highlight(row)
    del row["evidences"]
    with refused(field="evidences"):
        highlight(row)


def test_a_document_cannot_steer_the_terminal(row):
    row["documents"][1]["text"] = "\x1b[31mred\x07 \x9b2J \u202eevil [bold]not markup[/bold]"
    row["annotation_id"] = "\x1b]0;title\x07"
    text = str(highlight(row))
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(text)
    assert "␛[31mred␇" in text and "<U+202E>evil" in text and "[bold]not markup[/bold]" in text


def test_notebook_markup_is_escaped(row, instance):
    hostile = "<script>alert(1)</script><img/src=x/onerror=alert(2)>\"'&amp;"
    row["documents"][1] = {"docid": hostile, "text": hostile}
    row["evidences"][1][1].update(docid=hostile, end_token=1)
    row["query"] = row["annotation_id"] = instance["annotation_id"] = instance["classification"] = hostile
    instance["rationales"][1].update(docid=hostile, soft_rationale_predictions=[1.0])
    page = highlight(row, {hostile: instance, "b": instance}, label_names=NAMES)._repr_html_()
    tags = {tag.split()[0].strip("/") for tag in re.findall("<([^>]+)>", page)}
    assert tags <= {"div", "p", "b", "i", "span", "details", "summary"}
    assert "&lt;script&gt;alert(1)" in page and page.count('<p dir="auto"') >= 6, "each sentence has its direction"


def test_far_sentences_are_folded(row):
    row["documents"][1]["text"] = "short\n" + "\n".join(f"line {i}" for i in range(30))
    text = str(highlight(row))
    assert "line 0" in text and "line 7" not in text and "… 29 sentences …" in text
    assert "line 29" in str(highlight(row, fold=False))
