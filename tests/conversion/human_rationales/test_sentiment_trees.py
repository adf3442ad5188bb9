"""Sentiment trees: reading, writing, Appendix A's rationales, hostile lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.conversion.human_rationales.sentiment_trees import (
    Phrase,
    SentimentTree,
    compute_rationale_scores,
    find_rationale_phrases,
    parse_tree,
    read_trees,
    unescape,
)

from ...refusals import refused

pytestmark = pytest.mark.unit

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="() \t\n\r"), min_size=1, max_size=6)
LABELS = st.integers(0, 4)


@st.composite
def tree_texts(draw: st.DrawFn) -> str:
    """A tree as a line, unary and wide nodes too."""
    leaves = st.tuples(LABELS, WORDS).map(lambda leaf: f"({leaf[0]} {leaf[1]})")
    nodes = st.recursive(
        leaves,
        lambda inner: st.tuples(LABELS, st.lists(inner, min_size=1, max_size=4)).map(
            lambda node: f"({node[0]} {' '.join(node[1])})"
        ),
        max_leaves=12,
    )
    return draw(nodes)


def format_tree(tree: SentimentTree) -> str:
    """The line of a tree: the inverse of parse_tree for a line with single blanks."""
    children: list[list[int]] = [[] for _ in tree.labels]
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            children[parent].append(node)
    out: list[str] = []
    pending: list[int | str] = [0]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        out.append(f"{' ' if out else ''}({tree.labels[item]}")
        if children[item]:
            pending.append(")")
            pending.extend(reversed(children[item]))
        else:
            out.append(f" {tree.words[tree.starts[item]]})")
    return "".join(out)


def recursive_phrases(tree: SentimentTree) -> list[Phrase]:
    """Appendix A as it is told: a node exceeds every descendant, or its children are asked."""
    children: dict[int, list[int]] = {node: [] for node in range(len(tree.labels))}
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            children[parent].append(node)

    def descendants(node: int) -> list[int]:
        return [below for child in children[node] for below in (child, *descendants(child))]

    def ask(node: int) -> list[Phrase]:
        magnitude = abs(tree.labels[node] - 2)
        if all(magnitude > abs(tree.labels[below] - 2) for below in descendants(node)):
            return [Phrase(tree.starts[node], tree.ends[node], tree.labels[node])] if magnitude else []
        return [phrase for child in children[node] for phrase in ask(child)]

    return ask(0)


@settings(derandomize=True, max_examples=150)
@given(tree_texts())
def test_a_tree_comes_back_as_it_was_written(text: str) -> None:
    tree = parse_tree(text)
    assert format_tree(tree) == text
    assert parse_tree(format_tree(tree)) == tree


@settings(derandomize=True, max_examples=150)
@given(tree_texts())
def test_phrases_are_those_of_the_definition_and_do_not_overlap(text: str) -> None:
    tree = parse_tree(text)
    phrases = find_rationale_phrases(tree)
    assert sorted(phrases) == sorted(recursive_phrases(tree))
    covered = [index for start, end, _ in phrases for index in range(start, end)]
    assert len(covered) == len(set(covered))
    assert [score > 0 for score in compute_rationale_scores(tree)] == [
        index in set(covered) for index in range(len(tree.words))
    ]


def test_a_tie_between_a_node_and_a_descendant_goes_to_the_descendant() -> None:
    tree = parse_tree("(4 (4 lovely) (2 film))")
    assert find_rationale_phrases(tree) == [Phrase(0, 1, 4)]
    assert compute_rationale_scores(tree) == [1.0, 0.0]


def test_a_phrase_stronger_than_its_words_is_taken_whole() -> None:
    tree = parse_tree("(1 (2 not) (0 (2 a) (1 bad)))")
    assert find_rationale_phrases(tree) == [Phrase(1, 3, 0)]


def test_a_neutral_word_alone_explains_nothing() -> None:
    assert find_rationale_phrases(parse_tree("(2 meh)")) == []
    assert compute_rationale_scores(parse_tree("(3 (2 so) (2 so))")) == [0.5, 0.5]


def test_deep_trees_need_no_recursion() -> None:
    depth = 200_000
    tree = parse_tree("(3 " * depth + "(4 deep)" + ")" * depth)
    assert len(tree.labels) == depth + 1
    assert find_rationale_phrases(tree) == [Phrase(0, 1, 4)]
    assert format_tree(tree).count("(") == depth + 1


@pytest.mark.parametrize(
    ("word", "token"),
    [("-LRB-", "("), ("-RRB-", ")"), ("-lrb-", "("), ("-LCB-", "{"), ("1\\/2", "1/2"), ("\\*", "*"), ("-LRB", "-LRB")],
)
def test_escapes_are_undone(word: str, token: str) -> None:
    assert unescape(word) == token


def test_a_no_break_space_is_no_blank() -> None:
    assert parse_tree("(1 (2 2\u00a01\\/2) (1 hours))").tokens == ("2\u00a01/2", "hours")


@pytest.mark.parametrize(
    ("line", "column", "mentioned"),
    [
        ("(3 (2 a) (4 b)", 15, "1"),
        ("(3 (2 a)) )", 11, "')'"),
        ("(3 (2 a)) (2 b)", 11, "'('"),
        ("(5 a)", 2, "'5'"),
        ("(-1 a)", 2, "'-1'"),
        ("(44 a)", 2, "'44'"),
        ("(x a)", 2, "'x'"),
        ("(٣ a)", 2, "'٣'"),
        ("(3)", 3, "')'"),
        ("()", 2, "')'"),
        ("((2 a))", 2, "'('"),
        ("(3 a b)", 6, "'b'"),
        ("(3 a (2 b))", 6, "'('"),
        ("(3 (2 a) b)", 10, "'b'"),
        ("word", 1, "'word'"),
        (")", 1, "')'"),
        ("(3", 3, "1"),
        ("(", 2, "1"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_line(tmp_path: Path, line: str, column: int, mentioned: str) -> None:
    path = tmp_path / "dev.txt"
    path.write_text(f"(2 fine)\n{line}\n(2 fine)\n", encoding="utf-8")
    with refused(f":2: column {column}: ", mentioned, file=path, line=2):
        list(read_trees(path))


def test_broken_utf8_is_refused_with_its_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "dev.txt"
    path.write_bytes(b"(2 fine)\n(2 caf\xe9)\n")
    with refused("0xe9", "byte 7", line=2):
        list(read_trees(path))


def test_a_byte_order_mark_is_passed_over_at_the_start_alone(tmp_path: Path) -> None:
    path = tmp_path / "dev.txt"
    path.write_text("\ufeff(3 good)\n(2 \ufeffodd)\n", encoding="utf-8")
    lines = list(read_trees(path))
    assert [line.tree.words for line in lines if line.tree] == [("good",), ("\ufeffodd",)]
    assert [line.text for line in lines] == ["(3 good)", "(2 \ufeffodd)"]


def test_a_flood_in_an_error_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "dev.txt"
    path.write_text("(3 a " + "b" * 100_000 + ")\n", encoding="utf-8")
    with refused("'bbb", line=1) as caught:
        list(read_trees(path))
    assert len(str(caught.error)) < 500


def test_the_real_development_trees(corpora: Path) -> None:
    path = corpora / "sst" / "trees" / "dev.txt"
    if not path.is_file():
        pytest.skip("skipped: no sst/trees/dev.txt")
    lines = list(read_trees(path))
    trees = [line.tree for line in lines if line.tree is not None]
    assert len(lines) == len(trees) == 1101
    assert sum(tree.sentiment == 2 for tree in trees) == 229
    assert all(format_tree(tree) == line.text for tree, line in zip(trees, lines, strict=True))
    first, tenth, last = trees[0], trees[9], trees[-1]
    assert (first.sentiment, len(first.words), first.tokens[:3]) == (3, 13, ("It", "'s", "a"))
    assert find_rationale_phrases(first) == [Phrase(3, 5, 4), Phrase(6, 12, 4)]
    assert (tenth.sentiment, len(tenth.words), tenth.tokens[:3]) == (3, 27, ("Nothing", "'s", "at"))
    assert (last.sentiment, len(last.words), last.tokens[:3]) == (1, 28, ("Schaeffer", "has", "to"))
