"""Files of bounded size, and of lines of bounded length; what is no file, such as a pipe, is never waited for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from .errors import DataError

# what decoding raises; before msgspec 0.21 its own error is no ValueError
JSON_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
BATCH_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20  # of a line of JSON; the longest of a released corpus or its predictions have a hundredth
MAX_BYTES = 256 << 20  # of a file that is read at once; the largest score files have a tenth of it
FILE_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a disk",
    stat.S_IFCHR: "a device",
}


@contextmanager
def wrap_read_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Turn read errors of the block into a DataError that names the file and the reason; refuse pipes.

    Raises:
        DataError: no file stands there, or an OSError of the block.
    """
    try:
        if "\0" in str(path):
            raise DataError("expected a file's name, found one with a NUL character", file=path)
        kind = stat.S_IFMT(os.stat(path).st_mode)
        if kind != stat.S_IFREG:
            raise DataError(f"expected a file, found {FILE_KINDS[kind]}", file=path)
        yield
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


def read_limited(path: str | PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file that has at most so many.

    Raises:
        DataError: it has more, or cannot be read.
    """
    with wrap_read_errors(path), open(path, "rb") as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, max_bytes) + 1)
    if len(data) > max_bytes:
        raise DataError(f"expected at most {max_bytes:,} bytes, found more", file=path)
    return data


def read_json(path: str | PathLike[str]) -> Any:
    """Return the JSON value that a whole file is; numbers are finite, and strings can be written as UTF-8.

    Raises:
        DataError: it is no JSON, or cannot be read.
    """
    data = read_limited(path)
    try:
        return msgspec.json.decode(data)
    except JSON_ERRORS as error:
        raise DataError(describe_bad_json(data, error), file=path) from None


def read_json_object(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the JSON object that a whole file is; errors as of `read_json`."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, found a {type(value).__name__}", file=path)
    return value


@dataclass
class LineBatch:
    """A run of whole lines of a file.

    Attributes:
        numbers: the 1-based number of each line.
        raw: the lines as they stand there, each with its "\\n"; the file's last one may lack it.
        data: their bytes, joined.
    """

    numbers: range
    raw: list[bytes]
    data: bytes

    @cached_property
    def lines(self) -> list[bytes]:
        """Each line without its "\\n"."""
        return self.data.removesuffix(b"\n").split(b"\n")


def read_line_batches(path: Path, batch_bytes: int = BATCH_BYTES) -> Iterator[LineBatch]:
    """Yield the file's lines in runs of ``batch_bytes`` or a little more; the last line may lack its newline.

    Raises:
        DataError: the file cannot be read; a line is too long.
    """
    first = 1
    with wrap_read_errors(path), open(path, "rb", buffering=batch_bytes) as file:
        while data := file.read(batch_bytes):
            if not data.endswith(b"\n"):
                rest = file.readline(MAX_LINE_BYTES)
                if len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
                    message = f"expected lines of at most {MAX_LINE_BYTES:,} bytes, found a longer one"
                    raise DataError(message, file=path, line=first + data.count(b"\n"))
                data += rest
            raw = BytesIO(data).readlines()
            yield LineBatch(range(first, first + len(raw)), raw, data)
            first += len(raw)


def describe_bad_json(data: bytes, error: Exception) -> str:
    """Return the message for a line or a file that msgspec cannot decode.

    >>> describe_bad_json(b'{"a": 1', msgspec.DecodeError("Input data was truncated"))
    'expected JSON, found unexpected end of data'
    """
    if isinstance(error, RecursionError):
        return "expected JSON, found lists or objects nested too deeply"
    try:
        data.decode()
    except UnicodeDecodeError as bad:  # msgspec's own error counts from the beginning of the string
        return f"expected UTF-8, found byte 0x{data[bad.start]:02x} at byte {bad.start + 1}"
    reason = str(error).removeprefix("JSON is malformed: ").partition(" - at ")[0]
    reason = "unexpected end of data" if reason == "Input data was truncated" else reason
    return f"expected JSON, found {reason[0].lower()}{reason[1:]}"


def describe_bad_byte(line: bytes, error: UnicodeDecodeError) -> str:
    """Describe the first byte of a line that is not UTF-8."""
    return f"byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line"
