"""Tokens of many documents at once, as numpy arrays over the UTF-8 bytes: the same rule as `eraser_format.tokens_of`.

A token is a run of bytes that are neither U+0020 nor "\\n"; a sentence is a line with a token. (In UTF-8 no byte of another
character equals these two.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

BLANK, NEWLINE = 0x20, 0x0A


def string_bytes(strings: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(the bytes of all strings, uint8; int64 offsets, one more than strings) of a string array without nulls."""
    strings = strings.cast(pa.large_string())
    _, offsets, data = strings.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[strings.offset : strings.offset + len(strings) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    return content[bounds[0] : bounds[-1]], bounds - bounds[0]


@dataclass(frozen=True, slots=True)
class TokenArrays:
    """Where the tokens of a run of texts lie.

    Attributes:
        content: uint8, the texts one after another, newlines turned into blanks.
        first_byte: int64 (texts + 1,), where each text begins.
        starts, ends: int64 (tokens,), each token's bytes in ``content``.
        first_token: int64 (texts + 1,), the index of each text's first token.
        sentences: int64 (texts,), lines with at least one token.
        regular: bool (texts,), whether exactly one byte stands between any two tokens, so that a span's text can be read
            off the bytes.
    """

    content: np.ndarray
    first_byte: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    first_token: np.ndarray
    sentences: np.ndarray
    regular: np.ndarray

    @property
    def tokens(self) -> np.ndarray:
        """int64 (texts,): the number of tokens of each text."""
        return np.diff(self.first_token)

    def span_bytes(self, text: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(first byte, byte behind) of non-empty spans [start, end) of the given texts; the offsets must be valid."""
        first = self.first_token[text]
        return self.starts[first + start], self.ends[first + end - 1]

    def span_text(self, text: int, start: int, end: int) -> str:
        """The tokens of one span joined by single blanks."""
        first = self.first_token[text]
        pieces = zip(self.starts[first + start : first + end], self.ends[first + start : first + end], strict=True)
        return " ".join(self.content[a:b].tobytes().decode() for a, b in pieces)


def token_arrays(texts: pa.Array) -> TokenArrays:
    """Find the tokens of each text of a string array without nulls."""
    content, first_byte = string_bytes(texts)
    count = len(texts)
    newline = content == NEWLINE
    inside = ~(newline | (content == BLANK))
    opens = inside.copy()
    opens[1:] &= ~inside[:-1]
    closes = inside.copy()
    closes[:-1] &= ~inside[1:]
    # a text's first byte opens a token although the text before it may end in one, and the other way round
    held = first_byte[:-1][np.diff(first_byte) > 0]
    opens[held] = inside[held]
    last = first_byte[1:][np.diff(first_byte) > 0] - 1
    closes[last] = inside[last]
    starts, ends = np.flatnonzero(opens), np.flatnonzero(closes) + 1
    first_token = np.searchsorted(starts, first_byte)
    text_of = np.repeat(np.arange(count), np.diff(first_token))
    lines = np.cumsum(newline)[starts] if len(starts) else np.zeros(0, np.int64)
    new_text = np.ones(len(starts), bool)
    new_text[1:] = text_of[1:] != text_of[:-1]
    new_sentence = new_text.copy()
    new_sentence[1:] |= lines[1:] != lines[:-1]
    gap_is_one = np.ones(len(starts), bool)
    gap_is_one[1:] = starts[1:] - ends[:-1] == 1
    odd = text_of[~(gap_is_one | new_text)]
    regular = np.ones(count, bool)
    regular[odd] = False
    return TokenArrays(
        content=np.where(newline, BLANK, content).astype(np.uint8),
        first_byte=first_byte,
        starts=starts,
        ends=ends,
        first_token=first_token,
        sentences=np.bincount(text_of[new_sentence], minlength=count),
        regular=regular,
    )
