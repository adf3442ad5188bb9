"""Raw corpora: their location (a folder, the user's archive, or a download), and an inventory of their files.

The inventory lists split files, licences, and skipped files with the reason. It reads only the first line of a file.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eraser_hub.conversion.dataset import read_file_ends
from eraser_hub.conversion.licenses import MAX_BYTES, is_license_name
from eraser_hub.conversion.readers import describe_value, parse_strict_value
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.places import dataset_split
from eraser_hub.records.readers import read_line_batches, wrap_read_errors

from .configs import CONFIGS, CORPUS_YAML, IMPORT_RECORD, EraserConfig
from .corpus_yaml import find_custom_corpora, read_corpus_yaml
from .format import is_double_encoded, read_annotations, read_first_annotation

PREDICTIONS = "holds predictions (rationales), not annotations; `eraser-hub score --predictions` reads it"
BACKUP = "is a backup"


@dataclass(frozen=True, slots=True)
class SplitFile:
    """A file of annotations: the dataset's name of its split, its path and its encoding."""

    split: str
    path: Path
    double: bool
    final_newline: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped file and the reason."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: skipped: {self.reason}"


@dataclass(frozen=True, slots=True)
class CorpusFolder:
    """A corpus on disk: split files (train, validation, test, then others by name), skipped files, licences."""

    config: EraserConfig
    folder: Path
    splits: tuple[SplitFile, ...]
    skipped: tuple[Skipped, ...]
    backups: tuple[Path, ...]
    licenses: tuple[Path, ...] = ()


_ORDER = {"train": 0, "validation": 1, "test": 2}


def inspect_folder(folder: Path, config: EraserConfig) -> CorpusFolder:
    """Return the inventory of a corpus folder.

    Raises:
        DataError: there is no annotation file, a split has two files, or a split file is empty.
    """
    splits: dict[str, SplitFile] = {}
    skipped: list[Skipped] = []
    licenses: list[Path] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=folder) from None
    lines = any(entry.name == "docs.jsonl" and entry.is_file() for entry in entries)
    for entry in entries:
        path = folder / entry.name
        if entry.name == "docs.jsonl" if lines else entry.name == "docs" and entry.is_dir():
            continue
        if config.corpus_yaml and entry.name in (CORPUS_YAML, IMPORT_RECORD, "annotators"):
            reason = f"is not {config.name}.parquet, the file of the corpus's annotators"  # as after a change of name
            others = sorted(path.iterdir()) if entry.is_dir() else ()
            skipped += [Skipped(other, reason) for other in others if other.name != f"{config.name}.parquet"]
            continue
        if is_license_name(entry.name) and entry.is_file() and entry.stat().st_size <= MAX_BYTES:
            licenses.append(path)
            continue
        if (why := _find_skip_reason(entry, path, config)) is not None:
            skipped.append(Skipped(path, why))
            continue
        split = dataset_split(path.stem)
        if split in splits:
            message = f"expected one file for the split {split}, found this one and {splits[split].path}"
            raise DataError(message, file=path)
        first = _read_first_line(path)
        if first is None:
            raise DataError("expected annotations, found an empty file", file=path)
        splits[split] = SplitFile(split, path, is_double_encoded(first), read_file_ends(path)["final_newline"])
    if not splits:
        message = "expected annotation files (train.jsonl, val.jsonl, test.jsonl), found none"
        raise DataError(message, file=folder)
    ordered = sorted(splits.values(), key=lambda each: (_ORDER.get(each.split, 3), each.split))
    backups = tuple(each.path for each in skipped if each.reason == BACKUP)
    return CorpusFolder(config, folder, tuple(ordered), tuple(skipped), backups, tuple(licenses))


def _read_first_line(path: Path) -> bytes | None:
    return next((batch.lines[0] for batch in read_line_batches(path, 1 << 16)), None)


def _find_skip_reason(entry: os.DirEntry[str], path: Path, config: EraserConfig) -> str | None:
    """Return the reason to skip an entry of the folder; None for a file of annotations."""
    surely = path.stem in {"train", "val", "validation", "test", *config.extra_splits}
    if surely and path.suffix == ".jsonl" and not entry.is_file():
        with wrap_read_errors(path):  # raises if a folder, a pipe or a broken link has the name of a split file
            return None
    if entry.is_dir():
        is_docs = entry.name == "docs"
        return "docs.jsonl beside it holds the documents" if is_docs else "is a folder that the release does not have"
    if not entry.is_file():
        return "is no file, or a link that leads nowhere"
    if entry.name.endswith(".jsonl.bak"):
        return BACKUP
    if path.suffix != ".jsonl" or entry.name.startswith("."):
        return "is no .jsonl file"
    line, value = _read_first_line(path), None
    try:
        value = None if line is None else parse_strict_value(line, file=path, number=1)
        value = parse_strict_value(value.encode(), file=path, number=1) if isinstance(value, str) else value
        kind = describe_value(value)
    except (DataError, UnicodeError):
        value, kind = None, "no JSON object"
    if isinstance(value, dict) and "rationales" in value and "evidences" not in value:
        return PREDICTIONS
    if surely:  # a file of that name is a split file unless it clearly has another format
        return None
    if line is None:
        return "is empty"
    if not isinstance(value, dict):
        return f"is not ERASER annotations (its first line is {kind})"
    if "annotation_id" not in value or "evidences" not in value:
        return f"is another format (an object with {', '.join(show(key, 30) for key in list(value)[:6])})"
    try:
        read_first_annotation(line, path)
    except DataError as error:  # boolq's dev_data.jsonl
        return f"is another format (its first line: {error.field or 'the record'}: {error.message})"
    split = dataset_split(path.stem)
    if not re.fullmatch(r"\w+", split) or split == "all":
        return "holds annotations, but a dataset's split cannot have that name; rename it"
    return None


