"""The folder of a run of several steps: one run at a time, always with the same settings, and models trained once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from eraser_hub.systems.train import train

STOPPED = ".training"  # in the folder of a model whose training was stopped
log = logging.getLogger("eraser_hub")


def train_once(folder: Path, **arguments: Any) -> Path:
    """Train a model into its folder, which is returned; a stopped training goes on, and a finished model is kept.

    Args:
        folder: the model's folder.
        **arguments: as of `train`.
    """
    stopped = (folder / STOPPED).is_dir()
    if (folder / "model.json").is_file() and not stopped:
        log.info(f"{folder}: trained before")
    else:
        for line in train(out=folder, resume=stopped, **arguments).lines:
            log.info(line)
    return folder


def train_seeds(folder: Path, seed: int, seeds: int, **arguments: Any) -> Path:
    """Train a model by each of several seeds, into FOLDER/seed-S; return the folder, which `explain` takes as a whole.

    Args:
        folder: the folder of all trainings; those of other settings are refused.
        seed: the first seed.
        seeds: the number of trainings.
        **arguments: as of `train`.
    """
    from eraser_hub.systems.folder import lock_run_folder

    with lock_run_folder(folder, "train", arguments):
        for number in range(seed, seed + seeds):
            train_once(folder / f"seed-{number}", **arguments, seed=number)
    return folder
