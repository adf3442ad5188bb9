"""A large prediction file summed up by several processes, each a run of its lines.

Each process reads the annotations and the documents for itself, which takes less time than it saves from some hundred
megabytes of predictions on. A process that meets anything out of order says so by its exit status alone: the caller then
reads the whole file, and tells.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.records.errors import DataError

from .corpus import is_parquet
from .gold import Unclear
from .totals import Totals

# bytes of predictions that make a process worth its start and its own reading of annotations and documents
SHARE_BYTES = 128 << 20
MOST_PROCESSES = 4


class Share(NamedTuple):
    """The bytes [start, end) of a file; both are ends of lines, or the file's."""

    start: int
    end: int


def shares_of(path: Path, num_proc: int = 0) -> list[Share]:
    """Runs of whole lines of a prediction file, one per process, about as long as each other.

    Args:
        path: the predictions; a Parquet file is one share.
        num_proc: how many; 0: as many as there are cores, at most `MOST_PROCESSES` and one per `SHARE_BYTES`.
    """
    if is_parquet(path):
        return [Share(0, path.stat().st_size)]
    size = path.stat().st_size
    count = num_proc or max(1, min(_cores(), MOST_PROCESSES, size // SHARE_BYTES))
    edges = [0]
    with open(path, "rb") as file:
        for number in range(1, count):
            file.seek(max(size * number // count, edges[-1]))
            file.readline()
            if edges[-1] < file.tell() < size:
                edges.append(file.tell())
    return [Share(*both) for both in zip(edges, [*edges[1:], size], strict=True)]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def helpers(inputs: Any, settings: Any, shares: Sequence[Share]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A process per share, at work; whatever happens, none of them is left behind.

    Raises:
        Unclear: a process cannot be started.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    command = [sys.executable, "-m", "eraser_hub.scoring.shares"]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for share in shares:
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
                )
                started.append(process)
                with process.stdin as given:  # type: ignore[union-attr]
                    given.write(pickle.dumps((inputs, settings, share)))
                process.stdin = None
            except OSError:  # no process, or one that died at once: the caller does without
                raise Unclear from None
        yield started
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def result_of(process: subprocess.Popen[bytes]) -> Totals:
    """What a helper summed up.

    Raises:
        Unclear: it met something out of order.
    """
    answer, _ = process.communicate()
    if process.returncode:
        raise Unclear
    return pickle.loads(answer)


def main() -> int:
    """A helper's whole life: inputs, settings and share from standard input, its totals to standard output."""
    from .score import add_share

    inputs, settings, share = pickle.load(sys.stdin.buffer)
    try:
        totals = add_share(inputs, settings, share)
    except (Unclear, DataError, OSError, ValueError):
        return 1
    sys.stdout.buffer.write(pickle.dumps(totals))
    return 0


if __name__ == "__main__":
    sys.exit(main())
