"""Other processes that do a part of the work."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context


@contextmanager
def make_process_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes that end with this one, and silently on Ctrl-C.

    They import the program again. Where that is impossible (a script without ``if __name__ == "__main__"``), a task
    raises BrokenProcessPool, and the caller does the work in this process.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    # they start as `python -c`, which would import from the working directory first
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        with ProcessPoolExecutor(count, get_context("spawn"), _die_with_parent, (os.getpid(),)) as pool:
            yield pool
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _die_with_parent(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
