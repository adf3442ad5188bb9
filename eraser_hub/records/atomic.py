"""Files and folders that change all at once (written beside, then renamed), and locks that one holds at a time.

out/NAME                 what readers see: the old file or folder or the new one, never a mix
out/.NAME.PID.tmp        a new file while it grows; gone after an error, and removed by the next run after a kill
out/.NAME.building/      a new folder while it grows; gone after an error, and removed by the next run after a kill
out/.NAME.lock           held by the one who builds the folder
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path, PurePath

from .errors import BusyError, DataError

BUSY = "another build is at work in this folder; wait for it or stop it"

MAX_NAME_BYTES = 255  # of a file, on all usual file systems
SUFFIX_BYTES = 16  # that a temporary name has more

# of os.open for reading: a pipe is not waited for, and newlines stay as they are; Windows lacks the first flag, others
# the second
READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file that takes the name ``path`` when the block ends, and is removed on an error.

    Raises:
        OSError: of the block or the renaming; it names ``path`` where it names no file (writing to a full disk).
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, "expected a file's name, found a folder", str(path))
    own = path.name
    if len(os.fsencode(own)) > MAX_NAME_BYTES - SUFFIX_BYTES:  # cut, and told from others that begin alike
        start = os.fsencode(own)[: MAX_NAME_BYTES - SUFFIX_BYTES - 9].decode(errors="ignore")
        own = f"{start}.{zlib.crc32(os.fsencode(own)):08x}"
    _remove_leftovers(path.parent, own)
    beside = path.with_name(f".{own}.{os.getpid()}.tmp")
    try:
        yield beside
        os.replace(beside, path)
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        beside.unlink(missing_ok=True)


def _remove_leftovers(folder: Path, name: str) -> None:
    """Remove the temporary files of ``name`` whose runs were killed."""
    if os.name != "posix":  # elsewhere os.kill ends the process that it asks about
        return
    for path in folder.glob(f".{glob.escape(name)}.*.tmp"):
        process = path.name.split(".")[-2]
        with contextlib.suppress(OSError):
            try:
                if process.isdecimal():
                    os.kill(int(process), 0)
            except (ProcessLookupError, OverflowError):
                path.unlink()


def atomic_write(path: Path, data: bytes) -> None:
    """Write a file all at once."""
    with replace_file(path) as beside:
        beside.write_bytes(data)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step (Linux renameat2); False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def replace_folder(new: Path, target: Path) -> None:
    """Put the folder ``new`` in ``target``'s place and remove what was there; at no moment is there a mix."""
    old = target.with_name(f".{target.name}.old")
    if not target.exists():
        os.rename(new, target)
    elif _exchange(new, target):
        shutil.rmtree(new)
    else:  # two renames; `recover` mends the moment between them
        os.rename(target, old)
        os.rename(new, target)
    if old.exists():
        shutil.rmtree(old)


def recover(target: Path) -> None:
    """Mend what a kill between two renames may have left: bring the old folder back when nothing took its place."""
    old = target.with_name(f".{target.name}.old")
    if old.exists():
        if target.exists():
            shutil.rmtree(old)
        else:
            os.rename(old, target)


def sync_tree(folder: Path) -> None:
    """Flush the files below ``folder`` to the disk, so that the swap does not overtake them."""
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                handle = os.open(os.path.join(place, name), READ_FLAGS)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


@contextlib.contextmanager
def hold_lock(lock: Path, busy: str, file: str | PathLike[str] | None = None) -> Iterator[None]:
    """Hold the file ``lock`` during the block.

    Args:
        lock: the lock file; its folder is made where it is missing.
        busy: what to say where another run holds it.
        file: what the message is about.

    Raises:
        BusyError: another run holds it; this one does not wait.
    """
    from filelock import FileLock, Timeout  # takes a twentieth of a second

    lock.parent.mkdir(parents=True, exist_ok=True)
    file_lock = FileLock(lock, timeout=0)
    try:
        file_lock.acquire()
    except Timeout:
        raise BusyError(busy, file=file) from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # not everywhere may an open file be removed
            lock.unlink()
        file_lock.release()


@contextlib.contextmanager
def rebuild_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to build ``target`` in; it replaces ``target`` when the block ends without an error.

    Args:
        target: the folder to make or replace.

    Raises:
        BusyError: another run builds the same folder.
        DataError: the disk is full, the folder cannot be written, or a file stands there; the old folder stays.
    """
    target = Path(target)
    if target.exists() and not target.is_dir():
        raise DataError("expected a folder or nothing, found a file", file=target)
    if target.is_symlink():  # what changes is the folder, where it lies; the link goes on leading there
        target = Path(os.path.realpath(target))
    new_parents = [folder for folder in target.parents if not folder.exists()]
    building = target.with_name(f".{target.name}.building")
    try:
        with hold_lock(target.with_name(f".{target.name}.lock"), BUSY, target.parent):
            recover(target)
            if building.exists():
                shutil.rmtree(building)
            building.mkdir(parents=True)
            try:
                yield building
                sync_tree(building)
                replace_folder(building, target)
            except BaseException:
                shutil.rmtree(building, ignore_errors=True)
                raise
    except BaseException as error:
        for folder in new_parents:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise DataError(_disk_words(error), file=error.filename or target) from error
        raise


def write_files(contents: Mapping[Path, bytes], staging: Path, *, force: bool = False) -> None:
    """Write files: all of them, or after an error none.

    Args:
        contents: path -> content.
        staging: a folder of this function beside them.
        force: replace files that are there.

    Raises:
        BusyError: another run writes with the same ``staging``.
        DataError: there is such a file, or one cannot be written.
    """
    new_parents = [folder for path in (staging, *contents) for folder in path.parents if not folder.exists()]
    try:
        with hold_lock(staging.with_name(f"{staging.name}.lock"), BUSY, staging.parent):
            for path in contents:
                if os.path.lexists(path) and not force:
                    message = "stands there already, and is replaced with `force` alone"
                    raise DataError(message, file=path)
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            try:
                for number, (path, content) in enumerate(contents.items()):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    (staging / str(number)).write_bytes(content)
                sync_tree(staging)
                for number, path in enumerate(contents):
                    os.replace(staging / str(number), path)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise DataError(_disk_words(error), file=staging.parent) from error
    finally:
        for folder in sorted(new_parents, key=lambda each: len(each.parts), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()  # of those that are empty


def _disk_words(error: OSError) -> str:
    full = {errno.ENOSPC: "the disk is full", getattr(errno, "EDQUOT", -1): "the disk quota is used up"}
    words = full.get(error.errno or 0)
    if words:
        return f"{words}; nothing that stood here before was changed; free some space and run again"
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
