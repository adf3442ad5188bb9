"""Rows in, whatever they come as: lists, a Dataset, an Arrow table; what is wrong with them; and how modules keep them.

Ids are compared as strings, rows may come in any order, and every complaint names the row's id and the field. What is
wrong is gathered first: one ValueError names the first ten offenders and says how many there are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

MOST_SHOWN = 10
ID_FIELDS = ("annotation_id", "id", "sent_id")
Row = Mapping[str, Any]


def found(value: object, limit: int = 60) -> str:
    """The value as an error shows it, cut."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class Faults:
    """What is wrong with the input: the first ten are kept, all are counted."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.total = 0

    def say(self, side: str, name: object, field: str, message: str) -> None:
        """``side`` is "prediction" or "reference", ``name`` the row's id."""
        self.total += 1
        if len(self.kept) < MOST_SHOWN:
            where = f"{side} {found(name)}" + (f": {field}" if field else "")
            self.kept.append(f"{where}: {message}")

    def stop(self) -> None:
        """Raise a ValueError if anything has been said."""
        if self.total:
            more = [f"… and {self.total - len(self.kept)} more ({self.total} in all)"]
            raise ValueError("\n".join(self.kept + (more if self.total > len(self.kept) else [])))


# ------------------------------------------------------------------------------------------------- rows of any kind
def _columns_to_rows(columns: Mapping[str, Sequence[Any]], side: str) -> list[Any]:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{side}s: expected columns of one length, found {found(lengths)}")
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _cells(column: Any) -> list[Any]:
    """An Arrow column as Python values; lists of strings and numbers are cut out of one flat list, which is fast."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        flat = _cells(column.flatten())
        sizes = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(sizes).tolist()
        lists = [flat[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
        if column.null_count:
            valid = column.is_valid().to_pylist()
            lists = [one if there else None for one, there in zip(lists, valid, strict=True)]  # type: ignore[misc]
        return lists
    if (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)) and not column.null_count:
        # each distinct string is made once: less to allocate, and to hash later
        encoded = column.dictionary_encode()
        return np.array(encoded.dictionary.to_pylist(), dtype=object)[encoded.indices.to_numpy()].tolist()
    return column.to_pylist()


def _table_rows(table: Any, side: str) -> list[Any]:
    return _columns_to_rows({name: _cells(table.column(name)) for name in table.column_names}, side)


def rows_of(data: Any, side: str) -> list[Row]:
    """The rows of a list of dicts, a Dataset (any format; ClassLabel numbers become their names), an Arrow table or
    struct array, a DataFrame, a dict of columns, or any iterable of dicts.

    Raises:
        ValueError: for something else, or a row that is no dict.
    """
    if hasattr(data, "features") and hasattr(data, "with_format"):
        whole = hasattr(data, "__getitem__")
        plain = data.with_format("arrow") if whole else data.with_format(None)
        names = {name: feature.names for name, feature in (data.features or {}).items() if hasattr(feature, "int2str")}
        rows: list[Any] = _table_rows(plain[:], side) if whole else [dict(row) for row in plain]
        for name, labels in names.items():
            for row in rows:
                value = row.get(name)
                if isinstance(value, int) and 0 <= value < len(labels):
                    row[name] = labels[value]
        return rows
    if hasattr(data, "to_pylist"):
        if hasattr(data, "column_names"):
            return _table_rows(data, side)
        data = data.to_pylist()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    elif isinstance(data, Mapping):
        for name, column in data.items():
            if not isinstance(column, Sequence) or isinstance(column, (str, bytes)):
                raise ValueError(f"{side}s: expected a list of rows, found one object with {found(name)}")
        return _columns_to_rows(data, side)
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise ValueError(f"{side}s: expected a list of rows, found {found(data)}")
    rows = list(data)
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"{side}s[{at}]: expected an object, found {found(row)}")
    return rows


def by_id(rows: Sequence[Row], side: str, faults: Faults, id_fields: Sequence[str] = ID_FIELDS) -> dict[str, Row]:
    """{id: row}, in the rows' order; an id is a string or an integer, compared as a string.

    A missing or ill-typed id, or one that stands twice, is a fault.
    """
    named: dict[str, Row] = {}
    for at, row in enumerate(rows):
        value: Any = next((row[field] for field in id_fields if row.get(field) is not None), None)
        if hasattr(value, "item"):
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            faults.say(side, at, id_fields[0], f"row {at}: expected an id (string or integer), found {found(value)}")
            continue
        name = str(value)
        if name in named:
            faults.say(side, name, "", f"row {at}: expected each id once, found it twice")
            continue
        named[name] = row
    return named


def joined(predictions: Any, references: Any, faults: Faults) -> list[tuple[str, Row, Row]]:
    """(id, prediction, reference) in the references' order; faults for what stands on one side alone.

    Raises:
        ValueError: one side is missing or empty.
    """
    both = {}
    for side, data in (("prediction", predictions), ("reference", references)):
        if data is None:
            raise ValueError(f"expected {side}s, found none")
        rows = rows_of(data, side)
        if not rows:
            raise ValueError(f"expected {side}s, found an empty list")
        both[side] = by_id(rows, side, faults)
    for name in both["prediction"]:
        if name not in both["reference"]:
            faults.say("prediction", name, "", "expected a reference of this id, found none")
    pairs = []
    for name, reference in both["reference"].items():
        if name in both["prediction"]:
            pairs.append((name, both["prediction"][name], reference))
        else:
            faults.say("reference", name, "", "expected a prediction of this id, found none")
    return pairs


def column(by: str | None, rows: Sequence[Sequence[Row | None]]) -> list[Any] | None:
    """The values of column ``by``: each instance's rows are asked in turn, and the first that has it answers.

    Raises:
        ValueError: no row of the first instance has the column, or an instance lacks it.
    """
    if by is None:
        return None
    values = []
    for at, sources in enumerate(rows):
        holder = next((row for row in sources if row is not None and by in row), None)
        if holder is None:
            known = sorted({key for row in sources if row is not None for key in row})
            raise ValueError(f"by: expected a column of the rows, found {by!r} not in row {at} ({', '.join(known)})")
        values.append(holder[by])
    return values


# ----------------------------------------------------------------------------------------------------- typed cells
def as_list(value: Any) -> list[Any] | None:
    """The value as a list (tuples and numpy arrays too), or None where it is none."""
    if isinstance(value, list):
        return value
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:  # type: ignore[arg-type]
        return value.tolist()
    return None


def as_number(value: Any) -> float | None:
    """The value as a finite float, or None where it is no finite number."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def optional_fields(rows: Sequence[tuple[str, Row]], fields: Sequence[str], side: str, faults: Faults) -> set[str]:
    """Which optional fields there are; the first row that has one where others have not (or lacks it) is a fault.

    A field that is null is absent.
    """
    present = set()
    for field in fields:
        has = [row.get(field) is not None for _, row in rows]
        if any(has):
            present.add(field)
            if not all(has):
                deviating = has.index(not has[0])
                state = "none, where the rows before it have it" if has[0] else "it, where the rows before it have none"
                faults.say(side, rows[deviating][0], field, f"expected it in all rows or in none, found {state}")
    return present


