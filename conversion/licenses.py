"""Licence files of a release: detection by name, and by their text."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

from eraser_hub.records.lines import wrap_read_errors

from .dataset import LICENSES

MAX_BYTES = 1_000_000  # of a licence's file
_NAMES = ("license", "licence", "copying", "copyright", "notice")
_SUFFIXES = ("", ".txt", ".md", ".rst", ".html", ".htm")
# the Hub's name of a licence -> a pattern that only its text matches
_PATTERNS = {
    "mit": r"permission is hereby granted, free of charge, to any person obtaining a copy",
    "apache-2.0": r"apache license,? version 2\.0",
    "bsd-3-clause": r"redistribution and use in source and binary forms.*neither the name",
    "cc-by-sa-3.0": r"(?:attribution-sharealike|by-sa)\b.{0,40}3\.0",
    "cc-by-sa-4.0": r"(?:attribution-sharealike|by-sa)\b.{0,40}4\.0",
    "cc-by-4.0": r"(?:creative commons attribution|cc[ -]by) ?4\.0",
}


def is_license_name(name: str) -> bool:
    """Return True if a file's name is that of a licence."""
    stem, suffix = os.path.splitext(name.lower())
    return stem in _NAMES and suffix in _SUFFIXES


def get_license_path(config: str, file: str) -> str:
    """Return the path of a licence in a built dataset, e.g. ``licenses/fever.license.html``."""
    return f"{LICENSES}/{config}.{file}"


def detect_license(path: Path) -> str | None:
    """Return the Hub's name of the licence whose text a file holds; None if it matches no or several patterns.

    Raises:
        DataError: the file cannot be read.
    """
    with wrap_read_errors(path):
        text = path.read_bytes().decode("utf-8", errors="replace")
    if path.suffix.lower() in (".html", ".htm"):
        text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    words = " ".join(text.lower().split())
    named = [name for name, pattern in _PATTERNS.items() if re.search(pattern, words)]
    return named[0] if len(named) == 1 else None


def describe_license_mismatch(config: str, declared: str, path: Path) -> list[str]:
    """Return a line for the user if a licence file and the card name different licences.

    Args:
        config: its corpus.
        declared: the licence on the card.
        path: the file.
    """
    named = detect_license(path)
    words = "its words are no licence known here" if named is None else f"it reads as {named}"
    return [] if named == declared else [f"{path}: carried over; {words}, the card says {declared} of {config}"]
