"""Conversion of plain values to declared types; errors name the place, the expected and the found value."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from eraser_hub.conversion.readers import describe_value
from eraser_hub.records.errors import DataError, show

_NOUNS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}
_BITS = {
    str(bound): f"of at most {bits} bits" for bits in (32, 64) for bound in (-(1 << bits - 1), (1 << bits - 1) - 1)
}
_EXPECTED = re.compile(r"Expected `([^`]*)`(?: ([<>]=?) (.*))?")


def convert_type(value: Any, kind: Any, at: str = "", **place: Any) -> Any:
    """Convert a value to a type.

    Args:
        value: plain Python, as JSON or YAML gives it.
        kind: a struct, or another type that msgspec knows.
        at: the field that holds the value, for errors.
        **place: file, line and instance, for errors.

    Raises:
        DataError: the value has another type, is out of range, lacks a key, or has a key that the type does not have.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
    path = path.rstrip("`")
    for step in re.findall(r"\[\d+\]|[^.\[\]]+", path) if "[...]" not in path else ():
        value = value[int(step[1:-1])] if step.startswith("[") else value[step]
    if (key := message.removeprefix("Object missing required field `")) != message:
        names = ", ".join(show(name, 30) for name in list(value)[:8]) or "no keys"
        found = "none" if "[...]" in path else f"an object with {names}"
        message = f"expected the key {key[:-1]!r}, found {found}"
    elif (key := message.removeprefix("Object contains unknown field `")) != message:
        message = f"expected the format's keys alone, found {show(key[:-1])}"
    elif expected := _EXPECTED.match(message):
        words = " or ".join(_NOUNS.get(name, name) for name in expected[1].split(" | "))
        words += " of length 1 or more" if " of length >= 1" in message else ""
        bound = expected[2] and f" {_BITS.get(expected[3]) or f'{_BOUNDS[expected[2]]} {expected[3]}'}"
        found = "another value" if "[...]" in path else describe_value(value)
        message = f"expected {words}{bound or ''}, found {found}"
    raise DataError(message, field=f"{at}{path}".lstrip(".") or None, **place)
