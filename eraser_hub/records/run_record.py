"""What a run says of itself: ``OUT.run.json``, beside the predictions that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from .atomic import atomic_write
from .errors import DataError

RUN_SUFFIX = ".run.json"


def run_path(out: Path) -> Path:
    """The file that tells how a result was made."""
    return out.with_name(out.name + RUN_SUFFIX)


def read_run(out: Path) -> dict[str, Any]:
    """What the run that wrote ``out`` says of itself; empty where it says nothing.

    Raises:
        DataError: that file is no JSON object.
    """
    path = run_path(out)
    if not path.is_file():
        return {}
    try:
        record = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"not JSON: {error}", rule="syntax", file=path) from None
    if not isinstance(record, dict):
        raise DataError("expected what a run says of itself, found no JSON object", rule="type", file=path)
    return record


def write_run(out: Path, facts: Mapping[str, Any]) -> None:
    """Write what a run says of itself; old or new, never half."""
    atomic_write(run_path(out), orjson.dumps(facts, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_signature(results: Path) -> str:
    """The signature of the run that wrote the predictions; "" for none.

    Raises:
        DataError: as of `read_run`.
    """
    signature = read_run(results).get("signature")
    return signature if isinstance(signature, str) else ""
