"""A cache of paid answers on disk: one SQLite database for all runs, keyed by the digest of the request."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.records.errors import DataError, get_first_line
from eraser_hub.records.readers import JSON_ERRORS

NAME = "answers.sqlite"
PATIENCE = 60  # seconds that another run may take to write
_TABLE = "CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, answer BLOB NOT NULL) WITHOUT ROWID"


def get_default_folder() -> Path:
    """Return the folder of the cache of all runs: ``$XDG_CACHE_HOME/eraser-hub/ask``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eraser-hub" / "ask"


class Cache:
    """Answers by the digest of their request.

    Args:
        folder: The folder of ``answers.sqlite``, created at the first lookup.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request; None if the cache has none or a damaged one.

        Raises:
            DataError: the database cannot be read.
        """
        rows = self._execute("SELECT answer FROM answers WHERE request = ?", (_compute_digest(request),))
        try:
            cached = msgspec.json.decode(rows[0][0]) if rows else None
        except JSON_ERRORS:
            return None
        return cached if isinstance(cached, dict) and isinstance(cached.get("choices"), list) else None

    def put(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Store an answer; once this returns, a killed process does not lose it.

        Raises:
            DataError: the database cannot be written.
            ValueError: the answer cannot be written as JSON in UTF-8; nothing is stored.
            RecursionError: it is nested too deeply; likewise.
        """
        row = _compute_digest(request), msgspec.json.encode(answer)
        self._execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", row)

    def close(self) -> None:
        """Close the database; the next answer opens it again."""
        database = vars(self).pop("_database", None)
        if database is not None:
            database.close()

    def _execute(self, statement: str, values: Sequence[bytes]) -> list[tuple[bytes, ...]]:
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            words = f"the answers that were paid for cannot be read or written here ({get_first_line(error)})"
            file = self.folder / NAME
            raise DataError(f"{words}: `cache` names another folder", file=file) from None

    @cached_property
    def _database(self) -> sqlite3.Connection:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(self.folder / NAME, timeout=PATIENCE, isolation_level=None)
        # a log that writers append to: an answer is on disk in a tenth of the time that a file of its own takes
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_TABLE)
        return database


def _compute_digest(request: dict[str, Any]) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(request, order="sorted"), digest_size=24).digest()
