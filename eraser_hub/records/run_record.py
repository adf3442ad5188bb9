"""Record of a run: ``OUT.run.json``, beside the predictions that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from .atomic import atomic_write
from .digests import compute_file_digest
from .errors import DataError

RUN_SUFFIX = ".run.json"


def run_path(out: Path) -> Path:
    """Return the file that records how a result was made."""
    return out.with_name(out.name + RUN_SUFFIX)


def read_run(out: Path) -> dict[str, Any]:
    """Return the record of the run that wrote ``out``; empty if there is none.

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
    """Write the record of a run atomically, with the digest of its result, by which that is recognised."""
    digest = {"sha256": compute_file_digest(out)} if out.is_file() else {}
    data = orjson.dumps({**facts, **digest}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    atomic_write(run_path(out).resolve(), data)


def read_signature(results: Path) -> str:
    """Return the signature of the run that wrote the predictions; "" for none.

    Raises:
        DataError: as of `read_run`.
    """
    signature = read_run(results).get("signature")
    return signature if isinstance(signature, str) else ""
