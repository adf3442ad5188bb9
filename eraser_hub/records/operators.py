"""Ways of erasing tokens, and the files of predictions that a run writes for several of them."""

from __future__ import annotations

import re
from pathlib import Path

from .run_record import read_signature

ERASE_MODES = ("remove", "mask", "pad")
SEED = "seed-"  # of a training, in the names of folders and files
_SIGNED = re.compile(r"\|erase:([^|]+)\|")


def make_operator_path(out: Path, operator: str) -> Path:
    """Return the file of one of several operators: ``predictions.mask.jsonl``."""
    return out.with_name(f"{out.stem}.{operator}{out.suffix}")


def make_seed_path(out: Path, seed: int) -> Path:
    """Return the file of one of several trainings: ``predictions.seed-1.jsonl``."""
    return out.with_name(f"{out.stem}.{SEED}{seed}{out.suffix}")


def find_operator_files(path: Path) -> list[Path]:
    """Return the files that a run with ``--out path`` and several operators, or of several trainings, wrote.

    Return ``path`` alone if it exists or no such file does.
    """
    if path.exists() or not path.name:
        return [path]
    by_seed = [file for one in _find_by_seed(path) for file in _find_by_operator(one) or [one]]
    return _find_by_operator(path) or by_seed or [path]


def _find_by_operator(path: Path) -> list[Path]:
    return [file for file in (make_operator_path(path, operator) for operator in ERASE_MODES) if file.is_file()]


def _find_by_seed(path: Path) -> list[Path]:
    """Return the files of trainings, without their operators, in the order of seeds."""
    operators = "|".join(ERASE_MODES)
    form = re.compile(rf"{re.escape(path.stem)}\.{SEED}([0-9]+)(\.({operators}))?{re.escape(path.suffix)}")
    names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    matches = [one for one in map(form.fullmatch, names) if one]
    return [make_seed_path(path, seed) for seed in sorted({int(one[1]) for one in matches})]


def read_operator(results: Path) -> str:
    """Return the operator of predictions from the signature of their run; "" if there is none."""
    signed = _SIGNED.search(read_signature(results))
    return signed[1] if signed else ""
