"""The folder of a run of several steps: one run at a time, always with the same settings, and models trained once."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import atomic_write, hold_lock
from eraser_hub.records.readers import read_json_object
from eraser_hub.systems.train import train

STOPPED = ".training"  # in the folder of a model whose training was stopped
log = logging.getLogger("eraser_hub")


@contextmanager
def hold_run_folder(folder: Path, verb: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """Hold a folder during a run; ``VERB.json`` keeps the settings, and a later run with the same ones goes on in it.

    Args:
        folder: the folder, which is made where it is missing.
        verb: what runs.
        settings: what decides the results, as JSON.

    Raises:
        DataError: the folder holds other files, or a run with other settings; the message lists the differences.
        BusyError: another run is at work here.
    """
    with hold_lock(folder / ".lock", "another run is at work in this folder; wait for it or stop it", folder):
        record, now = folder / f"{verb}.json", json.loads(json.dumps(settings))
        if not record.is_file():
            if any(path.name[0] != "." for path in folder.iterdir()):
                message = f"expected a new folder or one of `{verb}`, found other files"
                raise DataError(message, file=folder, argument="out")
            atomic_write(record, json.dumps(now, indent=2).encode())
        before = read_json_object(record)
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if names:
            differences = "; ".join(f"{name} was {show(before.get(name))}, now {show(now.get(name))}" for name in names)
            message = f"the folder holds a run with other settings: {differences}; choose another folder"
            raise DataError(message, file=folder, argument="out")
        yield


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
