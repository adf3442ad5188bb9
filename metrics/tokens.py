"""Texts as tokens and sentences; masks and spans of tokens.

The token rule: a document is split at "\\n" into sentences and at U+0020 into tokens; empty pieces do not count.
(``str.split()`` is another rule: it splits at every blank that Unicode knows.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import compress, count
from typing import NamedTuple

import numpy as np

from .errors import DataError
from .rows import to_list

Span = tuple[int, int]


def split_sentences(text: str) -> list[list[str]]:
    """Split a document into the tokens of each sentence; a line without a token is no sentence.

    >>> split_sentences("one two .\\n\\nthree  four")
    [['one', 'two', '.'], ['three', 'four']]
    """
    return list(filter(None, (list(filter(None, line.split(" "))) for line in text.split("\n"))))


def split_tokens(text: str) -> list[str]:
    """Split a document into tokens.

    >>> split_tokens("one two .\\n\\nthree  four")
    ['one', 'two', '.', 'three', 'four']
    """
    return list(filter(None, text.replace("\n", " ").split(" ")))


def sentence_sizes(text: str) -> list[int]:
    """Count the tokens of each sentence of a document.

    >>> sentence_sizes("one two .\\n\\nthree  four")
    [3, 2]
    """
    return list(map(len, split_sentences(text)))


def escape_whitespace(text: str) -> str:
    """Replace blanks and line ends in a token, which would split it in a document."""
    return text.replace(" ", "\u00a0").replace("\n", "\u2424")


class TokenStarts(NamedTuple):
    """Starts of the tokens of texts, one text after another.

    Attributes:
        start: each token's first byte: int64 (tokens,).
        first_token: the number of each text's first token: int64 (texts + 1,).
        opens_sentence: True for the first token of a sentence: bool (tokens,).
    """

    start: np.ndarray
    first_token: np.ndarray
    opens_sentence: np.ndarray


def find_token_starts(content: np.ndarray, bounds: np.ndarray) -> TokenStarts:
    """Find the tokens of many texts at once.

    Args:
        content: the texts' UTF-8, in which no byte of another character equals a blank or a line end: uint8 (bytes,).
        bounds: text k has the bytes ``[bounds[k], bounds[k + 1])``: int64 (texts + 1,), from 0 to bytes.
    """
    line_end = content == ord("\n")
    inside = ~(line_end | (content == ord(" ")))
    opens = inside.copy()
    np.greater(inside[1:], inside[:-1], out=opens[1:])
    heads = bounds[:-1][bounds[:-1] < bounds[1:]]
    opens[heads] = inside[heads]  # a text's first byte follows no other
    start = np.flatnonzero(opens)
    first_token = np.searchsorted(start, bounds)
    opens_sentence = np.zeros(start.size, dtype=bool)
    after_line_end = np.searchsorted(start, np.flatnonzero(line_end))
    opens_sentence[after_line_end[after_line_end < start.size]] = True
    opens_sentence[first_token[:-1][first_token[:-1] < first_token[1:]]] = True
    return TokenStarts(start, first_token, opens_sentence)


class TextSizes(NamedTuple):
    """Tokens and sentences of texts, int64 (texts,) each, and the tokens of each sentence, texts one after another."""

    tokens: np.ndarray
    sentences: np.ndarray
    sentence_tokens: np.ndarray


def measure_texts(content: bytes | np.ndarray, sizes: Sequence[int] | np.ndarray) -> TextSizes:
    """Count the tokens and sentences of many texts at once, given their joined UTF-8 and the bytes of each."""
    bounds = np.append(0, np.cumsum(sizes, dtype=np.int64))
    starts = find_token_starts(np.frombuffer(content, dtype=np.uint8), bounds)
    sentence_starts = np.flatnonzero(starts.opens_sentence)
    return TextSizes(
        np.diff(starts.first_token),
        np.diff(np.searchsorted(sentence_starts, starts.first_token)),
        np.diff(sentence_starts, append=starts.start.size),
    )


# -- masks and spans
def find_runs(indices: Iterable[int], offset: int = 0) -> list[Span]:
    """Convert token indices to spans [start, end), neighbours joined; ``offset`` is added to both.

    >>> find_runs([5, 1, 2, 2])
    [(1, 3), (5, 6)]
    """
    spans: list[Span] = []
    for index in sorted(set(indices)):
        if spans and spans[-1][1] == index + offset:
            spans[-1] = (spans[-1][0], index + offset + 1)
        else:
            spans.append((index + offset, index + offset + 1))
    return spans


def spans_from_mask(mask: Iterable[object]) -> list[Span]:
    """Return the runs of marked tokens of a 0/1 mask.

    Args:
        mask: a value for each token, which is marked if the value is true; a list, a numpy array, a tensor or a Series.

    Returns:
        spans [start, end) in tokens, ascending.

    Examples:
        >>> spans_from_mask([0, 1, 1, 0, 1])
        [(1, 3), (4, 5)]
    """
    return find_runs(compress(count(), to_list(mask)))


def masks(segment: np.ndarray, start: np.ndarray, end: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Mark the tokens of many documents that spans cover: bool (offsets[-1],).

    Args:
        segment: the document of each span: int64 (spans,).
        start: the first token of each span, within its document: int64 (spans,).
        end: the token behind its last one: int64 (spans,).
        offsets: document k has the tokens ``[offsets[k], offsets[k + 1])``: int64 (documents + 1,).
    """
    changes = np.zeros(int(offsets[-1]) + 1, dtype=np.int32)
    first, real = offsets[segment], end > start
    np.add.at(changes, (first + start)[real], 1)
    np.add.at(changes, (first + end)[real], -1)
    return np.cumsum(changes[:-1], dtype=np.int32) > 0


def mask_from_spans(spans: Iterable[Sequence[int]], size: int) -> list[int]:
    """Return the 0/1 mask of spans.

    Args:
        spans: pairs [start, end) in tokens; they may overlap.
        size: the number of tokens.

    Raises:
        DataError: a span lies outside the tokens, or ends before its start.

    Examples:
        >>> mask_from_spans([(1, 3), (4, 5)], 5)
        [0, 1, 1, 0, 1]
    """
    mask = [0] * size
    for start, end in spans:
        if not 0 <= start <= end <= size:
            raise DataError(f"expected spans within {size} tokens, found {[int(start), int(end)]}", field="spans")
        mask[start:end] = [1] * (end - start)
    return mask


def find_occurrences(key: str, text: str, starts: Sequence[int]) -> list[Span]:
    """Return the spans of tokens in which a string occurs; it splits no word of a script with blanks.

    Args:
        key: the string, without blanks.
        text: the tokens, joined without blanks.
        starts: token t has the characters ``[starts[t], starts[t + 1])`` of the text.
    """

    def splits_word(at: int, edge: str) -> bool:
        if not 0 < at < len(text) or starts[bisect_left(starts, at)] == at:
            return False
        letters = [char.isalnum() and ord(char) < 0x2E80 for char in text[at - 1 : at + 1]]
        return all(letters) or (edge == "'" and any(letters))

    spans, at = [], text.find(key) if key else -1
    while at >= 0:
        end = at + len(key)
        if not (splits_word(at, key[0]) or splits_word(end, key[-1])):
            spans.append((bisect_right(starts, at) - 1, bisect_left(starts, end)))
        at = text.find(key, at + 1)
    return list(dict.fromkeys(spans))
