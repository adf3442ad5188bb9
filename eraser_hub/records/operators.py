"""Ways of erasing tokens, and the files of predictions that a run writes for several of them."""

from __future__ import annotations

import re
from pathlib import Path

from .run_record import read_signature

INFILL = "infill"
ERASE_MODES = ("remove", "mask", "pad", INFILL)
_SIGNED = re.compile(r"\|erase:([^|]+)\|")


def make_operator_path(out: Path, operator: str) -> Path:
    """The file of one of several ways of erasing: ``predictions.mask.jsonl``."""
    return out.with_name(f"{out.stem}.{operator}{out.suffix}")


def find_operator_files(path: Path) -> list[Path]:
    """The files of a run that was asked for ``path`` and several ways of erasing; ``path`` alone where it is there
    itself, or no such file is."""
    files = [] if path.exists() else [make_operator_path(path, operator) for operator in ERASE_MODES]
    return [file for file in files if file.is_file()] or [path]


def read_operator(results: Path) -> str:
    """How tokens were erased for predictions, by their run's signature; "" where none says it."""
    signed = _SIGNED.search(read_signature(results))
    return signed[1] if signed else ""
