"""Documents and cards are written in plain words: none of the phrases that tools/prose.py refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.prose import ROOT, documents, faults, unreleased

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_none_of_the_refused_phrases(page: Path) -> None:
    assert list(faults(page.read_text(encoding="utf-8"))) == []


def test_the_changelog_of_the_next_release_has_none() -> None:
    assert list(faults(unreleased())) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rows are left out, which is said.", "which is said"),
        ("The split is\ntold.", "is told"),
        ("Whoever looks sees it.", "Whoever"),
        ("It is kept\nas it came.", "as it came"),
        ("One. What has no gold is left out.", ". What has no gold is left out."),
        ("It stands in the place of the mask.", "in the place of"),
    ],
)
def test_a_refused_phrase_is_found(text: str, words: str) -> None:
    assert [found for _, found in faults(text)] == [words]


@pytest.mark.parametrize(
    "text",
    ["```text\nwhich is said\n```\n", "`is told`", "What is a rationale? A part.", "# What was measured", "said(1)"],
)
def test_code_questions_and_headings_are_not_read(text: str) -> None:
    assert list(faults(text)) == []


def test_a_fault_has_its_line() -> None:
    assert list(faults("one\n\nthe rest is said\n")) == [(3, "is said")]
