"""Record of a run: ``OUT.run.json``, beside the predictions that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from .atomic import atomic_write
from .digests import compute_file_digest
from .errors import DataError
from .predictions import compute_predictions_digest

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
    """Write the record of a run atomically, with the digests of the predictions that stand in ``out``."""
    digests = {"predictions_digest": compute_predictions_digest(out), "predictions_sha256": compute_file_digest(out)}
    facts = {**facts, **digests}
    atomic_write(run_path(out), orjson.dumps(facts, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_data_digest(out: Path) -> tuple[str, str]:
    """Return the digest of the data that a run made the predictions of, and a note where it is not known.

    Raises:
        DataError: as of `read_run`.
    """
    record = read_run(out)
    data = record.get("data")
    digest = data.get("data_digest") if isinstance(data, dict) else None
    kept = record.get("predictions_sha256")
    unknown = "the data that they were made of are not known"
    if not record:
        return "", f"{out.name}: no {run_path(out).name} beside the predictions: {unknown}"
    if not isinstance(digest, str) or not digest or not isinstance(kept, str):
        return "", f"{run_path(out).name}: the record has no digests: {unknown}"
    if kept != compute_file_digest(out) and record.get("predictions_digest") != compute_predictions_digest(out):
        return "", f"{run_path(out).name}: the record is that of other predictions: {unknown}"
    return digest, ""


def read_predictions_digest(out: Path) -> str:
    """Return the digest of predictions: the one that the run's record keeps for these bytes, or a new one.

    Raises:
        DataError: as of `compute_predictions_digest`.
    """
    with suppress(DataError):
        record = read_run(out)
        kept = record.get("predictions_digest")
        if isinstance(kept, str) and record.get("predictions_sha256") == compute_file_digest(out):
            return kept
    return compute_predictions_digest(out)


def read_signature(results: Path) -> str:
    """Return the signature of the run that wrote the predictions; "" for none.

    Raises:
        DataError: as of `read_run`.
    """
    signature = read_run(results).get("signature")
    return signature if isinstance(signature, str) else ""
