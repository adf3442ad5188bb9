"""A model's folder while it is trained: what a stopped training leaves, and how the next one goes on with it.

out/.training/recipe.json     what is trained from what; another recipe does not go on from here
out/.training/checkpoint.pt   how far it is (:mod:`fitting`)
out/.training/saving          the model's own files are being written: they may be half of an old and half of a new
model
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eraser_hub.attribution.open import CHECKPOINT_DIR, SAVING
from eraser_hub.attribution.outputs import describe_differences
from eraser_hub.records.atomic import atomic_write, replacing
from eraser_hub.records.errors import DataError
from eraser_hub.records.locks import exclusive
from eraser_hub.version import __version__

from .recipe import Say

RECIPE, CHECKPOINT, LOCK = "recipe.json", "checkpoint.pt", ".training.lock"
BUSY = "another training is at work in this folder; wait for it or stop it"


@contextmanager
def unfinished(out: Path, recipe: dict[str, Any], resume: bool, say: Say) -> Iterator[Path]:
    """A folder in ``out`` for what a stopped training needs to go on; it goes when the block ends without an error.

    After an error or a stop it is kept where a checkpoint lies in it.

    Args:
        recipe: JSON that says what is trained from what.
        resume: go on from the checkpoint of a stopped training.

    Raises:
        BusyError: another training is at work here.
        DataError: with ``resume``, the stopped training's recipe was another.
    """
    new, folder = not out.exists(), out / CHECKPOINT_DIR
    try:
        with exclusive(out / LOCK, BUSY, out):
            _begin(folder, recipe, resume, out, say)
            try:
                yield folder
            except BaseException:
                if not (folder / CHECKPOINT).is_file() and not (folder / SAVING).is_file():
                    shutil.rmtree(folder, ignore_errors=True)
                raise
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        if new and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _begin(folder: Path, recipe: dict[str, Any], resume: bool, out: Path, say: Say) -> None:
    if (folder / CHECKPOINT).is_file():
        _take_up(folder, recipe, resume, out, say)
    elif resume:
        say("`resume`: no stopped training lies here; it begins from the start")
    if not (folder / RECIPE).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        atomic_write(folder / RECIPE, json.dumps(recipe, sort_keys=True, indent=1).encode())


def _take_up(folder: Path, recipe: dict[str, Any], resume: bool, out: Path, say: Say) -> None:
    try:
        before = json.loads((folder / RECIPE).read_bytes())
    except (OSError, ValueError):
        before = {}
    if not resume:
        say(f"{out}: a stopped training lies here and is begun anew; `resume` goes on with it")
        shutil.rmtree(folder)
        return
    words = describe_differences(before, recipe)
    if words:
        message = f"the stopped training was another: {'; '.join(words)}"
        raise DataError(message, rule="resume", file=out, argument="resume")
    say("`resume`: goes on with the stopped training")


@contextmanager
def saving(out: Path) -> Iterator[None]:
    """While the model's files are written: what is stopped in between is not taken for a model."""
    mark = out / CHECKPOINT_DIR / SAVING
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    yield
    mark.unlink()


def write_facts(facts: dict[str, Any], out: Path) -> None:
    """Write ``model.json``: how the model was trained, which ``explain`` reads."""
    with replacing(out / "model.json") as beside:
        text = json.dumps({"eraser_hub": __version__, **facts}, indent=2, ensure_ascii=False)
        beside.write_text(text + "\n", "utf-8")
