"""What lies in an ERASER corpus folder: its split files, its documents, and what else is there and why it is left out.

Nothing here holds a corpus in memory: documents are an index (where each one lies), texts are read when needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eraser_hub.conversion.arrays import byte_strings, strings
from eraser_hub.conversion.columns_on_disk import ColumnWriter, Strings
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import batches_of_lines, found, strict_object
from eraser_hub.records.splits import dataset_split

from .configs import EraserConfig
from .format import decode_document_batch, document_bytes, is_double_encoded

PREDICTIONS = "holds predictions (rationales), not annotations; `eraser-hub score --results` reads it"
BACKUP = "is a backup; `--include-backup-records` takes up the records that stand in it alone"


@dataclass(frozen=True, slots=True)
class SplitFile:
    """A file of annotations: the dataset's name of the split, and how its lines are encoded."""

    split: str
    path: Path
    double: bool
    final_newline: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is left out, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: skipped: {self.reason}"


@dataclass(frozen=True, slots=True)
class CorpusFolder:
    """A corpus on disk: split files in the order train, validation, test, then the others by name."""

    config: EraserConfig
    folder: Path
    splits: tuple[SplitFile, ...]
    skipped: tuple[Skipped, ...]
    backups: tuple[Path, ...]


_ORDER = {"train": 0, "validation": 1, "test": 2}


def look_into(folder: Path, config: EraserConfig) -> CorpusFolder:
    """The corpus that lies in ``folder``; only first lines are read.

    Raises:
        DataError: there is no annotation file, a split has two files, or a split file is empty.
    """
    splits: dict[str, SplitFile] = {}
    skipped: list[Skipped] = []
    backups: list[Path] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=folder) from None
    expected = {"train", "val", "validation", "test", *config.extra_splits}
    lines = any(entry.name == "docs.jsonl" and entry.is_file() for entry in entries)
    for entry in entries:
        path = folder / entry.name
        if entry.is_dir():
            if entry.name != "docs":
                skipped.append(Skipped(path, "is a folder that the release does not have"))
            elif lines:
                skipped.append(Skipped(path, "docs.jsonl beside it holds the documents"))
            continue
        if not entry.is_file():
            skipped.append(Skipped(path, "is no file, or a link that leads nowhere"))
            continue
        if entry.name == "docs.jsonl":
            continue
        if entry.name.endswith(".jsonl.bak"):
            backups.append(path)
            skipped.append(Skipped(path, BACKUP))
            continue
        stem = entry.name.removesuffix(".jsonl")
        if not entry.name.endswith(".jsonl") or entry.name.startswith("."):
            skipped.append(Skipped(path, "is no .jsonl file"))
            continue
        reason = _why_not_annotations(path, surely=stem in expected)
        if reason:
            skipped.append(Skipped(path, reason))
            continue
        split = dataset_split(stem)
        if not re.fullmatch(r"\w+", split) or split == "all":
            skipped.append(Skipped(path, "holds annotations, but a dataset's split cannot have that name; rename it"))
            continue
        if split in splits:
            raise DataError(
                f"expected one file for the split {split}, found this one and {splits[split].path}", file=path
            )
        splits[split] = _split_file(split, path)
    if not splits:
        raise DataError("expected annotation files (train.jsonl, val.jsonl, test.jsonl), found none", file=folder)
    ordered = sorted(splits.values(), key=lambda each: (_ORDER.get(each.split, 3), each.split))
    return CorpusFolder(config, folder, tuple(ordered), tuple(skipped), tuple(backups))


def _first_line(path: Path) -> bytes | None:
    try:
        for batch in batches_of_lines(path, 1 << 16):
            return batch.lines[0]
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from None
    return None


