"""Declarations of records: dataclasses whose fields carry their meaning, and the fields read from a declaration.

A field is declared as ``name: type | None = column("meaning", unit=.., low=.., high=.., scores=..)``. Its type is one
of ``str``, ``int``, ``float``, ``bool``, ``Id``, ``Label``, ``Probabilities``, ``Json``, another record, or a list of
these.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, partial
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

Id = Annotated[str | int, "id"]  # compared as a string
Label = Annotated[str | int, "label"]  # a name, or the number of one
Probabilities = Annotated[dict[str, float | None], "probabilities"]  # by label
Json = Annotated[dict[str, Any], "object"]  # any JSON object
KINDS: Mapping[Any, str] = {str: "text", int: "whole", float: "number", bool: "flag"}


def column(
    meaning: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    scores: str = "",
    name: str = "",
    required: bool = False,
) -> Any:
    """Declare a field of a record.

    Args:
        meaning: the meaning of the field.
        unit: the unit of its number, or of each number of its list.
        low: the least value.
        high: the greatest value.
        scores: the scores that need the field; "" for none.
        name: the name of the number in scores, where it lies in a record within the instance.
        required: True if every record has the field; others may be absent or null.
    """
    facts = {"meaning": meaning, "unit": unit, "low": low, "high": high, "scores": scores, "name": name}
    return field(metadata=facts) if required else field(default=None, metadata=facts)


# a share or a probability, and a difference of two
share, area = partial(column, low=0, high=1), partial(column, low=-1, high=1)


@dataclass(frozen=True)
class Field:
    """A field of a record.

    Attributes:
        name: its key in JSON, its column in Arrow.
        kind: "text", "id", "label", "whole", "number", "flag", "probabilities", "object" or "record".
        depth: the number of lists around each value; 0: none.
        record: the record of each value, where ``kind`` is "record".
        facts: the arguments of `column`.
        required: see `column`.
    """

    name: str
    kind: str
    depth: int
    record: Record | None
    facts: Mapping[str, Any]
    required: bool


Record: TypeAlias = "Mapping[str, Field]"


@cache
def describe(declaration: type) -> Record:
    """Return the fields of a record's declaration, by name."""
    hints = get_type_hints(declaration, include_extras=True)
    return {one.name: _parse_field(one.name, hints[one.name], one.metadata) for one in fields(declaration)}


def _parse_field(name: str, hint: Any, facts: Mapping[str, Any]) -> Field:
    optional, depth = False, 0
    while True:
        if get_origin(hint) in (Union, types.UnionType):
            (hint,) = (member for member in get_args(hint) if member is not type(None))
            optional = optional or not depth
        elif get_origin(hint) is list:
            hint, depth = get_args(hint)[0], depth + 1
        else:
            break
    kind = KINDS.get(hint) or (get_args(hint)[1] if get_origin(hint) is Annotated else "record")
    return Field(name, kind, depth, describe(hint) if kind == "record" else None, facts, not optional)
