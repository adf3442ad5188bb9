"""Raw corpora: where their folders are (a folder, an archive, a download), and which of their files are splits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from eraser_hub.conversion.readers import parse_json
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.places import dataset_split
from eraser_hub.records.readers import read_line_batches, wrap_read_errors

from .configs import CONFIGS, CORPUS_YAML, IMPORT_RECORD, EraserConfig
from .format import read_annotations, read_first_annotation

SPLIT_FILES = ("train", "val", "validation", "test")
BACKUP = ".jsonl.bak"
HOSTS = {"cose_simplified": "cose", "esnli_flat": "esnli"}  # config -> the config whose archive may contain it


class CorpusFolder(NamedTuple):
    """A corpus on disk: its split files (train, validation, test, then others by name), and path -> why it is none."""

    splits: Mapping[str, Path]
    skipped: Mapping[Path, str]


def inspect_folder(folder: Path, config: EraserConfig) -> CorpusFolder:
    """Return the files of a corpus folder; of each the first line alone is read.

    Raises:
        DataError: there is no annotation file, a split has two files, or a split file is empty.
    """
    splits, skipped = dict[str, Path](), dict[Path, str]()
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=folder) from None
    names = [entry.name for entry in entries]
    expected = {"docs.jsonl" if "docs.jsonl" in names else "docs"}
    expected |= {CORPUS_YAML, IMPORT_RECORD, "annotators"} if config.corpus_yaml else set()
    for entry in entries:
        path = folder / entry.name
        if entry.name in expected:
            continue
        if why := _find_skip_reason(path, config):
            skipped[path] = why
            continue
        split = dataset_split(path.stem)
        if split in splits:
            message = f"expected one file for the split {split}, found this one and {splits[split]}"
            raise DataError(message, file=path)
        splits[split] = path
    if not splits:
        message = "expected annotation files (train.jsonl, val.jsonl, test.jsonl), found none"
        raise DataError(message, file=folder)
    order = {"train": 0, "validation": 1, "test": 2}
    ordered = dict(sorted(splits.items(), key=lambda item: (order.get(item[0], 3), item[0])))
    return CorpusFolder(ordered, skipped)


def _find_skip_reason(path: Path, config: EraserConfig) -> str:
    """Return why an entry of a corpus folder is no file of annotations; "" for one that is."""
    is_split = path.suffix == ".jsonl" and path.stem in (*SPLIT_FILES, *config.extra_splits)
    if not is_split and path.is_dir():
        return "is a folder that the release does not have"
    if path.name.endswith(BACKUP):
        return "is a backup"
    if path.suffix != ".jsonl" or path.name.startswith("."):
        return "is no .jsonl file"
    with wrap_read_errors(path):  # a pipe, a folder or a broken link
        first = next((batch.lines[0] for batch in read_line_batches(path, 1 << 16)), None)
    if first is None:
        if is_split:
            raise DataError("expected annotations, found an empty file", file=path)
        return "is empty"
    try:
        value = parse_json(first, file=path, number=1)
        value = parse_json(value.encode(), file=path, number=1) if isinstance(value, str) else value
    except DataError:
        value = None
    if isinstance(value, dict) and "rationales" in value and "evidences" not in value:
        return "holds predictions (rationales), not annotations; `eraser-hub score --predictions` reads it"
    if is_split:  # its faults are told when it is read
        return ""
    if not isinstance(value, dict) or not {"annotation_id", "evidences"} <= value.keys():
        keys = ", ".join(show(key, 30) for key in list(value)[:6]) if isinstance(value, dict) else "no JSON object"
        return f"is another format (its first line has {keys})"
    try:
        read_first_annotation(first, path)
    except DataError as error:  # boolq's dev_data.jsonl
        return f"is another format (its first line: {error.field or 'the record'}: {error.message})"
    if not re.fullmatch(r"\w+", dataset_split(path.stem)) or path.stem == "all":
        return "holds annotations, but a dataset's split cannot have that name; rename it"
    return ""


def find_backups(paths: Iterable[Path], ids: Mapping[str, set[str]]) -> list[str]:
    """Return a line for each backup of a split file with records that stand in it alone; they are not built."""
    lines = []
    for path in (path for path in paths if path.name.endswith(BACKUP)):
        try:
            saved = [str(record.annotation_id) for run in read_annotations(path) for record in run.records]
        except DataError:
            continue
        known = ids.get(dataset_split(path.name.removesuffix(BACKUP)), set())
        alone = [name for name in saved if name not in known]
        if alone:
            more = f" (and {len(alone) - 1} more)" if len(alone) > 1 else ""
            lines.append(f"{path}: the record {show(alone[0], 40)}{more} stands in this backup alone, and is not built")
    return lines


# -- location ---------------------------------------------------------------------------------------------------------


def find_corpus(config: str, source: Path | None) -> Path:
    """Return the raw folder of a released config; download or unpack it if necessary.

    Args:
        config: e.g. ``movies``.
        source: contains ``movies/`` or ``movies.tar.gz``, or is one of these. None downloads the release.

    Raises:
        DataError: the corpus is missing, or the archive is refused.
    """
    from eraser_hub.conversion import download

    if source is None:

        def read(folder: Path) -> None:
            for path in inspect_folder(folder, CONFIGS[config]).splits.values():
                for _ in read_annotations(path):
                    pass

        return download.fetch_corpus(config, read=read)
    place = find_released(config, source)
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


def find_released(config: str, source: Path, exact: bool = False) -> Path | None:
    """Return the folder or archive of a released config in ``source``; None where there is none.

    Args:
        config: the config.
        source: a folder of corpora, a corpus folder, or an archive.
        exact: by its own name alone, neither a corpus folder of another name nor another corpus's archive.
    """
    if (source / CORPUS_YAML).is_file():  # a corpus of one's own
        return None
    if source.is_file():
        return source if source.name == f"{config}.tar.gz" or not exact else None
    for candidate in (source / config, source / f"{config}.tar.gz"):
        if candidate.exists() and not (candidate / CORPUS_YAML).is_file():
            return candidate
    has_splits = any((source / f"{name}.jsonl").is_file() for name in SPLIT_FILES)
    if has_splits and source.resolve().name == config:
        return source
    if exact:
        return None
    host = HOSTS.get(config, config)
    hosted = next((path for path in (source / host / config, source / f"{host}.tar.gz") if path.exists()), None)
    others = any((source / name).is_dir() for name in CONFIGS)
    return hosted or (source if has_splits and not others else None)
