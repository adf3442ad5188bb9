"""Penn-bracketed sentiment trees (the form of the Stanford Sentiment Treebank), and rationales from them.

A file holds one tree a line: ``(3 (2 It) (4 (2 's) (4 lovely)))``. A node is ``(LABEL WORD)`` or
``(LABEL NODE NODE ..)``; labels run from 0 (very negative) over 2 (neutral) to 4 (very positive). The file may start
with a byte order mark. Brackets in the text are written ``-LRB-`` and ``-RRB-``. Trees may have
any depth, because no function here recurses.

The rationale is the one of Carton, Rathore and Tan, "Evaluating and Characterizing Human Rationales", Appendix A: see
:func:`find_rationale_phrases`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple

from eraser_hub.conversion.readers import read_utf8_lines
from eraser_hub.records.errors import DataError, show

NEUTRAL = 2
HIGHEST = 4
# str.split() would cut words with a no-break space inside, which the treebank has ("3 1\/2")
_PIECES = re.compile(r"[()]|[^ \t()]+")
_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}
_ESCAPES = {f"-{word}-": sign for name, sign in _BRACKETS.items() for word in (name, name.lower())}


class Phrase(NamedTuple):
    """A node in the rationale: its tokens ``[start_token, end_token)`` and its label (0 to 4)."""

    start_token: int
    end_token: int
    sentiment: int


@dataclass(frozen=True, slots=True)
class SentimentTree:
    """One tree, flat: node ``i`` covers the words ``starts[i]`` to ``ends[i]`` (exclusive); node 0 is the root.

    Nodes are in the order of their opening brackets; ``parents[0]`` is -1. ``words`` are as released, with escapes.
    """

    labels: tuple[int, ...]
    parents: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    words: tuple[str, ...]

    @property
    def sentiment(self) -> int:
        """The root's label, 0 to 4."""
        return self.labels[0]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words without escapes: ``-LRB-`` is ``(``, ``\\/`` is ``/``."""
        return tuple(unescape(word) for word in self.words)


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of a tree file: its 0-based ``position``, the ``text`` as released, the tree (None for a blank line)."""

    position: int
    text: str
    tree: SentimentTree | None


def unescape(word: str) -> str:
    """Return a word without bracket escapes and the treebank's ``\\/`` and ``\\*``.

    >>> unescape("-LRB-"), unescape("1\\\\/2")
    ('(', '1/2')
    """
    if word in _ESCAPES:
        return _ESCAPES[word]
    return word.replace("\\/", "/").replace("\\*", "*") if "\\" in word else word


def parse_tree(text: str, *, file: str | PathLike[str] | None = None, line: int | None = None) -> SentimentTree:
    """Parse the tree of one line.

    Raises:
        DataError: brackets are unbalanced, a label is no integer from 0 to 4, a node has no word or more than a word,
            or text follows the tree.

    >>> parse_tree("(3 (2 not) (1 bad))").words
    ('not', 'bad')
    """

    def wrong(message: str, column: int) -> DataError:
        return DataError(f"column {column + 1}: {message}", file=file, line=line)

    labels: list[int] = []
    parents: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    words: list[str] = []
    contents: list[str] = []  # per node: "", "word" or "nodes"
    open_nodes: list[int] = []
    for match in _PIECES.finditer(text):
        piece, column = match.group(), match.start()
        if parents and not open_nodes:
            raise wrong(f"expected the end of the line after the tree, found {show(piece)}", column)
        if len(labels) < len(parents):
            if len(piece) != 1 or piece not in "01234":
                raise wrong(f"expected a label from 0 to {HIGHEST}, found {show(piece)}", column)
            labels.append(int(piece))
        elif piece == "(":
            if open_nodes:
                if contents[open_nodes[-1]] == "word":
                    raise wrong("expected ')' after a word, found '('", column)
                contents[open_nodes[-1]] = "nodes"
            parents.append(open_nodes[-1] if open_nodes else -1)
            starts.append(len(words))
            ends.append(-1)
            contents.append("")
            open_nodes.append(len(parents) - 1)
        elif not open_nodes:
            raise wrong(f"expected '(', found {show(piece)}", column)
        elif piece == ")":
            node = open_nodes.pop()
            if not contents[node]:
                raise wrong("expected a word or a node, found ')'", column)
            ends[node] = len(words)
        else:
            node = open_nodes[-1]
            if contents[node]:
                expected = "')'" if contents[node] == "word" else "a node or ')'"
                raise wrong(f"expected {expected}, found {show(piece)}", column)
            contents[node] = "word"
            words.append(piece)
    if open_nodes:
        raise wrong(f"unbalanced brackets: {len(open_nodes)} not closed at the end of the line", len(text))
    if not parents:
        raise wrong("no tree", len(text))
    return SentimentTree(tuple(labels), tuple(parents), tuple(starts), tuple(ends), tuple(words))


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
    inside_phrase = [False] * len(magnitudes)
    phrases = []
    for node, magnitude in enumerate(magnitudes):
        parent = tree.parents[node]
        if parent >= 0 and inside_phrase[parent]:
            inside_phrase[node] = True
        elif magnitude > largest_below[node]:
            inside_phrase[node] = True
            if magnitude:
                phrases.append(Phrase(tree.starts[node], tree.ends[node], tree.labels[node]))
    return phrases


def compute_rationale_scores(tree: SentimentTree) -> list[float]:
    """Return one score per token, a soft rationale: ``|sentiment - 2| / 2`` of its phrase (0.5 or 1), 0 outside."""
    scores = [0.0] * len(tree.words)
    for start, end, sentiment in find_rationale_phrases(tree):
        scores[start:end] = [abs(sentiment - NEUTRAL) / NEUTRAL] * (end - start)
    return scores


def read_trees(path: str | PathLike[str]) -> Iterator[TreeLine]:
    """Yield the lines of a tree file in order; a byte order mark at its start is skipped.

    Raises:
        DataError: broken UTF-8, or an error of :func:`parse_tree`, with file and line.
    """
    for position, line in enumerate(read_utf8_lines(path)):
        text = line.removesuffix("\n")
        content = text.removesuffix("\r")
        tree = parse_tree(content, file=path, line=position + 1) if content.strip(" \t") else None
        yield TreeLine(position, text, tree)
