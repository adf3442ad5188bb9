"""Strict reading of JSON lines, and a fast check for repeated keys.

`parse_strict_value` and `parse_strict_object` say what is wrong with a line. Callers with many lines decode them with
typed msgspec structs, which check the type of every field in C, and parse strictly only the lines that fail. A typed
decoder does not see a key that an object has twice (the last one wins silently). `has_quote_count` finds such keys: it
counts the quotes of a run of lines.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from .errors import DataError, show
from .lines import describe_bad_byte, read_limited

MOST_NESTED = 64
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
TOO_DEEP = f"expected a JSON object, found one that is nested too deeply (more than {MOST_NESTED} levels)"


def has_quote_count(text: bytes, strings: int) -> bool:
    """Return True if JSON text holds exactly this many strings, keys included; False if that is unclear."""
    import numpy as np  # here, since every verb reads JSON lines before it needs arrays

    quotes = int(np.count_nonzero(np.frombuffer(text, np.uint8) == 0x22))
    if b"\\" in text:
        if b"\\\\" in text:  # an escaped backslash: whether a quote after it is escaped, a count cannot tell
            return False
        quotes -= text.count(b'\\"')
    return quotes == 2 * strings


def parse_strict_object(line: bytes, *, file: Path | str, number: int) -> dict[str, Any]:
    """Parse one line as a JSON object.

    Raises:
        DataError: with file and line; also where the line is another value.
    """
    value = parse_strict_value(line, file=file, number=number)
    if not isinstance(value, dict):
        message = f"expected a JSON object on each line, found {describe_value(value)}"
        raise DataError(message, file=file, line=number)
    return value


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object that a whole file is; see `parse_strict_value` and `lines.read_limited`.

    Raises:
        DataError: with file.
    """
    try:
        return parse_strict_object(read_limited(path), file=path, number=1)
    except DataError as error:
        raise error.at(file=path) from None  # the object is the whole file, no line of it


def parse_strict_value(line: bytes, *, file: Path | str, number: int) -> Any:
    """Parse one line as JSON.

    Refuse what JSON does not have (NaN), repeated keys, numbers that no float holds, and more than `MOST_NESTED`
    levels.

    Raises:
        DataError: with file and line, saying what was expected and what was found.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as cause:
        words = f"expected UTF-8, found the {describe_bad_byte(line, cause)}"
        raise DataError(words, file=file, line=number) from None
    if not text.strip(" \t\r\n"):
        raise DataError("expected a JSON object, found an empty line", file=file, line=number)
    try:
        value = json.loads(
            text, object_pairs_hook=_object_of_pairs, parse_constant=_refuse_constant, parse_float=_finite_float
        )
    except (_Refused, RecursionError, ValueError) as cause:
        raise DataError(_why_refused(cause, text), file=file, line=number) from None
    # one bound for every release of Python; walking the value never meets the recursion limit
    if text.count("[") + text.count("{") > MOST_NESTED and is_nested_deeper(_STRING.sub("", text)):
        raise DataError(TOO_DEEP, file=file, line=number)
    return value


def _why_refused(cause: Exception, text: str) -> str:
    if isinstance(cause, _Refused):
        return str(cause)
    if isinstance(cause, RecursionError):
        return TOO_DEEP
    if not isinstance(cause, json.JSONDecodeError):  # an integer of more digits than Python converts
        return "expected numbers of at most 64 bits, found a longer one"
    if re.match(r"(---|- |[\w-]+:)(\s|$)", text) or re.match(r"- [\w-]+:\s", text):
        return f"looks like YAML; a JSON object a line is expected, found {show(text.rstrip()[:40])}"
    where = f"at character {cause.pos + 1} of {len(text)}"
    if cause.pos >= len(text.rstrip()) or "Unterminated" in cause.msg:
        return f"expected a whole JSON object on each line, found the line's end ({cause.msg} {where})"
    return f"expected a JSON object, found {show(text[cause.pos : cause.pos + 20])} ({cause.msg} {where})"


class _Refused(Exception):
    """Why a value that a looser reader takes is refused."""


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"expected each key once, found the key {show(key)} twice in one object")
            seen.add(key)
    return members


def _refuse_constant(name: str) -> Any:
    raise _Refused(f"expected JSON, found {name}, which JSON does not have")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):  # it would be written back as Infinity, which JSON does not have
        raise _Refused(f"expected numbers of at most 64 bits, found {show(digits, 40)}")
    return number


def is_nested_deeper(text: str) -> bool:
    """Return True if the brackets of a text are nested more than `MOST_NESTED` deep.

    Parsers of other formats than JSON take minutes for such a text, or overflow the stack.
    """
    depth = 0
    for sign in re.findall(r"[\[\](){}]", text):
        depth = depth + 1 if sign in "[({" else max(0, depth - 1)
        if depth > MOST_NESTED:
            return True
    return False


def has_half_character(value: object) -> bool:
    """Return True if a string in a JSON value holds half a surrogate pair, which UTF-8 cannot encode."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def describe_value(value: object) -> str:
    """Describe a value in JSON's words, e.g. ``the string '3'``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return show(value, 40)
    if isinstance(value, str):
        return f"the string {show(value, 60)}"
    return {"list": "a list", "dict": "an object"}.get(type(value).__name__, type(value).__name__)
