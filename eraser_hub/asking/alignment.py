"""Quotes become spans: which tokens of which document a model meant by the words that it quoted.

A quote is looked for by its *key*: blanks left out, case folded, compatibility forms and accents taken apart, all
quotation marks one, all dashes one. Where the key stands, at word boundaries, the quote is in the text: ``exact`` where
the document's own text reads the same, else ``normalised``. Where it does not, the most similar run of tokens counts
from `THRESHOLD` on (``fuzzy``); below it the quote is ``not_found``: invented. ``ambiguous`` quotes stand in several
places.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from rapidfuzz import fuzz

from eraser_hub.metrics.tokens import tokens_of

from .settings import THRESHOLD

STATUSES = ("exact", "normalised", "fuzzy", "ambiguous", "not_found", "empty")
# characters that a key needs before similarity says anything: any text of some pages holds most short words, nearly
LEAST_FUZZY = 10

_APOSTROPHES = "'\"`´‘’‚‛“”„‟«»‹›′″‵‶「」『』\u0012\u0091\u0092\u0093\u0094"
_DASHES = "-‐‑‒–—―−﹘﹣－\u0096\u0097"
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
_RUNS = re.compile("|".join(["'+", *_BRACKETS, "-+"]))
_ELISION = re.compile(r"\s*[\[(]?(?:…|\.{3,}|(?:\. ){2,}\.)[\])]?\s*")
# what people and models put around a quote
_WRAPPING = "'.,;:-…()[]"


class _Characters(dict[int, str]):
    """What stands in a key for each character, worked out when first met; blanks stay for `make_key` to leave out."""

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
    """What is compared of a text; equal for texts that differ in case, blanks, accents, marks of quotation and dashes.

    >>> make_key("It 's `` GREAT '' -- really") == make_key("It’s “great” — really")
    True
    """
    plain = _RUNS.sub(lambda run: _BRACKETS.get(run[0], run[0][0]), text.translate(_CHARACTERS))
    return "".join(plain.split())


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote and where it stands.

    Attributes:
        text: as the model gave it.
        status: one of `STATUSES`.
        docid, start_token, end_token: the span; None where there is none.
        similarity: of the keys of quote and span, in [0, 1]; 0 where there is no span.
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
    """A document in which quotes are looked for.

    Args:
        docid: its name.
        tokens: its tokens.
        blank: what stands between two tokens of the text that the model saw.
    """

    def __init__(self, docid: str, tokens: Sequence[str], blank: str = " ") -> None:
        self.docid, self.tokens, self.blank = docid, tokens, blank
        keys = list(map(make_key, tokens))
        self.key = "".join(keys)
        self.starts = [0, *accumulate(map(len, keys))]  # token t has the key's characters [starts[t], starts[t + 1])

    def find(self, key: str) -> list[tuple[int, int]]:
        """The spans of tokens in which the key stands, at word boundaries."""
        spans, at = [], self.key.find(key)
        while at >= 0:
            if not (self._splits_word(at, key[0]) or self._splits_word(at + len(key), key[-1])):
                spans.append(self._to_tokens(at, at + len(key)))
            at = self.key.find(key, at + 1)
        return list(dict.fromkeys(spans))

    def text(self, start: int, end: int) -> str:
        """The text of a span."""
        return self.blank.join(self.tokens[start:end])

    def find_nearest(self, key: str, threshold: float) -> tuple[int, int, float] | None:
        """The span whose key is most similar, and how similar; None where none reaches the threshold."""
        # a window of the key's length sees less of what a changed quote and its span have in common than the span does
        window = fuzz.partial_ratio_alignment(key, self.key, score_cutoff=100 * (threshold - 0.1))
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
        return fuzz.ratio(key, self.key[self.starts[start] : self.starts[end]])

    def _find_bounds(self, token: int, reach: int, low: int, high: int) -> range:
        """The token bounds in [low, high) within so many characters of one."""
        at = self.starts[token]
        return range(max(low, bisect_left(self.starts, at - reach)), min(high, bisect_right(self.starts, at + reach)))

    def _to_tokens(self, start: int, end: int) -> tuple[int, int]:
        """The tokens that the key's characters [start, end) lie in."""
        return bisect_right(self.starts, start) - 1, bisect_left(self.starts, end)

    def _splits_word(self, at: int, edge: str) -> bool:
        """Whether a boundary in the key parts two letters of one token, or the mark of a word (``'s``) from it; writing
        without blanks parts anywhere.

        Args:
            at: the boundary.
            edge: the character beside it that lies in the match.
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
        quotes: as a model gave them, in its order. One that leaves words out (``...``) and is not found as a whole
            becomes its pieces.
        documents: where to look.
        threshold: least similarity of a fuzzy match, in (0, 1].
        several: of a quote that stands in several places, "nearest" takes the place that no earlier quote has and that
            is nearest to the quotes with one place alone, the first of equals; "all" takes all of them, a `Quote` each.

    Returns:
        a `Quote` for each quote (each piece, each place), in order.
    """
    matched = [one for quote in quotes for one in _match_pieces(quote, documents, threshold)]
    certain = [matches[0] for _, _, matches in matched if len(matches) == 1]
    aligned, taken = [], set[_Match](certain)
    for piece, status, matches in matched:
        if len(matches) > 1 and several == "nearest":
            free = [match for match in matches if match not in taken] or matches
            matches = [min(free, key=lambda match: _compute_distance(match, certain))]
            taken.add(matches[0])
        for match in matches:
            docid = documents[match.document].docid
            aligned.append(Quote(piece, status, docid, match.start, match.end, match.similarity))
        if not matches:
            aligned.append(Quote(piece, status))
    return aligned


def _match_pieces(quote: str, documents: Sequence[Document], threshold: float) -> list[tuple[str, str, list[_Match]]]:
    """(text, status, matches) of the quote, or of what stands between its elisions."""
    whole = (quote, *_find_matches(quote, documents, threshold))
    pieces = [piece for piece in _ELISION.split(quote) if make_key(piece).strip(_WRAPPING)]
    if whole[1] != "not_found" or len(pieces) < 2:
        return [whole]
    return [(piece, *_find_matches(piece, documents, threshold)) for piece in pieces]


def _find_matches(quote: str, documents: Sequence[Document], threshold: float) -> tuple[str, list[_Match]]:
    """The status of a quote, and where it may stand."""
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
    """The key, and what of it may be meant: without the marks that may stand around a quote; the longest first."""
    size = len(key)
    starts = {*range(size - len(key.lstrip("'")) + 1), 3 * key.startswith("..."), size - len(key.lstrip(_WRAPPING))}
    ends = {*range(size - len(key.rstrip("'")) + 1), 3 * key.endswith("..."), size - len(key.rstrip(_WRAPPING))}
    readings = {key[start : len(key) - end] for start in starts for end in ends}
    return sorted(filter(None, readings), key=len, reverse=True)


def _is_verbatim(quote: str, document: Document, match: _Match) -> bool:
    return document.blank.join(tokens_of(quote)) == document.text(match.start, match.end)


def _compute_distance(match: _Match, others: Sequence[_Match]) -> int:
    """Tokens between a match and the nearest of others in its document; far where there is none."""
    same = [other for other in others if other.document == match.document]
    return min((max(other.start - match.end, match.start - other.end, 0) for other in same), default=1 << 60)
