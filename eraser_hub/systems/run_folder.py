"""The folder of a run and its trained models: one run at a time, always with the same settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from eraser_hub.attribution.open import CHECKPOINT_DIR
from eraser_hub.attribution.outputs import describe_differences
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import atomic_write, hold_lock
from eraser_hub.records.predictions import SEED
from eraser_hub.records.readers import read_json_object

from .train_config import MAX_SEED, Say, TrainConfig
from .training import train_model


def train_or_resume(folder: Path, make_config: Callable[[], TrainConfig], say: Say) -> Path:
    """Train a model in its folder, or resume a stopped training; a finished model is not trained again.

    Args:
        folder: The folder of the model.
        make_config: Returns the settings; it is not called if the model is finished.
        say: Receives lines of progress.
    """
    for line in _train_or_resume(folder, make_config, say, figures=False):
        say(line)
    return folder


def _train_or_resume(
    folder: Path, make_config: Callable[[], TrainConfig], say: Say, figures: bool = True
) -> Iterator[str]:
    """Yield the lines of figures of `train_or_resume`."""
    stopped = (folder / CHECKPOINT_DIR).is_dir()
    if (folder / "model.json").is_file() and not stopped:
        say(f"{folder}: trained before")
        return
    yield from train_model(replace(make_config(), resume=stopped), folder, say, figures=figures)


def train_seeds(config: TrainConfig, out: Path, seeds: int, say: Say) -> Iterator[str]:
    """Train a model by one seed, or by several into a folder each, and yield lines of figures.

    Args:
        config: The settings.
        out: The folder of the model, or of a folder a seed: finished trainings in it are kept, and stopped ones resume.
        seeds: Number of seeds, from that of the settings on.
        say: Receives lines of progress.

    Raises:
        DataError: As of `train_model`; ``out`` holds something else, or trainings with other settings.
        BusyError: Another training is at work in ``out``.
    """
    if seeds == 1:
        yield from train_model(config, out, say)
        return
    if config.seed + seeds - 1 > MAX_SEED:
        message = f"expected seeds of at most {MAX_SEED}, found {config.seed + seeds - 1}"
        raise DataError(message, argument="seeds")
    settings = {name: value for name, value in config.identity().items() if name != "seed"}
    settings |= {"train_on": config.train_on, "regimes": config.regimes}
    with lock_run_folder(out, "train", json.loads(json.dumps(settings))):
        for seed in range(config.seed, config.seed + seeds):
            yield from _train_or_resume(out / f"{SEED}{seed}", partial(replace, config, seed=seed), say)


@contextmanager
def lock_run_folder(out: Path, verb: str, settings: dict[str, Any]) -> Iterator[None]:
    """Lock ``out`` during a run; a later run with the same settings resumes from the files in it.

    Args:
        out: The folder of the run.
        verb: The command; ``VERB.json`` stores the settings.
        settings: The settings, as JSON.

    Raises:
        DataError: The folder holds other files, or a run with other settings; the message lists the differences.
        BusyError: Another run is at work here.
    """
    out.mkdir(parents=True, exist_ok=True)
    with hold_lock(out / ".lock", "another run is at work in this folder; wait for it or stop it", out):
        state = out / f"{verb}.json"
        if not state.is_file():
            if any(each.name[0] != "." for each in out.iterdir()):
                message = f"expected a new folder or one of `{verb}`, found other files"
                raise DataError(message, file=out, argument="out")
            atomic_write(state, json.dumps(settings, indent=2).encode())
        words = describe_differences(read_json_object(state), settings)
        if words:
            message = f"the folder holds a run with other settings: {'; '.join(words)}; choose another folder"
            raise DataError(message, file=out, argument="out")
        yield
