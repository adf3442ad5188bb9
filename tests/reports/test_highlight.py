"""One instance in the terminal and in a notebook."""

from __future__ import annotations

import html.parser
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import eraser_hub
from eraser_hub.records.errors import show_controls
from eraser_hub.reports.highlight import highlight

pytestmark = pytest.mark.unit

NAMES = ("NEG", "POS")


def test_signs_stay_without_colour(row, instance):
    text = str(highlight(row, instance, label_names=NAMES))
    assert "a ‹¹fine ‹²⟦film› with› a⟧ dull end" in text
    assert "‹²short›" in text
    assert "gold POS  predicted POS p=0.750 (right)" in text
    assert "1 empty evidence span not drawn" in text
    assert "\x1b" not in text
    assert text == str(eraser_hub.highlight(row, instance, label_names=NAMES))


def test_colours_in_a_terminal(row, instance):
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, color_system="truecolor", width=80).print(highlight(row, instance))
    assert "\x1b[" in stream.getvalue()


def test_each_sentence_has_the_direction_of_its_script(row):
    row["documents"][0]["text"] = "שלום עולם\nhello world"
    page = highlight({**row, "evidences": []})._repr_html_()
    assert page.count('<p dir="auto"') >= 2


def test_wrong_and_without_prediction(row, instance):
    instance["classification"] = "NEG"
    assert "(wrong)" in str(highlight(row, instance, label_names=NAMES))
    assert "predicted" not in str(highlight(row, label_names=NAMES))
    row["classification"] = 1
    assert "gold 1 is a label's number: `label_names` has its name" in str(highlight(row))
    assert "label_names" not in str(highlight(row, label_names=NAMES))


def test_a_document_cannot_steer_the_terminal(row):
    row["documents"][1]["text"] = "\x1b[31mred\x07 \x9b2J \u202eevil [bold]not markup[/bold] \ud800"
    row["annotation_id"] = "\x1b]0;title\x07"
    text = str(highlight(row))
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text and "\x9b" not in text
    assert "␛[31mred␇" in text and "<U+202E>evil" in text and "[bold]not markup[/bold]" in text
    text.encode("utf-8")


def test_a_row_of_tokens_is_drawn():
    row = {"id": 7, "label": 1, "tokens": ["a", "b c", "", "d"], "rationale_mask": [True, True, False, True]}
    assert "‹¹a b\u00a0c›" in str(highlight(row)) and "‹¹d›" in str(highlight(row))
    assert "‹" not in str(highlight({"id": 7, "label": 1, "tokens": ["a"], "rationale_mask": [False]}))


class _Collector(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


def test_notebook_markup_is_escaped(row, instance):
    hostile = "<script>alert(1)</script><img/src=x/onerror=alert(2)>\"'&amp;"
    row["documents"][1] = {"docid": hostile.replace(" ", ""), "text": hostile}
    row["evidences"][1][1].update(docid=hostile.replace(" ", ""), end_token=1)
    row["query"] = row["annotation_id"] = instance["annotation_id"] = hostile
    instance["rationales"][1]["docid"] = hostile.replace(" ", "")
    instance["classification"] = hostile
    parsed = _Collector()
    parsed.feed(highlight(row, instance, label_names=NAMES)._repr_html_())
    assert parsed.tags <= {"div", "p", "b", "i", "span", "details", "summary"}
    assert parsed.attributes <= {"style", "dir"}
    assert hostile in "".join(parsed.text)


def test_far_sentences_are_folded(row):
    row["documents"][1]["text"] = "short\n" + "\n".join(f"line {i}" for i in range(30))
    text = str(highlight(row))
    assert "line 0" in text and "line 7" not in text and "… 29 sentences …" in text
    assert "line 29" in str(highlight(row, fold=False))


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.text(max_size=40))
def test_visible_text_has_no_control_characters(text):
    seen = show_controls(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in seen)
    seen.encode("utf-8")
