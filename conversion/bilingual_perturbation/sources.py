"""Search for the benchmark's files in a user's folder: public files by name, gold files beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from eraser_hub.conversion.small_dataset import Sources
from eraser_hub.records.errors import DataError

from .configs import CONFIGS
from .format import GOLD_FIELDS, read_records

HOMEPAGE = "https://www.luge.ai/#/luge/task/taskDetail?taskId=15"
_SUFFIXES = ("", ".jsonl", ".json", ".txt", ".tsv")
_INSIDE = ("luge", "bilingual_perturbation")
_GOLD_FOLDERS = ("gold", "golden")
_NAME = re.compile(rf"({'|'.join(CONFIGS)})(?![A-Za-z0-9])(.*)")


def find_sources(folder: Path, configs: Sequence[str] | None = None) -> Sources:
    """Find the six public files and their gold files.

    A public file is ``senti_en``, with or without a suffix such as ``.jsonl``. A gold file has a longer name
    (``senti_en_golden.jsonl``) or is in a folder ``gold`` or ``golden``, and its records have rationales.

    Raises:
        DataError: there is no file, a requested one is missing, or two files have the same role; the message names the
            expected files.
    """
    for place in (folder, *(folder / name for name in _INSIDE)):
        if place.is_dir() and any(_NAME.match(path.name) for path in _list_files(place)):
            folder = place
            break
    kinds, notes = _find_by_config(folder)
    sources = {
        name: {kind: files[name] for kind, files in kinds.items() if name in files}
        for name in CONFIGS
        if any(name in files for files in kinds.values())
    }
    missing = [name for name in configs or CONFIGS if name not in sources]
    if (configs and missing) or not sources:
        expected = ", ".join(str(folder / name) for name in missing)
        message = f"expected the files {expected} (they come from {HOMEPAGE}), found none of them"
        raise DataError(message, file=folder)
    for name in missing:
        notes.append(f"{folder / name}: not there; the configuration {name} is left out ({HOMEPAGE})")
    chosen = {name: files for name, files in sources.items() if configs is None or name in configs}
    for name, files in chosen.items():
        if "public" not in files:
            notes.append(f"{folder / name}: not there; {name} is built from its gold file alone")
        elif "gold" not in files:
            notes.append(
                f"{folder / name}: no gold file beside it (e.g. {name}_golden.jsonl); built without rationales"
            )
    return Sources(chosen, dict.fromkeys(chosen, folder), notes)


def _find_by_config(folder: Path) -> tuple[dict[str, dict[str, Path]], list[str]]:
    """Return kind -> configuration -> file for public and gold files, and a note on each other file."""
    kinds: dict[str, dict[str, Path]] = {"public": {}, "gold": {}}
    notes: list[str] = []
    for path in _list_files(folder) if folder.is_dir() else []:
        match = _NAME.match(path.name)
        is_top_level = path.parent == folder
        if match is None:
            if is_top_level and not path.name.startswith("."):
                notes.append(f"{path}: skipped: no file of this benchmark by its name")
            continue
        config, rest = match.groups()
        kind = "public" if is_top_level and rest in _SUFFIXES else "gold"
        record = None if kind == "public" else next(read_records(path), None)
        if kind == "gold" and (record is None or record.fields.keys().isdisjoint(GOLD_FIELDS)):
            fields = ", ".join(GOLD_FIELDS)
            notes.append(f"{path}: skipped: holds no rationale sets ({fields}); predictions are for scoring")
            continue
        if other := kinds[kind].get(config):
            message = f"expected one {kind} file of {config}, found {other.name} as well"
            raise DataError(message, file=path)
        kinds[kind][config] = path
    return kinds, notes


def _list_files(folder: Path) -> list[Path]:
    places = [folder, *(folder / name for name in _GOLD_FOLDERS)]
    return [path for place in places if place.is_dir() for path in sorted(place.iterdir()) if path.is_file()]
