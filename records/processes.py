"""Other processes that do a part of the work."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_pool(count: int) -> ProcessPoolExecutor:
    """Processes that die with this one, and of Ctrl-C without a word.

    They import the program anew: where that cannot be (a script without ``if __name__ == "__main__"``), a task raises
    BrokenProcessPool, and whoever submitted it does it here.
    """
    return ProcessPoolExecutor(count, get_context("spawn"), _die_with_parent, (os.getpid(),))


def _die_with_parent(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
