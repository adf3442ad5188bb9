"""Other people's files: texts, CSV, JSON and bounded YAML; what cannot be read is refused with its line and field."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import stat
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.readers import (
    BATCH_BYTES,
    FILE_KINDS,
    JSON_ERRORS,
    describe_bad_byte,
    describe_bad_json,
    read_line_batches,
    wrap_read_errors,
)

MAX_CELL = 1 << 27  # characters of a cell of a CSV
MAX_YAML_CHARACTERS = 1 << 20
MAX_NESTED = 64
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
# of os.open for reading: a pipe is not waited for, and newlines stay as they are; Windows lacks the first flag, others
# the second
READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class NoFile(DataError):
    """Missing file, or something that is no file."""


def read_utf8_lines(path: str | PathLike[str]) -> Iterator[str]:
    """Yield the lines, which only line feeds end; skip a byte order mark at the start.

    Raises:
        DataError: broken UTF-8, with line and byte.
    """
    with wrap_read_errors(path), Path(path).open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                message = f"expected UTF-8, found {describe_bad_byte(raw, error)}"
                raise DataError(message, file=path, line=number) from None
            yield text.removeprefix("\ufeff") if number == 1 else text


def read_utf8_file(path: str) -> bytes:
    """Return the bytes of a document's file, checked to be UTF-8.

    Raises:
        NoFile: nothing stands there, or a folder, a pipe, a link that leads nowhere.
        DataError: it cannot be read, or is no UTF-8.
    """
    data = b""
    try:
        # by the system's own calls: .6 of the time that a look before and Python's file object take
        handle = os.open(path, READ_FLAGS)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise NoFile(f"expected a file, found {FILE_KINDS[stat.S_IFMT(found.st_mode)]}", file=path)
            data = os.read(handle, found.st_size + 1)
            while len(data) != found.st_size and (more := os.read(handle, BATCH_BYTES)):
                data += more
        finally:
            os.close(handle)
        if not data.isascii():
            data.decode("utf-8")
        return data
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"expected UTF-8, found the byte 0x{data[error.start]:02x}", file=path, line=line) from None
    except OSError as error:
        fault = NoFile if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO) else DataError
        raise fault(f"cannot be read: {error.strerror}", file=path) from None


def file_name(docid: str) -> str:
    """Return the name of a document's file: UTF-8, whatever the locale says; "" if the id can be no name of a file."""
    if docid in ("", ".", "..") or {"/", "\0"} & set(docid) or len(docid.encode()) >= 256:
        return ""
    return docid if docid.isascii() else os.fsdecode(docid.encode("utf-8"))


