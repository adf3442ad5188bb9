"""Where the files of ``human_rationales`` lie in a user's folder, and what is said of those that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eraser_hub.records.errors import DataError

from .wikiattack import (
    ANNOTATIONS_FILE,
    ANNOTATIONS_URL,
    COMMENTS_FILE,
    COMMENTS_URL,
    header_of,
    holds_annotations,
    holds_comments,
)

SST_URL = "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip"
RATIONALES_URL = "https://github.com/shcarton/rcnn/tree/master/deliberativeness/data/processed/wiki/personal_attacks"
SST_FILES = {"train": "train.txt", "validation": "dev.txt", "test": "test.txt"}
WIKIATTACK_FILES = {"validation": "wiki_attack_dev_rationale.csv", "test": "wiki_attack_test_rationale.csv"}
_SST_PLACES = ("sst/trees", "sst", "trees", "")
_WIKIATTACK_PLACES = ("wikiattack", "")


@dataclass(frozen=True, slots=True)
class HumanRationaleSources:
    """The files of both configurations.

    Attributes:
        root: configuration -> the folder that exported names are relative to.
        sst, wikiattack: split -> file; empty where the configuration is not there.
        comments, annotations: WikiAttack's texts, and what the workers said, where the user has them.
        notes: a sentence for what is missing or left out.
    """

    root: dict[str, Path]
    sst: dict[str, Path]
    wikiattack: dict[str, Path]
    comments: Path | None = None
    annotations: Path | None = None
    notes: list[str] = field(default_factory=list)


def find_human_rationales(folder: Path, configs: Sequence[str] | None = None) -> HumanRationaleSources:
    """Look for tree files (``train.txt dev.txt test.txt``, in ``sst/trees``, ``sst``, ``trees`` or the folder itself)
    and for WikiAttack's CSV files (in ``wikiattack`` or the folder itself).

    Raises:
        DataError: neither is there, or one that was asked for is not; the message says where to get the files.
    """
    notes: list[str] = []
    root: dict[str, Path] = {}
    sst, sst_place = _first_place(folder, _SST_PLACES, SST_FILES)
    wikiattack, wiki_place = _first_place(folder, _WIKIATTACK_PLACES, WIKIATTACK_FILES)
    missing = {
        "sst": f"{folder}/sst/trees/{{{','.join(SST_FILES.values())}}} ({SST_URL})",
        "wikiattack": f"{folder}/wikiattack/{{{','.join(WIKIATTACK_FILES.values())}}} ({RATIONALES_URL})",
    }
    there = {"sst": sst, "wikiattack": wikiattack}
    for name in configs or ():
        if not there[name]:
            raise DataError(f"expected a file of {missing[name]}, found none", rule="file-missing", file=folder)
    if not sst and not wikiattack:
        raise DataError(f"expected {' or '.join(missing.values())}, found neither", rule="file-missing", file=folder)
    for name, files in there.items():
        if configs is None and not files:
            notes.append(f"the configuration {name} is left out: no file of {missing[name]}")
    if configs is not None:
        sst, wikiattack = (sst if "sst" in configs else {}), (wikiattack if "wikiattack" in configs else {})
    for files, names, place in ((sst, SST_FILES, sst_place), (wikiattack, WIKIATTACK_FILES, wiki_place)):
        notes += [
            f"{place / name}: not there; no {split} split"
            for split, name in names.items()
            if files and split not in files
        ]
    comments = annotations = None
    if sst:
        root["sst"] = folder / "sst" if (folder / "sst") in sst_place.parents or sst_place == folder / "sst" else folder
        notes += _skipped(sst_place, set(SST_FILES.values()))
    if wikiattack:
        root["wikiattack"] = wiki_place
        comments, annotations, more = _wikiattack_texts(wiki_place)
        notes += more
    return HumanRationaleSources(root, sst, wikiattack, comments, annotations, notes)


def _first_place(folder: Path, places: Sequence[str], names: dict[str, str]) -> tuple[dict[str, Path], Path]:
    for place in places:
        where = folder / place if place else folder
        files = {split: where / name for split, name in names.items() if (where / name).is_file()}
        if files:
            return files, where
    return {}, folder / places[0]


def _skipped(place: Path, known: set[str]) -> list[str]:
    others = sorted(path for path in place.iterdir() if path.is_file() and path.name not in known)
    return [f"{path}: skipped: no file of this corpus" for path in others if path.suffix == ".txt"]


def _wikiattack_texts(place: Path) -> tuple[Path | None, Path | None, list[str]]:
    """The comments file and the annotations file, known by their columns; and notes."""
    comments: list[Path] = []
    annotations: list[Path] = []
    notes: list[str] = []
    for path in sorted(place.iterdir()):
        if not path.is_file() or path.suffix.lower() not in (".tsv", ".csv") or path.name in WIKIATTACK_FILES.values():
            continue
        header = header_of(path)
        if holds_comments(header):
            comments.append(path)
        elif holds_annotations(header):
            annotations.append(path)
        else:
            notes.append(f"{path}: skipped: its columns are neither those of comments nor of annotations")
    for files, what in ((comments, "comments"), (annotations, "annotations")):
        if len(files) > 1:
            message = f"expected one file of {what}, found {files[0].name} as well"
            raise DataError(message, rule="file-twice", file=files[1])
    if not comments:
        lost = "not there; rows have masks, and neither text nor tokens"
        notes.append(f"{place / COMMENTS_FILE}: {lost} (download: {COMMENTS_URL})")
    if not annotations:
        notes.append(f"{place / ANNOTATIONS_FILE}: not there; rows have no label (download: {ANNOTATIONS_URL})")
    return next(iter(comments), None), next(iter(annotations), None), notes
