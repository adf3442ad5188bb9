"""Rows in, whatever they come as: lists, a Dataset, an Arrow table; what is wrong with them; and how modules keep them.

Ids are compared as strings, rows may come in any order, and every complaint names the row's id and the field. What is
wrong is gathered first: one ValueError names the first ten offenders and says how many there are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from .batches import Batches, Measured
from .clusters import NONE, Clusters, by_items
from .offences import Offences, cut

ID_FIELDS = ("annotation_id", "id", "sent_id")
Row = Mapping[str, Any]


# ------------------------------------------------------------------------------------------------- rows of any kind
def _columns_to_rows(columns: Mapping[str, Sequence[Any]], side: str) -> list[Any]:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{side}s: expected columns of one length, found {cut(lengths)}")
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def rows_of(data: Any, side: str) -> list[Row]:
    """The rows of a list of dicts, a Dataset (any format; ClassLabel numbers become their names), an Arrow table or
    struct array, a DataFrame, a dict of columns, or any iterable of dicts.

    Raises:
        ValueError: for something else, or a row that is no dict.
    """
    if hasattr(data, "features") and hasattr(data, "with_format"):
        whole = hasattr(data, "__getitem__")
        rows: list[Any] = data.with_format("arrow")[:].to_pylist() if whole else [*map(dict, data.with_format(None))]
        names = {name: feature.names for name, feature in (data.features or {}).items() if hasattr(feature, "int2str")}
        for name, labels in names.items():
            for row in rows:
                value = row.get(name)
                if isinstance(value, int) and 0 <= value < len(labels):
                    row[name] = labels[value]
        return rows
    if hasattr(data, "to_pylist"):
        data = data.to_pylist()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    elif isinstance(data, Mapping):
        for name, column in data.items():
            if not isinstance(column, Sequence) or isinstance(column, (str, bytes)):
                raise ValueError(f"{side}s: expected a list of rows, found one object with {cut(name)}")
        return _columns_to_rows(data, side)
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise ValueError(f"{side}s: expected a list of rows, found {cut(data)}")
    rows = list(data)
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"{side}s[{at}]: expected an object, found {cut(row)}")
    return rows


def by_id(rows: Sequence[Row], side: str, offences: Offences, id_fields: Sequence[str] = ID_FIELDS) -> dict[str, Row]:
    """{id: row}, in the rows' order; an id is a string or an integer, compared as a string.

    A missing or ill-typed id, or one that stands twice, is a fault.
    """
    named: dict[str, Row] = {}
    for at, row in enumerate(rows):
        value: Any = next((row[field] for field in id_fields if row.get(field) is not None), None)
        if hasattr(value, "item"):
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            offences.say_of(side, at, id_fields[0], f"row {at}: expected an id (string or integer), found {cut(value)}")
            continue
        name = str(value)
        if name in named:
            offences.say_of(side, name, "", f"row {at}: expected each id once, found it twice")
            continue
        named[name] = row
    return named


def joined(predictions: Any, references: Any, offences: Offences) -> list[tuple[str, Row, Row]]:
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
        both[side] = by_id(rows, side, offences)
    check_partners("prediction", both["prediction"], both["reference"], offences)
    check_partners("reference", both["reference"], both["prediction"], offences)
    return [
        (name, both["prediction"][name], reference)
        for name, reference in both["reference"].items()
        if name in both["prediction"]
    ]


def check_partners(side: str, names: Iterable[str], others: Container[str], offences: Offences) -> None:
    """Each id of one side is one of the other's, too."""
    other = "reference" if side == "prediction" else "prediction"
    for name in names:
        if name not in others:
            offences.say_of(side, name, "", f"expected a {other} of this id, found none")


class RowColumns:
    """What rows say of each instance beside its scores; its rows are asked in turn, and the first that has a column answers.

    Args:
        rows: of each instance, in the order of the statistics.
    """

    def __init__(self, rows: Sequence[Sequence[Row | None]]) -> None:
        self.rows = rows

    def _holders(self, name: str) -> list[Row | None]:
        return [next((row for row in own if row is not None and name in row), None) for own in self.rows]

    def __call__(self, name: str, predicted: bool = True) -> list[Any]:
        """The values of a column, of whichever side has it.

        Raises:
            ValueError: no row of an instance has it.
        """
        holders = self._holders(name)
        if None in holders:
            at = holders.index(None)
            known = sorted({key for row in self.rows[at] if row is not None for key in row})
            raise ValueError(f"by: expected a column of the rows, found {name!r} not in row {at} ({', '.join(known)})")
        return [holder[name] for holder in holders if holder is not None]

    def clusters(self) -> Clusters:
        """Instances that share a document; else those that ``rel_ids`` join (an original and its perturbed records)."""
        for name in ("documents", "rationales"):
            docids = [_docids(holder, name) for holder in self._holders(name)]
            if any(docids):
                return by_items("documents", docids)
        records = self._holders("rel_ids")
        if not any(records):
            return Clusters(NONE)
        own = [next((row for row in rows if row is not None), {}) for rows in self.rows]
        names = [next((str(row[field]) for field in ID_FIELDS if row.get(field) is not None), "") for row in own]
        others = [as_list((record or {}).get("rel_ids")) or [] for record in records]
        return by_items("original", [[name, *map(str, more)] for name, more in zip(names, others, strict=True)])


def _docids(row: Row | None, name: str) -> list[str]:
    """The documents that a row names in one of its columns."""
    cells = [] if row is None else as_list(row[name]) or []
    return [str(cell["docid"]) for cell in cells if isinstance(cell, Mapping) and "docid" in cell]


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


def optional_fields(rows: Sequence[tuple[str, Row]], fields: Sequence[str], side: str, offences: Offences) -> set[str]:
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
                offences.say_of(side, rows[deviating][0], field, f"expected it in all rows or in none, found {state}")
    return present


# ------------------------------------------------------------------------------------------------ evaluate's side
class RowBatches(Batches[Any]):
    """A mixin before ``evaluate.Metric`` for modules that take rows: lists, Datasets, Arrow tables, kept as they come.

    The class defines ``_measure(predictions, references, **settings)``, which gives a `Measured`; a side of which nothing
    came is None.
    """

    OPTIONS = (*Batches.OPTIONS, "label_names")
    _measure: Callable[..., Measured]

    def _keep(self, data: Any, side: str) -> Any:
        # a list is copied (not its rows): the caller may clear it for the next batch
        return list(data) if isinstance(data, (list, tuple)) else data

    def _packed(self, kept: Any, side: str) -> bytes:
        return json.dumps(rows_of(kept, side), default=_plain).encode()

    def _unpacked(self, data: bytes, side: str) -> Any:
        return json.loads(data)

    def _measured(self, predictions: Sequence[Any], references: Sequence[Any], **settings: Any) -> Measured:
        return self._measure(_joint(predictions, "prediction"), _joint(references, "reference"), **settings)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"expected JSON values, found {cut(value)}")


def _joint(batches: Sequence[Any], side: str) -> Any:
    """The batches as one; a single batch stays the object it is."""
    if not batches:
        return None
    if len(batches) == 1:
        return batches[0]
    return [row for batch in batches for row in rows_of(batch, side)]