def read_table(
    path: str | PathLike[str], separator: str = ",", is_quoted: bool = True
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the header of a CSV, and an iterator over its records, each with its first line (from 1).

    Args:
        path: the file; a record may span lines.
        separator: what stands between cells.
        is_quoted: cells may stand in quotes; else a quote is a sign like any other.

    Raises:
        DataError: broken UTF-8, no CSV, a column twice, or another number of cells than the header has, with the line.
    """
    header: list[str] = []

    def read_records() -> Iterator[tuple[int, list[str]]]:
        limit, line = csv.field_size_limit(MAX_CELL), 1  # the limit is the process's
        form: dict[str, Any] = {"delimiter": separator, "quoting": csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE}
        reader = csv.reader(read_utf8_lines(path), strict=True, **form)
        try:
            for cells in reader:
                yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            hint = describe_separator(header or [next(read_utf8_lines(path), "")], separator)
            raise DataError(f"is no CSV: {error}{hint}", file=path, line=line) from None
        finally:
            csv.field_size_limit(limit)

    def read_rows() -> Iterator[tuple[int, dict[str, str]]]:
        for line, cells in records:
            if len(cells) != len(header):
                message = f"expected {len(header)} fields, found {len(cells)}{describe_separator(header, separator)}"
                raise DataError(message, file=path, line=line)
            yield line, dict(zip(header, cells, strict=True))

    records = read_records()
    header += next(records, (1, []))[1]
    if len(set(header)) < len(header):
        raise DataError(f"expected each column once, found {show(header, 200)}", file=path, line=1)
    return header, read_rows()


def describe_separator(header: Sequence[str], separator: str = "") -> str:
    """Describe another separator that a header of CSV seems to have; "" if it has none in each column.

    >>> describe_separator(["id;text"], ",")
    " (the header seems to be separated by ';'; .csv has ',', .tsv has '\\\\t')"
    """
    counts = {one: sum(name.count(one) for name in header) for one in ",\t;|" if one != separator}
    other = max(counts, key=counts.__getitem__)
    if counts[other] < max(1, len(header)):
        return ""
    return f" (the header seems to be separated by {other!r}; .csv has ',', .tsv has '\\t')"


# -- JSON and YAML ----------------------------------------------------------------------------------------------------


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (1-based line, JSON object) of each line of a file; errors as of `parse_json`, and for any other value."""
    for batch in read_line_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            value = parse_json(line, file=path, number=number)
            if not isinstance(value, dict):
                message = f"expected a JSON object on each line, found {describe_value(value)}"
                raise DataError(message, file=path, line=number)
            yield number, value


def parse_json(line: bytes, *, file: Path | str, number: int) -> Any:
    """Parse a line of JSON; before the first one of a file a byte order mark is skipped.

    Raises:
        DataError: with file and line: it is empty, no UTF-8 or no JSON (which has no NaN and no half of a surrogate
            pair), has a number that no float holds, or more than `MAX_NESTED` levels.
    """
    line = line.removeprefix(BOM_UTF8) if number == 1 else line
    try:
        value = msgspec.json.decode(line)
        # one bound for every release of Python; walking the value never meets the recursion limit
        if line.count(b"[") + line.count(b"{") <= MAX_NESTED or not is_nested_deeper(STRING.sub("", line.decode())):
            return value
        message = "expected JSON, found lists or objects nested too deeply"
    except JSON_ERRORS as error:
        message = describe_bad_json(line, error) if line.strip() else "expected JSON, found an empty line"
    raise DataError(message, file=file, line=number)


def is_nested_deeper(text: str) -> bool:
    """Return True if the brackets of a text are nested more than `MAX_NESTED` deep.

    Parsers of other formats than JSON take minutes for such a text, or overflow the stack.
    """
    depth = 0
    for sign in re.findall(r"[\[\](){}]", text):
        depth = depth + 1 if sign in "[({" else max(0, depth - 1)
        if depth > MAX_NESTED:
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


def check_yaml(text: str, file: str | PathLike[str], max_characters: int = MAX_YAML_CHARACTERS) -> None:
    """Raise a DataError for a text that is too long, nests its brackets too deeply, or has aliases (``*name``).

    A few lines with aliases may expand to gigabytes.
    """
    import yaml  # when a file needs it: most data have none

    if len(text) > max_characters:
        message = f"expected at most {max_characters:,} characters of YAML, found {len(text):,}"
        raise DataError(message, file=file)
    if is_nested_deeper(text):
        raise DataError("is no YAML: its brackets nest too deeply", file=file)
    if "&" not in text or "*" not in text:
        return
    try:
        for event in yaml.parse(text, Loader=get_yaml_loader()):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark else None
                raise DataError("is no YAML: expected no aliases (*name)", file=file, line=line)
    except yaml.YAMLError:
        return  # whoever loads the text says what is wrong


def load_yaml(text: str, file: str | PathLike[str]) -> Any:
    """Return the plain values of a YAML text.

    Raises:
        DataError: the text is no YAML, is too long, or has aliases.
    """
    import yaml

    check_yaml(text, file)
    try:
        return yaml.load(text, Loader=get_yaml_loader())
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none
        raise DataError(f"is no YAML: {' '.join(str(error).split())}", file=file) from None


def get_yaml_loader() -> Any:
    """Return PyYAML's safe loader, that of libyaml where there is one: it takes a tenth of the time."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_NOUNS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}
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
        bound = expected[2] and f" {_BOUNDS[expected[2]]} {expected[3]}"
        found = "another value" if "[...]" in path else describe_value(value)
        message = f"expected {words}{bound or ''}, found {found}"
    raise DataError(message, field=f"{at}{path}".lstrip(".") or None, **place)
