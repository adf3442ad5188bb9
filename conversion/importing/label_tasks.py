"""Reading of label cells: one class a row, several labels a row, or a number.

Several labels stand in a list (``["joy", "pride"]``), in an object (``{"joy": 1, "fear": 0}``), or in a column each
(``joy,fear``, with 0 and 1). A list may also hold one label of each annotator. `find_label_task` decides by the rows:
annotators repeat labels, and there are equally many of them in each row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from eraser_hub.records.errors import DataError, show
from eraser_hub.schema.label_tasks import CLASSIFICATION, MULTI_LABEL, REGRESSION, LabelTask

from .reader import locate
from .sources import Source
from .texts import Row, get_cell, parse_labels, parse_literal, sort_labels

KEEP: Final = "keep"
AUTO: Final = "auto"
Task = Literal["auto", "classification", "multi-label", "regression"]
AbsentLabels = Literal["keep", "drop"]
_DECIMAL = re.compile(r"\s*[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?\s*")
_FLAGS: dict[object, bool] = {
    **dict.fromkeys((0, "0", "false", "False", "", None), False),
    **dict.fromkeys((1, "1", "true", "True"), True),
}


@dataclass(frozen=True, slots=True)
class Labelling:
    """The task of the labels of an import.

    Attributes:
        task: the task.
        names: of a multi-label corpus, its labels in order.
        note: how the task was found; "" if it was given, or is classification.
    """

    task: LabelTask
    names: tuple[str, ...] = ()
    note: str = ""


def find_labelling(sources: Mapping[str, Source], column: str, task: str) -> Labelling:
    """Return the task of the labels of all splits.

    Args:
        sources: split -> rows.
        column: the column of the labels, or several columns of 0 and 1, separated by commas.
        task: a task, or ``auto``.

    Raises:
        DataError: the task is unknown; a label is invalid; columns of 0 and 1 for another task than multi-label.
    """
    if task not in get_args(Task):
        message = f"expected one of {', '.join(get_args(Task))}; found {show(task)}"
        raise DataError(message, rule="option-value", argument="task")
    columns = [column]
    if "," in column:  # several columns, unless one has this name
        first = next((row for source in sources.values() for row in source.rows()), None)
        columns = columns if first is not None and column in first.cells else [one.strip() for one in column.split(",")]
    if len(columns) > 1 and task not in (AUTO, MULTI_LABEL):
        message = f"expected one column of labels for the task {task}, found {len(columns)}"
        raise DataError(message, rule="option-conflict", argument="label")
    note = ""
    if task == AUTO:
        task, reason = (MULTI_LABEL, "a column a label") if len(columns) > 1 else _find_task(sources, column)
        note = f"task: {task} ({reason}); `task` says otherwise" if task != CLASSIFICATION else ""
    if task == MULTI_LABEL:
        return Labelling(MULTI_LABEL, tuple(columns) if len(columns) > 1 else _list_labels(sources, column), note)
    return Labelling(REGRESSION if task == REGRESSION else CLASSIFICATION, (), note)


def _iterate_cells(sources: Mapping[str, Source], column: str) -> Iterable[tuple[Source, int, Row, Any]]:
    for source in sources.values():
        for row in source.rows():
            with locate(source.name, row.number):
                cell = get_cell(row.cells, column)
            yield source, row.number, row.cells, parse_literal(cell)


def _find_task(sources: Mapping[str, Source], column: str) -> tuple[LabelTask, str]:
    """Return the task by the rows, and the reason; classification as soon as a row rules the others out."""
    sizes: set[int] = set()
    decimals = False
    for source, _, cells, cell in _iterate_cells(sources, column):
        if isinstance(cell, Mapping):
            return MULTI_LABEL, "an object of labels"
        if isinstance(cell, list):
            # a.b of a list of objects: one label of each annotator
            if (column not in cells and "." in column) or len(set(map(repr, cell))) < len(cell):
                return CLASSIFICATION, ""
            sizes.add(len(cell))
        elif column in source.classes or not (cell is None or _is_decimal(cell)):
            return CLASSIFICATION, ""
        else:
            decimals |= cell is not None and not float(cell).is_integer()
    if len(sizes) > 1 and max(sizes) > 1 and not decimals:
        return MULTI_LABEL, "lists of different lengths, no label twice in a row"
    return (REGRESSION, "numbers with decimals") if decimals and not sizes else (CLASSIFICATION, "")


def _is_decimal(cell: object) -> bool:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return False
    try:
        return (not isinstance(cell, str) or _DECIMAL.fullmatch(cell) is not None) and math.isfinite(float(cell))
    except OverflowError:  # an integer that no float holds
        return False


def _list_labels(sources: Mapping[str, Source], column: str) -> tuple[str, ...]:
    """Return the labels of a multi-label corpus: a ClassLabel's names, or those of the rows, sorted."""
    found: set[str] = set()
    for source, number, _, cell in _iterate_cells(sources, column):
        if names := source.classes.get(column):
            return names
        with locate(source.name, number):
            found.update(map(str, cell) if isinstance(cell, Mapping) else _parse_list(cell, None, column))
    return tuple(sort_labels(found))


