"""The folder of a model while it is trained, and that of trainings by several seeds.

out/.training/recipe.json     the settings of the training; a training with other settings does not resume here
out/.training/1/              the model, and the checkpoints of a network (:mod:`fitting`); of further trials 2 ..
out/.training/saving          present while the model is copied to its place: files there may mix an old and a new one
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eraser_hub.attribution.models.opening import CHECKPOINT_DIR, SAVING
from eraser_hub.attribution.outputs import describe_differences
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import atomic_write, hold_lock
from eraser_hub.records.predictions import find_inputs
from eraser_hub.records.readers import read_json_object

from .system import CHECKPOINTS, FACTS

RECIPE, LOCK = "recipe.json", ".training.lock"
# what a model of `train` has, and another one in its place must not find
FILES = (FACTS, "model.skops", "tokenizer", "config.json", "encoder", "vocabulary.json", "identifier", "classifier")
BUSY = "another training is at work in this folder; wait for it or stop it"
log = logging.getLogger("eraser_hub")


def check_folder(out: Path, *inputs: str) -> None:
    """Refuse a model's place that holds something else, or an input of the training.

    Raises:
        DataError: a file, a folder that no training wrote, or one of the inputs.
    """
    if out.exists() and not out.is_dir():
        raise DataError("expected a folder, found a file", file=out, argument="out")
    if out.is_dir() and any(out.samefile(place) for place in find_inputs(*inputs)):
        raise DataError("expected another folder than an input of this run", file=out, argument="out")
    others = sorted(path.name for path in out.iterdir() if path.name[0] != ".") if out.is_dir() else []
    if others and not (out / FACTS).is_file() and not (out / CHECKPOINT_DIR).is_dir():
        message = f"expected a new folder, or a model's of `train`, found {show(others[0])} and no {FACTS}"
        raise DataError(message, file=out, argument="out")


@contextmanager
def working_folder(out: Path, identity: Mapping[str, Any], resume: bool) -> Iterator[Path]:
    """Provide a folder in ``out`` to train in, and remove it if the block ends without an error.

    After an error or a stop the folder is kept if anything in it is worth going on with.

    Args:
        out: the folder of the model.
        identity: JSON that identifies the training.
        resume: go on with a stopped training.

    Raises:
        BusyError: another training is at work here.
        DataError: with ``resume``, the stopped training has other settings.
    """
    is_new, work = not out.exists(), out / CHECKPOINT_DIR
    try:
        with hold_lock(out / LOCK, BUSY, out):
            _prepare(work, identity, resume)
            try:
                yield work
            except BaseException:
                if not _is_stopped(work) and not (work / SAVING).is_file():
                    shutil.rmtree(work, ignore_errors=True)
                raise
            shutil.rmtree(work, ignore_errors=True)
    finally:
        if is_new and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _is_stopped(work: Path) -> bool:
    """Return True if a stopped training left a checkpoint, or a model that is finished."""
    return any(path.name in (*CHECKPOINTS, FACTS) for path in work.rglob("*"))


def _prepare(work: Path, identity: Mapping[str, Any], resume: bool) -> None:
    """Resume a stopped training, or clear what it left, but not the mark of a model that is not whole."""
    stopped, now = _is_stopped(work), json.loads(json.dumps(identity))
    if stopped and resume:
        before = dict[str, Any]()
        with suppress(DataError):
            before = read_json_object(work / RECIPE)
        if differences := describe_differences(before, now):
            message = f"the stopped training has other settings: {'; '.join(differences)}"
            raise DataError(message, file=work.parent, argument="resume")
        log.info("`resume`: continuing the stopped training")
        return
    if stopped:
        log.info(f"{work.parent}: found a stopped training; starting anew (`resume` continues it)")
    elif resume:
        log.info("`resume`: found no stopped training; starting anew")
    for path in list(work.iterdir()) if work.is_dir() else ():
        if path.name != SAVING:
            remove(path)
    work.mkdir(parents=True, exist_ok=True)
    atomic_write(work / RECIPE, json.dumps(now, sort_keys=True, indent=1).encode())


def remove(path: Path) -> None:
    """Remove a file or a folder where there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def save_model(trained: Path, out: Path) -> None:
    """Copy a finished model to its place, instead of an earlier one; a half-written one is marked, and not opened."""
    mark = out / CHECKPOINT_DIR / SAVING
    mark.touch()
    for name in FILES:
        remove(out / name)
    shutil.copytree(trained, out, dirs_exist_ok=True)
    mark.unlink()


@contextmanager
def lock_run_folder(out: Path, verb: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """Lock the folder of a run of several trainings, whose settings ``VERB.json`` keeps.

    Raises:
        DataError: the folder holds other files, or trainings with other settings; the message lists the differences.
        BusyError: another run is at work here.
    """
    new = [place for place in (out, *out.parents) if not place.exists()]
    try:
        with hold_lock(out / ".lock", BUSY, out):
            record, now = out / f"{verb}.json", json.loads(json.dumps(settings))
            if not record.is_file():
                if any(each.name[0] != "." for each in out.iterdir()):
                    message = f"expected a new folder or one of `{verb}`, found other files"
                    raise DataError(message, file=out, argument="out")
                atomic_write(record, json.dumps(now, indent=2).encode())
            if differences := describe_differences(read_json_object(record), now):
                message = f"the folder holds a run with other settings: {'; '.join(differences)}; choose another folder"
                raise DataError(message, file=out, argument="out")
            yield
    finally:
        if new and {path.name for path in out.rglob("*") if path.is_file()} <= {f"{verb}.json"}:
            shutil.rmtree(new[-1], ignore_errors=True)  # it was refused before it had done anything
