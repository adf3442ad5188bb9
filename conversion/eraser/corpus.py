"""What lies in an ERASER corpus folder: its split files, its documents, and what else is there and why it is left out.

Only first lines are read here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from eraser_hub.conversion.dataset import ends_of
from eraser_hub.conversion.licenses import is_license
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import describe, strict_value
from eraser_hub.records.lines import batches_of_lines, reading
from eraser_hub.records.splits import dataset_split

from .configs import EraserConfig
from .format import first_annotation, is_double_encoded

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
    """A corpus on disk: its split files (train, validation, test, then others by name), licences, what is skipped."""

    config: EraserConfig
    folder: Path
    splits: tuple[SplitFile, ...]
    skipped: tuple[Skipped, ...]
    backups: tuple[Path, ...]
    licenses: tuple[Path, ...] = ()


_ORDER = {"train": 0, "validation": 1, "test": 2}


def look_into(folder: Path, config: EraserConfig) -> CorpusFolder:
    """The corpus that lies in ``folder``; only first lines are read.

    Raises:
        DataError: there is no annotation file, a split has two files, or a split file is empty.
    """
    splits: dict[str, SplitFile] = {}
    skipped: list[Skipped] = []
    licenses: list[Path] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", rule="file-unreadable", file=folder) from None
    lines = any(entry.name == "docs.jsonl" and entry.is_file() for entry in entries)
    for entry in entries:
        path = folder / entry.name
        if entry.name == "docs.jsonl" if lines else entry.name == "docs" and entry.is_dir():
            continue
        if config.corpus_yaml and entry.name in ("corpus.yaml", "annotators"):
            continue
        if is_license(entry):
            licenses.append(path)
            continue
        reason = _why_no_split(entry, path, config)
        if reason:
            skipped.append(Skipped(path, reason))
            continue
        split = dataset_split(path.stem)
        if split in splits:
            message = f"expected one file for the split {split}, found this one and {splits[split].path}"
            raise DataError(message, rule="file-twice", file=path)
        splits[split] = _split_file(split, path)
    if not splits:
        message = "expected annotation files (train.jsonl, val.jsonl, test.jsonl), found none"
        raise DataError(message, rule="file-missing", file=folder)
    ordered = sorted(splits.values(), key=lambda each: (_ORDER.get(each.split, 3), each.split))
    backups = tuple(each.path for each in skipped if each.reason == BACKUP)
    return CorpusFolder(config, folder, tuple(ordered), tuple(skipped), backups, tuple(licenses))


def _first_line(path: Path) -> bytes | None:
    with reading(path):
        for batch in batches_of_lines(path, 1 << 16):
            return batch.lines[0]
    return None


def _why_no_split(entry: os.DirEntry[str], path: Path, config: EraserConfig) -> str | None:
    """Why an entry of the folder is left out; None for a file of annotations."""
    surely = path.stem in {"train", "val", "validation", "test", *config.extra_splits}
    if surely and path.suffix == ".jsonl" and not entry.is_file():
        with reading(path):  # a folder, a pipe, a link that leads nowhere in the place of a split
            return None
    if entry.is_dir():
        beside = entry.name == "docs"
        return "docs.jsonl beside it holds the documents" if beside else "is a folder that the release does not have"
    if not entry.is_file():
        return "is no file, or a link that leads nowhere"
    if entry.name.endswith(".jsonl.bak"):
        return BACKUP
    if path.suffix != ".jsonl" or entry.name.startswith("."):
        return "is no .jsonl file"
    reason = _why_not_annotations(path, surely)
    split = dataset_split(path.stem)
    if reason is None and (not re.fullmatch(r"\w+", split) or split == "all"):
        return "holds annotations, but a dataset's split cannot have that name; rename it"
    return reason


def _why_not_annotations(path: Path, surely: bool) -> str | None:
    """Why a .jsonl file is no split file, told by its first line; a file of a split's name is one unless it is readable
    as something else."""
    line = _first_line(path)
    if line is None:
        return None if surely else "is empty"
    try:
        value = strict_value(line, file=path, number=1)
        if isinstance(value, str):
            value = strict_value(value.encode(), file=path, number=1)
    except (DataError, UnicodeError):
        return None if surely else "is not ERASER annotations (its first line is no JSON object)"
    if not isinstance(value, dict):
        return None if surely else f"is not ERASER annotations (its first line is {describe(value)})"
    if "rationales" in value and "evidences" not in value:
        return PREDICTIONS
    if surely:
        return None
    if "annotation_id" not in value or "evidences" not in value:
        return f"is another format (an object with {', '.join(shown(key, 30) for key in list(value)[:6])})"
    try:
        first_annotation(line, path)
    except DataError as error:  # boolq's dev_data.jsonl
        return f"is another format (its first line: {error.field or 'the record'}: {error.message})"
    return None


def _split_file(split: str, path: Path) -> SplitFile:
    first = _first_line(path)
    if first is None:
        raise DataError("expected annotations, found an empty file", rule="empty", file=path)
    return SplitFile(split, path, is_double_encoded(first), ends_of(path)["final_newline"])
