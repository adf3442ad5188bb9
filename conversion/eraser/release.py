"""What ``release.json`` holds of each config: what the rows of its splits cannot."""

from __future__ import annotations

from typing import Literal

import msgspec


class Backup(msgspec.Struct):
    """The backup file whose own records were taken up behind the split's."""

    file: str
    records: int


class Split(msgspec.Struct):
    """A split file's manner; see `splits.split_facts`."""

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
    backup: Backup | None = None


class Documents(msgspec.Struct):
    """How the documents stood: files of docs/, or lines of docs.jsonl."""

    layout: Literal["docs/", "docs.jsonl"]
    total: int
    unreferenced: int
    final_newline: bool
    in_order: bool


class Skipped(msgspec.Struct):
    """A file that was left out, and why."""

    file: str
    reason: str


class Entry(msgspec.Struct):
    """What is said of a config."""

    version: str
    download_size: int
    documents: Documents
    splits: dict[str, Split]
    skipped: list[Skipped]
