"""Tasks shared out between this process and others, which start when there is enough to do and not before.

What a task gives does not depend on who does it. This process works too: it takes from the end of the list while the others,
which need half a second to start, take from its beginning.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from types import TracebackType
from typing import Any

# raw bytes that this process gets through in about the time in which another one starts, twice over
WORTH_STARTING, WORTH_SHARING = 128 << 20, 8 << 20


class Workers:
    """``with Workers(num_proc) as workers: workers.run(function, tasks, weights)``."""

    def __init__(self, num_proc: int) -> None:
        self.num_proc = num_proc
        self._pool: ProcessPoolExecutor | None = None

    def run(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        weights: Sequence[int],
        here: Callable[..., Any] | None = None,
        done: Callable[[int], None] = lambda _: None,
    ) -> list[Any]:
        """``function(*task)`` of each task, in their order.

        Args:
            function: what another process does; a function of a module.
            tasks: its arguments, which have to be picklable.
            weights: bytes of raw data that each task reads.
            here: the same done in this process (so that it may show its progress), by default ``function``.
            done: called with a task's number when another process has done it.

        Raises:
            Exception: of the first task (in their order) that fails.
        """
        here = here or function
        least = WORTH_SHARING if self._pool is not None else WORTH_STARTING
        if self.num_proc == 1 or len(tasks) < 2 or sum(weights) < least:
            return [here(*task) for task in tasks]
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.num_proc - 1, get_context("spawn"), _die_with_parent, (os.getpid(),))
        return self._shared(self._pool, function, tasks, here, done)

    def _shared(
        self,
        pool: ProcessPoolExecutor,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        here: Callable[..., Any],
        done: Callable[[int], None],
    ) -> list[Any]:
        futures: list[Future[Any]] = []
        with suppress(BrokenProcessPool):  # those that are not handed out are done here
            futures.extend(pool.submit(function, *task) for task in tasks)
        own: dict[int, Any] = {}
        failed: dict[int, Exception] = {}
        told: set[int] = set()
        for number in reversed(range(len(tasks))):
            if number >= len(futures) or futures[number].cancel():
                try:
                    own[number] = here(*tasks[number])
                except Exception as error:  # one before it may fail too, and then that is the one to be told
                    failed[number] = error
            for other, future in enumerate(futures):
                if other not in told and future.done() and not future.cancelled() and not future.exception():
                    told.add(other)
                    done(other)
        for number in range(len(tasks)):
            if number in failed:
                raise failed[number]
            if number not in own:
                try:
                    own[number] = futures[number].result()
                except BrokenProcessPool:
                    # the others could not start (a script without `if __name__ == "__main__"`) or were killed
                    self.num_proc = 1
                    own[number] = here(*tasks[number])
                    continue
                except Exception:
                    for later in futures:
                        later.cancel()
                    raise
                if number not in told:
                    done(number)
        return [own[number] for number in range(len(tasks))]

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def _die_with_parent(parent: int) -> None:
    """A worker whose parent was killed must not go on writing into a folder that another run may have taken up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
