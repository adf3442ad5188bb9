"""Rows of any kind as lists of dicts, joined by id; and what is wrong with one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .errors import DataError, cut, find_similar
from .plain import row_id, to_list

Row = Mapping[str, Any]
PROBABILITY_SLACK = 1e-3  # by which a sum of probabilities may differ from 1
REQUIRED = {"annotation_id", "docid", "start_token", "end_token", "threshold", "text"}


def to_rows(data: Any, name: str) -> list[dict[str, Any]]:
    """Return data as a list of dicts; numbers of a ClassLabel become names.

    Args:
        data: a list of dicts, a Dataset, an Arrow table, a DataFrame, a dict of columns, or any iterable of dicts.
        name: "predictions" or "references", for messages.

    Raises:
        DataError: it is something else, or a row is no dict.
    """
    labels: dict[str, list[str]] = {}
    if hasattr(data, "features") and hasattr(data, "with_format"):  # a Dataset; one that streams has no length
        labels = {key: kind.names for key, kind in (data.features or {}).items() if hasattr(kind, "int2str")}
        data = data.with_format("arrow")[:] if hasattr(data, "num_rows") else map(dict, data.with_format(None))
    names = getattr(data, "column_names", getattr(data, "columns", ()))
    twice = next((each for each, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"expected each column once, found {cut(twice)} twice", argument=name)
    if hasattr(data, "to_pylist"):
        data = data.to_pylist()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    elif isinstance(data, Mapping):
        lengths = {key: len(column) if hasattr(column, "__len__") else -1 for key, column in data.items()}
        if len(set(lengths.values())) != 1 or -1 in lengths.values() or any(isinstance(c, str) for c in data.values()):
            raise DataError(f"expected a list of rows, or columns of one length, found {cut(data)}", argument=name)
        data = [dict(zip(data, cells, strict=True)) for cells in zip(*data.values(), strict=True)]
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable) or getattr(data, "ndim", 1) == 0:
        raise DataError(f"expected a list of rows, a Dataset or a table, found {cut(data)}", argument=name)
    rows = list(data)
    for key, known in labels.items():
        for row in rows:
            if isinstance(row.get(key), int) and 0 <= row[key] < len(known):
                row[key] = known[row[key]]
    return rows


def index_rows(rows: Sequence[Row], name: str) -> dict[str, Row]:
    """Return {id: row} in the rows' order.

    Raises:
        DataError: no row, a row without an id, or an id twice.
    """
    if not rows:
        raise DataError("expected at least one row, found none", argument=name)
    result: dict[str, Row] = {}
    for number, row in enumerate(rows):
        key = row_id(row) if isinstance(row, Mapping) else None
        if key is None or key in result:
            found = cut(row) if key is None else f"{key!r} again"
            raise DataError(f"expected an id (string or integer) of its own, found {found}", field=f"{name}[{number}]")
        result[key] = row
    return result


def join_rows(
    predictions: Sequence[Row], references: Sequence[Row], only_predicted: bool = False
) -> list[tuple[str, Row, Row]]:
    """Return (id, prediction, reference) in the references' order.

    Args:
        predictions: rows with an id each.
        references: likewise.
        only_predicted: leave out references without a prediction, in place of an error.

    Raises:
        DataError: an id is missing or stands twice; a row has no partner.
    """
    predicted, referenced = index_rows(predictions, "predictions"), index_rows(references, "references")
    unknown = [key for key in predicted if key not in referenced]
    if unknown:
        raise describe_unknown_id(unknown[0], len(unknown), len(predicted), list(referenced), "references")
    missing = [key for key in referenced if key not in predicted]
    if missing and not only_predicted:
        raise describe_missing_id(missing[0], len(missing), len(referenced))
    return [(key, predicted[key], row) for key, row in referenced.items() if key in predicted]


def describe_unknown_id(name: str, count: int, total: int, known: Sequence[str], noun: str) -> DataError:
    """Return the error of predictions whose ids are not among the known ones."""
    if count == total:
        like = f" (ids like {cut(known[0])})" if known else ""
        message = f"none of the {total:,} ids occurs among the {len(known):,} {noun}{like}: another dataset or split?"
        return DataError(message, instance=name, field="annotation_id")
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    return DataError(f"expected an id of the {noun}, found none like it{more}", instance=name, field="annotation_id")


def describe_missing_id(name: str, count: int, total: int) -> DataError:
    """Return the error of annotations without a prediction."""
    hint = f"{count:,} of {total:,} annotations have none; `only_predicted` scores the others alone"
    return DataError(f"expected a prediction of this annotation, found none ({hint})", instance=name)


# -- what is wrong
def find_fault(value: Any, expected: Any, path: str = "") -> tuple[str, str] | None:
    """Return (path, message) of the first value that is not what a field holds; None where all are.

    Args:
        value: of a row.
        expected: what the field holds, see `INSTANCE`.
        path: of the field.
    """
    if expected == ():
        return None
    if isinstance(expected, list):
        if not isinstance(value, (list, tuple)):
            return path, f"expected a list, found {cut(value)}"
        if isinstance(expected[0], type) and set(map(type, value)) <= {expected[0]}:
            return None  # most are long
        faults = (find_fault(each, expected[0], f"{path}[{number}]") for number, each in enumerate(value))
        return next(filter(None, faults), None)
    if not isinstance(expected, dict):
        wanted = expected if isinstance(expected, tuple) else (expected,)
        kinds = (float, int) if expected is float else wanted
        if isinstance(value, kinds) and (not isinstance(value, bool) or expected is float):
            return None
        nouns = {str: "a string", int: "a whole number", float: "a number"}
        return path, f"expected {' or '.join(nouns[kind] for kind in wanted)}, found {cut(value)}"
    if not isinstance(value, Mapping):
        return path, f"expected an object, found {cut(value)}"
    before = f"{path}." if path else ""
    if not expected:
        bad = next((key for key, p in value.items() if not isinstance(p, (int, float)) or isinstance(p, bool)), None)
        return (
            None if bad is None else (f"{before}{cut(bad)[1:-1]}", f"expected a probability, found {cut(value[bad])}")
        )
    for name in value:
        if name not in expected and (near := find_similar(name, expected)):
            return f"{before}{name}", f"no field of this format: did you mean {near!r}?"
    for name, inner in expected.items():
        if value.get(name) is None:
            if name in REQUIRED:
                return f"{before}{name}", "expected a value, found none"
        elif fault := find_fault(value[name], inner, f"{before}{name}"):
            return fault
    return None


def simplify(value: Any) -> Any:
    """Return a value in plain Python: arrays as lists, objects without fields that are null."""
    if isinstance(value, Mapping):
        return {str(key): plain for key, each in value.items() if (plain := simplify(each)) is not None}
    if isinstance(value, (str, bytes)) or value is None:
        return value
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (Mapping, list, tuple)):
        return [simplify(each) for each in value]
    return to_list(value)
