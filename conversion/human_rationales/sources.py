"""Search for the files of ``human_rationales`` in a user's folder, with notes on missing files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eraser_hub.conversion.small_dataset import Sources
from eraser_hub.records.errors import DataError

from .wikiattack import (
    ANNOTATIONS_FILE,
    ANNOTATIONS_URL,
    COMMENTS_FILE,
    COMMENTS_URL,
    find_kind,
)

SST_URL = "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip"
RATIONALES_URL = "https://github.com/shcarton/rcnn/tree/master/deliberativeness/data/processed/wiki/personal_attacks"
SST_FILES = {"train": "train.txt", "validation": "dev.txt", "test": "test.txt"}
WIKIATTACK_FILES = {"validation": "wiki_attack_dev_rationale.csv", "test": "wiki_attack_test_rationale.csv"}
# config -> (split -> file, the folders that may contain them, their address)
_KNOWN = {
    "sst": (SST_FILES, ("sst/trees", "sst", "trees", ""), SST_URL),
    "wikiattack": (WIKIATTACK_FILES, ("wikiattack", ""), RATIONALES_URL),
}


def find_human_rationales(folder: Path, configs: Sequence[str] | None = None) -> Sources:
    """Find the tree files and WikiAttack's CSV files.

    Tree files are ``train.txt dev.txt test.txt`` in ``sst/trees``, ``sst``, ``trees`` or the folder itself; CSV
    files are in ``wikiattack`` or the folder itself.

    Raises:
        DataError: neither is there, or a requested one is missing; the message has the address of the files.
    """
    places = {name: _find_first_folder(folder, where, names) for name, (names, where, _) in _KNOWN.items()}
    missing = {
        name: f"{folder}/{where[0]}/{{{','.join(names.values())}}} ({url})"
        for name, (names, where, url) in _KNOWN.items()
    }
    for name in configs or ():
        if not places[name][0]:
            raise DataError(f"expected a file of {missing[name]}, found none", file=folder)
    if not any(files for files, _ in places.values()):
        raise DataError(f"expected {' or '.join(missing.values())}, found neither", file=folder)
    notes = [
        f"the configuration {name} is left out: no file of {missing[name]}"
        for name, (files, _) in places.items()
        if configs is None and not files
    ]
    places = {name: pair for name, pair in places.items() if pair[0] and (configs is None or name in configs)}
    for name, (files, place) in places.items():
        names = _KNOWN[name][0]
        notes += [f"{place / file}: not there; no {split} split" for split, file in names.items() if split not in files]
    root, beside = {name: place for name, (_, place) in places.items()}, dict[str, Path]()
    if "sst" in root:
        place, inner = root["sst"], folder / "sst"
        root["sst"] = inner if inner in (place, *place.parents) else folder
        others = sorted(path for path in place.iterdir() if path.is_file() and path.name not in SST_FILES.values())
        notes += [f"{path}: skipped: no file of this corpus" for path in others if path.suffix == ".txt"]
    if "wikiattack" in root:
        beside = _find_wikiattack_files(root["wikiattack"], notes)
    return Sources({name: files for name, (files, _) in places.items()}, root, notes, beside)


def _find_first_folder(folder: Path, places: Sequence[str], names: dict[str, str]) -> tuple[dict[str, Path], Path]:
    for place in places:
        where = folder / place if place else folder
        files = {split: where / name for split, name in names.items() if (where / name).is_file()}
        if files:
            return files, where
    return {}, folder / places[0]


def _find_wikiattack_files(place: Path, notes: list[str]) -> dict[str, Path]:
    """Return kind -> path of the comments file and the annotations file, which are identified by their columns."""
    kinds: dict[str, list[Path]] = {"comments": [], "annotations": []}
    for path in sorted(place.iterdir()):
        if not path.is_file() or path.suffix.lower() not in (".tsv", ".csv") or path.name in WIKIATTACK_FILES.values():
            continue
        if (kind := find_kind(path)) is not None:
            kinds[kind].append(path)
        else:
            notes.append(f"{path}: skipped: its columns are neither those of comments nor of annotations")
    for what, files in kinds.items():
        if len(files) > 1:
            message = f"expected one file of {what}, found {files[0].name} as well"
            raise DataError(message, file=files[1])
    if not kinds["comments"]:
        lost = "not there; rows have masks, and neither text nor tokens"
        notes.append(f"{place / COMMENTS_FILE}: {lost} (download: {COMMENTS_URL})")
    if not kinds["annotations"]:
        notes.append(f"{place / ANNOTATIONS_FILE}: not there; rows have no label (download: {ANNOTATIONS_URL})")
    return {what: files[0] for what, files in kinds.items() if files}
