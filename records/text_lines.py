"""A UTF-8 file line by line; what is no UTF-8 is refused with its line."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from .errors import DataError


def utf8_lines(path: str | PathLike[str]) -> Iterator[str]:
    """The lines with their line feeds (only these end a line); a byte order mark at the start is passed over.

    Raises:
        DataError: broken UTF-8, with line and byte.
    """
    with Path(path).open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                found = f"byte 0x{raw[error.start]:02x} at byte {error.start + 1} of the line"
                raise DataError(f"expected UTF-8, found {found}", file=path, line=number) from None
            yield text.removeprefix("\ufeff") if number == 1 else text
