"""Penn-bracketed sentiment trees (the form of the Stanford Sentiment Treebank), and rationales from them.

A file holds one tree a line: ``(3 (2 It) (4 (2 's) (4 lovely)))``. A node is ``(LABEL WORD)`` or
``(LABEL NODE NODE ..)``; labels run from 0 (very negative) over 2 (neutral) to 4 (very positive). The file may start
with a byte order mark. Brackets in the text are written ``-LRB-`` and ``-RRB-``. Trees may have any depth, because no
function here recurses.

The rationale is the one of Carton, Rathore and Tan, "Evaluating and Characterizing Human Rationales", Appendix A: see
`find_rationale_phrases`.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.conversion.readers import read_utf8_lines
from eraser_hub.records.errors import DataError, show

NEUTRAL = 2
# an opening bracket and its label, a closing one, or a word. `str.split` would cut words with a no-break space inside,
# which the treebank has ("3 1\/2")
_PIECES = re.compile(r"\([ \t]*([^ \t()]*)|\)|[^ \t()]+")
_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}
_ESCAPES = {f"-{word}-": sign for name, sign in _BRACKETS.items() for word in (name, name.lower())}


class Phrase(NamedTuple):
    """A node in the rationale: its tokens ``[start_token, end_token)`` and its label (0 to 4)."""

    start_token: int
    end_token: int
    sentiment: int


class SentimentTree(NamedTuple):
    """One tree, flat: node ``i`` covers the words ``starts[i]`` to ``ends[i]`` (exclusive); node 0 is the root.

    Nodes are in the order of their opening brackets; ``parents[0]`` is -1. ``words`` are as released, with escapes.
    """

    labels: list[int]
    parents: list[int]
    starts: list[int]
    ends: list[int]
    words: list[str]


def unescape(word: str) -> str:
    """Return a word without bracket escapes and the treebank's ``\\/`` and ``\\*``.

    >>> unescape("-LRB-"), unescape("1\\\\/2")
    ('(', '1/2')
    """
    return _ESCAPES.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def parse_tree(text: str, *, file: str | PathLike[str] | None = None, line: int | None = None) -> SentimentTree:
    """Parse the tree of one line.

    Raises:
        DataError: brackets are unbalanced, a label is no integer from 0 to 4, a node has no word or more than a word,
            or text follows the tree.

    >>> parse_tree("(3 (2 not) (1 bad))").words
    ['not', 'bad']
    """
    labels, parents, starts, ends, words = tree = SentimentTree([], [], [], [], [])
    open_nodes: list[int] = []
    expected = "'('"
    for match in _PIECES.finditer(text):
        piece, node = match[0], open_nodes[-1] if open_nodes else -1
        has_words = bool(open_nodes) and len(words) > starts[node]
        is_leaf = has_words and node == len(parents) - 1  # a word stands in it, and no node
        if piece[0] == "(" and not is_leaf and (open_nodes or not parents):
            if match[1] not in ("0", "1", "2", "3", "4"):
                piece, expected = match[1] or text[match.end() :][:1], "a label from 0 to 4"
                break
            open_nodes.append(len(parents))
            for values, value in ((labels, int(match[1])), (parents, node), (starts, len(words)), (ends, -1)):
                values.append(value)
            expected = "a word or a node"
        elif piece == ")" and has_words:
            ends[open_nodes.pop()] = len(words)
            expected = "a node or ')'" if open_nodes else "the end of the line"
        elif piece[0] not in "()" and open_nodes and not has_words:
            words.append(piece)
            expected = "')'"
        else:
            break
    else:
        if parents and not open_nodes:
            return tree
        match, piece = None, "the end of the line"
        expected = f"{len(open_nodes)} more ')'" if open_nodes else expected
    column = len(text) if match is None else match.start(1 if expected.startswith("a label") else 0)
    raise DataError(f"column {column + 1}: expected {expected}, found {show(piece)}", file=file, line=line)


def find_rationale_phrases(tree: SentimentTree) -> list[Phrase]:
    """Return the phrases that explain the tree's sentiment, in the order of the text (Carton et al., Appendix A).

    Breadth first from the root: a node is a phrase if its magnitude ``|label - 2|`` is greater than that of each of its
    descendants, or if it has none; else the search goes on with its children. Phrases of magnitude 0 (neutral words)
    are left out. No phrase lies within another.

    >>> find_rationale_phrases(parse_tree("(3 (2 It) (3 (2 is) (4 (2 so) (3 good))))"))
    [Phrase(start_token=2, end_token=4, sentiment=4)]
    """
    magnitudes = [abs(label - NEUTRAL) for label in tree.labels]
    largest_below = [-1] * len(magnitudes)
    # parents precede their children, so one pass from the end sees every descendant first
    for node in range(len(magnitudes) - 1, 0, -1):
        parent = tree.parents[node]
        largest_below[parent] = max(largest_below[parent], magnitudes[node], largest_below[node])
    phrases, end = list[Phrase](), 0  # nodes before this end stand in a phrase
    for node, magnitude in enumerate(magnitudes):
        if tree.starts[node] >= end and magnitude > largest_below[node]:
            end = tree.ends[node]
            if magnitude:
                phrases.append(Phrase(tree.starts[node], end, tree.labels[node]))
    return phrases


def make_tree_row(text: str, **place: Any) -> dict[str, Any]:
    """Return the columns that follow from a line of a tree file; errors as of `parse_tree`, with its place."""
    tree = parse_tree(text.removesuffix("\r"), **place)
    tokens, sentiment, phrases = [unescape(word) for word in tree.words], tree.labels[0], find_rationale_phrases(tree)
    scores = [0.0] * len(tokens)
    for start, end, label in phrases:
        scores[start:end] = [abs(label - NEUTRAL) / NEUTRAL] * (end - start)
    mask = [score > 0 for score in scores]
    return {
        "text": " ".join(tokens),
        "tokens": tokens,
        "label": int(sentiment > NEUTRAL),
        "rationale_mask": mask,
        "rationale_scores": scores,
        "num_tokens": len(tokens),
        "rationale_ratio": sum(mask) / len(mask),
        "sentiment": sentiment,
        "phrases": [phrase._asdict() for phrase in phrases],
        "tree": text,
    }


def read_tree_rows(path: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the rows of a tree file, one for each tree whose root is not neutral, and why -> how many lines have none.

    Raises:
        DataError: broken UTF-8, a line that is no tree, or no tree at all.
    """
    rows, skipped = [], {"blank lines": 0, "neutral roots": 0}
    for number, line in enumerate(read_utf8_lines(path), 1):
        text = line.removesuffix("\n")
        if not text.strip(" \t\r"):
            skipped["blank lines"] += 1
            continue
        row = make_tree_row(text, file=path, line=number)
        if row["sentiment"] == NEUTRAL:
            skipped["neutral roots"] += 1
        else:
            rows.append({"id": f"{path.stem}_{number}", "position": number, **row})
    if not rows and not skipped["neutral roots"]:
        raise DataError("expected a tree a line, found none", file=path, line=1)
    return rows, skipped
