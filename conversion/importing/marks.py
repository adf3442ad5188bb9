"""Cells of marks: masks, spans, numbers of tokens or sentences, quotes; each becomes spans of tokens, per person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeGuard

from eraser_hub.metrics.plain import SPAN_FIELDS
from eraser_hub.metrics.tokens import find_occurrences, spans_from_mask
from eraser_hub.records.errors import DataError, show

from .tally import Tally
from .texts import Span, Text, have_same_letters, is_empty, parse_literal

Kind = Literal["mask", "spans", "quotes"]
Offsets = Literal["tokens", "characters", "sentences", "indices"]
PAIR = re.compile(r"\s*(\d+)\s*[-:]\s*(\d+)\s*")

Marks = list[Span] | None
"""The marked tokens of one person, ascending and distinct; None: quotes of which none was found."""


class MarkReader(NamedTuple):
    """Reader of one form of marks.

    Attributes:
        kind: mask, spans or quotes.
        offsets: what spans count: tokens, characters or sentences; indices: the numbers of the marked tokens.
        tally: counts of changed and lost marks.
    """

    kind: Kind
    offsets: Offsets
    tally: Tally

    def read(self, value: Any, text: Text, column: str) -> list[Marks]:
        """Return the marks of each person in a cell; none for an empty cell.

        Args:
            value: the cell: one person's marks, or a list of several people's.
            text: the marked text.
            column: the column, for errors.

        Raises:
            DataError: the cell does not fit the text, or has another form.
        """
        value = parse_literal(value)
        if is_empty(value):
            return []
        read = {"mask": self._read_mask, "spans": self._read_spans, "quotes": self._read_quotes}[self.kind]
        people = [[] if each is None else each for each in value] if isinstance(value, list) else []
        is_pair = self.kind == "spans" and self.offsets in ("tokens", "characters") and any(map(is_span, people))
        if not people or is_pair or not all(isinstance(each, list) for each in people):
            return [read(value, text, column)]
        return [read(each, text, f"{column}[{at}]") for at, each in enumerate(people)]

    def _read_mask(self, value: Any, text: Text, column: str) -> Marks:
        if value == []:
            return []
        if not isinstance(value, list):
            raise DataError(f"expected a list of 0 and 1, like [0, 1, 1], found {show(value)}", field=column)
        if len(value) != len(text.tokens):
            raise DataError(f"expected {len(text.tokens)} marks, one a token, found {len(value)}", field=column)
        for at, mark in enumerate(value):
            if not isinstance(mark, int | float) or mark not in (0, 1):
                raise DataError(f"expected 0 or 1, found {show(mark)}", field=f"{column}[{at}]")
        return spans_from_mask(value)

    def _read_spans(self, value: Any, text: Text, column: str) -> Marks:
        if self.offsets in ("indices", "sentences"):
            return self._read_numbers(value, text, column)
        spans = set()
        size = len(text.source if self.offsets == "characters" else text.tokens)
        for (start, end), words, field in list_spans(value, column):
            if not 0 <= start <= end <= size:
                message = f"expected a span within the text's {size} {self.offsets}, found {[start, end]}"
                raise DataError(message, field=field)
            found = " ".join(text.tokens[start:end])
            if self.offsets == "characters":
                found = text.source[start:end]
                self.tally.add("widened", text.is_widened(start, end))
            if isinstance(words, str) and not have_same_letters(words, found):
                message = f"expected the span's own text {show(words)} at {[start, end]}, found {show(found)}"
                raise DataError(message, field=field)
            spans.add(text.find_covered(start, end) if self.offsets == "characters" else (start, end))
            self.tally.add("empty", start == end)
        return sorted(span for span in spans if span[0] < span[1])

    def _read_numbers(self, value: Any, text: Text, column: str) -> Marks:
        """Return the runs of numbered tokens, or each numbered sentence: ``[0, 2]``, or ``0,2`` as in e-SNLI."""
        if isinstance(value, str) and re.fullmatch(r"[\d\s,;]+", value):
            value = [int(number) for number in re.findall(r"\d+", value)]
        numbers: Any = [value] if is_whole(value) else value
        if not isinstance(numbers, list) or not all(map(is_whole, numbers)):
            raise DataError(f"expected numbers of tokens or sentences, found {show(value)}", field=column)
        unit, size = ("tokens", len(text.tokens)) if self.offsets == "indices" else ("sentences", len(text.sentences))
        if outside := [number for number in numbers if not 0 <= number < size]:
            raise DataError(f"expected the numbers of {size} {unit}, from 0, found {outside[0]}", field=column)
        if unit == "tokens":
            return spans_from_mask(number in numbers for number in range(size))
        spans = {text.sentences[number] for number in numbers}
        self.tally.add("empty", sum(start == end for start, end in spans))
        return sorted(span for span in spans if span[0] < span[1])

    def _read_quotes(self, value: Any, text: Text, column: str) -> Marks:
        quotes = split_quotes(value, text) if isinstance(value, str) else value
        if not isinstance(quotes, list) or not all(isinstance(quote, str) for quote in quotes):
            raise DataError(f"expected a quote, or a list of quotes, found {show(value)}", field=column)
        spans, lost = set(), 0
        for quote in filter(str.strip, quotes):
            shown = f": {show(quote, 40)}"
            places, in_case = find_quote(quote, text)
            if not places:
                lost += 1
                self.tally.add("unfound", detail=shown)
                continue
            (start, end), key = places[0], "".join(quote.split())
            self.tally.counts["quotes"] += 1
            self.tally.add("repeated", len(places) > 1, f"{shown}, {len(places)} times")
            self.tally.add("other case", not in_case, shown)
            self.tally.add("widened", len("".join("".join(text.tokens[start:end]).split())) > len(key))
            spans.add((start, end))
        self.tally.add("unlocated", lost > 0 and not spans)
        return None if lost and not spans else sorted(spans)


def is_whole(value: Any) -> TypeGuard[int]:
    """Return True for a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_span(value: Any) -> TypeGuard[tuple[int, int]]:
    """Return True for a pair of whole numbers."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(is_whole, value))


def list_spans(value: Any, column: str) -> Iterator[tuple[Span, Any, str]]:
    """Yield (span, its own text or None, its field for errors) of a cell of spans.

    The cell holds pairs, objects with start and end, an object of lists of these (as `datasets` transposes them), or
    ``3-7; 12-15``.
    """
    pairs = [PAIR.fullmatch(part) for part in value.split(";") if part.strip()] if isinstance(value, str) else []
    if pairs and all(pairs):
        value = [[int(pair[1]), int(pair[2])] for pair in pairs if pair]
    if isinstance(value, dict):
        lists = {name: cells for name, cells in value.items() if isinstance(cells, list)}
        if len(set(map(len, lists.values()))) > 1:
            raise DataError(f"expected lists of one length, found {show(value)}", field=column)
        value = (
            [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)] if lists else [value]
        )
    if not isinstance(value, list):
        is_numbers = isinstance(value, str) and re.fullmatch(r"[\d\s,]+", value)
        hint = " (`offsets` indices reads numbers of tokens)" if is_numbers else ""
        raise DataError(f"expected a list of spans [start, end], found {show(value)}{hint}", field=column)
    for at, each in enumerate(value):
        words = each.get("text") if isinstance(each, dict) else None
        if isinstance(each, dict):
            names = next((names for names in SPAN_FIELDS if each.keys() >= {*names}), ("start", "end"))
            each = [each.get(name) for name in names]
        if not is_span(each):
            raise DataError(f"expected a span [start, end], found {show(each)}", field=f"{column}[{at}]")
        yield (each[0], each[1]), words, f"{column}[{at}]"


def find_quote(quote: str, text: Text) -> tuple[list[Span], bool]:
    """Return the tokens of each place of a quote, and whether it stands there in this case; blanks do not count."""
    key = "".join(quote.split())
    (exact, starts), (folded, folded_starts) = text.keys
    places = find_occurrences(key, exact, starts)
    return places or find_occurrences(key.casefold(), folded, folded_starts), bool(places)


def split_quotes(cell: str, text: Text) -> list[str]:
    """Return the quotes of a cell: the whole, if it stands in the text, else its parts.

    The signs ; and | and line ends part quotes; commas do where all parts stand in the text.
    """
    if find_quote(cell, text)[0]:
        return [cell]
    quotes: list[str] = []
    for part in filter(str.strip, re.split(r"[;|\n]", cell)):
        pieces = [piece for piece in part.split(",") if piece.strip()]
        is_listed = not find_quote(part, text)[0] and all(find_quote(piece, text)[0] for piece in pieces)
        quotes += pieces if is_listed else [part]
    return [quote.strip() for quote in quotes]