def _parse_list(cell: Any, names: Sequence[str] | None, column: str) -> list[str]:
    if cell is None or cell == "" or cell == []:
        return []
    labels = parse_labels(cell, names, column)
    if len(set(labels)) < len(labels):
        message = f"expected each label once for the task {MULTI_LABEL}, found {show(labels)}"
        raise DataError(message, rule="label-unknown", field=column)
    return labels


def read_present_labels(cells: Row, column: str, names: Sequence[str], classes: Sequence[str] | None) -> list[str]:
    """Return the labels that a row of a multi-label corpus has, in the order of the row.

    Args:
        cells: the row.
        column: the column of the labels, or several, as `find_labelling` takes it.
        names: the labels of the corpus.
        classes: names of a ClassLabel's numbers.

    Raises:
        DataError: a label is invalid or stands twice; a flag is neither 0 nor 1.
    """
    if column not in cells and "," in column:
        return [name for name in names if _parse_flag(get_cell(cells, name), name)]
    cell = parse_literal(get_cell(cells, column))
    if isinstance(cell, Mapping):
        return [str(name) for name, flag in cell.items() if _parse_flag(flag, f"{column}.{name}")]
    return _parse_list(cell, classes, column)


def _parse_flag(value: object, field: str) -> bool:
    if not isinstance(value, bool | int | float | str | None) or value not in _FLAGS:
        raise DataError(f"expected 0 or 1, found {show(value)}", rule="choice", field=field)
    return _FLAGS[value]


def read_number(cell: Any, column: str) -> str:
    """Return the decimal text of a regression's gold value.

    Raises:
        DataError: the cell is no finite number; with the task's name.
    """
    cell = parse_literal(cell)
    if not _is_decimal(cell):
        missing = cell is None or cell == ""
        message = f"expected one finite number for the task {REGRESSION}, found {show(cell)}"
        raise DataError(message, rule="label-missing" if missing else "type", field=column)
    return repr(float(cell) + 0.0)


def find_label_marks(
    value: Any, present: Sequence[str], names: Sequence[str], *, pairs: bool
) -> tuple[Mapping[str, Any], bool]:
    """Return label -> its rationale of a cell, and True if all labels share the one that there is.

    Args:
        value: the cell of marks.
        present: the labels of the row, in its order.
        names: the labels of the corpus.
        pairs: True if a pair of numbers is a span, and no rationale of its own.
    """
    value = parse_literal(value)
    if isinstance(value, Mapping) and value and set(value) <= set(names):
        return value, False
    if isinstance(value, list) and len(value) == len(present) > 1:
        lists = [each for each in value if each is not None]
        spans = (len(each) == 2 and all(type(one) is int for one in each) for each in lists if isinstance(each, list))
        if all(isinstance(each, list) for each in lists) and not (pairs and any(spans)):
            return dict(zip(present, value, strict=True)), False
    return dict.fromkeys(present, value), value not in (None, "", [], {})
