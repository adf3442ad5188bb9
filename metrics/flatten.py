"""Predictions and references, in any form, as the flat records of `flat`: the one way from rows or tables to scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from eraser_hub.schema.instance import INSTANCE
from eraser_hub.schema.record import Record
from eraser_hub.schema.rows import ANNOTATION

from .cells import as_scalar
from .columns import FlatColumns, Level, ObjectColumns, UnsuitedError, find_issues
from .flat import (
    PREDICTION_PATHS,
    REFERENCE_PATHS,
    TEXTS,
    to_predictions,
    to_references,
)
from .issues import Issues, cut
from .unknown_fields import UnknownFields, describe_misspelling, find_similar


class Side(NamedTuple):
    """One side of what is scored.

    Attributes:
        name: what messages call it.
        record: what its rows are.
        paths, texts: the fields that scores read, see `columns.ObjectColumns`.
        closed: whether its rows have no further columns.
        flat: makes the flat record of columns.
    """

    name: str
    record: Record
    paths: Collection[str]
    texts: Collection[str]
    closed: bool
    flat: Callable[[FlatColumns], Any]


PREDICTION: Side = Side("prediction", INSTANCE, PREDICTION_PATHS, (), True, to_predictions)
REFERENCE: Side = Side("reference", ANNOTATION, REFERENCE_PATHS, TEXTS, False, to_references)
SIDES = {side.name: side for side in (PREDICTION, REFERENCE)}
Flattened = tuple[Any, UnknownFields]  # a `flat.Predictions` or a `flat.References`


def flatten_rows(
    rows: Sequence[Mapping[str, Any]], side: Side, issues: Issues, needed: Sequence[str] = ()
) -> Flattened:
    """Return rows as a flat record, and the fields that the format does not know.

    Args:
        side: which side it is.
        issues: where faults are reported, by row.
        needed: the fields that every row must have.

    Of a row with faults no more is kept than its id.
    """
    unknown = UnknownFields()
    columns = ObjectColumns(side.record, side.paths, side.texts)
    try:
        columns.add(Level(rows, side.record))
        looked_at = not (side.closed and columns.unknown)
    except UnsuitedError:
        looked_at = False
    if not looked_at:
        columns = ObjectColumns(side.record, side.paths, side.texts)
        columns.add(Level(keep_sound_rows(rows, side, issues, unknown), side.record))
    if not side.closed:
        _check_needed(rows, side, needed, issues)
    return side.flat(columns.finish()), unknown


def keep_sound_rows(
    rows: Sequence[Mapping[str, Any]], side: Side, issues: Issues, unknown: UnknownFields
) -> list[Mapping[str, Any]]:
    """Return the rows; of each with a fault, which is reported, its id alone."""
    kept: list[Mapping[str, Any]] = []
    for at, row in enumerate(rows):
        misspelt_fields = unknown.count_row(row, side.record) if side.closed else []
        wrong = [(where, message, "key-unknown") for where, message in misspelt_fields] or [
            *find_issues(row, side.record)
        ]
        for where, message, rule in wrong:
            issues.add(side.name, at, where, message, rule)
        kept.append({"annotation_id": get_row_name(row)} if wrong else row)
    return kept


def get_row_name(row: Mapping[str, Any]) -> str:
    """Return a row's id, "" for none."""
    name = as_scalar(row.get("annotation_id"))
    return str(name) if isinstance(name, (str, int)) and not isinstance(name, bool) else ""


def _check_needed(rows: Sequence[Mapping[str, Any]], side: Side, needed: Sequence[str], issues: Issues) -> None:
    """Report where a field is misspelt, or needed and not there."""
    for at, row in enumerate(rows):
        for field in (field for field in side.record if row.get(field) is None):
            near = next((name for name in row if name not in side.record and find_similar(name, [field])), None)
            if near is not None:
                issues.add(side.name, at, cut(near)[1:-1], describe_misspelling(field), "key-unknown")
            elif field in needed:
                message = f"expected it in every row, found {cut(row.get(field)) if field in row else 'none'}"
                issues.add(side.name, at, field, message, "key-missing")
