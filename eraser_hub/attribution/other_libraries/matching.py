"""Pieces of a text, each with a number, to the text's tokens.

A piece is known by its place in the text, or by its spelling alone (``##s``, ``Ġfilm``, ``▁film``, ``film ``,
``[UNK]``). A token gets the sum of its pieces' numbers; a piece of several tokens shares its number among them in equal
parts. So the tokens' sum is that of all pieces that stand for text: what attribution methods promise of sums stays
true.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from eraser_hub.records.errors import DataError, show

UNKNOWN = ("[UNK]", "<unk>")
SPECIAL = re.compile(
    r"\[(CLS|SEP|PAD|BOS|EOS)\]|</?s>|<(pad|bos|eos|cls|sep|mask)>|<\|\w+\|>|", re.IGNORECASE
)  # "" is how shap and interpreto show one
SEEN = 40  # characters of a text that an error shows

Span = tuple[int, int]


class MatchedText(NamedTuple):
    """A text's characters without blanks, in the form in which pieces are compared, and where each token starts.

    Attributes:
        characters: of all tokens, one after the other.
        starts: each token's first place among them; ascending, equal for tokens of which nothing is left.
        by_bytes: whether a character represents a byte, as byte-level tokenizers spell it.
    """

    characters: str
    starts: list[int]
    by_bytes: bool


def fold(text: str) -> str:
    """Remove case, accents, blanks and control characters, which uncased tokenizers drop.

    >>> fold("Café au lait")
    'cafeaulait'
    """
    plain = unicodedata.normalize("NFKD", text)
    return "".join(one for one in plain if unicodedata.category(one)[0] not in "MCZ").casefold()


def find_token_spans(tokens: Sequence[str], raw: str) -> list[Span]:
    """Find the span of each token in a text.

    Raises:
        DataError: the text holds other words, or in another order.
    """
    spans, end = list[Span](), 0
    for number, token in enumerate(tokens):
        start = raw.find(token, end)
        if start < 0 or raw[end:start].strip():
            message = f"expected the text that was scored to go on with token {number}, {show(token)}, found "
            raise DataError(message + show(raw[end : end + SEEN].strip()))
        end = start + len(token)
        spans.append((start, end))
    if raw[end:].strip():
        message = f"expected the text that was scored to end with its last token, found {show(raw[end:][:SEEN])}"
        raise DataError(message)
    return spans


def match_pieces(pieces: Sequence[str], tokens: Sequence[str]) -> tuple[list[Span | None], list[Span]]:
    """Find the spans of pieces and tokens in the text's characters; None for special tokens.

    ``[UNK]`` takes what the piece after it leaves free, or else the next token.

    Raises:
        DataError: pieces of another text.
    """
    by_bytes = any("Ġ" in piece or "Ċ" in piece for piece in pieces)
    forms = [token.encode().decode("latin-1") if by_bytes else fold(token) for token in tokens]
    text = MatchedText("".join(forms), list(accumulate(map(len, forms), initial=0))[:-1], by_bytes)
    spans: list[Span | None] = [None] * len(pieces)
    place, waiting = 0, list[int]()  # pieces without a spelling of their own
    for number, piece in enumerate(pieces):
        form = next((form for form in list_spellings(piece, by_bytes) if text.characters.startswith(form, place)), None)
        if piece in UNKNOWN or (SPECIAL.fullmatch(piece.strip()) and not form):
            waiting.append(number)
            continue
        unknown = [one for one in waiting if pieces[one] in UNKNOWN]
        start = place
        if form is None or unknown:
            form, start = _find_further_on(piece, text, place, len(unknown))
        _share(spans, waiting, text.starts, (place, start))
        spans[number], place, waiting = (start, start + len(form)), start + len(form), []
    for number in waiting:
        if pieces[number] in UNKNOWN and place < len(text.characters):
            end = next((start for start in text.starts if start > place), len(text.characters))
            spans[number], place = (place, end), end
    return spans, list(pairwise([*text.starts, len(text.characters)]))


def list_spellings(piece: str, by_bytes: bool) -> list[str]:
    """Return the texts that a piece may stand for, the likeliest first."""
    if by_bytes:
        byte_map = map_letters_to_bytes()
        # "Ġ" is a blank, and blanks count for nothing
        return ["".join(chr(byte_map.get(letter, ord(letter))) for letter in piece if letter not in "ĠĊ")]
    plain = fold(piece.replace("▁", " ").removesuffix("</w>"))
    return [plain, fold(" ".join(part.removeprefix("##") for part in piece.split()))]


def map_letters_to_bytes() -> dict[str, int]:
    """Map the letters of byte-level tokenizers (GPT-2's rule) to their bytes."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    return {chr(byte): byte for byte in printed} | {chr(256 + at): byte for at, byte in enumerate(others)}


def _find_further_on(piece: str, text: MatchedText, place: int, unknown: int) -> tuple[str, int]:
    """Find the spelling of a piece and its place, after characters that no piece spells.

    With ``unknown`` pieces before it, at the start of one of so many tokens, or anywhere behind the first character;
    without, at the start of a token: others before it were left out whole.
    """
    first = bisect_right(text.starts, place) if unknown else bisect_left(text.starts, place)
    near = text.starts[first : first + unknown] if unknown else text.starts[first:]
    anywhere = range(place + 1, len(text.characters)) if unknown else ()
    for start in (*near, *anywhere):
        for form in list_spellings(piece, text.by_bytes):
            if form and text.characters.startswith(form, start):
                return form, start
    if not any(list_spellings(piece, text.by_bytes)):
        return "", place  # a lone accent or blank: nothing of the text
    rest = text.characters[place : place + SEEN]
    message = f"expected pieces of the text, found {show(piece)} where it goes on with {show(rest)}"
    raise DataError(message)


def _share(spans: list[Span | None], waiting: Sequence[int], starts: Sequence[int], span: Span) -> None:
    """Give the characters before a piece to those that waited: a token to each, or all to all where numbers differ."""
    if not waiting or span[0] == span[1]:
        return
    inside = [start for start in starts if span[0] < start < span[1]]
    parts = list(zip([span[0], *inside], [*inside, span[1]], strict=True))
    parts = parts if len(parts) == len(waiting) else [span] * len(waiting)
    for number, part in zip(waiting, parts, strict=True):
        spans[number] = part


def sum_to_tokens(
    spans: Iterable[Span | None], values: Iterable[float], tokens: Sequence[Span]
) -> tuple[list[float], list[int]]:
    """Sum scores to tokens, and list the tokens that have characters but no piece.

    Args:
        spans: spans of the pieces; None for special tokens.
        values: score of each piece.
        tokens: their spans, ascending.
    """
    starts, ends = [start for start, _ in tokens], [end for _, end in tokens]
    scores, bare = [0.0] * len(tokens), {number for number, (start, end) in enumerate(tokens) if start < end}
    for span, value in zip(spans, values, strict=True):
        if span is None or span[0] >= span[1]:
            continue
        touched = [
            at for at in range(bisect_right(ends, span[0]), bisect_left(starts, span[1])) if starts[at] < ends[at]
        ]
        for at in touched:
            scores[at] += value / len(touched)
        bare -= set(touched)
    return scores, sorted(bare)
