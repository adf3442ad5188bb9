"""What lies in an ERASER corpus folder: its split files, its documents, and what else is there and why it is left out.

Only first lines are read here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import batches_of_lines, found, strict_object
from eraser_hub.records.splits import dataset_split

from .configs import EraserConfig
from .format import is_double_encoded

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


def ends_with_newline(path: Path) -> bool:
    """Whether a file's last byte is one; an empty file's too, as it were."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
