"""Folders that builds write all at once.

out/NAME                 what readers see: the old folder or the new one, never a mix
out/.NAME.building/      a new folder while it grows; gone after an error, and removed by the next run after a kill
out/.NAME.old/           the old folder between two renames; after a kill the next run brings it back
out/.NAME.lock           held by the run that builds the folder
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from eraser_hub.records.errors import DataError
from eraser_hub.records.files import hold_lock

BUSY = "another build is at work in this folder; wait for it or stop it"
DISK_FULL = {errno.ENOSPC: "the disk is full", getattr(errno, "EDQUOT", -1): "the disk quota is used up"}


@contextmanager
def rebuild_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to build ``target`` in; it replaces ``target`` when the block ends without an error.

    Args:
        target: the folder to make or replace; a link goes on leading to it.

    Raises:
        BusyError: another run builds the same folder.
        DataError: the disk is full, the folder cannot be written, or a file stands there; the old folder stays.
    """
    if target.exists() and not target.is_dir():
        raise DataError("expected a folder or nothing, found a file", file=target)
    target = Path(os.path.realpath(target)) if target.is_symlink() else target
    building, old = (target.with_name(f".{target.name}.{ending}") for ending in ("building", "old"))
    new_parents = [folder for folder in target.parents if not folder.exists()]
    try:
        with hold_lock(target.with_name(f".{target.name}.lock"), BUSY, target.parent):
            if old.exists() and not target.exists():  # a run was killed between the two renames
                old.rename(target)
            for left in (building, old):
                if left.exists():
                    shutil.rmtree(left)
            building.mkdir(parents=True)
            try:
                yield building
                sync_tree(building)
                replace_folder(building, target, old)
            except BaseException:
                shutil.rmtree(building, ignore_errors=True)
                raise
    except BaseException as error:
        for folder in new_parents:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise DataError(describe_disk_error(error), file=error.filename or target) from error
        raise


def replace_folder(new: Path, target: Path, old: Path) -> None:
    """Put the folder ``new`` in ``target``'s place and remove what was there, which may lie in ``old`` for a moment."""
    if not target.exists():
        new.rename(target)
    elif exchange(new, target):
        shutil.rmtree(new)
    else:
        target.rename(old)
        new.rename(target)
        shutil.rmtree(old)


def exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step (Linux renameat2); False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    working_folder, swap = -100, 2
    return bool(renameat2(working_folder, os.fsencode(one), working_folder, os.fsencode(other), swap) == 0)


def sync_tree(folder: Path) -> None:
    """Flush the files below ``folder`` to the disk, so that a rename does not overtake them."""
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())


def describe_disk_error(error: OSError) -> str:
    """Describe why a folder could not be written."""
    if words := DISK_FULL.get(error.errno or 0):
        return f"{words}; nothing that stood here before was changed; free some space and run again"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "expected a folder, found a file"
    return f"cannot be written: {error.strerror or error}"


def carry_over(old: Path, new: Path, is_built: Callable[[PurePath], bool]) -> None:
    """Copy the files that people put into the folder ``old`` to ``new``, which is to replace it.

    Args:
        old: the folder that stands; nothing happens where there is none.
        new: the folder that was built.
        is_built: whether a build writes a file of such a path in the folder.
    """
    for place, folders, names in os.walk(old):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*names, *links):
            path = (here / name).relative_to(old)
            if is_built(path) or os.path.lexists(new / path):
                continue
            if (here / name).is_symlink():
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                os.symlink(os.readlink(here / name), new / path)
            else:
                link_or_copy(here / name, new / path)
        for name in folders:
            if not any((here / name).iterdir()) and name not in links:
                (new / (here / name).relative_to(old)).mkdir(parents=True, exist_ok=True)


def link_or_copy(old: Path, new: Path) -> None:
    """Give the file ``old`` a second name: a hard link, or a copy if the file system has none."""
    new.parent.mkdir(parents=True, exist_ok=True)
    new.unlink(missing_ok=True)  # it may be a link to the very same file, which copying would truncate
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)
