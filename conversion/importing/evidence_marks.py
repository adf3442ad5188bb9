"""Marks of evidence in a row's text: masks, spans, quotes, or asterisks in e-SNLI's copies of a text.

All of them become spans of tokens, annotator by annotator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeGuard

from eraser_hub.conversion.checks import Tally
from eraser_hub.metrics.plain import spans_from_mask
from eraser_hub.records.errors import DataError, show

from .texts import Span, Text, have_same_letters, parse_literal

MASK, SPANS, QUOTES = "mask", "spans", "quotes"
STARS = "stars"  # of the recipe e-snli-highlights: asterisks in a copy of the text
TOKENS, CHARACTERS, SENTENCES = "tokens", "characters", "sentences"
INDICES = "indices"  # the numbers of the marked tokens, one by one
STAR = "*"
_PAIR = re.compile(r"\s*(\d+)\s*[-:]\s*(\d+)\s*")
_NAMES = (("start", "end"), ("start_token", "end_token"), ("start_offset", "end_offset"), ("begin", "end"))

Annotators = list[list[Span] | None]
"""Per annotator the marked spans of tokens, ascending and distinct; None: marks of which none can be located."""


class RowTally(Tally):
    """Tally whose examples are rows.

    Attributes:
        place: file and line of the current row.
    """

    place = ""

    def note(self, check: str, count: int = 1, words: str = "") -> None:
        """Count ``check`` for the current row."""
        self.add(check, count, [f"{self.place}{words}"])


class MarkReader(NamedTuple):
    """Reader of one form of marks.

    Attributes:
        kind: mask, spans, quotes or stars.
        offsets: unit of spans: tokens, characters or sentences; or indices, the numbers of the marked tokens.
        tally: counts of changed and skipped marks.
    """

    kind: str
    offsets: str
    tally: RowTally

    def read_annotators(self, value: Any, text: Text, column: str) -> Annotators:
        """Return the marked spans of each annotator in a cell; empty for a null or empty cell.

        Args:
            value: the cell.
            text: the marked text.
            column: name of the column, for errors.

        Raises:
            DataError: the cell does not fit the text, or has another form.
        """
        value = parse_literal(value)
        if value is None or value in ([], {}) or (isinstance(value, str) and not value.strip()):
            return []
        if self.kind == STARS:
            return [spans_from_mask(_read_starred_text(value, text, column))]
        reader: Callable[[Any, Text, str], list[Span] | None]
        several: Callable[[Any], bool]
        several, reader = {
            MASK: (lambda each: isinstance(each, list), self._read_mask),
            SPANS: (self._is_list_of_spans, self._read_spans),
            QUOTES: (lambda each: isinstance(each, list), self._read_quotes),
        }[self.kind]
        # null: an annotator without marks
        parts = [[] if each is None else each for each in value] if isinstance(value, list) else []
        if not parts or not all(map(several, parts)):
            return [reader(value, text, column)]
        return [reader(each, text, f"{column}[{number}]") for number, each in enumerate(parts)]

    def _read_mask(self, value: Any, text: Text, column: str) -> list[Span]:
        if value == []:
            return []
        if not isinstance(value, list):
            message = f"expected a list of 0 and 1, like [0, 1, 1], found {show(value)}"
            raise DataError(message, field=column)
        if len(value) != len(text):
            raise DataError(f"expected {len(text)} marks, one a token, found {len(value)}", field=column)
        for at, mark in enumerate(value):
            if not isinstance(mark, int | float) or mark not in (0, 1):
                raise DataError(f"expected 0 or 1, found {show(mark)}", field=f"{column}[{at}]")
        return spans_from_mask(value)

    def _is_list_of_spans(self, each: Any) -> bool:
        return isinstance(each, list) and (self.offsets in (SENTENCES, INDICES) or not _is_pair(each))

    def _read_indices(self, value: Any, text: Text, column: str) -> list[Span]:
        """Return the runs of tokens whose numbers a cell holds: ``[0, 2]``, or ``0,2`` as in e-SNLI."""
        if isinstance(value, str) and re.fullmatch(r"[\d\s,;]+", value):
            value = [int(number) for number in re.findall(r"\d+", value)]
        numbers: Any = [value] if _is_integer(value) else value
        if not isinstance(numbers, list) or not all(map(_is_integer, numbers)):
            raise DataError(f"expected numbers of tokens, found {show(value)}", field=column)
        if outside := [number for number in numbers if not 0 <= number < len(text)]:
            message = f"expected the numbers of {len(text)} tokens, from 0, found {outside[0]}"
            raise DataError(message, field=column)
        return spans_from_mask([number in numbers for number in range(len(text))])

    def _read_spans(self, value: Any, text: Text, column: str) -> list[Span]:
        if self.offsets == INDICES:
            return self._read_indices(value, text, column)
        spans = []
        for span, words, field in self._parse_spans(value, column):
            spans.append(self._to_token_span(span, text, field))
            self._check_words(span, spans[-1], words, text, field)
        self.tally.note("empty spans", sum(start == end for start, end in spans))
        return sorted({span for span in spans if span[0] < span[1]})

    def _check_words(self, span: Span, tokens: Span, words: Any, text: Text, field: str) -> None:
        """Refuse a span whose own text, if it has one, is not what stands at its offsets; blanks do not count."""
        characters = text.source[slice(*span)] if self.offsets == CHARACTERS else "".join(text.tokens[slice(*tokens)])
        if isinstance(words, str) and not have_same_letters(words, characters):
            message = f"expected the span's own text {show(words)} at {list(span)}, found {show(characters)}"
            raise DataError(message, field=field)

    def _parse_spans(self, value: Any, column: str) -> Iterator[tuple[Span, Any, str]]:
        """Yield (span in the source's unit, its own text or None, its field for errors) of each span of a cell."""
        if isinstance(value, str):  # as 3-7; 12-15
            pairs = [_PAIR.fullmatch(part) for part in value.split(";") if part.strip()]
            if None in pairs:
                message = f"expected spans as [[3, 7], [12, 15]] or 3-7; 12-15, found {show(value)}"
                if re.fullmatch(r"[\d\s,]+", value):
                    message += " (`offsets` indices reads numbers of tokens)"
                raise DataError(message, field=column)
            value = [[int(pair[1]), int(pair[2])] for pair in pairs if pair is not None]
        if isinstance(value, dict):
            value = _parse_span_lists(value, column)
        if not isinstance(value, list):
            raise DataError(f"expected a list of spans [start, end], found {show(value)}", field=column)
        for at, each in enumerate(value):
            field = f"{column}[{at}]"
            if self.offsets == SENTENCES and _is_integer(each):
                each = [each, each + 1]
            words = each.get("text") if isinstance(each, dict) else None
            if isinstance(each, dict):
                names = next((names for names in _NAMES if each.keys() >= set(names)), ("start", "end"))
                each = [each.get(name) for name in names]
            if not _is_pair(each):
                expected = "a sentence's number" if self.offsets == SENTENCES else "a span [start, end]"
                raise DataError(f"expected {expected}, found {show(each)}", field=field)
            yield (each[0], each[1]), words, field

    def _to_token_span(self, span: Span, text: Text, field: str) -> Span:
        """Convert a span in the source's unit to tokens."""
        start, end = span
        size = {TOKENS: len(text), CHARACTERS: len(text.source), SENTENCES: len(text.lines)}[self.offsets]
        if not 0 <= start <= end <= size:
            message = f"expected a span within the text's {size} {self.offsets}, found {[start, end]}"
            raise DataError(message, field=field)
        if self.offsets == TOKENS or start == end:
            return (start, end) if self.offsets == TOKENS else (0, 0)
        if self.offsets == SENTENCES:
            return text.get_sentence(start)[0], text.get_sentence(end - 1)[1]
        self.tally.note("widened", text.is_widened(start, end))
        return text.find_covered(start, end)

    def _read_quotes(self, value: Any, text: Text, column: str) -> list[Span] | None:
        quotes = _split_quotes(value, text) if isinstance(value, str) else value
        spans, lost = set(), False
        for number, quote in enumerate(quotes if isinstance(quotes, list) else [None]):
            if not isinstance(quote, str):
                raise DataError(f"expected a quote, found {show(quotes)}", field=f"{column}[{number}]")
            shown = f": {show(quote, 40)}"
            places = _find_quote(quote, text)
            if not places:
                places = _find_quote(quote, text, re.IGNORECASE)
                self.tally.note("quotes of another case", len(places) == 1, shown)
            if len(places) == 1:
                self.tally.note("widened", text.is_widened(*places[0]))
                spans.add(text.find_covered(*places[0]))
                continue
            lost |= bool(quote.strip())
            if places:
                self.tally.note("quotes twice", words=f"{shown} {len(places)} times")
            else:
                self.tally.note("quotes nowhere", words=shown)
        if lost and not spans:
            self.tally.note("unlocated")
            return None
        return sorted(spans)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: Any) -> TypeGuard[tuple[int, int]]:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_integer, value))


