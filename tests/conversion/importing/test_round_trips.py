"""Masks -> folder -> rows -> masks: whatever people marked comes back, whichever way a source says it."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub import import_corpus
from eraser_hub.conversion.importing.texts import cut_text
from eraser_hub.metrics.tokens import mask_from_spans

from .corpora import Row, group_masks, people_of, rows_of

pytestmark = pytest.mark.unit

# tokens may hold anything but the blank, the line end and halves of characters; other blanks part no tokens
TOKENS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \n"), min_size=1, max_size=4)


@st.composite
def marked(draw: st.DrawFn, tokens: st.SearchStrategy[str] = TOKENS) -> Row:
    words = draw(st.lists(tokens, min_size=1, max_size=6))
    mask = st.lists(st.integers(0, 1), min_size=len(words), max_size=len(words))
    return {"tokens": words, "masks": draw(st.lists(mask, max_size=3)), "label": draw(st.sampled_from("ab"))}


@settings(deadline=None, max_examples=25)
@given(rows=st.lists(marked(), min_size=1, max_size=4))
def test_masks(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = import_corpus(rows, "mine", out=folder, tokens="tokens", mask="masks", label="label")
        back, people = rows_of(done.folder), people_of(done.folder)
    assert [row["documents"][0]["text"].split(" ") for row in back] == [row["tokens"] for row in rows]
    assert [group_masks(row) for row in back] == [[mask for mask in row["masks"] if any(mask)] for row in rows]
    kept = [(f"train_{at}", mask) for at, row in enumerate(rows, 1) if len(row["masks"]) > 1 for mask in row["masks"]]
    assert [(name, marks) for name, _, _, marks in people] == [
        (name, [[at for at, mark in enumerate(mask) if mark]]) for name, mask in kept
    ]


@pytest.mark.parametrize("tokenizer", ["words", "blanks"])
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    ends=st.tuples(st.integers(0, 20), st.integers(0, 20)),
)
def test_every_way_of_cutting_keeps_all_that_is_no_blank(tokenizer: str, text: str, ends: tuple[int, int]) -> None:
    """Tokens lie in order and apart, hold every sign that is no blank, and are those of the document."""
    found = cut_text([text], tokenizer, "text")
    covered = mask_from_spans(found.places, len(text))
    assert [text[start:end] for start, end in found.places] == found.tokens and found.places == sorted(found.places)
    assert sum(covered) == sum(map(len, found.tokens))
    blank = {at for at, sign in enumerate(text) if (sign.isspace() if tokenizer == "words" else sign in " \n")}
    assert {at for at, held in enumerate(covered) if not held} == blank
    assert [token for line in found.document.split("\n") for token in line.split(" ") if token] == found.tokens
    assert [at for start, end in found.sentences for at in range(start, end)] == list(range(len(found.tokens)))
    start, end = sorted(min(end, len(text)) for end in ends)
    touched = [at for at, (first, last) in enumerate(found.places) if first < end and last > start]
    assert list(range(*found.find_covered(start, end))) == touched or start == end
