"""Masks -> folder -> rows -> masks: whatever people marked comes back, whichever way a source says it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eraser_hub.conversion.importing.corpus import Columns, write_corpus
from eraser_hub.conversion.importing.texts import (
    parse_strings,
    parse_text,
    split_at_blanks,
    split_at_whitespace,
)

from .corpora import Row, group_masks, kept_masks, rows_of, source

pytestmark = pytest.mark.unit

# tokens may hold anything but the blank, the line end and halves of characters; other blanks part no tokens
TOKENS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \n"), min_size=1, max_size=4)
PLAIN = st.text("abcé猫*", min_size=1, max_size=3)


@st.composite
def marked(draw: st.DrawFn, tokens: st.SearchStrategy[str] = TOKENS) -> Row:
    words = draw(st.lists(tokens, min_size=1, max_size=6))
    mask = st.lists(st.integers(0, 1), min_size=len(words), max_size=len(words))
    return {"tokens": words, "masks": draw(st.lists(mask, max_size=3)), "label": draw(st.sampled_from("ab"))}


def imported(
    rows: list[Row], columns: Columns, folder: str, **options: Any
) -> tuple[list[Row], dict[str, list[list[int]]]]:
    target = write_corpus({"train": source(rows)}, "mine", columns, Path(folder), **options).folder
    return rows_of(target), kept_masks(target)


@settings(deadline=None, max_examples=25)
@given(rows=st.lists(marked(), min_size=1, max_size=4))
def test_masks(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        back, kept = imported(rows, Columns(("tokens",), ("masks",), "label"), folder)
    assert [row["documents"][0]["text"].split(" ") for row in back] == [row["tokens"] for row in rows]
    assert [group_masks(row) for row in back] == [[mask for mask in row["masks"] if any(mask)] for row in rows]
    several = {f"train_{number}": row["masks"] for number, row in enumerate(rows, 1) if len(row["masks"]) > 1}
    assert kept == several


@settings(deadline=None, max_examples=12)
@given(row=marked(PLAIN), other=marked(PLAIN))
def test_marks_within_the_text_say_the_same(row: Row, other: Row) -> None:
    """One annotator, two texts: as a mask, as token spans, as character spans, and as a copy with asterisks."""
    cells: Row = {"label": "a"}
    expected: list[int] = []
    for name, each in (("one", row), ("two", other)):
        words, mask = each["tokens"], (each["masks"] or [[0] * len(each["tokens"])])[0]
        starts = [sum(map(len, words[:at])) + at for at in range(len(words))]
        spans = [(at, at + 1) for at, mark in enumerate(mask) if mark]
        # an asterisk of the text at a token's edge would make the copy say two things
        copy = [f"*{word}*" if mark else word for word, mark in zip(words, mask, strict=True)]
        cells |= {f"{name}_tokens": words, f"{name}_mask": mask, f"{name}_spans": [list(span) for span in spans]}
        cells |= {f"{name}_text": " ".join(words), f"{name}_copy": " ".join(copy)}
        cells[f"{name}_characters"] = [[starts[at], starts[at] + len(words[at])] for at, _ in spans]
        expected += mask
    ways = [("tokens", "mask", True, "mask", "tokens"), ("tokens", "spans", True, "spans", "tokens")]
    ways += [("text", "characters", False, "spans", "characters")]
    if "*" not in cells["one_text"] + cells["two_text"]:
        ways.append(("text", "copy", False, "stars", "tokens"))
    for text, marks, tokenized, kind, offsets in ways:
        columns = Columns(
            (f"one_{text}", f"two_{text}"), (f"one_{marks}", f"two_{marks}"), "label", tokenized, kind, offsets
        )
        with tempfile.TemporaryDirectory() as folder:
            (back,), _ = imported([cells], columns, folder)
        assert group_masks(back) == ([expected] if any(expected) else []), marks


@settings(deadline=None, max_examples=20)
@given(rows=st.lists(marked(), min_size=1, max_size=3))
def test_the_majority_is_what_more_than_half_marked(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        back, kept = imported(rows, Columns(("tokens",), ("masks",), "label"), folder, annotators="majority")
    for row, given_row in zip(back, rows, strict=True):
        masks = given_row["masks"]
        agreed = [int(2 * sum(marks) > len(masks)) for marks in zip(*masks, strict=True)]
        assert group_masks(row) == ([agreed] if any(agreed) else [])
    assert kept == {f"train_{at}": row["masks"] for at, row in enumerate(rows, 1) if len(row["masks"]) > 1}


CUTS = [split_at_blanks, split_at_whitespace]


@pytest.mark.parametrize("cut", CUTS)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_every_way_of_cutting_keeps_all_that_is_no_blank(cut, text: str) -> None:
    """Tokens lie in order and apart, and hold every sign that is no blank; the document has the same tokens."""
    assume(parse_strings(text) == text)  # "[]" is a list of no sentences
    found = parse_text(text, cut, "text")
    words = [text[start:end] for start, end in found.places]
    assert words == found.tokens
    assert all(end <= start for (_, end), (start, _) in zip(found.places, found.places[1:], strict=False))
    between = set(text) if not found.places else set()
    place = 0
    for start, end in [*found.places, (len(text), len(text))]:
        between |= set(text[place:start])
        place = end
    assert all(sign in " \n" if cut is split_at_blanks else sign.isspace() for sign in between)
    assert [token for line in found.document.split("\n") for token in line.split(" ") if token] == found.tokens
