"""Answers that were paid for, on disk: one file an answer, named by all that decides it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.records.atomic import atomic_write


def default_folder() -> Path:
    """Where answers are kept for all runs: ``$XDG_CACHE_HOME/eraser-hub/ask``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eraser-hub" / "ask"


class Cache:
    """Answers by the digest of their request.

    Args:
        folder: made when the first answer is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a request; None where none is kept, or a file is damaged (it is asked for again)."""
        try:
            kept = orjson.loads(self._path(request).read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None
        return kept if isinstance(kept, dict) and "choices" in kept else None

    def put(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Keep an answer; it is whole on disk when this returns."""
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic_write(path, orjson.dumps(answer))

    def _path(self, request: dict[str, Any]) -> Path:
        content = orjson.dumps(request, option=orjson.OPT_SORT_KEYS)
        name = hashlib.blake2b(content, digest_size=24).hexdigest()
        return self.folder / name[:2] / f"{name}.json"
