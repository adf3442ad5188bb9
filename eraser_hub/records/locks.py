"""One writer at a time: a lock file, which the kernel releases however its holder ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from .errors import BusyError


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
        raise BusyError(busy, rule="busy", file=file) from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # not everywhere may an open file be removed
            lock.unlink()
        file_lock.release()
