"""The folder that an experiment keeps, and the models in it: one run at a time, always with the same settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eraser_hub.attribution.open import CHECKPOINT_DIR
from eraser_hub.attribution.outputs import describe_differences
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError
from eraser_hub.records.json_lines import strict_object
from eraser_hub.records.locks import exclusive
from eraser_hub.systems.recipe import Recipe, Say
from eraser_hub.systems.training import train_model


def trained(folder: Path, recipe_of: Callable[[bool], Recipe], say: Say, figures: bool = True) -> Path:
    """Train a model in its folder, or go on where that was stopped; one that lies there is not trained again.

    Args:
        recipe_of: gives the recipe, from whether a stopped training is gone on with.
        figures: say how well the model does.
    """
    stopped = (folder / CHECKPOINT_DIR).is_dir()
    if (folder / "model.json").is_file() and not stopped:
        say(f"{folder}: trained before")
        return folder
    for line in train_model(recipe_of(stopped), folder, say, figures=figures):
        say(line)
    return folder


@contextmanager
def kept(out: Path, verb: str, settings: dict[str, Any]) -> Iterator[None]:
    """Hold ``out`` while a run is at work in it; a later one with the same settings goes on from what is there.

    Args:
        verb: of the command; the settings are remembered in ``VERB.json``.
        settings: JSON.

    Raises:
        DataError: a run with other settings lies here, and in what it differs; or other files do.
        BusyError: another run is at work here.
    """
    out.mkdir(parents=True, exist_ok=True)
    with exclusive(out / ".lock", "another run is at work in this folder; wait for it or stop it", out):
        state = out / f"{verb}.json"
        if not state.is_file():
            if any(each.name[0] != "." for each in out.iterdir()):
                message = f"expected a new folder or one of `{verb}`, found other files"
                raise DataError(message, rule="file-exists", file=out, argument="out")
            atomic_write(state, json.dumps(settings, indent=2).encode())
        words = describe_differences(strict_object(state.read_bytes(), file=state, number=1), settings)
        if words:
            message = f"another run lies here: {'; '.join(words)}; take another folder"
            raise DataError(message, rule="resume", file=out, argument="out")
        yield