# -- location -------------------------------------------------------------------------------------------------

# config -> the config whose archive may contain it
HOST_CONFIGS = {"cose_simplified": "cose", "esnli_flat": "esnli"}


def find_corpus(config: str, source: Path | None) -> Path:
    """Return the raw folder of a config; download or unpack it if necessary.

    Args:
        config: e.g. ``movies``.
        source: contains ``movies/`` or ``movies.tar.gz``, or is one of these. For a custom corpus: the folder with its
            corpus.yaml, or the parent of that folder. None downloads the release.

    Raises:
        DataError: the corpus is missing, or the archive is refused.
    """
    from eraser_hub.conversion import download

    if source is None:

        def read(folder: Path) -> None:
            for file in inspect_folder(folder, CONFIGS[config]).splits:
                for _ in read_annotations(file.path):
                    pass

        return download.fetch_corpus(config, read=read)
    place = find_custom_corpora(source).get(config) or _find_released(config, source)
    if place is None:
        message = f"expected a folder {config}/ or an archive {config}.tar.gz, found neither"
        raise DataError(message, file=source)
    if place.is_dir():
        return place
    inside = download.find_corpus(download.unpack_archive(place), config)
    if inside is None:
        message = f"expected a folder {config} with split files in the archive, found none"
        raise DataError(message, file=place)
    return inside


def get_config(name: str, folder: Path) -> EraserConfig:
    """Return the config of a corpus: from the corpus.yaml in its folder, else the release's config ``name``.

    Raises:
        DataError: the corpus.yaml is invalid.
    """
    return read_corpus_yaml(folder) if os.path.lexists(folder / CORPUS_YAML) else CONFIGS[name]


def _find_released(config: str, source: Path, exact: bool = False) -> Path | None:
    """Return the folder or archive of a released config; None if it is missing or has a corpus.yaml."""
    if (source / CORPUS_YAML).is_file():
        return None
    if source.is_file():
        return source if source.name == f"{config}.tar.gz" or not exact else None
    for candidate in (source / config, source / f"{config}.tar.gz"):
        if (candidate.is_dir() or candidate.is_file()) and not (candidate / CORPUS_YAML).is_file():
            return candidate
    if source.resolve().name == config and _has_splits(source):
        return source
    if exact:
        return None
    host = HOST_CONFIGS.get(config)
    if host is not None:
        for candidate in (source / host / config, source / f"{host}.tar.gz"):
            if candidate.exists():
                return candidate
    return source if _has_splits(source) and not any((source / name).is_dir() for name in CONFIGS) else None


def is_raw(folder: Path) -> bool:
    """Return True if a folder is a raw corpus, or contains some (as folders or archives named like configs)."""
    if _has_splits(folder) or find_custom_corpora(folder):
        return True
    return any((folder / f"{name}.tar.gz").is_file() or any((folder / name).glob("*.jsonl")) for name in CONFIGS)


def _has_splits(folder: Path) -> bool:
    return any((folder / f"{name}.jsonl").is_file() for name in ("train", "val", "validation", "test"))


def hash_files(folder: Path) -> str:
    """Return a digest of the names, sizes and times of a corpus folder's files, which changes if a file changes."""
    digest = hashlib.sha256()
    for place in (folder, folder / "docs", folder / "annotators"):
        if not place.is_dir():
            continue
        with os.scandir(place) as entries:
            rows = []
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError:  # a broken link is listed later among the skipped files
                    continue
                if not entry.is_dir():
                    rows.append((os.fsencode(entry.name), status.st_size, status.st_mtime_ns))
        for row in sorted(rows):
            digest.update(repr(row).encode())
    return digest.hexdigest()


def choose_configs(configs: Sequence[str] | None, source: Path | None) -> list[str]:
    """Return the configs to build: the requested ones, else those in ``source``, else all."""
    custom = find_custom_corpora(source) if source is not None else {}
    known = [*(name for name in CONFIGS if name not in custom), *custom]
    if configs:
        unknown = [name for name in configs if name not in known]
        if unknown:
            raise UsageError(f"expected configs of {', '.join(known)}, found {unknown[0]!r}")
        return [name for name in known if name in configs]
    if source is None:
        return known
    names = [name for name in known if name in custom or _find_released(name, source, exact=True) is not None]
    if not names:
        expected = f"folders or archives named {', '.join(CONFIGS)}, or folders with a {CORPUS_YAML}"
        raise DataError(f"expected {expected}, found none", file=source)
    return names
