"""Conversion of rows to the flat records of `flat`; `arrow_columns` converts tables."""

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
    """One side of the input: predictions or references.

    Attributes:
        name: its name in messages.
        record: the record of its rows.
        paths: the fields that scores read, see `columns.ObjectColumns`.
        texts: the fields whose texts are counted.
        closed: True if its rows have no further columns.
        flat: converts columns to the flat record.
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
    """Return rows as a flat record, and their unknown fields. A row with issues keeps only its id.

    Args:
        rows: the rows.
        side: the side of the rows.
        issues: the issues to extend, by row.
        needed: the fields that every row must have.
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
    # misspelt fields of references, whose rows may have further columns, and needed fields that are missing
    for at, row in enumerate(() if side.closed else rows):
        for field in (field for field in side.record if row.get(field) is None):
            near = next((name for name in row if name not in side.record and find_similar(name, [field])), None)
            if near is not None:
                issues.add(side.name, at, cut(near)[1:-1], describe_misspelling(field), "key-unknown")
            elif field in needed:
                message = f"expected it in every row, found {cut(row.get(field)) if field in row else 'none'}"
                issues.add(side.name, at, field, message, "key-missing")
    return side.flat(columns.finish()), unknown


def keep_sound_rows(
    rows: Sequence[Mapping[str, Any]], side: Side, issues: Issues, unknown: UnknownFields
) -> list[Mapping[str, Any]]:
    """Return the rows; a row with issues, which are added, is reduced to its id."""
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
    """Return a row's id; "" if it has none."""
    name = as_scalar(row.get("annotation_id"))
    return str(name) if isinstance(name, (str, int)) and not isinstance(name, bool) else ""