def _parse_span_lists(value: dict[str, Any], column: str) -> list[Any]:
    """Return the spans of an object: one start and end, or lists of them (as `datasets` returns a list of objects)."""
    for names in _NAMES:
        if value.keys() >= set(names):
            starts, ends = (value[name] for name in names)
            if not isinstance(starts, list) or not isinstance(ends, list):
                return [value]
            texts = value.get("text")
            texts = texts if isinstance(texts, list) and len(texts) == len(starts) else [None] * len(starts)
            if len(starts) == len(ends):
                triples = zip(starts, ends, texts, strict=True)
                return [{"start": start, "end": end, "text": words} for start, end, words in triples]
    raise DataError(f"expected a list of spans [start, end], found {show(value)}", field=column)


def _find_quote(quote: str, text: Text, flags: int = 0) -> list[Span]:
    """Return the spans of a quote in the source; runs of blanks are equal.

    If the quote occurs as whole words, other places do not count: "bad" is not found in "badly" if "bad" occurs too.
    """
    words = quote.split()
    if not words:
        return []
    # the lookahead finds overlapping places too
    pattern = re.compile("(?=(" + r"\s+".join(map(re.escape, words)) + "))", flags)
    spans = [match.span(1) for match in pattern.finditer(text.source)]
    full = [(start, end) for start, end in spans if not _is_within_word(text.source, start, end)]
    return full or spans


