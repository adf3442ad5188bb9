"""Ways of erasing tokens, and the files of predictions that a run writes for several of them."""

from __future__ import annotations

import re
from pathlib import Path

from .run_record import read_signature

INFILL = "infill"
ERASE_MODES = ("remove", "mask", "pad", INFILL)
_SIGNED = re.compile(r"\|erase:([^|]+)\|")


def make_operator_path(out: Path, operator: str) -> Path:
    """Return the file of one of several operators: ``predictions.mask.jsonl``."""
    return out.with_name(f"{out.stem}.{operator}{out.suffix}")


def find_operator_files(path: Path) -> list[Path]:
    """Return the files that a run with ``--out path`` and several operators wrote.

    Return ``path`` alone if it exists or no such file does.
    """
    files = [] if path.exists() else [make_operator_path(path, operator) for operator in ERASE_MODES]
    return [file for file in files if file.is_file()] or [path]


def read_operator(results: Path) -> str:
    """Return the operator of predictions from the signature of their run; "" if there is none."""
    signed = _SIGNED.search(read_signature(results))
    return signed[1] if signed else ""
