"""Licence files of a release, which a build copies; they are found by their names."""

from __future__ import annotations

import os

from .dataset import LICENSES

MAX_BYTES = 1_000_000  # of a licence's file
_NAMES = ("license", "licence", "copying", "copyright", "notice")
_SUFFIXES = ("", ".txt", ".md", ".rst", ".html", ".htm")


def is_license_name(name: str) -> bool:
    """Return True if a file's name is that of a licence."""
    stem, suffix = os.path.splitext(name.lower())
    return stem in _NAMES and suffix in _SUFFIXES


def get_license_path(config: str, file: str) -> str:
    """Return the path of a licence in a built dataset, e.g. ``licenses/fever.license.html``."""
    return f"{LICENSES}/{config}.{file}"
