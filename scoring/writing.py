"""Score files: JSON with null for what is undefined, written beside and then renamed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import orjson

from eraser_hub.records.errors import DataError


def write_scores(path: Path, scores: dict[str, object]) -> None:
    """Write scores as JSON; NaN and infinity become null, keys are in order.

    Raises:
        DataError: the file cannot be written; nothing half-written stays behind.
    """
    # orjson writes null for NaN and for infinity
    data = orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    beside = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(beside).chmod(0o666 & ~mask)
        Path(beside).replace(path)
    except OSError as error:
        if beside:
            Path(beside).unlink(missing_ok=True)
        raise DataError(f"cannot be written: {error.strerror or error}", file=path) from None
