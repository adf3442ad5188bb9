"""Align quotes with documents: find the tokens that a model quotes.

Quotes are compared by their *key*: without blanks, case-folded, with compatibility forms and accents decomposed, with
one form of quotation marks and one of dashes. If the key occurs at word boundaries, the quote is in the text: ``exact``
if the document's own text reads the same, else ``normalised``. Otherwise the most similar run of tokens counts if its
similarity is at least `THRESHOLD` (``fuzzy``); below that, the quote is ``not_found``: invented. ``ambiguous`` quotes
occur in several places.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

from eraser_hub.schema.instance import QUOTE_THRESHOLD

from .issues import InputError
from .tokens import split_tokens

THRESHOLD = QUOTE_THRESHOLD
STATUSES = ("exact", "normalised", "fuzzy", "ambiguous", "not_found", "empty")
# characters that a key needs before similarity says anything: any text of some pages holds most short words, nearly
LEAST_FUZZY = 10
MOST_MARKS = 8  # of quotation that may stand around a quote

_APOSTROPHES = "'\"`´‘’‚‛“”„‟«»‹›′″‵‶「」『』\u0012\u0091\u0092\u0093\u0094"
_DASHES = "-‐‑‒–—―−﹘﹣－\u0096\u0097"
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
_RUNS = re.compile("|".join(["'+", *_BRACKETS, "-+"]))
_ELISION = re.compile(r"\s*[\[(]?(?:…|\.{3,}|(?:\. ){2,}\.)[\])]?\s*")
# what people and models put around a quote
_WRAPPING = "'.,;:-…()[]"


class _Characters(dict[int, str]):
    """The key of each character, computed at its first use; blanks are kept for `make_key` to remove."""

    def __missing__(self, code: int) -> str:
        self[code] = "".join(map(self._normalise, unicodedata.normalize("NFKD", chr(code)))).casefold()
        return self[code]

    @staticmethod
    def _normalise(character: str) -> str:
        if character in _APOSTROPHES:
            return "'"
        if character in _DASHES:
            return "-"
        if character.isspace():
            return " "
        return "" if unicodedata.category(character) in ("Mn", "Cc", "Cf", "Cs") else character


_CHARACTERS = _Characters()


@lru_cache(maxsize=1 << 16)  # most tokens of a document stood in another before
def make_key(text: str) -> str:
    """Return the key of a text; equal for texts that differ in case, blanks, accents, quotation marks and dashes.

    >>> make_key("It 's `` GREAT '' -- really") == make_key("It’s “great” — really")
    True
    """
    plain = _RUNS.sub(lambda run: _BRACKETS.get(run[0], run[0][0]), text.translate(_CHARACTERS))
    return "".join(plain.split())


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote and its position.

    Attributes:
        text: The quote in the model's words.
        status: One of `STATUSES`.
        docid: The document; None without a position.
        start_token: The first token; None without a position.
        end_token: The token behind the last one; None without a position.
        similarity: Similarity of the keys of quote and span, in [0, 1]; 0 without a position.
    """

    text: str
    status: str
    docid: str | None = None
    start_token: int | None = None
    end_token: int | None = None
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class _Match:
    document: int
    start: int
    end: int
    similarity: float = 1.0


