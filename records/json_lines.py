"""JSON lines read fast where they are in order, and line by line, strictly, where they are not.

The fast way decodes with typed msgspec structs, which check every field's type in C. It cannot see a key that stands
twice in one object (the last one wins silently), so a batch also counts its quotes: there have to be two for each key
and string that was decoded, besides those that a backslash stands before. Where the count differs, or anything fails,
the lines are read again one by one by the strict way, which knows what to say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .errors import DataError, shown

BATCH_BYTES = 1 << 20
MOST_NESTED = 100
NEWLINE = 0x0A


class Lines:
    """A run of whole lines of a file.

    Attributes:
        first: the 1-based number of the first one.
        start: its byte offset in the file.
        data: the lines as they stand there, with their "\\n".
        ends_with_newline: whether the last one has it.
    """

    __slots__ = ("_lines", "data", "ends_with_newline", "first", "start")

    def __init__(self, first: int, start: int, data: bytes) -> None:
        self.first, self.start, self.data = first, start, data
        self.ends_with_newline = data.endswith(b"\n")
        self._lines: list[bytes] | None = None

    @property
    def lines(self) -> list[bytes]:
        """Each line without its "\\n"."""
        if self._lines is None:
            self._lines = (self.data[:-1] if self.ends_with_newline else self.data).split(b"\n")
        return self._lines

    @property
    def numbers(self) -> range:
        """The 1-based number of each line."""
        return range(self.first, self.first + len(self.lines))

    def ends(self) -> np.ndarray:
        """int64: where in ``data`` each line ends."""
        ends = np.flatnonzero(np.frombuffer(self.data, np.uint8) == NEWLINE)
        return ends if self.ends_with_newline else np.append(ends, len(self.data))

    def objects(self, ends: np.ndarray) -> bool:
        """Whether each line begins with "{" and ends with "}". If the whole run is JSON too, then no object goes on past
        a line's end (between "}" and "{" inside of one there would be a comma), so as many objects as lines means: one each."""
        data = np.frombuffer(self.data, np.uint8)
        starts = np.concatenate([[0], ends[:-1] + 1])
        return bool((ends > starts).all() and (data[starts] == 0x7B).all() and (data[ends - 1] == 0x7D).all())


