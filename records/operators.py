"""Ways of erasing tokens, and the files of predictions that a run writes for several of them."""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from .errors import DataError

INFILL = "infill"
ERASE_MODES = ("remove", "mask", "pad", INFILL)
_SIGNED = re.compile(r"\|erase:([^|]+)\|")


def operator_path(out: Path, operator: str) -> Path:
    """The file of one of several ways of erasing: ``predictions.mask.jsonl``."""
    return out.with_name(f"{out.stem}.{operator}{out.suffix}")


def operator_files(path: Path) -> list[Path]:
    """The files of a run that was asked for ``path`` and several ways of erasing; ``path`` alone where it is there itself, or
    no such file is."""
    files = [] if path.exists() else [operator_path(path, operator) for operator in ERASE_MODES]
    return [file for file in files if file.is_file()] or [path]


def signature_of_run(results: Path) -> str:
    """What the run that wrote the predictions says of itself, in RESULTS.run.json beside them; "" for nothing.

    Raises:
        DataError: that file is no JSON.
    """
    path = Path(f"{results}.run.json")
    if not path.is_file():
        return ""
    try:
        run = orjson.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"not JSON: {error}", file=path) from None
    signature = run.get("signature") if isinstance(run, dict) else None
    return signature if isinstance(signature, str) else ""


def operator_of(results: Path) -> str:
    """How tokens were erased for predictions, by their run's signature; "" where none says it."""
    signed = _SIGNED.search(signature_of_run(results))
    return signed[1] if signed else ""
