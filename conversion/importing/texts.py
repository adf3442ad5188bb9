"""Cells of an imported row: texts as tokens with their offsets, labels, lists in CSV cells, and nested columns.

U+0020 separates tokens and line ends separate sentences; a tokenizer cuts other texts.
"""

from __future__ import annotations

import ast
import json
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from eraser_hub.conversion.readers import has_half_character, is_nested_deeper
from eraser_hub.records.errors import DataError, get_first_line, show

from .reader import describe_separator

Row = Mapping[str, Any]
LONGEST_LITERAL = 1 << 20
Span = tuple[int, int]
TokenCutter = Callable[[str], list[Span]]
"""Function from a line to the (start, end) of its tokens, in order."""

BLANKS, WHITESPACE = "blanks", "whitespace"


@dataclass(frozen=True)
class Text:
    """One document of a row.

    Attributes:
        source: the text that character offsets count in.
        tokens: its tokens.
        places: (start, end) of each token in ``source``.
        lines: number of tokens before each sentence, ascending.
        document: the written document: tokens separated by blanks, sentences by line ends.
        name: the document's own id; "" if it has none.
    """

    source: str
    tokens: list[str]
    places: list[Span]
    lines: list[int]
    document: str
    name: str = ""

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def _ends(self) -> list[int]:
        return [end for _, end in self.places]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self.places]

    def find_covered(self, start: int, end: int) -> Span:
        """Return the tokens that the characters [start, end) touch, as [first, last + 1)."""
        first, stop = bisect_right(self._ends, start), bisect_left(self._starts, end)
        return first, max(first, stop)

    def is_widened(self, start: int, end: int) -> bool:
        """Return True if the tokens that touch [start, end) have characters outside it."""
        first, stop = self.find_covered(start, end)
        return first < stop and (self._starts[first] < start or self._ends[stop - 1] > end)

    def find_sentences(self, start: int, end: int) -> Span:
        """Return the sentences that the tokens [start, end) lie in, as [first, last + 1)."""
        return bisect_right(self.lines, start) - 1, bisect_left(self.lines, end)

    def get_sentence(self, number: int) -> Span:
        """Return the tokens of a sentence."""
        return self.lines[number], (*self.lines[1:], len(self.tokens))[number]


def split_at_blanks(line: str) -> list[Span]:
    """Split a line at U+0020 alone."""
    return [match.span() for match in re.finditer("[^ ]+", line)]


def split_at_whitespace(line: str) -> list[Span]:
    """Split a line at all blanks of Unicode."""
    return [match.span() for match in re.finditer(r"\S+", line)]


def get_tokenizer(name: str) -> TokenCutter:
    """Return a tokenizer by name: blanks, whitespace, or a folder with a tokenizer.json.

    Raises:
        DataError: the name is none of these.
    """
    cuts = {BLANKS: split_at_blanks, WHITESPACE: split_at_whitespace}
    return cuts[name] if name in cuts else _load_tokenizer(Path(name))


def _load_tokenizer(folder: Path) -> TokenCutter:
    """Load a tokenizer of sub-words; text that it skips (unknown characters) becomes separate tokens."""
    path = folder if folder.is_file() else folder / "tokenizer.json"
    if not path.is_file():
        expected = f"{WHITESPACE}, or a folder with a tokenizer.json"
        raise DataError(f"expected {expected}, found {show(str(folder))}", argument="tokenizer")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        message = "a tokenizer's folder wants `pip install tokenizers`"
        raise DataError(message, argument="tokenizer") from None
    try:
        tokenizer: Any = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exceptions
        raise DataError(f"cannot be read as a tokenizer ({get_first_line(error)})", file=path) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda line: list(_merge_pieces(line, tokenizer.encode(line, add_special_tokens=False).offsets))


def _merge_pieces(line: str, offsets: list[Span]) -> Iterator[Span]:
    """Yield sub-words without outer blanks, with pieces of one character merged, and the text between them."""
    place = 0
    for start, end in [*offsets, (len(line), len(line))]:
        start = max(start, place)
        yield from ((place + first, place + last) for first, last in split_at_whitespace(line[place:start]))
        part = line[start:end]
        if part.strip():
            yield start + len(part) - len(part.lstrip()), start + len(part.rstrip())
        place = max(place, end)


def parse_text(value: Any, cut: TokenCutter, column: str) -> Text:
    """Parse a cell of running text, or of sentences as a list.

    Raises:
        DataError: the cell has another form, or a token contains a blank.
    """
    sentences = parse_strings(value)
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        sentences = [value]
    if not all(isinstance(sentence, str) for sentence in sentences) or has_half_character(sentences):
        raise DataError(f"expected a text, or a list of sentences, found {show(value)}", field=column)
    if len(sentences) > 1 or isinstance(value, list):
        for number, sentence in enumerate(sentences):
            if "\n" in sentence or not sentence.strip():
                message = f"expected a sentence of one line, found {show(sentence)}"
                raise DataError(message, field=f"{column}[{number}]")
    return _make_text(str("\n".join(sentences)), cut, column)


