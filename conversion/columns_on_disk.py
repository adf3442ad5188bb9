"""Columns that grow on the disk and are read back through the memory map: what a build has decoded once and takes rows
out of, in any order, without holding it in memory.

A column of numbers is their bytes; one of strings is two files, the UTF-8 and the sizes. Parts that several processes wrote
are put together by appending their files. They live as long as a build, and never leave the machine.
"""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from .arrays import numbers, offsets_of, string_array, string_data, string_sizes

SIZES = ".sizes"


class ColumnWriter:
    """Appends to the columns in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        self._files: dict[str, BinaryIO] = {}

    def numbers(self, name: str, values: np.ndarray) -> None:
        """Append numbers; a column has one type."""
        self._file(name).write(np.ascontiguousarray(values).data)

    def strings(self, name: str, values: pa.StringArray) -> None:
        """Append strings."""
        self._file(name).write(string_data(values).data)
        self.numbers(name + SIZES, string_sizes(values))

    def _file(self, name: str) -> BinaryIO:
        if name not in self._files:
            self._files[name] = self._stack.enter_context((self.folder / name).open("wb"))
        return self._files[name]

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def put_together(parts: Sequence[Path], folder: Path) -> None:
    """Append the columns of the parts, in their order, and remove the parts; a single one is taken as it is."""
    shutil.rmtree(folder, ignore_errors=True)
    if len(parts) == 1:
        parts[0].rename(folder)
        return
    folder.mkdir(parents=True)
    for part in parts:
        for path in sorted(part.iterdir()):
            with path.open("rb") as source, (folder / path.name).open("ab") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        shutil.rmtree(part)


def read_numbers(folder: Path, name: str, kind: Any) -> np.ndarray:
    """A column of numbers; without a file, or with an empty one, there are none."""
    data = _mapped(folder / name)
    return np.zeros(0, kind) if data is None else np.frombuffer(data, kind)


def _mapped(path: Path) -> mmap.mmap | None:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):  # an empty file cannot be mapped
        return None


class Strings:
    """A column of strings."""

    def __init__(self, folder: Path, name: str) -> None:
        self.offsets = offsets_of(read_numbers(folder, name + SIZES, np.int64))
        data = _mapped(folder / name)
        self._data = pa.py_buffer(b"" if data is None else data)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """int64: the bytes of each."""
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> pa.StringArray:
        """Those of ``rows``, in that order."""
        if not len(rows):
            return string_array(b"", np.zeros(0, np.int64))
        if len(rows) == rows[-1] - rows[0] + 1 and (len(rows) == 1 or bool((np.diff(rows) == 1).all())):
            return self.slice(int(rows[0]), int(rows[-1]) + 1)
        whole = pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(self.offsets), self._data)
        return whole.take(numbers(rows.astype(np.int64))).cast(pa.string())

    def slice(self, start: int, end: int) -> pa.StringArray:
        """Those from ``start`` to before ``end``."""
        first, last = int(self.offsets[start]), int(self.offsets[end])
        return string_array(self._data.slice(first, last - first), np.diff(self.offsets[start : end + 1]))
