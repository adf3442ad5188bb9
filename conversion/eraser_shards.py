"""Convert the shards of a plan, in this process or in several; each finished file is remembered beside the build."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .eraser_corpus import lines_at
from .eraser_format import decode_annotations
from .eraser_plan import Shard
from .eraser_rows import Records, SplitFacts, rows_of
from .eraser_schema import SCHEMA
from .hub_parquet import FileFacts, write_parquet
from .progress import no_cycles
from .safe_folder import atomic_write


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A shard, the file to write it to, and the folder in which finished files are remembered."""

    target: Path
    parts: Path
    shard: Shard
    facts: SplitFacts
    label_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShardDone:
    """What was written, and the records that need more than their row (see `eraser_rows.Batch`)."""

    facts: FileFacts
    exceptions: list[tuple[int, str]]


def run_all(works: Sequence[Work], num_proc: int, advance: Callable[[int], None]) -> list[ShardDone]:
    """Do all that is not done yet; results in the order of ``works``. The first error ends the rest."""
    done = [done_before(work, work.target.name) for work in works]
    for work, before in zip(works, done, strict=True):
        if before is not None:
            advance(len(work.shard.lines))
    left = [number for number, before in enumerate(done) if before is None]
    if num_proc == 1 or len(left) < 2:
        for number in left:
            done[number] = convert(works[number], advance)
    elif left:
        with ProcessPoolExecutor(
            min(num_proc, len(left)), get_context("spawn"), _die_with_parent, (os.getpid(),)
        ) as pool:
            futures = {pool.submit(convert, works[number]): number for number in left}
            try:
                for future in as_completed(futures):
                    done[futures[future]] = future.result()
                    advance(len(works[futures[future]].shard.lines))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    return [each for each in done if each is not None]


def _die_with_parent(parent: int) -> None:
    """A worker whose parent was killed must not go on writing into a folder that another run may have taken up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def done_before(work: Work, name: str) -> ShardDone | None:
    """What an earlier run that was stopped wrote under this name, if it is whole."""
    try:
        stored = json.loads((work.parts / f"{name}.json").read_bytes())
        facts = FileFacts(**stored["facts"])
        if (work.target.parent / name).stat().st_size != facts.file_bytes:
            return None
        return ShardDone(facts, [(position, record) for position, record in stored["exceptions"]])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def convert(work: Work, advance: Callable[[int], None] = lambda _: None) -> ShardDone:
    """Write one shard. Raises DataError at the first record that is not in order."""
    exceptions: list[tuple[int, str]] = []
    beside = work.target.with_name(f".{work.target.name}.tmp")

    def batches() -> Iterator[pa.RecordBatch]:
        for records in records_of(work.shard):
            batch = rows_of(records, {name: number for number, name in enumerate(work.label_names)}, work.facts)
            exceptions.extend(batch.exceptions)
            yield batch.rows
            advance(len(records.records))

    try:
        with no_cycles():
            facts = write_parquet(beside, SCHEMA, batches())
        beside.replace(work.target)
    finally:
        beside.unlink(missing_ok=True)
    remembered: dict[str, Any] = {"facts": facts.as_json(), "exceptions": exceptions}
    atomic_write(work.parts / f"{work.target.name}.json", json.dumps(remembered).encode())
    return ShardDone(facts, exceptions)


def records_of(shard: Shard) -> Iterator[Records]:
    """The shard's records, decoded, a batch at a time, with their documents."""
    for begin, end in zip(shard.batches[:-1], shard.batches[1:], strict=True):
        lines = lines_at(shard.path, shard.starts[begin:end], shard.sizes[begin:end])
        numbers = shard.lines[begin:end].tolist()
        extras: dict[int, dict[str, Any]] = {}
        records = decode_annotations(lines, file=shard.path, numbers=numbers, double=shard.double, extras=extras)
        offsets = shard.offsets[begin : end + 1]
        chosen, local = np.unique(shard.documents[offsets[0] : offsets[-1]], return_inverse=True)
        texts = shard.some.read(chosen)
        yield Records(shard.path, numbers, records, extras, offsets - offsets[0], local, texts)