# ------------------------------------------------------------------------------------------------ evaluate's side
class RowBatches:
    """A mixin before ``evaluate.Metric``: rows are kept as they come and are handed over at ``compute``.

    With one process nothing is written and nothing is converted: lists, Datasets and Arrow tables go straight
    through. With several processes (``num_process``) rows travel as JSON strings through evaluate's shared files. The
    class that uses it defines ``_score(predictions, references, **settings)``.
    """

    num_process: int
    _score: Callable[..., dict[str, Any]]

    def __len__(self) -> int:
        """How many rows are kept."""
        held = self.__dict__.get("_held")
        return sum(len(batch) for batch in held[0]) if held else super().__len__()  # type: ignore[misc]

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Keep a batch of predictions and of references; both may come in any order and in different batches.

        Args:
            predictions: rows, see below.
            references: rows, see below.
        """
        if self.num_process > 1:
            self._write(predictions, references)
            return
        held = self.__dict__.setdefault("_held", ([], []))
        for side, batch in zip(held, (predictions, references), strict=True):
            if batch is not None:
                # a list is copied (not its rows): the caller may clear it for the next batch
                side.append(list(batch) if isinstance(batch, (list, tuple)) else batch)

    def add(
        self, *, prediction: Any = None, reference: Any = None, predictions: Any = None, references: Any = None
    ) -> None:
        """Keep one prediction and one reference.

        Args:
            prediction: a row, see below.
            reference: a row, see below.
            predictions, references: the same under the names that ``evaluate.combine`` uses.
        """
        one = [
            prediction if prediction is not None else predictions,
            reference if reference is not None else references,
        ]
        rows = [None if row is None else [row] for row in one]
        self.add_batch(predictions=rows[0], references=rows[1])

    def compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any] | None:
        """The scores of all that was added and of what is given here.

        Args:
            predictions: rows, see below.
            references: rows, see below.
            **settings: see below; an unknown one is a TypeError.

        Returns:
            A flat dict of plain Python numbers; None on processes other than the first.

        Raises:
            ValueError: wrong input; it names the instance and the field.
        """
        if predictions is not None or references is not None:
            self.add_batch(predictions=predictions, references=references)
        if self.num_process > 1:
            return super().compute(**settings)  # type: ignore[misc]
        held = self.__dict__.pop("_held", ([], []))
        return self._score(_together(held[0], "prediction"), _together(held[1], "reference"), **settings)

    def _write(self, predictions: Any, references: Any) -> None:
        """Rows as JSON strings into evaluate's file; the shorter side is filled with empty strings."""
        sides = [
            [json.dumps(row, default=_plain) for row in rows_of(data, side)] if data is not None else []
            for data, side in ((predictions, "prediction"), (references, "reference"))
        ]
        size = max(map(len, sides))
        padded = [side + [""] * (size - len(side)) for side in sides]
        super().add_batch(predictions=padded[0], references=padded[1])  # type: ignore[misc]

    def _compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any]:
        """What evaluate calls with the strings of all processes."""
        sides = [[json.loads(text) for text in side if text] for side in (predictions or [], references or [])]
        return self._score(sides[0] or None, sides[1] or None, **settings)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"expected JSON values, found {found(value)}")


def _together(batches: Sequence[Any], side: str) -> Any:
    """The batches as one; a single batch stays the object it is."""
    if not batches:
        return None
    if len(batches) == 1:
        return batches[0]
    return [row for batch in batches for row in rows_of(batch, side)]
