"""The documents of a corpus folder, numbered: found by their ids, counted, and read when a row needs them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

import numpy as np
import pyarrow as pa

from eraser_hub.conversion.arrays import (
    get_string_bytes,
    get_string_sizes,
    make_byte_strings,
    make_numbers,
    make_strings,
)
from eraser_hub.conversion.offsets import compute_offsets, sort_distinct
from eraser_hub.metrics.tokens import token_starts
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.lines import file_name, utf8_file

from .format import read_document_lines


class Documents(ABC):
    """A corpus's documents by number.

    Attributes:
        path: where they stand: the folder docs/, or docs.jsonl.
        layout: ``docs/`` or ``docs.jsonl``.
        final_newline: whether docs.jsonl ends in one.
        names: the ids, in the order of the numbers.
        sizes: int64, the bytes of each text.
        folders: what else lies in docs/.
    """

    layout: str
    final_newline = True

    def __init__(self, path: Path, numbered: dict[str, int], sizes: np.ndarray, folders: tuple[Path, ...] = ()) -> None:
        self.path, self.sizes, self.folders = path, sizes, folders
        self._numbers = numbered
        self.names = make_strings(list(numbered))
        self._counts = np.full((len(sizes), 2), -1, np.int32)

    def __len__(self) -> int:
        return len(self.sizes)

    def find(self, docids: list[str]) -> np.ndarray:
        """int32: the number of each id, -1 where there is none."""
        return np.fromiter(map(self._numbers.get, docids, repeat(-1)), np.int32, len(docids))

    @abstractmethod
    def texts(self, chosen: np.ndarray) -> pa.StringArray:
        """Return the texts of some, by their numbers."""

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """int32 (chosen, 2): the tokens and the sentences of each; a document is counted when first asked for."""
        new = sort_distinct(chosen[self._counts[chosen, 0] < 0])
        if len(new):
            self._counts[new] = count_tokens(self.texts(new))
        counts: np.ndarray = self._counts[chosen]
        return counts


def count_tokens(texts: pa.StringArray) -> np.ndarray:
    """int64 (texts, 2): the tokens and the sentences of each text (at once: four times as fast as text by text)."""
    starts = token_starts(get_string_bytes(texts), compute_offsets(get_string_sizes(texts)))
    sentences = compute_offsets(starts.opens_sentence)[starts.first_token]
    return np.diff(np.stack([starts.first_token, sentences], axis=1), axis=0)


class DocumentFiles(Documents):
    """docs/: one file each, numbered by name; texts are read from the files.

    Ids are looked up among the folder's entries and never joined to a path: one with "/" or ".." names nothing.
    """

    layout = "docs/"

    def __init__(self, folder: Path) -> None:
        sizes: dict[str, int] = {}
        folders: list[Path] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file():
                        name = entry.name if entry.name.isascii() else os.fsencode(entry.name).decode("utf-8")
                        sizes[name] = entry.stat().st_size
                    else:
                        folders.append(folder / entry.name)
        except UnicodeDecodeError as error:
            found = shown(os.fsdecode(error.object))
            raise DataError(f"expected file names in UTF-8, found {found}", rule="encoding", file=folder) from None
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
            raise DataError(message, rule="file-unreadable", file=error.filename or folder) from None
        names = sorted(sizes)
        numbered = {name: number for number, name in enumerate(names)}
        super().__init__(folder, numbered, np.array([sizes[name] for name in names], np.int64), tuple(folders))

    def texts(self, chosen: np.ndarray) -> pa.StringArray:
        """Return the texts of some, by their numbers."""
        folder = str(self.path)
        names = self.names.take(make_numbers(chosen)).to_pylist()
        return make_byte_strings([utf8_file(f"{folder}/{file_name(name)}") for name in names])


class DocumentLines(Documents):
    """docs.jsonl, numbered by line; the texts are in memory.

    Raises:
        DataError: at the first line that is no document, or whose id stands twice.
    """

    layout = "docs.jsonl"

    def __init__(self, path: Path, advance: Callable[[int], object] = lambda _: None) -> None:
        first: dict[str, int] = {}
        data, sizes = bytearray(), [np.zeros(0, np.int64)]
        for batch, records in read_document_lines(path, first):
            texts = make_strings([record.document for record in records])
            data += get_string_bytes(texts).data
            sizes.append(get_string_sizes(texts))
            self.final_newline = batch.ends_with_newline
            advance(len(batch.data))
        super().__init__(path, first, np.concatenate(sizes))
        self._texts = pa.LargeStringArray.from_buffers(
            len(first), pa.py_buffer(compute_offsets(self.sizes)), pa.py_buffer(data)
        )

    def texts(self, chosen: np.ndarray) -> pa.StringArray:
        """Return the texts of some, by their numbers."""
        return self._texts.take(make_numbers(chosen)).cast(pa.string())


def read_documents(folder: Path, advance: Callable[[int], object] = lambda _: None) -> Documents:
    """Return the documents of a corpus folder.

    Args:
        folder: holds docs.jsonl or docs/.
        advance: told how many bytes of docs.jsonl have been read.

    Raises:
        DataError: there is neither; a line of docs.jsonl is no document, or an id stands twice.
    """
    if (folder / "docs.jsonl").is_file():
        return DocumentLines(folder / "docs.jsonl", advance)
    if (folder / "docs").is_dir():
        return DocumentFiles(folder / "docs")
    raise DataError("expected a folder docs/ or a file docs.jsonl, found neither", rule="file-missing", file=folder)
