"""Texts as tokens with their offsets, and the cells of a row: lists in text, labels, nested columns."""

from __future__ import annotations

import ast
import json
import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from eraser_hub.conversion.readers import describe_separator, has_half_character, is_nested_deeper
from eraser_hub.metrics.errors import find_similar
from eraser_hub.records.errors import DataError, show

Cells = Mapping[str, Any]
Span = tuple[int, int]
BLANKS, WORDS = "blanks", "words"
MAX_LITERAL = 1 << 20  # characters of a cell that is read as a list


# -- texts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """One document of a row.

    Attributes:
        source: the text that character offsets count in.
        tokens: its tokens.
        places: [start, end) of each token in ``source``.
        sentences: the tokens [start, end) of each sentence; of a list of sentences also those without a token.
        document: the document as it is written: tokens separated by blanks, sentences by line ends.
    """

    source: str
    tokens: list[str]
    places: list[Span]
    sentences: list[Span]
    document: str

    @cached_property
    def _bounds(self) -> tuple[list[int], list[int], list[int]]:
        """The start and the end of each token, and the first token of each sentence that has one."""
        starts, ends = ([place[at] for place in self.places] for at in (0, 1))
        return starts, ends, [start for start, end in self.sentences if start < end]

    @cached_property
    def keys(self) -> list[tuple[str, list[int]]]:
        """The tokens joined, as they stand and without case; and where each of them begins."""
        forms = [["".join(token.split()) for token in self.tokens]]
        forms.append([token.casefold() for token in forms[0]])
        return [("".join(form), [0, *accumulate(map(len, form))]) for form in forms]

    def find_covered(self, start: int, end: int) -> Span:
        """Return the tokens that the characters [start, end) touch, as [first, last + 1)."""
        starts, ends, _ = self._bounds
        first = bisect_right(ends, start)
        return first, max(first, bisect_left(starts, end))

    def is_widened(self, start: int, end: int) -> bool:
        """Return True if the tokens that touch [start, end) have characters outside it."""
        first, stop = self.find_covered(start, end)
        return first < stop and (self.places[first][0] < start or self.places[stop - 1][1] > end)

    def find_sentences(self, start: int, end: int) -> Span:
        """Return the sentences of the document that the tokens [start, end) lie in, as [first, last + 1)."""
        firsts = self._bounds[2]
        return bisect_right(firsts, start) - 1, bisect_left(firsts, end)


def make_text(source: str, sentences: Sequence[Sequence[Span]], column: str, document: str | None = None) -> Text:
    """Return a text of these tokens.

    Args:
        source: the text.
        sentences: [start, end) of each token of each sentence.
        column: the column, for errors.
        document: the document; by default the tokens, separated by blanks.

    Raises:
        DataError: a token contains a blank.
    """
    places = [span for sentence in sentences for span in sentence]
    tokens = [source[start:end] for start, end in places]
    ends = [0, *accumulate(map(len, sentences))]
    if odd := next((token for token in tokens if " " in token or "\n" in token), None):
        raise DataError(f"expected tokens without a blank, found {show(odd)}", field=column)
    if document is None:
        document = "\n".join(" ".join(tokens[start:end]) for start, end in pairwise(ends) if start < end)
    return Text(source, tokens, places, list(pairwise(ends)), document)


def cut_words(line: str) -> list[Span]:
    """Cut a line at blanks, and punctuation off words; equal signs stay together.

    >>> [line[slice(*span)] for line in ["(Well-made, it's ...)"] for span in cut_words(line)]
    ['(', 'Well-made', ',', "it's", '...', ')']
    """
    spans = []
    for chunk in re.finditer(r"\S+", line):
        start, end = first, last = chunk.span()
        while first < end and unicodedata.category(line[first]).startswith("P"):
            first += 1
        while last > first and unicodedata.category(line[last - 1]).startswith("P"):
            last -= 1
        spans += [run.span() for run in re.compile(r"(.)\1*").finditer(line, start, first)]
        spans += [(first, last)] if first < last else []
        spans += [run.span() for run in re.compile(r"(.)\1*").finditer(line, last, end)]
    return spans


def cut_text(lines: Sequence[str], tokenizer: str, column: str, *, listed: bool = False) -> Text:
    """Cut running text into tokens and sentences.

    Args:
        lines: the text, or its sentences.
        tokenizer: ``words`` cuts punctuation off words, and sentences at . ! ? before a blank; ``blanks`` cuts at
            U+0020 alone, and sentences at line ends.
        column: the column, for errors.
        listed: each of ``lines`` is a sentence.
    """
    source = "\n".join(lines)
    pattern = r"\n|\Z" if listed or tokenizer == BLANKS else r"[.!?]\s+|\n|\Z"
    sentences = []
    for start, end in pairwise([0, *(match.end() for match in re.finditer(pattern, source))]):
        line = source[start:end].removesuffix("\n")
        spans = cut_words(line) if tokenizer == WORDS else [match.span() for match in re.finditer("[^ ]+", line)]
        if spans or listed:
            sentences.append([(start + first, start + last) for first, last in spans])
    return make_text(source, sentences, column, source if tokenizer == BLANKS else None)


def parse_text(value: Any, tokenizer: str, column: str) -> Text:
    """Parse a cell of running text, or of sentences as a list; see `cut_text`. A text that is cut already stays.

    Raises:
        DataError: the cell has another form.
    """
    if isinstance(value, Text):
        return value
    sentences = parse_strings(value)
    listed = isinstance(sentences, list)
    lines = sentences if listed else [value]
    if not all(isinstance(line, str) for line in lines) or has_half_character(lines):
        raise DataError(f"expected a text, or a list of sentences, found {show(value)}", field=column)
    for number, line in enumerate(lines if listed else ()):
        if "\n" in line:
            raise DataError(f"expected a sentence of one line, found {show(line)}", field=f"{column}[{number}]")
    return cut_text(lines, tokenizer, column, listed=listed)


def parse_tokens(value: Any, column: str) -> Text:
    """Parse a cell of tokens, or of sentences as lists of tokens.

    Raises:
        DataError: the cell has another form, or a token is empty or contains a blank.
    """
    tokens = parse_literal(value)
    if not isinstance(tokens, list):
        message = f"expected a list of tokens (`text` takes running text), found {show(value)}"
        raise DataError(message, field=column)
    nested = bool(tokens) and all(isinstance(sentence, list) for sentence in tokens)
    places, at = list[list[tuple[int, int]]](), 0
    for number, sentence in enumerate(tokens if nested else [tokens]):
        places.append([])
        for place, token in enumerate(sentence):
            odd = not isinstance(token, str) or not token or " " in token or "\n" in token
            if odd or has_half_character(token):
                where = f"{column}[{number}][{place}]" if nested else f"{column}[{place}]"
                raise DataError(f"expected a token without a blank, found {show(token)}", field=where)
            places[-1].append((at, at + len(token)))
            at += len(token) + 1
    return make_text(
        "\n".join(" ".join(sentence) for sentence in (tokens if nested else [tokens]) if sentence), places, column
    )


# -- cells ------------------------------------------------------------------------------------------------------------


def get_cell(row: Cells, column: str) -> Any:
    """Return the value of a column; ``a.b`` is the field b of column a, or of each element of a list.

    Raises:
        DataError: there is no such column.
    """

    def get_member(value: Any, name: str) -> Any:
        if isinstance(value, list):
            return [get_member(each, name) for each in value]
        if not isinstance(value, Mapping) or name not in value:
            hint = describe_separator(list(row)) if len(row) == 1 else ""
            near = "" if hint or not (similar := find_similar(column, list(row))) else f": did you mean {similar!r}?"
            raise DataError(f"expected the column, found {show(list(row), 200)}{hint}{near}", field=column)
        return value[name]

    if column in row:
        return row[column]
    value: Any = row
    for name in column.split("."):
        value = get_member(value, name)
    return value


# strings, words and numbers, brackets and commas of a list in Python's or numpy's notation
LIST_PARTS = re.compile(r"""[uU]?'(?:[^'\\]|\\.)*'|[uU]?"(?:[^"\\]|\\.)*"|[^\s\[\]{}(),:'"]+|\S""", re.DOTALL)


