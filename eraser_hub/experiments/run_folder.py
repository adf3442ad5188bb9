"""The folder of a run of several steps: one run at a time, always with the same settings, and models trained once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from eraser_hub.systems.train import train

STOPPED = ".training"  # in the folder of a model whose training was stopped
log = logging.getLogger("eraser_hub")


def hold_run_folder(folder: Path, verb: str, settings: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Hold a folder during a run; ``VERB.json`` keeps the settings, and a later run with the same ones goes on in it.

    Args:
        folder: the folder, which is made where it is missing.
        verb: what runs.
        settings: what decides the results, as JSON.

    Raises:
        DataError: the folder holds other files, or a run with other settings; the message lists the differences.
        BusyError: another run is at work here.
    """
    from eraser_hub.systems.folder import lock_run_folder

    return lock_run_folder(folder, verb, settings)


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
    with hold_run_folder(folder, "train", arguments):
        for number in range(seed, seed + seeds):
            train_once(folder / f"seed-{number}", **arguments, seed=number)
    return folder