def _make_text(source: str, cut: TokenCutter, column: str) -> Text:
    tokens: list[str] = []
    places: list[Span] = []
    lines: list[int] = []
    written: list[str] = []
    place = 0
    for line in source.split("\n"):
        spans = cut(line)
        words = [line[start:end] for start, end in spans]
        for one in words:
            if " " in one:
                raise DataError(f"expected tokens without a blank, found {show(one)}", field=column)
        lines += [len(tokens)] if words else []
        written.append(line if cut is split_at_blanks else " ".join(words))
        tokens += words
        places += [(place + start, place + end) for start, end in spans]
        place += len(line) + 1
    return Text(source, tokens, places, lines, "\n".join(written))


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
    sentences = [sentence for sentence in tokens if sentence] if nested else [tokens]
    for number, sentence in enumerate(sentences):
        for at, token in enumerate(sentence):
            odd = not isinstance(token, str) or not token or " " in token or "\n" in token
            if odd or has_half_character(token):
                place = f"{column}[{number}][{at}]" if nested else f"{column}[{at}]"
                raise DataError(f"expected a token without a blank, found {show(token)}", field=place)
    return _make_text("\n".join(" ".join(sentence) for sentence in sentences), split_at_blanks, column)


# -- cells ------------------------------------------------------------------------------------------------------------


def get_cell(row: Row, column: str) -> Any:
    """Return the value of a column; ``a.b`` is the field b of column a, or of each element of a list.

    Raises:
        DataError: there is no such column.
    """
    if column in row:
        return row[column]
    value: Any = row
    for name in column.split("."):
        value = _get_member(value, name, row, column)
    return value


def _get_member(value: Any, name: str, row: Row, column: str) -> Any:
    if isinstance(value, list):
        return [_get_member(each, name, row, column) for each in value]
    if not isinstance(value, Mapping) or name not in value:
        hint = describe_separator(list(row)) if len(row) == 1 else ""
        raise DataError(f"expected the column, found {show(list(row), 200)}{hint}", field=column)
    return value[name]


# strings, words and numbers, brackets and commas of a list in Python's or numpy's notation
_LIST_PARTS = re.compile(r"""[uU]?'(?:[^'\\]|\\.)*'|[uU]?"(?:[^"\\]|\\.)*"|[^\s\[\]{}(),:'"]+|\S""", re.DOTALL)


def parse_literal(text: Any) -> Any:
    """Return the list in a cell of text, else the cell as it is.

    The list is in the notation of JSON, of Python (as pandas writes it), or of numpy, which writes no commas:
    ``['a' 'b']``, ``[0 1 1]``.
    """
    if not isinstance(text, str) or not text.lstrip().startswith(("[", "{")):
        return text
    if len(text) > LONGEST_LITERAL or is_nested_deeper(text):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    literal, parts = text.strip(), _LIST_PARTS.findall(text)
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


def parse_labels(value: Any, names: Sequence[str] | None, column: str) -> list[str]:
    """Return the labels of a cell, one or several.

    Args:
        value: a name, a number, or a list of them.
        names: names of a ClassLabel's numbers; None for another column.
        column: name of the column, for errors.

    Raises:
        DataError: the cell has no label, or an invalid one.
    """
    value = parse_literal(value)
    if isinstance(value, list):
        if not value:
            raise DataError("expected a label, found an empty list", field=column)
        return [_parse_label(each, names, f"{column}[{at}]") for at, each in enumerate(value)]
    return [_parse_label(value, names, column)]


def _parse_label(value: Any, names: Sequence[str] | None, place: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of integers with a gap has floats
    if names is not None and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < len(names):
            message = f"expected a label, 0 to {len(names) - 1}, found {value}"
            raise DataError(message, field=place)
        return names[value]
    if names is not None and value not in names:
        message = f"expected one of {show(list(names), 200)}, found {show(value)}"
        raise DataError(message, field=place)
    if isinstance(value, bool):
        return str(value)
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        raise DataError(f"expected a label, found {show(value)}", field=place)
    return parse_word(value, place)


def find_majority_label(labels: Sequence[str]) -> str | None:
    """Return the most frequent label; None if several tie."""
    counts = Counter(labels).most_common(2)
    return None if len(counts) == 2 and counts[0][1] == counts[1][1] else counts[0][0]


def sort_labels(labels: Iterable[str]) -> list[str]:
    """Sort labels: by number if all are integers, else as text."""
    try:
        return sorted(labels, key=lambda label: (int(label), label))
    except ValueError:
        return sorted(labels)
