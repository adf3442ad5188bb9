"""Rows of any kind as lists of dicts, joined by id; and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .errors import DataError, cut, find_similar

Row = Mapping[str, Any]
ID_FIELDS = ("annotation_id", "id", "sent_id")  # in the order of the search
SCALARS = {int, float, str, bool, type(None)}
find_near = lru_cache(maxsize=1000)(find_similar)  # rows have the same fields
PROBABILITY_SLACK = 1e-3  # by which a sum of probabilities may differ from 1
MAX_SHOWN = 100
REQUIRED = {"annotation_id", "docid", "start_token", "end_token", "threshold", "text"}


def to_list(value: Any) -> Any:
    """Return a list of plain Python values, nested alike; what is no list becomes a plain value, too.

    Args:
        value: a list, a tuple, an array of numpy, pandas, torch or Arrow; or one number of these.

    >>> import numpy as np
    >>> to_list((np.array([0, 1]), np.float64(0.5), "a"))
    [[0, 1], 0.5, 'a']
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    elif hasattr(value, "to_pylist"):
        value = value.to_pylist()
    elif isinstance(value, tuple):
        value = list(value)
    elif type(value).__name__ in ("NAType", "NaTType"):  # the nulls of pandas
        value = None
    if isinstance(value, list) and not {*map(type, value)} <= SCALARS:
        return [to_list(item) for item in value]
    return value


def row_id(row: Any) -> str | None:
    """Return the id of a row (``annotation_id``, ``id`` or ``sent_id``); None if it has none."""
    value = None
    for name in ID_FIELDS if isinstance(row, (dict, Mapping)) else ():
        if (value := row.get(name)) is not None:
            break
    value = value if isinstance(value, str) else to_list(value)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


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
def check(
    bad: np.ndarray | np.bool,
    describe: Callable[[int, str, str], DataError],
    owner: np.ndarray | None,
    path: str,
    template: str,
    *values: Any,
) -> None:
    """Raise the error of the first bad place, with the number of further ones.

    Args:
        bad: bool (places,).
        describe: the error of (row, field, message).
        owner: the row of each place; None: the place itself.
        path: of the field.
        template: the message, with ``{}`` for each of the values.
        *values: a sequence each, with a value a place.
    """
    places = np.flatnonzero(bad)
    if places.size:
        at = int(places[0])
        error = describe(at if owner is None else int(owner[at]), path, template.format(*(each[at] for each in values)))
        error.message += f" (and {places.size - 1:,} more)" if places.size > 1 else ""
        raise error


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
        if expected in (int, float) and isinstance(value, int) and abs(value) >> 63:
            return path, f"expected a number of 64 bits, found {cut(value)}"
        if isinstance(value, kinds) and (not isinstance(value, bool) or expected is float):
            return None
        nouns = {str: "a string", int: "a whole number", float: "a number"}
        return path, f"expected {' or '.join(nouns[kind] for kind in wanted)}, found {cut(value)}"
    if not isinstance(value, Mapping):
        return path, f"expected an object, found {cut(value)}"
    before = f"{path}." if path else ""
    if not expected:
        for label, p in value.items():
            if not isinstance(p, (int, float)) or isinstance(p, bool) or not abs(p) < np.inf:
                return f"{before}{cut(label)[1:-1]}", f"expected a probability, found {cut(p)}"
        return None
    for name in value:
        if name not in expected and (near := find_similar(name, expected)):
            return f"{before}{name}", f"no field of this format: did you mean {near!r}?"
    for name, inner in expected.items():
        if value.get(name) is None:
            if name in REQUIRED:
                fields = "" if name in value or not value else f" among {', '.join(map(str, value))}"[:MAX_SHOWN]
                return f"{before}{name}", f"expected a value, found none{fields}"
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
