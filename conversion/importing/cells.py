"""What stands in a row's cells: columns below columns, lists that a CSV holds as text, and labels."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import brackets_nest, has_half_character

Row = Mapping[str, Any]
LONGEST_LITERAL = 1 << 20


def cell(row: Row, column: str) -> Any:
    """The value of a column; ``a.b`` is the field b of the column a, or of each of its elements where it is a list.

    Raises:
        DataError: there is no such column.
    """
    if column in row:
        return row[column]
    value: Any = row
    for name in column.split("."):
        value = _member(value, name, row, column)
    return value


def _member(value: Any, name: str, row: Row, column: str) -> Any:
    if isinstance(value, list):
        return [_member(each, name, row, column) for each in value]
    if not isinstance(value, Mapping) or name not in value:
        raise DataError(f"expected the column, found {shown(list(row), 200)}", rule="key-missing", field=column)
    return value[name]


def literal(text: str) -> Any:
    """The list that a cell of text holds, as JSON or as Python writes it (pandas does); else the text itself."""
    if not text.lstrip().startswith(("[", "{")) or len(text) > LONGEST_LITERAL:
        return text
    if brackets_nest(text):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def word(value: Any, column: str) -> str:
    """A cell that is one string, or a whole number.

    Raises:
        DataError: it is something else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or has_half_character(value):
        raise DataError(f"expected a string or a whole number, found {shown(value)}", rule="type", field=column)
    return value


def labels_of(value: Any, names: Sequence[str] | None, column: str) -> list[str]:
    """The label of a cell, or the labels where it holds several.

    Args:
        value: a name, a number, or a list of them.
        names: those of a ClassLabel's numbers; None where the column is none.
        column: for errors.

    Raises:
        DataError: a cell without a label, or with something else.
    """
    value = literal(value) if isinstance(value, str) else value
    if isinstance(value, list):
        if not value:
            raise DataError("expected a label, found an empty list", rule="label-missing", field=column)
        return [_label(each, names, f"{column}[{at}]") for at, each in enumerate(value)]
    return [_label(value, names, column)]


def _label(value: Any, names: Sequence[str] | None, place: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of numbers with a gap is one of floats
    if names is not None and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < len(names):
            message = f"expected a label, 0 to {len(names) - 1}, found {value}"
            raise DataError(message, rule="label-unknown", field=place)
        return names[value]
    if names is not None and value not in names:
        message = f"expected one of {shown(list(names), 200)}, found {shown(value)}"
        raise DataError(message, rule="label-unknown", field=place)
    if isinstance(value, bool):
        return str(value)
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        raise DataError(f"expected a label, found {shown(value)}", rule="label-missing", field=place)
    return word(value, place)


def majority_label(labels: Sequence[str]) -> str | None:
    """The label that more annotators gave than any other; None where several tie."""
    counts = Counter(labels).most_common(2)
    return None if len(counts) == 2 and counts[0][1] == counts[1][1] else counts[0][0]


def in_order(labels: set[str]) -> list[str]:
    """Sorted by value: by number where all are whole numbers, else as text."""
    try:
        return sorted(labels, key=lambda label: (int(label), label))
    except ValueError:
        return sorted(labels)