class Document:
    """A document to search for quotes.

    Args:
        docid: Its name.
        tokens: Its tokens.
        blank: The string between two tokens of the text that the model saw.
    """

    def __init__(self, docid: str, tokens: Sequence[str], blank: str = " ") -> None:
        self.docid, self.tokens, self.blank = docid, tokens, blank
        keys = list(map(make_key, tokens))
        self.key = "".join(keys)
        self.starts = [0, *accumulate(map(len, keys))]  # token t has the key's characters [starts[t], starts[t + 1])

    def find(self, key: str) -> list[tuple[int, int]]:
        """Return the spans of tokens in which the key occurs, at word boundaries."""
        spans, at = [], self.key.find(key)
        while at >= 0:
            if not (self._splits_word(at, key[0]) or self._splits_word(at + len(key), key[-1])):
                spans.append(self._to_tokens(at, at + len(key)))
            at = self.key.find(key, at + 1)
        return list(dict.fromkeys(spans))

    def text(self, start: int, end: int) -> str:
        """Return the text of a span."""
        return self.blank.join(self.tokens[start:end])

    def find_nearest(self, key: str, threshold: float) -> tuple[int, int, float] | None:
        """Return the span with the most similar key and its similarity; None below the threshold."""
        # a window of the key's length sees less of what a changed quote and its span have in common than the span does
        window = _load_fuzz().partial_ratio_alignment(key, self.key, score_cutoff=100 * (threshold - 0.1))
        if window is None or window.dest_start == window.dest_end:
            return None
        start, end = self._to_tokens(window.dest_start, window.dest_end)
        reach = len(key) // 4 + 4
        for _ in range(2):
            start = max(self._find_bounds(start, reach, 0, end), key=lambda token: self._compute_ratio(key, token, end))
            ends = self._find_bounds(end, reach, start + 1, len(self.tokens) + 1)
            end = max(ends, key=lambda token: self._compute_ratio(key, start, token))
        similarity = self._compute_ratio(key, start, end) / 100
        return (start, end, similarity) if similarity >= threshold else None

    def _compute_ratio(self, key: str, start: int, end: int) -> float:
        ratio: float = _load_fuzz().ratio(key, self.key[self.starts[start] : self.starts[end]])
        return ratio

    def _find_bounds(self, token: int, reach: int, low: int, high: int) -> range:
        """Return the token bounds in [low, high) within so many characters of one."""
        at = self.starts[token]
        return range(max(low, bisect_left(self.starts, at - reach)), min(high, bisect_right(self.starts, at + reach)))

    def _to_tokens(self, start: int, end: int) -> tuple[int, int]:
        """Return the tokens that hold the key's characters [start, end)."""
        return bisect_right(self.starts, start) - 1, bisect_left(self.starts, end)

    def _splits_word(self, at: int, edge: str) -> bool:
        """Return True if a boundary in the key splits two letters of one token, or a mark of a word (``'s``) from it.

        Scripts without blanks may be split anywhere.

        Args:
            at: The boundary.
            edge: The character beside it that lies in the match.
        """
        if not 0 < at < len(self.key) or self.starts[bisect_left(self.starts, at)] == at:
            return False
        letters = [one.isalnum() and ord(one) < 0x2E80 for one in self.key[at - 1 : at + 1]]
        return all(letters) or (edge == "'" and any(letters))


def align(
    quotes: Sequence[str], documents: Sequence[Document], *, threshold: float = THRESHOLD, several: str = "nearest"
) -> list[Quote]:
    """Find quotes in documents.

    Args:
        quotes: The quotes in the model's words and order. A quote with an ellipsis (``...``) that is not found as one
            text is split into its pieces.
        documents: The documents to search.
        threshold: Least similarity of a fuzzy match, in (0, 1].
        several: Choice among several places of a quote: "nearest" takes the place that no earlier quote has and that is
            nearest to the quotes with a single place, the first of equal ones; "all" takes all of them, a `Quote` each.

    Returns:
        A `Quote` for each quote (each piece, each place), in order.
    """
    return [one for group in align_each(quotes, documents, threshold=threshold, several=several) for one in group]


def align_each(
    quotes: Sequence[str], documents: Sequence[Document], *, threshold: float = THRESHOLD, several: str = "nearest"
) -> list[list[Quote]]:
    """Find quotes in documents, as `align` does; return the pieces and places of each quote."""
    matched = [_match_pieces(quote, documents, threshold) for quote in quotes]
    certain = [matches[0] for pieces in matched for _, _, matches in pieces if len(matches) == 1]
    aligned, taken = [], set[_Match](certain)
    for pieces in matched:
        group: list[Quote] = []
        for piece, status, matches in pieces:
            if len(matches) > 1 and several == "nearest":
                free = [match for match in matches if match not in taken] or matches
                matches = [min(free, key=lambda match: _compute_distance(match, certain))]
                taken.add(matches[0])
            for match in matches:
                docid = documents[match.document].docid
                group.append(Quote(piece, status, docid, match.start, match.end, match.similarity))
            if not matches:
                group.append(Quote(piece, status))
        aligned.append(group)
    return aligned