def _why_not_annotations(path: Path, surely: bool) -> str | None:
    """Why a .jsonl file is no split file, told by its first line; a file of a split's name is one unless it is readable
    as something else."""
    line = _first_line(path)
    if line is None:
        return None if surely else "is empty"
    try:
        value = strict_object(line, file=path, number=1)
        if isinstance(value, str):
            value = strict_object(value.encode(), file=path, number=1)
    except (DataError, UnicodeError):
        return None if surely else "is not ERASER annotations (its first line is no JSON object)"
    if not isinstance(value, dict):
        return None if surely else f"is not ERASER annotations (its first line is {found(value)})"
    if "rationales" in value and "evidences" not in value:
        return PREDICTIONS
    if surely or ("annotation_id" in value and "evidences" in value):
        return None
    return f"is another format (an object with {', '.join(shown(key, 30) for key in list(value)[:6])})"


def _split_file(split: str, path: Path) -> SplitFile:
    first = _first_line(path)
    if first is None:
        raise DataError("expected annotations, found an empty file", file=path)
    return SplitFile(split, path, is_double_encoded(first), ends_with_newline(path))


class DocumentFiles:
    """docs/: one file each. Documents are numbered by name.

    Ids are looked up among the folder's entries and never joined to a path: one with "/" or ".." names nothing.
    ``sizes`` are the bytes of each, ``folders`` what else lies there.
    """

    layout = "docs/"
    final_newline = True

    def __init__(self, folder: Path) -> None:
        self.path = folder
        names: list[tuple[str, int]] = []
        self.folders: list[Path] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file():
                        names.append((entry.name, entry.stat().st_size))
                    else:
                        self.folders.append(folder / entry.name)
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=error.filename or folder) from None
        names.sort()
        self.names = [name for name, _ in names]
        for name in self.names:
            try:
                name.encode("utf-8")
            except UnicodeEncodeError:
                raise DataError(f"expected file names in UTF-8, found {shown(name)}", file=folder) from None
        self.sizes = np.fromiter((size for _, size in names), np.int64, len(names))
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, docids: Sequence[str]) -> np.ndarray:
        """The number of each id, -1 where there is none."""
        get = self._numbers.get
        return np.fromiter((get(docid, -1) for docid in docids), np.int32, len(docids))

    def read(self, numbers: np.ndarray) -> tuple[pa.StringArray, pa.StringArray]:
        """(the ids, the texts) of some."""
        return self.some(numbers).read(numbers)

    def some(self, numbers: np.ndarray) -> SomeFiles:
        """Those of ``numbers`` (ascending), as something small that travels to another process."""
        return SomeFiles(self.path, numbers, [self.names[n] for n in numbers.tolist()], self.sizes[numbers])


@dataclass(frozen=True, slots=True, eq=False)
class SomeFiles:
    """Some of the documents of docs/, by their numbers."""

    path: Path
    numbers: np.ndarray
    names: list[str]
    sizes: np.ndarray

    def read(self, numbers: np.ndarray) -> tuple[pa.StringArray, pa.StringArray]:
        """(the ids, the texts) of some of them."""
        names = [self.names[place] for place in np.searchsorted(self.numbers, numbers).tolist()]
        folder = str(self.path)
        sizes = self.sizes[np.searchsorted(self.numbers, numbers)].tolist()
        texts = [document_bytes(f"{folder}/{name}", size) for name, size in zip(names, sizes, strict=True)]
        return strings(names), byte_strings(texts)