def _split_quotes(cell: str, text: Text) -> list[str]:
    """Return the quotes of a cell: the whole, if it stands in the text, else its parts.

    The signs ; and | and line ends part quotes; commas do where all parts stand in the text.
    """
    if _find_quote(cell, text, re.IGNORECASE):
        return [cell]
    quotes: list[str] = []
    for part in filter(str.strip, re.split(r"[;|\n]", cell)):
        pieces = [piece for piece in part.split(",") if piece.strip()]
        if not _find_quote(part, text, re.IGNORECASE) and all(_find_quote(one, text, re.IGNORECASE) for one in pieces):
            quotes += pieces
        else:
            quotes.append(part)
    return [quote.strip() for quote in quotes] or [cell]


def _is_within_word(source: str, start: int, end: int) -> bool:
    before, behind = source[max(0, start - 1) : start + 1], source[end - 1 : end + 1]
    return any(len(pair) == 2 and all(sign.isalnum() for sign in pair) for pair in (before, behind))


def _read_starred_text(marked: Any, text: Text, column: str) -> list[bool]:
    """Return a mask of the tokens between asterisks in a copy of the text (``a *fine* film``).

    Raises:
        DataError: the copy differs from the text, or an asterisk has no partner.
    """
    if not isinstance(marked, str):
        raise DataError(f"expected the text with marks (*word*), found {show(marked)}", field=column)
    mask, inside, place = [False] * len(text), False, 0
    for at, sign in enumerate(marked):
        same = text.source[place : place + 1]
        if sign == same:
            if inside:
                first, behind = text.find_covered(place, place + 1)
                mask[first:behind] = [True] * (behind - first)
            place += 1
        elif sign == STAR:
            inside = not inside
        else:
            difference = f"found {show(marked[at : at + 20])} in place of {show(text.source[place : place + 20])}"
            message = f"expected the text with marks (*word*), {difference} at character {at + 1}"
            raise DataError(message, field=column)
    if inside or text.source[place:].strip():
        what = "an asterisk without its partner" if inside else f"no {show(text.source[place : place + 20])} at its end"
        raise DataError(f"expected the text with marks (*word*), found {what}", field=column)
    return mask
