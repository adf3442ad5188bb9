"""The licence files that a release ships with a corpus: which they are, and what they say."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

from eraser_hub.records.errors import DataError
from eraser_hub.records.lines import wrap_read_errors

from .dataset import LICENSES

MOST_BYTES = 1_000_000
_NAMES = ("license", "licence", "copying", "copyright", "notice")
_SUFFIXES = ("", ".txt", ".md", ".rst", ".html", ".htm")
# words that a licence's text has and no other one's, with the name that the Hub gives it
_WORDS = {
    "mit": r"permission is hereby granted, free of charge, to any person obtaining a copy",
    "apache-2.0": r"apache license,? version 2\.0",
    "bsd-3-clause": r"redistribution and use in source and binary forms.*neither the name",
    "cc-by-sa-3.0": r"(?:attribution-sharealike|by-sa)\b.{0,40}3\.0",
    "cc-by-sa-4.0": r"(?:attribution-sharealike|by-sa)\b.{0,40}4\.0",
    "cc-by-4.0": r"(?:creative commons attribution|cc[ -]by) ?4\.0",
}


def is_license(entry: os.DirEntry[str]) -> bool:
    """Whether a file of a corpus folder is a licence, by its name."""
    stem, suffix = os.path.splitext(entry.name.lower())
    return stem in _NAMES and suffix in _SUFFIXES and entry.is_file() and entry.stat().st_size <= MOST_BYTES


def built_name(config: str, file: str) -> str:
    """Where a licence stands in a built dataset: ``licenses/fever.license.html``."""
    return f"{LICENSES}/{config}.{file}"


def license_of(path: Path) -> str | None:
    """The licence that a file's text is, as the Hub names it; None where its words are none of those known here.

    Raises:
        DataError: the file cannot be read.
    """
    with wrap_read_errors(path):
        text = path.read_bytes().decode("utf-8", errors="replace")
    if path.suffix.lower() in (".html", ".htm"):
        text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    words = " ".join(text.lower().split())
    named = [name for name, pattern in _WORDS.items() if re.search(pattern, words)]
    return named[0] if len(named) == 1 else None


def license_notes(config: str, said: str, path: Path) -> list[str]:
    """A line for the user where a licence file and the card do not say the same.

    Args:
        config: its corpus.
        said: the licence on the card.
        path: the file.
    """
    named = license_of(path)
    if named == said:
        return []
    if named is None:
        return [f"{path}: carried over; its words are no licence known here, the card says {said} of {config}"]
    return [f"{path}: carried over; it reads as {named}, the card says {said} of {config}"]


def check_name(file: str, release: Path) -> None:
    """Refuse a licence's name out of a release.json that is no plain file name."""
    if not re.fullmatch(r"[A-Za-z]+(?:\.[a-z]+)?", file):
        raise DataError(f"expected a licence's file name, found {file!r}", rule="file-name", file=release)
