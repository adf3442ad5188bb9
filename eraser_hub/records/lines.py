"""Files line by line: runs of lines as bytes, and lines as text; what is no UTF-8 is refused with its line."""

from __future__ import annotations

import csv
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from .atomic import READ_FLAGS
from .errors import DataError

BATCH_BYTES = 1 << 20
LONGEST_CELL = 1 << 27  # of a CSV
MAX_LINE_BYTES = 64 << 20  # of a line of JSON; the longest of a released corpus or its predictions have a hundredth
MOST_BYTES = 256 << 20  # of a file that is read at once; the largest score files have a tenth of it


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


def read_line_batches(
    path: Path, batch_bytes: int = BATCH_BYTES, start: int = 0, end: int | None = None
) -> Iterator[LineBatch]:
    """Yield the file's lines in runs of ``batch_bytes`` or a little more; the last line may lack its newline.

    Args:
        path: the file.
        batch_bytes: how many bytes are read at a time.
        start: where to begin, which is where a line begins; it counts as the first.
        end: where to stop, which is where a line ends; None goes on to the file's end.
    """
    first = 1
    with wrap_read_errors(path), open(path, "rb", buffering=batch_bytes) as file:
        file.seek(start)
        while end is None or start < end:
            data = file.read(batch_bytes)
            if not data:
                break
            if not data.endswith(b"\n"):
                rest = file.readline(MAX_LINE_BYTES)
                if len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
                    raise _too_long(path, first + data.count(b"\n"))
                data += rest
            data = data if end is None else data[: end - start]
            start += len(data)
            raw = BytesIO(data).readlines()
            yield LineBatch(range(first, first + len(raw)), raw, data)
            first += len(raw)


def find_line_end(path: Path, file: BinaryIO, start: int) -> int:
    """Return where the line ends that the byte ``start`` of an open file belongs to.

    Raises:
        DataError: the line is too long.
    """
    file.seek(start)
    rest = file.readline(MAX_LINE_BYTES)
    if len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
        raise _too_long(path)
    return start + len(rest)


def _too_long(path: Path, line: int | None = None) -> DataError:
    message = f"expected lines of at most {MAX_LINE_BYTES:,} bytes, found a longer one"
    return DataError(message, file=path, line=line)


_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


@contextmanager
def wrap_read_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Turn read errors of the block into a DataError that names the file and the reason; refuse pipes.

    Raises:
        DataError: no file stands there, or an OSError of the block.
    """
    try:
        if "\0" in str(path):
            raise DataError("expected a file's name, found one with a NUL character", file=path)
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise DataError(
                f"expected a file, found {_KINDS.get(stat.S_IFMT(found.st_mode), 'a device')}",
                file=path,
            )
        yield
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


def read_limited(path: str | PathLike[str], most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file that has at most so many.

    Raises:
        DataError: it has more, or cannot be read.
    """
    with wrap_read_errors(path), open(path, "rb") as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, most_bytes) + 1)
    if len(data) > most_bytes:
        raise DataError(f"expected at most {most_bytes:,} bytes, found more", file=path)
    return data


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

    limit = csv.field_size_limit(LONGEST_CELL)  # of the process: restored below
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


def file_name(docid: str) -> str:
    """Return the name of a document's file: UTF-8, whatever the locale says; "" if the id can be no name of a file."""
    if docid in ("", ".", "..") or {"/", "\0"} & set(docid) or len(docid.encode()) >= 256:
        return ""
    return docid if docid.isascii() else os.fsdecode(docid.encode("utf-8"))


class NoFile(DataError):
    """Missing file, or something that is no file."""


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
                raise NoFile(
                    f"expected a file, found {_KINDS.get(stat.S_IFMT(found.st_mode), 'a device')}",
                    file=path,
                )
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
        message = f"expected UTF-8, found the byte 0x{data[error.start]:02x}"
        raise DataError(message, file=path, line=line) from None
    except OSError as error:
        fault = NoFile if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO) else DataError
        raise fault(f"cannot be read: {error.strerror}", file=path) from None


def describe_bad_byte(line: bytes, error: UnicodeDecodeError) -> str:
    """Describe the first byte of a line that is not UTF-8."""
    return f"byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line"
