"""Types of ``release.json``: facts of each config that its rows cannot hold, and the corpus.yaml of custom corpora."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from eraser_hub.conversion.dataset import RELEASE, read_release
from eraser_hub.records.errors import DataError, show

from .configs import CONFIGS, EraserConfig

if TYPE_CHECKING:
    from eraser_hub.conversion.built import BuiltDataset


class SplitFacts(msgspec.Struct):
    """Format of a split file; see `splits.split_facts`."""

    num_examples: int
    num_bytes: int
    file: str
    lines: int
    encoding: str
    final_newline: bool
    annotation_id: Literal["integer", "string"]
    docids: Literal["absent", "null", "list"]
    query_type: Literal["absent", "present"]
    sentence_ends: Literal["inclusive", "exclusive"]
    statistics: dict[str, int | float | None]
    files: dict[str, str]  # name -> SHA-256 of the split's Parquet files


class DocumentFacts(msgspec.Struct):
    """Layout of the documents: files of docs/, or lines of docs.jsonl."""

    layout: Literal["docs/", "docs.jsonl"]
    total: int
    unreferenced: int
    final_newline: bool
    in_order: bool


class SkippedFacts(msgspec.Struct):
    """A skipped file and the reason."""

    file: str
    reason: str


class ConfigFacts(msgspec.Struct):
    """Entry of a config in release.json."""

    version: str
    download_size: int
    documents: DocumentFacts
    splits: dict[str, SplitFacts]
    skipped: list[SkippedFacts]
    digests: dict[str, str]  # path -> SHA-256 of files beside the rows
    corpus: str | None = None  # the text of a custom corpus' corpus.yaml
    licenses: list[str] = []  # names of its licence files
    annotators: int = 0  # people in its file of annotators; 0: unknown


def read_configs(built: BuiltDataset) -> dict[str, EraserConfig]:
    """Return the config of each configuration of a built ``eraser``, in the order of the card.

    Raises:
        DataError: a config is none of the nine and has no entry in release.json.
    """
    entries: dict[str, Any] = {}
    if not CONFIGS.keys() >= set(built.configs):
        built.paths(RELEASE)  # downloads the file if the dataset is on the Hub
        entries = read_release(built.folder, ConfigFacts)
    return find_configs(entries, built.configs, built.folder / RELEASE)


def find_configs(entries: Mapping[str, Mapping[str, Any]], names: Iterable[str], path: Path) -> dict[str, EraserConfig]:
    """Return the configs with these names; ``entries`` of the release.json at ``path`` describe custom ones."""
    from .corpus_yaml import parse_corpus_yaml  # imports YAML, which most verbs do not need

    facts = {}
    for name in names:
        text = entries.get(name, {}).get("corpus")
        if name in CONFIGS:
            facts[name] = CONFIGS[name]
            continue
        if text is None:
            expected = f"expected configs of eraser ({', '.join(CONFIGS)}), or with the text of their corpus.yaml"
            raise DataError(f"{expected}, found {show(name)}", file=path)
        facts[name] = parse_corpus_yaml(text, path)
        if facts[name].name != name:
            message = f"expected the corpus.yaml of {name}, found {facts[name].name}'s"
            raise DataError(message, file=path, field=name)
    return facts
