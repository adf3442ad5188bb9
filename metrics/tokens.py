"""Token rule, and the mask of spans.

A document is split at "\\n" into sentences and at U+0020 into tokens; empty pieces do not count. (``str.split()`` is
another rule: it splits at every blank that Unicode knows.) The same rule holds for text, and for many documents' UTF-8
at once, in which no byte of another character equals these two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

BLANK, LINE_END = 0x20, 0x0A


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


class TokenStarts(NamedTuple):
    """Starts of the tokens of texts, one text after another.

    Attributes:
        start: int64 (tokens,), each token's first byte.
        first_token: int64 (texts + 1,), the number of each text's first token.
        opens_sentence: bool (tokens,), True for the first token of a sentence.
    """

    start: np.ndarray
    first_token: np.ndarray
    opens_sentence: np.ndarray


def find_token_starts(content: np.ndarray, bounds: np.ndarray) -> TokenStarts:
    """Find the tokens of many texts at once.

    Args:
        content: the texts' UTF-8, uint8 (bytes,).
        bounds: text k has the bytes ``[bounds[k], bounds[k + 1])``; int64 (texts + 1,), from 0 to bytes.
    """
    line_end = content == LINE_END
    inside = ~(line_end | (content == BLANK))
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

    @classmethod
    def concatenate(cls, several: Sequence[TextSizes]) -> TextSizes:
        """Return the sizes of several runs of texts as those of one."""
        nothing = cls(*(np.zeros(0, dtype=np.int64),) * 3)
        return cls(*map(np.concatenate, zip(nothing, *several, strict=True)))


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


def masks(segment: np.ndarray, start: np.ndarray, end: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Mark the tokens of many documents that spans cover: bool (offsets[-1],).

    Args:
        segment: the document of each span; int64 (spans,).
        start: the first token of each span, within its document; int64 (spans,).
        end: the token behind its last one; int64 (spans,).
        offsets: document k has the tokens ``[offsets[k], offsets[k + 1])``; int64 (documents + 1,).
    """
    changes = np.zeros(int(offsets[-1]) + 1, dtype=np.int32)
    at, real = offsets[segment], end > start
    np.add.at(changes, (at + start)[real], 1)
    np.add.at(changes, (at + end)[real], -1)
    return np.cumsum(changes[:-1], dtype=np.int32) > 0


def mask(spans: Iterable[tuple[int, int]], size: int) -> list[bool]:
    """Mark the tokens of one document that spans ``[start, end)`` within it cover, one flag per token.

    >>> mask([(1, 3), (2, 4)], 5)
    [False, True, True, True, False]
    """
    start, end = np.array([*spans], dtype=np.int64).reshape(-1, 2).T
    flags: list[bool] = masks(np.zeros(start.size, dtype=np.int64), start, end, np.array([0, size])).tolist()
    return flags
