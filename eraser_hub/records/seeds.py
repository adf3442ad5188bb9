"""The folders of several trainings, and the files of predictions that a run writes for each of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

SEED = "seed-"  # of a training, in the names of folders and files


def make_seed_path(out: Path, seed: int) -> Path:
    """Return the file of one of several trainings: ``predictions.seed-1.jsonl``."""
    return out.with_name(f"{out.stem}.{SEED}{seed}{out.suffix}")


def find_seed_files(path: Path) -> list[Path]:
    """Return the files that a run with ``--out path`` of several trainings wrote, in the order of seeds.

    Return ``path`` alone if it exists or no such file does.
    """
    if os.path.exists(path) or not path.name:  # False of a name that is too long
        return [path]
    form = re.compile(rf"{re.escape(path.stem)}\.{SEED}([0-9]+){re.escape(path.suffix)}")
    names = [each.name for each in path.parent.iterdir()] if os.path.isdir(path.parent) else []
    seeds = {int(found[1]) for found in map(form.fullmatch, names) if found}
    return [make_seed_path(path, seed) for seed in sorted(seeds)] or [path]
