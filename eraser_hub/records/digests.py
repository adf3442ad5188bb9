"""Digests of files."""

from __future__ import annotations

import hashlib
from os import PathLike
from pathlib import Path

SHOWN_DIGITS = 12


def compute_file_digest(file: str | PathLike[str], digest: hashlib._Hash | hashlib.blake2b | None = None) -> str:
    """Return the SHA-256 of a file in hexadecimal digits, read in blocks, or the digest that ``digest`` continues."""
    digest = digest or hashlib.sha256()
    with Path(file).open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def shorten_digest(digest: str) -> str:
    """Return the digits of a digest that signatures and tables show; "none" if there is no digest."""
    return digest[:SHOWN_DIGITS] or "none"
