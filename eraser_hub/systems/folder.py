"""A model's folder during training: checkpoints, and how a stopped training resumes.

out/.training/recipe.json     the settings of the training; a training with other settings does not resume here
out/.training/checkpoint.pt   the progress (:mod:`fitting`)
out/.training/saving          present while the model's files are written: they may mix an old and a new model
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eraser_hub.attribution.open import CHECKPOINT_DIR, SAVING
from eraser_hub.attribution.outputs import describe_differences
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import atomic_write, hold_lock, replace_file
from eraser_hub.records.readers import read_json_object
from eraser_hub.version import __version__

from .train_config import Say

RECIPE, CHECKPOINT, LOCK = "recipe.json", "checkpoint.pt", ".training.lock"
BUSY = "another training is at work in this folder; wait for it or stop it"


@contextmanager
def checkpoint_dir(out: Path, identity: dict[str, Any], resume: bool, say: Say) -> Iterator[Path]:
    """Provide a folder in ``out`` for checkpoints, and remove it if the block ends without an error.

    After an error or a stop, the folder is kept if it holds a checkpoint.

    Args:
        out: The folder of the model.
        identity: JSON that identifies the training: its settings and data.
        resume: Resume from the checkpoint of a stopped training.
        say: Receives lines of progress.

    Raises:
        BusyError: Another training is at work here.
        DataError: With ``resume``, the stopped training has other settings.
    """
    new, folder = not out.exists(), out / CHECKPOINT_DIR
    try:
        with hold_lock(out / LOCK, BUSY, out):
            _prepare(folder, identity, resume, out, say)
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


def _prepare(folder: Path, identity: dict[str, Any], resume: bool, out: Path, say: Say) -> None:
    """Resume a stopped training, or clear what it left, but not the mark of a model that is not whole."""
    stopped = (folder / CHECKPOINT).is_file()
    if stopped and resume:
        before = dict[str, Any]()
        with suppress(DataError):
            before = read_json_object(folder / RECIPE)
        if words := describe_differences(before, identity):
            message = f"the stopped training has other settings: {'; '.join(words)}"
            raise DataError(message, file=out, argument="resume")
        say("`resume`: continuing the stopped training")
        return
    if stopped:
        say(f"{out}: found a stopped training; starting anew (`resume` continues it)")
    elif resume:
        say("`resume`: found no stopped training; starting anew")
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != SAVING:
            path.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / RECIPE, json.dumps(identity, sort_keys=True, indent=1).encode())


@contextmanager
def mark_saving(out: Path) -> Iterator[None]:
    """Mark the folder while the model's files are written: a half-written model is not opened.

    Only a training that has saved its model removes the mark.
    """
    mark = out / CHECKPOINT_DIR / SAVING
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    yield
    mark.unlink()


def write_facts(facts: dict[str, Any], out: Path) -> None:
    """Write ``model.json``, which ``explain`` reads: how the model was trained."""
    with replace_file(out / "model.json") as temporary_file:
        text = json.dumps({"eraser_hub": __version__, **facts}, indent=2, ensure_ascii=False)
        temporary_file.write_text(text + "\n", "utf-8")
