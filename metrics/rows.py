"""Rows from lists, a Dataset or an Arrow table: their checks, and the columns of modules.

Ids are compared as strings, rows may be in any order, and every issue names the row's id and the field. Issues are
collected first: one ValueError shows the first ten and their total number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eraser_hub.schema.instance import ANSWERED, OUTCOME_FIELD
from eraser_hub.schema.rows import ID_FIELDS

from .cells import Row, as_list, as_scalar
from .clusters import NONE, Clusters, cluster_by_items
from .issues import ONLY_PREDICTED, InputError, Issues, cut


# ------------------------------------------------------------------------------------------------- rows of any kind
def to_rows(data: Any, side: str) -> list[Row]:
    """Convert data to a list of rows; ClassLabel numbers become names.

    Args:
        data: a list of dicts, a Dataset (any format), an Arrow table or struct array, a DataFrame, a dict of columns,
            or any iterable of dicts.
        side: "prediction" or "reference", for messages.

    Raises:
        ValueError: the data is something else, or a row is no dict.
    """
    if hasattr(data, "features") and hasattr(data, "with_format"):
        # an IterableDataset has no number of rows
        whole = hasattr(data, "num_rows")
        rows: list[Any] = data.with_format("arrow")[:].to_pylist() if whole else [*map(dict, data.with_format(None))]
        names = {name: feature.names for name, feature in (data.features or {}).items() if hasattr(feature, "int2str")}
        for name, labels in names.items():
            for row in rows:
                if isinstance(value := row.get(name), int) and 0 <= value < len(labels):
                    row[name] = labels[value]
        return rows
    if hasattr(data, "to_pylist"):
        check_columns(getattr(getattr(data, "schema", None), "names", ()), side)
        data = data.to_pylist()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):
        check_columns(list(data.columns), side)
        data = data.to_dict("records")
    elif isinstance(data, Mapping):
        for name, column in data.items():
            if not isinstance(column, Sequence) or isinstance(column, (str, bytes)):
                raise InputError(f"expected a list of rows, found one object with {cut(name)}", "type", f"{side}s")
        lengths = {name: len(column) for name, column in data.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"expected columns of one length, found {cut(lengths)}", "length", f"{side}s")
        return [dict(zip(data, cells, strict=True)) for cells in zip(*data.values(), strict=True)]
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable) or getattr(data, "ndim", 1) == 0:
        raise InputError(f"expected a list of rows, a Dataset or a table, found {cut(data)}", "type", f"{side}s")
    rows = list(data)
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"expected an object, found {cut(row)}", "type", f"{side}s[{at}]")
    return rows


def check_columns(names: Sequence[object], side: str) -> None:
    """Raise a ValueError if a column occurs twice."""
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InputError(f"expected each column once, found {cut(twice)} twice", "key-twice", f"{side}s")


def index_by_id(rows: Sequence[Row], side: str, issues: Issues) -> dict[str, Row]:
    """Return {id: row}, in the rows' order; an id is a string or an integer, compared as a string.

    A missing, repeated or wrongly typed id is an issue.
    """
    rows_by_id: dict[str, Row] = {}
    for at, row in enumerate(rows):
        value = as_scalar(next((row[field] for field in ID_FIELDS if row.get(field) is not None), None))
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            message = f"row {at}: expected an id (string or integer), found {cut(value)}"
            issues.add_by_id(side, at, ID_FIELDS[0], message, "type")
        elif str(value) in rows_by_id:
            issues.add_by_id(side, str(value), "", f"row {at}: expected each id once, found it twice", "id-twice")
        else:
            rows_by_id[str(value)] = row
    return rows_by_id


def joined(
    predictions: Sequence[Row] | None,
    references: Sequence[Row] | None,
    issues: Issues,
    only_predicted: bool = False,
) -> list[tuple[str, Row, Row]]:
    """Return (id, prediction, reference) in the references' order; add issues for rows of one side alone.

    Args:
        predictions: the rows of predictions.
        references: the rows of references.
        issues: the issues to extend.
        only_predicted: leave out references without a prediction; they are no issue then.

    Raises:
        ValueError: one side is missing or empty.
    """
    both = {}
    for side, rows in (("prediction", predictions), ("reference", references)):
        if not rows:
            raise InputError(f"expected {side}s, found {'none' if rows is None else 'an empty list'}", "empty")
        both[side] = index_by_id(rows, side, issues)
    predicted, referenced = both.values()
    check_partners(predicted, referenced, issues, only_predicted)
    return [(name, predicted[name], reference) for name, reference in referenced.items() if name in predicted]


def check_partners(
    predictions: Collection[str], references: Collection[str], issues: Issues, only_predicted: bool = False
) -> None:
    """Check that both sides have the same ids; with ``only_predicted`` references may lack predictions."""
    unknown = [name for name in predictions if name not in references]
    if unknown and len(unknown) == len(predictions):
        message = f"none of the {len(predictions):,} ids occurs among the {len(references):,} references"
        issues.add_by_id("prediction", unknown[0], "", f"{message}: another dataset or another split?", "id-unknown")
        return
    for name in unknown:
        issues.add_by_id("prediction", name, "", "expected a reference of this id, found none", "id-unknown")
    missing = [] if only_predicted else [name for name in references if name not in predictions]
    more = f" ({len(missing):,} of {len(references):,} have none; {ONLY_PREDICTED} scores the others alone)"
    for name in missing:
        issues.add_by_id("reference", name, "", f"expected a prediction of this id, found none{more}", "id-missing")
        more = ""


class RowColumns:
    """Columns of instances beside their scores, from the first row of an instance that has the column.

    Args:
        rows: the rows of each instance, in the order of the statistics.
    """

    def __init__(self, rows: Sequence[Sequence[Row | None]]) -> None:
        self.rows = rows

    def _find_holders(self, name: str) -> list[Row | None]:
        return [next((row for row in own if row is not None and name in row), None) for own in self.rows]

    def __call__(self, name: str, predicted: bool = True) -> list[Any]:
        """Return the values of a column of either side.

        Raises:
            ValueError: no row of an instance has it.
        """
        holders = self._find_holders(name)
        if None in holders:
            at = holders.index(None)
            known = sorted({key for row in self.rows[at] if row is not None for key in row})
            message = f"expected a column of the rows, found {name!r} not in row {at} ({', '.join(known)})"
            raise InputError(message, "option-value", "by")
        return [holder[name] for holder in holders if holder is not None]

    def clusters(self) -> Clusters:
        """Return clusters of instances that share a document, else of originals and their ``rel_ids``."""
        for name in ("documents", "rationales", "docids"):
            docids = [_get_docids(holder, name) for holder in self._find_holders(name)]
            if any(docids):
                return cluster_by_items("documents", docids)
        records = self._find_holders("rel_ids")
        if not any(records):
            return Clusters(NONE)
        own = [next((row for row in rows if row is not None), {}) for rows in self.rows]
        names = [next((str(row[field]) for field in ID_FIELDS if row.get(field) is not None), "") for row in own]
        others = [as_list((record or {}).get("rel_ids")) or [] for record in records]
        return cluster_by_items("original", [[name, *map(str, more)] for name, more in zip(names, others, strict=True)])


def _get_docids(row: Row | None, name: str) -> list[str]:
    """Return the documents that a row names in one of its columns."""
    cells = [] if row is None else as_list(row[name]) or []
    if name == "docids":
        return [str(cell) for cell in cells]
    return [
        str(cell["docid"]) for cell in cells if isinstance(cell, Mapping) and isinstance(cell.get("docid"), str | int)
    ]


@dataclass
class CellReader:
    """Reader of one row that adds issues of its values.

    Attributes:
        row: the row.
        name: its id.
        issues: the issues to extend.
        side: "prediction" or "reference".
    """

    row: Row
    name: str
    issues: Issues
    side: str = "prediction"

    def add(self, field: str, message: str, rule: str) -> None:
        """Add an issue of this row."""
        self.issues.add_by_id(self.side, self.name, field, message, rule)

    def expect(self, sound: bool, field: str, expected: str, value: object, rule: str = "type") -> bool:
        """Return ``sound``; if it is False, add an issue of the field with the expected value and the one found."""
        if not sound:
            self.add(field, f"expected {expected}, found {cut(value)}", rule)
        return sound

    def read_list(self, value: object, field: str, expected: str) -> list[Any]:
        """Return the items of a list; [], and an issue of the field, for another value."""
        items = as_list(value)
        self.expect(items is not None, field, expected, value)
        return items or []

    def read_answered(self) -> bool:
        """Return True unless the row's outcome says that a model gave no answer."""
        outcome = self.row.get(OUTCOME_FIELD)
        self.expect(outcome is None or isinstance(outcome, str), OUTCOME_FIELD, "a string", outcome)
        return outcome is None or outcome == ANSWERED


def find_optional_fields(rows: Sequence[tuple[str, Row]], fields: Sequence[str], issues: Issues) -> set[str]:
    """Return the optional fields of rows of predictions; the first row that deviates from the others is an issue.

    A field that is null is absent.
    """
    present = set()
    for field in fields:
        has = [row.get(field) is not None for _, row in rows]
        if any(has):
            present.add(field)
            if not all(has):
                state = "none, where the rows before it have it" if has[0] else "it, where the rows before it have none"
                message = f"expected it in all rows or in none, found {state}"
                issues.add_by_id("prediction", rows[has.index(not has[0])][0], field, message, "key-missing")
    return present