def parse_literal(text: Any) -> Any:
    """Return the list in a cell of text, else the cell as it is.

    The list is in the notation of JSON, of Python (as pandas writes it), or of numpy, which writes no commas:
    ``['a' 'b']``, ``[0 1 1]``.
    """
    if not isinstance(text, str) or not text.lstrip().startswith(("[", "{")):
        return text
    if len(text) > MAX_LITERAL or is_nested_deeper(text):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    literal, parts = text.strip(), LIST_PARTS.findall(text)
    # two values without a comma between: Python would join the strings 'a' 'b' to one
    after = [one not in "[{(,:" and other not in "]}),:" for one, other in pairwise(parts)]
    if any(after):
        if "," in parts or "..." in parts:  # a mixture of notations, or an array that numpy shortened
            return text
        literal = "".join(part + "," * comma for part, comma in zip(parts, [*after, False], strict=True))
    try:
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def parse_strings(value: Any) -> Any:
    """Return the list of strings in a cell of text; other cells as they are: ``[2019]`` is a text."""
    parsed = parse_literal(value)
    return parsed if isinstance(parsed, list) and all(isinstance(each, str) for each in parsed) else value


def is_empty(value: Any) -> bool:
    """Return True for a cell without content: null, NaN, blanks, an empty list or object."""
    return value is None or value in ([], {}) or value != value or (isinstance(value, str) and not value.strip())


def have_same_letters(one: str, other: str) -> bool:
    """Return True if two texts are equal but for blanks."""
    return "".join(one.split()) == "".join(other.split())


def parse_word(value: Any, column: str) -> str:
    """Return a cell with one string or integer as a string.

    Raises:
        DataError: the cell has another type.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or has_half_character(value):
        raise DataError(f"expected a string or a whole number, found {show(value)}", field=column)
    return value


def parse_label(value: Any, names: Sequence[str] | None, column: str) -> str:
    """Return a label: a name, a number, or a number of ``names``, the names of a ClassLabel.

    Raises:
        DataError: the cell has no label, or an invalid one.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of integers with a gap has floats
    if names is not None and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    if names is not None and value not in names:
        raise DataError(f"expected one of {show(list(names), 200)}, found {show(value)}", field=column)
    if isinstance(value, bool):
        return str(value)
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        raise DataError(f"expected a label, found {show(value)}", field=column)
    return parse_word(value, column)


def parse_labels(value: Any, names: Sequence[str] | None, column: str) -> list[str]:
    """Return the labels of a cell, one or several; see `parse_label`.

    Raises:
        DataError: the cell has no label, or an invalid one.
    """
    value = parse_literal(value)
    if value == []:
        raise DataError("expected a label, found an empty list", field=column)
    if isinstance(value, list):
        return [parse_label(each, names, f"{column}[{at}]") for at, each in enumerate(value)]
    return [parse_label(value, names, column)]