class DocumentLines:
    """docs.jsonl, numbered by line, as columns on the disk (see `read_document_lines`).

    In memory: some 40 bytes for each document, whatever its length. An id is found by its hash, and then compared.
    """

    layout = "docs.jsonl"
    folders: tuple[Path, ...] = ()

    def __init__(self, path: Path, columns: Path) -> None:
        self.path, self._columns = path, columns
        self._names, self._texts = Strings(columns, "docids"), Strings(columns, "texts")
        self.sizes = self._texts.sizes
        self._index: tuple[np.ndarray, np.ndarray] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return document_lines, (self.path, self._columns)

    @property
    def final_newline(self) -> bool:
        """Whether docs.jsonl ends in one."""
        return ends_with_newline(self.path)

    def _hashes(self) -> tuple[np.ndarray, np.ndarray]:
        """(hashes of the ids in ascending order, the number of each); made when first asked for, in each process."""
        if self._index is None:
            hashes = hashes_of(self._names)
            order = np.argsort(hashes, kind="stable").astype(np.int32)
            self._index = hashes[order], order
        return self._index

    def refuse_repeated(self) -> None:
        """Raise a DataError when an id stands twice."""
        again = repeated(self._names, *self._hashes())
        if again is not None:
            earlier, later, docid = again
            raise DataError(
                f"expected each document once, found {shown(docid)} again (first on line {earlier + 1})",
                file=self.path,
                line=later + 1,
            )

    def __len__(self) -> int:
        return len(self._names)

    def find(self, docids: Sequence[str]) -> np.ndarray:
        """The number of each id, -1 where there is none."""
        hashes, order = self._hashes()
        numbers = np.full(len(docids), -1, np.int32)
        if not len(hashes):
            return numbers
        wanted = np.fromiter(map(hash, docids), np.int64, len(docids))
        # looked up in ascending order, one search finds in the cache what the one before it read
        ascending = np.argsort(wanted)
        place = np.searchsorted(hashes, wanted[ascending])
        place[place == len(hashes)] = 0
        numbers[ascending] = np.where(hashes[place] == wanted[ascending], order[place], -1)
        there = np.flatnonzero(numbers >= 0)
        same = pc.equal(self._names.take(numbers[there]), strings([docids[n] for n in there.tolist()]))
        if not pc.all(same).as_py():  # two ids of one hash
            numbers[there[~same.to_numpy(zero_copy_only=False)]] = -1
        return numbers

    def read(self, numbers: np.ndarray) -> tuple[pa.StringArray, pa.StringArray]:
        """(the ids, the texts) of some."""
        return self._names.take(numbers), self._texts.take(numbers)

    def some(self, numbers: np.ndarray) -> DocumentLines:
        """All of them: what travels to another process is where they lie."""
        return self


@lru_cache(maxsize=1)
def document_lines(path: Path, columns: Path) -> DocumentLines:
    """The documents that another process has read; a worker opens them once."""
    return DocumentLines(path, columns)


def document_files(folder: Path) -> DocumentFiles:
    """The documents of a corpus folder without docs.jsonl."""
    if (folder / "docs").is_dir():
        return DocumentFiles(folder / "docs")
    raise DataError("expected a folder docs/ or a file docs.jsonl, found neither", file=folder)


def hashes_of(names: Strings) -> np.ndarray:
    """int64: the hash of each string, in this process."""
    hashes = np.zeros(len(names), np.int64)
    for start in range(0, len(names), 1 << 16):
        some = names.slice(start, min(start + (1 << 16), len(names))).to_pylist()
        hashes[start : start + len(some)] = np.fromiter(map(hash, some), np.int64, len(some))
    return hashes


def repeated(names: Strings, hashes: np.ndarray, order: np.ndarray) -> tuple[int, int, str] | None:
    """(place, place of its repetition, string) of the string that is repeated first, or None where all differ.

    Args:
        names: the strings.
        hashes: their hashes, ascending.
        order: the place of the string with each hash; ascending where hashes are equal.
    """
    same = np.flatnonzero(hashes[1:] == hashes[:-1])
    if not len(same):
        return None
    found = []
    for at in same.tolist():
        earlier, later = int(order[at]), int(order[at + 1])
        one, other = names.take(np.array([earlier, later])).to_pylist()
        if one == other:  # else chance made two hashes equal
            found.append((later, earlier, one))
    if not found:
        return None
    later, earlier, name = min(found)
    return earlier, later, name


def ends_with_newline(path: Path) -> bool:
    """Whether a file's last byte is one; an empty file's too, as it were."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read_document_lines(path: Path, start: int, end: int, into: Path, advance: Callable[[int], None]) -> None:
    """Decode the lines of docs.jsonl from byte ``start`` to ``end`` into columns: docids, texts.

    Raises:
        DataError: at the first line that is no document.
    """
    with ColumnWriter(into) as columns:
        for batch in batches_of_lines(path, start=start, end=end):
            documents = decode_document_batch(batch, batch.ends(), file=path)
            columns.strings("docids", strings([document.docid for document in documents]))
            columns.strings("texts", strings([document.document for document in documents]))
            advance(len(batch.data))
