"""Other people's files: texts, CSV, strict JSON and bounded YAML; what cannot be read is refused with its line."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.readers import BATCH_BYTES, FILE_KINDS, describe_bad_byte, read_limited, wrap_read_errors

MAX_CELL = 1 << 27  # characters of a cell of a CSV
MAX_YAML_CHARACTERS = 1 << 20
MAX_NESTED = 64
TOO_DEEP = f"expected a JSON object, found one that is nested too deeply (more than {MAX_NESTED} levels)"
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


class NotCsvError(DataError):
    """A file that cannot be taken apart into the records of a CSV."""


def read_csv_records(path: str | PathLike[str], dialect: str = "excel") -> Iterator[tuple[int, list[str], str]]:
    """Yield (1-based line, fields, text without the last line feed) of each record of a CSV; a record may span lines.

    Args:
        path: the file.
        dialect: a dialect of the module csv; ``excel-tab`` reads tabs.

    Raises:
        NotCsvError: no CSV, with the line.
        DataError: broken UTF-8, with the line.
    """
    read: list[str] = []

    def read_lines() -> Iterator[str]:
        for text in read_utf8_lines(path):
            read.append(text)
            yield text

    limit = csv.field_size_limit(MAX_CELL)  # of the process: restored below
    reader = csv.reader(read_lines(), dialect, strict=True)
    line = 1
    try:
        for fields in reader:
            yield line, fields, "".join(read).removesuffix("\n")
            read.clear()
            line = reader.line_num + 1
    except csv.Error as error:
        raise NotCsvError(f"is no CSV: {error}", file=path, line=line) from None
    finally:
        csv.field_size_limit(limit)


# -- JSON and YAML ----------------------------------------------------------------------------------------------------


class Refused(ValueError):
    """Why a value that a looser reader takes is refused."""


def read_strict_object(path: Path) -> dict[str, Any]:
    """Return the JSON object that a whole file is; see `parse_strict_value` and `records.readers.read_limited`.

    Raises:
        DataError: with file.
    """
    try:
        return parse_strict_object(read_limited(path), file=path, number=1)
    except DataError as error:
        raise error.at(file=path) from None  # the object is the whole file, no line of it


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


def parse_strict_value(line: bytes, *, file: Path | str, number: int) -> Any:
    """Parse one line as JSON.

    Refuse what JSON does not have (NaN), repeated keys, numbers that no float holds, and more than `MAX_NESTED`
    levels. Callers with many lines decode them with msgspec, and strictly only the lines that fail.

    Raises:
        DataError: with file and line, saying what was expected and what was found.
    """
    text = ""
    try:
        text = line.decode("utf-8")
        if not text.strip(" \t\r\n"):
            raise Refused("expected a JSON object, found an empty line")
        hooks: dict[str, Any] = {"parse_constant": refuse_constant, "parse_float": parse_finite_float}
        value = json.loads(text, object_pairs_hook=make_object, **hooks)
        # one bound for every release of Python; walking the value never meets the recursion limit
        if text.count("[") + text.count("{") > MAX_NESTED and is_nested_deeper(STRING.sub("", text)):
            raise Refused(TOO_DEEP)
        return value
    except UnicodeDecodeError as error:
        message = f"expected UTF-8, found the {describe_bad_byte(line, error)}"
    except Refused as error:
        message = str(error)
    except RecursionError:
        message = TOO_DEEP
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.pos + 1} of {len(text)}"
        if error.pos >= len(text.rstrip()) or "Unterminated" in error.msg:
            message = f"expected a whole JSON object on each line, found the line's end ({where})"
        else:
            message = f"expected a JSON object, found {show(text[error.pos : error.pos + 20])} ({where})"
    except ValueError:  # an integer of more digits than Python converts
        message = "expected numbers of at most 64 bits, found a longer one"
    raise DataError(message, file=file, line=number)


def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, which has each key once."""
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Refused(f"expected each key once, found the key {show(key)} twice in one object")
            seen.add(key)
    return members


def refuse_constant(name: str) -> Any:
    """Refuse NaN and infinities."""
    raise Refused(f"expected JSON, found {name}, which JSON does not have")


def parse_finite_float(digits: str) -> float:
    """Return a number that is finite: another would be written back as Infinity, which JSON does not have."""
    number = float(digits)
    if math.isinf(number):
        raise Refused(f"expected numbers of at most 64 bits, found {show(digits, 40)}")
    return number


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
