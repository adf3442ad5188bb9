"""Records as Arrow types and as the features of `datasets`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from .record import Field, Record

_ARROW = {
    "text": pa.string(),
    "id": pa.string(),
    "label": pa.string(),
    "whole": pa.int64(),
    "number": pa.float64(),
    "flag": pa.bool_(),
}


def to_arrow_type(field: Field, labels: Sequence[str], only: Collection[str] = ()) -> pa.DataType:
    """Return the Arrow type of a field.

    Args:
        field: the declared field.
        labels: the keys of probabilities by label, which become a struct.
        only: the fields of a record that its struct has; () for all.
    """
    if field.record is not None:
        inner = [one for one in field.record.values() if not only or one.name in only]
        kind = pa.struct([(one.name, to_arrow_type(one, labels)) for one in inner])
    elif field.kind == "probabilities":
        kind = pa.struct([(label, pa.float64()) for label in labels])
    else:
        kind = _ARROW[field.kind]
    for _ in range(field.depth):
        kind = pa.list_(kind)
    return kind


def make_features(record: Record, names: Collection[str] = ()) -> dict[str, Any]:
    """Return a record as the features of `datasets`.

    Args:
        record: the declared record.
        names: the fields; () for all.
    """
    import datasets

    # labels differ between datasets, and a struct would have to name them; datasets before 4.1 has no Json
    by_label = datasets.Json() if hasattr(datasets, "Json") else datasets.Value("string")

    def make_feature(field: Field) -> Any:
        if field.record is not None:
            inner: Any = {name: make_feature(one) for name, one in field.record.items()}
        else:
            inner = (
                by_label
                if field.kind == "probabilities"
                else datasets.Value(str(_ARROW[field.kind]).replace("double", "float64"))
            )
        for _ in range(field.depth):
            inner = [inner]
        return inner

    return {name: make_feature(field) for name, field in record.items() if not names or name in names}
