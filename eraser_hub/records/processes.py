"""Other processes that do a part of the work."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.popen_spawn_posix import Popen


def make_process_pool(count: int) -> ProcessPoolExecutor:
    """Yield a pool of processes that end with this one, and silently on Ctrl-C.

    They import the program again. Where that is impossible (a script without ``if __name__ == "__main__"``), a task
    raises BrokenProcessPool, and the caller does the work in this process.
    """
    with _without_working_directory():  # a queue's locks have a process of their own
        return ProcessPoolExecutor(count, _Context(), _die_with_parent, (os.getpid(),))


@contextmanager
def _without_working_directory() -> Iterator[None]:
    """Keep Python processes that start in this block from importing modules of the working directory.

    They start as ``python -c``, for which that place is the first to import from.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


class _Process(SpawnProcess):
    @staticmethod
    # typeshed has another class of this name for each system
    def _Popen(process_obj: BaseProcess) -> Popen:  # pyright: ignore[reportIncompatibleMethodOverride]
        with _without_working_directory():
            return SpawnProcess._Popen(process_obj)  # pyright: ignore[reportReturnType]


class _Context(SpawnContext):
    Process = _Process


def _die_with_parent(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