def locate_quotes(
    text: str | Sequence[str], quotes: Sequence[str], *, threshold: float = THRESHOLD
) -> list[tuple[int, int] | None]:
    """Find the tokens that each quote stands for, as ``eraser-hub ask`` does.

    Case, blanks, accents, quotation marks and dashes do not count. A quote that is not in the text takes the most
    similar run of tokens, if its similarity is at least the threshold. Of several places a quote takes the one that no
    earlier quote has and that is nearest to the quotes with one place.

    Args:
        text: the text, cut at U+0020 and line ends, or its tokens.
        quotes: the quotes. One with an ellipsis stands for the tokens from its first piece to its last.
        threshold: the least similarity of a changed quote, in (0, 1].

    Returns:
        for each quote its tokens [start, end); None if it is not in the text.

    Raises:
        ValueError: the package rapidfuzz, which finds changed quotes, is needed and not installed.

    >>> locate_quotes("a warm and funny film .", ["Warm and funny", "a masterpiece"])
    [(1, 4), None]
    """
    tokens = split_tokens(text) if isinstance(text, str) else list(text)
    spans: list[tuple[int, int] | None] = []
    for group in align_each(quotes, [Document("", tokens)], threshold=threshold):
        ends = [(one.start_token, one.end_token) for one in group if one.start_token is not None]
        bounds = [(start, end) for start, end in ends if start is not None and end is not None]
        spans.append((min(start for start, _ in bounds), max(end for _, end in bounds)) if bounds else None)
    return spans


@lru_cache(maxsize=1)
def _load_fuzz() -> Any:
    """Return rapidfuzz's similarities, which quotes with changed words need."""
    try:
        from rapidfuzz import fuzz
    except ImportError:
        message = "quotes that are not in the text word for word need `pip install rapidfuzz`"
        raise InputError(message, "extra-missing", "quotes") from None
    return fuzz


def _match_pieces(quote: str, documents: Sequence[Document], threshold: float) -> list[tuple[str, str, list[_Match]]]:
    """Return (text, status, matches) of the quote, or of the pieces between its ellipses."""
    whole = (quote, *_find_matches(quote, documents, threshold))
    pieces = [piece for piece in _ELISION.split(quote) if make_key(piece).strip(_WRAPPING)]
    if whole[1] != "not_found" or len(pieces) < 2:
        return [whole]
    return [(piece, *_find_matches(piece, documents, threshold)) for piece in pieces]


def _find_matches(quote: str, documents: Sequence[Document], threshold: float) -> tuple[str, list[_Match]]:
    """Return the status of a quote and its possible positions."""
    key = make_key(quote)
    bare = key.strip(_WRAPPING)
    for one in _list_variants(key):
        matches = [_Match(at, *span) for at, document in enumerate(documents) for span in document.find(one) if one]
        if matches:
            verbatim = [match for match in matches if _is_verbatim(quote, documents[match.document], match)]
            status = "ambiguous" if len(verbatim or matches) > 1 else "exact" if verbatim else "normalised"
            return status, verbatim or matches
    if not bare:
        return "empty", []
    if len(bare) < LEAST_FUZZY:
        return "not_found", []
    whole = key.removeprefix("...").removesuffix("...")
    keys = dict.fromkeys((whole, whole.strip("'")))
    spans = ((at, document.find_nearest(one, threshold)) for at, document in enumerate(documents) for one in keys)
    near = [_Match(at, *span) for at, span in spans if span]
    return ("fuzzy", [max(near, key=lambda match: match.similarity)]) if near else ("not_found", [])


def _list_variants(key: str) -> list[str]:
    """Return the key with and without the marks that may surround a quote; the longest first."""
    size = len(key)
    before, behind = (min(size - len(bare), MOST_MARKS) for bare in (key.lstrip("'"), key.rstrip("'")))
    starts = {*range(before + 1), 3 * key.startswith("..."), size - len(key.lstrip(_WRAPPING))}
    ends = {*range(behind + 1), 3 * key.endswith("..."), size - len(key.rstrip(_WRAPPING))}
    readings = {key[start : len(key) - end] for start in starts for end in ends}
    return sorted(filter(None, readings), key=len, reverse=True)


def _is_verbatim(quote: str, document: Document, match: _Match) -> bool:
    return document.blank.join(split_tokens(quote)) == document.text(match.start, match.end)


def _compute_distance(match: _Match, others: Sequence[_Match]) -> int:
    """Return the tokens between a match and the nearest other match in its document; large without one."""
    same = [other for other in others if other.document == match.document]
    return min((max(other.start - match.end, match.start - other.end, 0) for other in same), default=1 << 60)
