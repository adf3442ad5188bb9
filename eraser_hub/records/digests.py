"""Digests of files, and lines of JSON for digests."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import msgspec

# values as lines of JSON, the bytes of `metrics.data_digest.to_json_lines` for all but floats
to_json_lines = msgspec.json.Encoder().encode_lines


def compute_file_digest(file: str | PathLike[str], digest: hashlib._Hash | hashlib.blake2b | None = None) -> str:
    """Return the SHA-256 of a file in hexadecimal digits, read in blocks, or the digest that ``digest`` continues."""
    digest = digest or hashlib.sha256()
    with Path(file).open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection while many lists and tuples are made that are dropped at once, without cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
