"""What lies in an ERASER corpus folder: its split files, its documents, and what else is there and why it is left out.

Nothing here holds a corpus in memory: documents are an index (where each one lies), texts are read when needed.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from eraser_hub.errors import DataError, shown
from eraser_hub.splits import dataset_split

from .configs import EraserConfig
from .eraser_format import decode_documents, document_text, is_double_encoded
from .json_lines import batches_of_lines, found, strict_object

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
        if entry.name == "docs.jsonl":
            continue
        if not entry.is_file():
            skipped.append(Skipped(path, "is no file, or a link that leads nowhere"))
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
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        final_newline = file.read(1) == b"\n"
    return SplitFile(split, path, is_double_encoded(first), final_newline)


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

    def read(self, numbers: np.ndarray) -> list[tuple[str, str]]:
        """(id, text) of each."""
        return [(self.names[n], document_text(self.path / self.names[n])) for n in numbers.tolist()]


class DocumentLines:
    """docs.jsonl, numbered by line: some 30 bytes in memory for each document, whatever its length.

    An id is found by its 64-bit hash; whoever reads a document compares its id with the one looked for.
    """

    layout = "docs.jsonl"
    final_newline = True
    folders: tuple[Path, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        starts, hashes = array("q", [0]), array("q")
        try:
            for batch in batches_of_lines(path):
                documents = decode_documents(batch.lines, file=path, first=batch.first)
                hashes.extend([hash(document.docid) for document in documents])
                ends = np.cumsum(np.fromiter(map(len, batch.lines), np.int64, len(batch.lines)) + 1) + batch.start
                starts.frombytes(ends.tobytes())
                self.final_newline = batch.ends_with_newline
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=path) from None
        self.starts = np.frombuffer(starts, np.int64)
        self.sizes = np.diff(self.starts) - 1
        self._hashes = np.frombuffer(hashes, np.int64) if hashes else np.zeros(0, np.int64)
        self._order = np.argsort(self._hashes, kind="stable").astype(np.int32)
        self._hashes = self._hashes[self._order]
        self._refuse_repeated()

    def _refuse_repeated(self) -> None:
        """Two lines with one hash have one id, unless chance (2**-64 a pair) made them equal."""
        same = np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
        if not len(same):
            return
        pairs = sorted((int(self._order[i + 1]), int(self._order[i])) for i in same)
        later, earlier = pairs[0]
        docid = self.read(np.array([later]))[0][0]
        raise DataError(
            f"expected each document once, found {shown(docid)} again (first on line {earlier + 1})",
            file=self.path,
            line=later + 1,
        )

    def __len__(self) -> int:
        return len(self.sizes)

    def find(self, docids: Sequence[str]) -> np.ndarray:
        """The number of each id, -1 where there is none."""
        if not len(self._hashes):
            return np.full(len(docids), -1, np.int32)
        wanted = np.fromiter(map(hash, docids), np.int64, len(docids))
        place = np.searchsorted(self._hashes, wanted)
        place[place == len(self._hashes)] = 0
        return np.where(self._hashes[place] == wanted, self._order[place], -1).astype(np.int32)

    def read(self, numbers: np.ndarray) -> list[tuple[str, str]]:
        """(id, text) of each."""
        return read_document_lines(self.path, self.starts[numbers], self.sizes[numbers])


class _RawDocument(msgspec.Struct, gc=False):
    docid: str
    document: str


_decode_document = msgspec.json.Decoder(_RawDocument).decode


def read_document_lines(path: Path, starts: np.ndarray, sizes: np.ndarray) -> list[tuple[str, str]]:
    """Documents of docs.jsonl at known places (checked when the index was made); neighbours are read in one go."""
    lines = lines_at(path, starts, sizes)
    try:
        return [(raw.docid, raw.document) for raw in map(_decode_document, lines)]
    except (msgspec.MsgspecError, UnicodeError):
        raise DataError("changed while it was read", file=path) from None


def lines_at(path: Path, starts: np.ndarray, sizes: np.ndarray) -> list[bytes]:
    """Lines at known places; those that follow one another in the file are read in one go."""
    if not len(starts):
        return []
    breaks = np.flatnonzero(starts[1:] != starts[:-1] + sizes[:-1] + 1) + 1
    firsts, lasts = [0, *breaks.tolist()], [*(breaks - 1).tolist(), len(starts) - 1]
    lines: list[bytes] = []
    with path.open("rb") as file:
        for first, last in zip(firsts, lasts, strict=True):
            start, end = int(starts[first]), int(starts[last] + sizes[last])
            file.seek(start)
            lines += file.read(end - start).split(b"\n")
    if len(lines) != len(starts):
        raise DataError("changed while it was read", file=path)
    return lines


def document_index(folder: Path) -> DocumentFiles | DocumentLines:
    """The documents of a corpus folder: docs.jsonl, else docs/."""
    if (folder / "docs.jsonl").is_file():
        return DocumentLines(folder / "docs.jsonl")
    if (folder / "docs").is_dir():
        return DocumentFiles(folder / "docs")
    raise DataError("expected a folder docs/ or a file docs.jsonl, found neither", file=folder)