def batches_of_lines(
    path: Path, batch_bytes: int = BATCH_BYTES, start: int = 0, first: int = 1, end: int | None = None
) -> Iterator[Lines]:
    """The file's lines in runs of about ``batch_bytes``; a last line may lack its newline.

    Args:
        path: the file.
        batch_bytes: how many bytes are read at a time.
        start: where to begin, which is where a line begins.
        first: the number of that line.
        end: where to stop, which is where a line ends; None goes on to the file's end.
    """
    left = -1 if end is None else end - start
    with path.open("rb") as file:
        file.seek(start)
        rest = b""
        while left:
            chunk = file.read(batch_bytes if left < 0 else min(batch_bytes, left))
            if not chunk:
                break
            left -= len(chunk) if left > 0 else 0
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest += chunk
                batch_bytes *= 2  # a very long line is not put together again and again
                continue
            lines = Lines(first, start, rest + chunk[:cut])
            rest = chunk[cut:]
            first += lines.data.count(b"\n")
            start += len(lines.data)
            yield lines
        if rest:
            yield Lines(first, start, rest)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say which file cannot be read, and why.

    Raises:
        DataError: for an OSError of the block.
    """
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


def check_utf8(lines: Sequence[bytes]) -> None:
    """Raise a UnicodeDecodeError for a line that is no UTF-8 (a typed decoder does not look at fields that it skips)."""
    if not all(map(bytes.isascii, lines)):
        for line in lines:
            line.decode()


def not_json(error: Exception, line: bytes) -> str:
    """What is wrong with a line that a decoder refused, in words."""
    for name in (b"NaN", b"Infinity"):
        if name in line:
            return f"not JSON: {name.decode()} is no JSON number ({error})"
    return f"not JSON: {error}"


def quotes_are(text: bytes, strings: int) -> bool:
    """Whether exactly so many strings (keys included) stand in JSON text; False also where this cannot be told quickly."""
    quotes = int(np.count_nonzero(np.frombuffer(text, np.uint8) == 0x22))
    if b"\\" in text:
        if b"\\\\" in text:  # an escaped backslash: whether a quote after it is escaped, a count cannot tell
            return False
        quotes -= text.count(b'\\"')
    return quotes == 2 * strings


class _Repeated(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


class _NotFinite(Exception):
    pass


class _TooGreat(Exception):
    pass


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Repeated(key)
            seen.add(key)
    return members


def _refuse_constant(name: str) -> Any:
    raise _NotFinite(name)


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):  # it would be written back as Infinity, which JSON does not have
        raise _TooGreat(digits)
    return number


def _nested_deeper(value: object, most: int) -> bool:
    """Whether lists and objects stand in one another more than ``most`` deep; level by level, so at any depth."""
    level = [value]
    for _ in range(most + 1):
        level = [member for each in level for member in _members(each)]
        if not level:
            return False
    return True


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def strict_object(line: bytes, *, file: Path | str | None, number: int | None, what: str = "object") -> Any:
    """One line as JSON, refusing what JSON does not have (NaN), keys that repeat, numbers that no float holds, and more
    than `MOST_NESTED` levels.

    Raises:
        DataError: with file and line, saying what was expected and what was found.
    """

    def error(message: str, field: str | None = None) -> DataError:
        return DataError(message, file=file, line=number, field=field)

    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as cause:
        raise error(
            f"expected UTF-8, found the byte 0x{line[cause.start]:02x} at byte {cause.start + 1} of the line"
        ) from None
    if not text.strip(" \t\r\n"):
        raise error(f"expected a JSON {what}, found an empty line")
    try:
        value = json.loads(
            text, object_pairs_hook=_object_of_pairs, parse_constant=_refuse_constant, parse_float=_finite_float
        )
    except _Repeated as cause:
        raise error(f"expected each key once, found the key {shown(cause.key)} twice in one object") from None
    except _NotFinite as cause:
        raise error(f"expected JSON, found {cause}, which JSON does not have") from None
    except _TooGreat as cause:
        raise error(f"expected numbers of at most 64 bits, found {shown(str(cause), 40)}") from None
    except json.JSONDecodeError as cause:
        where = f"at character {cause.pos + 1} of {len(text)}"
        if cause.pos >= len(text.rstrip()) or "Unterminated" in cause.msg:
            raise error(f"expected a whole JSON {what}, found the line's end ({cause.msg} {where})") from None
        raise error(
            f"expected a JSON {what}, found {shown(text[cause.pos : cause.pos + 20])} ({cause.msg} {where})"
        ) from None
    except RecursionError:
        raise error(f"expected a JSON {what}, found one that is nested too deeply") from None
    except ValueError:  # an integer of more digits than Python converts
        raise error("expected numbers of at most 64 bits, found a longer one") from None
    # one bound for every release of Python, below which whoever walks the value meets no recursion limit
    if text.count("[") + text.count("{") > MOST_NESTED and _nested_deeper(value, MOST_NESTED):
        raise error(f"expected a JSON {what}, found one that is nested too deeply (more than {MOST_NESTED} levels)")
    return value


def has_half_character(value: object) -> bool:
    """Whether a string, or any string in a JSON value, holds half a surrogate pair, which no UTF-8 file can hold."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return True
        return False
    if isinstance(value, dict):
        return any(has_half_character(key) or has_half_character(member) for key, member in value.items())
    if isinstance(value, list):
        return any(map(has_half_character, value))
    return False


_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number with a fraction",
    "bool": "true or false",
    "NoneType": "null",
    "list": "a list",
    "dict": "an object",
}


def found(value: object) -> str:
    """What stands there, in JSON's words, e.g. ``the string '3'``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return shown(value, 40)
    if isinstance(value, str):
        return f"the string {shown(value, 60)}"
    return _NAMES.get(type(value).__name__, type(value).__name__)
