"""Score files: JSON with null for what is undefined, written beside and then renamed."""

from __future__ import annotations

from pathlib import Path

import orjson

from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError


def write_scores(path: Path, scores: dict[str, object]) -> None:
    """Write scores as JSON; NaN and infinity become null, keys are in order.

    Raises:
        DataError: the file cannot be written; nothing half-written stays behind.
    """
    # orjson writes null for NaN and for infinity
    data = orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, data)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", file=path) from None
