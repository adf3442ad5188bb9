"""Sentiment trees: parsing, phrases by the definition, hostile lines, the real development file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.conversion.human_rationales.trees import (
    Phrase,
    SentimentTree,
    find_rationale_phrases,
    make_tree_row,
    parse_tree,
    read_tree_rows,
)

from ...refusals import refused

pytestmark = pytest.mark.unit

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="() \t\n\r"), min_size=1, max_size=6)
LABELS = st.integers(0, 4)


LEAVES = st.tuples(LABELS, WORDS).map(lambda leaf: f"({leaf[0]} {leaf[1]})")


def join(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Nodes with one child and with many."""
    nodes = st.tuples(LABELS, st.lists(inner, min_size=1, max_size=4))
    return nodes.map(lambda node: f"({node[0]} {' '.join(node[1])})")


def recursive_phrases(tree: SentimentTree) -> list[Phrase]:
    """Appendix A as it is told: a node exceeds every descendant, or its children are asked."""
    children: list[list[int]] = [[] for _ in tree.labels]
    for node, parent in list(enumerate(tree.parents))[1:]:
        children[parent].append(node)

    def descendants(node: int) -> list[int]:
        return [below for child in children[node] for below in (child, *descendants(child))]

    def ask(node: int) -> list[Phrase]:
        magnitude = abs(tree.labels[node] - 2)
        if all(magnitude > abs(tree.labels[below] - 2) for below in descendants(node)):
            return [Phrase(tree.starts[node], tree.ends[node], tree.labels[node])] if magnitude else []
        return [phrase for child in children[node] for phrase in ask(child)]

    return ask(0)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.recursive(LEAVES, join, max_leaves=12))
def test_the_phrases_of_a_tree_are_those_of_the_definition(text: str) -> None:
    tree, row = parse_tree(text), make_tree_row(text)
    assert tree.words == re.findall(r"\(\d ([^()]+)\)", text) and len(tree.labels) == text.count("(")
    phrases = find_rationale_phrases(tree)
    assert phrases == sorted(recursive_phrases(tree)) and row["phrases"] == [phrase._asdict() for phrase in phrases]
    covered = [index for start, end, _ in phrases for index in range(start, end)]
    assert len(covered) == len(set(covered))
    assert row["rationale_mask"] == [index in covered for index in range(len(tree.words))]


def test_escapes_are_undone_and_deep_trees_need_no_recursion() -> None:
    row = make_tree_row("(1 (2 -LRB-) (2 -lrb-) (2 -LCB-) (2 \\*) (2 -LRB) (2 2\u00a01\\/2) (1 hours))")
    assert row["tokens"] == ["(", "(", "{", "*", "-LRB", "2\u00a01/2", "hours"]
    assert find_rationale_phrases(parse_tree("(3 " * 50_000 + "(4 deep)" + ")" * 50_000)) == [Phrase(0, 1, 4)]


@pytest.mark.parametrize(
    ("text", "phrases", "scores"),
    [
        ("(4 (4 lovely) (2 film))", [(0, 1, 4)], [1.0, 0.0]),  # a tie goes to the descendant
        ("(1 (2 not) (0 (2 a) (1 bad)))", [(1, 3, 0)], [0.0, 1.0, 1.0]),
        ("(3 (2 so) (2 so))", [(0, 2, 3)], [0.5, 0.5]),
        ("(2 meh)", [], [0.0]),
    ],
)
def test_phrases_and_scores(text: str, phrases: list, scores: list[float]) -> None:
    row = make_tree_row(text)
    assert [tuple(phrase.values()) for phrase in row["phrases"]] == phrases
    assert row["rationale_scores"] == scores and row["sentiment"] == int(text[1])


@pytest.mark.parametrize(
    ("line", "column", "mentioned"),
    [
        ("(3 (2 a) (4 b)", 15, "1 more ')'"),
        ("(5 a)", 2, "'5'"),
        ("(٣ a)", 2, "'٣'"),
        ("(3)", 3, "')'"),
        ("((2 a))", 2, "'('"),
        ("(3 a b)", 6, "'b'"),
        ("word", 1, "'word'"),
        ("(3 a " + "b" * 100_000 + ")", 6, "'bbb"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_line(tmp_path: Path, line: str, column: int, mentioned: str) -> None:
    path = tmp_path / "dev.txt"
    path.write_text(f"(3 fine)\n{line}\n(3 fine)\n", encoding="utf-8")
    with refused(f":2: column {column}: ", mentioned, file=path, line=2) as caught:
        read_tree_rows(path)
    assert len(str(caught.error)) < 500


def test_broken_utf8_is_refused_and_a_byte_order_mark_is_passed_over_at_the_start_alone(tmp_path: Path) -> None:
    path = tmp_path / "dev.txt"
    path.write_bytes(b"(3 fine)\n(3 caf\xe9)\n")
    with refused("0xe9", "byte 7", line=2):
        read_tree_rows(path)
    path.write_text("\ufeff(3 good)\r\n\n(4 \ufeffodd)\n(2 meh)", encoding="utf-8")
    rows, skipped = read_tree_rows(path)
    for text in ("", "\n \n"):
        empty = tmp_path / "empty.txt"
        empty.write_text(text)
        with refused(file=empty, line=1):
            read_tree_rows(empty)
    assert [(row["id"], row["tokens"]) for row in rows] == [("dev_1", ["good"]), ("dev_3", ["\ufeffodd"])]
    assert rows[0]["tree"] == "(3 good)\r" and skipped == {"blank lines": 1, "neutral roots": 1}
