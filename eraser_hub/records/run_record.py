"""Record of a run: ``OUT.run.json``, beside the predictions that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from .atomic import atomic_write
from .json_lines import read_json_object

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
    return read_json_object(path) if path.is_file() else {}


def write_run(out: Path, facts: Mapping[str, Any]) -> None:
    """Write the record of a run atomically."""
    atomic_write(run_path(out), orjson.dumps(facts, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_signature(results: Path) -> str:
    """Return the signature of the run that wrote the predictions; "" for none.

    Raises:
        DataError: as of `read_run`.
    """
    signature = read_run(results).get("signature")
    return signature if isinstance(signature, str) else ""
