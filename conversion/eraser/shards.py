"""Convert the shards of a plan, in this process or in several; each finished file is remembered beside the build."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.arrays import distinct
from eraser_hub.conversion.parquet import FileFacts, write_parquet
from eraser_hub.conversion.workers import Workers
from eraser_hub.records.atomic import atomic_write, replacing
from eraser_hub.records.digests import file_digest

from .plan import Shard
from .rows import SplitFacts, Texts, rows_of
from .schema import SCHEMA


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A shard, the file to write it to, and the folder in which finished files are remembered."""

    target: Path
    parts: Path
    shard: Shard
    facts: SplitFacts


@dataclass(frozen=True, slots=True)
class ShardDone:
    """What was written, the records that need more than their row, and the sums of the rationales' shares (see
    `eraser_rows.Batch`)."""

    facts: FileFacts
    exceptions: list[tuple[int, str]]
    pairs: int
    shares: float


def run_all(works: Sequence[Work], workers: Workers, advance: Callable[[int], None]) -> list[ShardDone]:
    """Do all that is not done yet; results in the order of ``works``. The first error ends the rest."""
    done = [done_before(work, work.target.name) for work in works]
    for work, before in zip(works, done, strict=True):
        if before is not None:
            advance(len(work.shard.rows))
    left = [number for number, before in enumerate(done) if before is None]

    def here(work: Work) -> ShardDone:
        return convert(work, advance)

    made = workers.run(
        convert,
        [(works[number],) for number in left],
        [works[number].shard.bytes for number in left],
        here,
        lambda place: advance(len(works[left[place]].shard.rows)),
    )
    for number, each in zip(left, made, strict=True):
        done[number] = each
    return [each for each in done if each is not None]


def done_before(work: Work, name: str) -> ShardDone | None:
    """What an earlier run that was stopped wrote under this name, if it is whole."""
    try:
        stored = json.loads((work.parts / f"{name}.json").read_bytes())
        facts = FileFacts(**stored["facts"])
        path = work.target.parent / name
        # a machine that went down may have kept the size and lost the contents
        if path.stat().st_size != facts.file_bytes or file_digest(path) != facts.sha256:
            return None
        exceptions = [(position, record) for position, record in stored["exceptions"]]
        return ShardDone(facts, exceptions, stored["pairs"], stored["shares"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def convert(work: Work, advance: Callable[[int], None] = lambda _: None) -> ShardDone:
    """Write one shard. Raises DataError at the first record that is not in order."""
    exceptions: list[tuple[int, str]] = []
    pairs, shares = 0, 0.0
    shard = work.shard

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal pairs, shares
        for begin, end in pairwise(shard.batches):
            columns = shard.lines.columns(shard.rows[begin:end])
            chosen = distinct(columns.documents)
            texts = Texts(chosen, *shard.documents.read(chosen))
            batch = rows_of(columns, texts, work.facts, shared=shard.shared)
            exceptions.extend(batch.exceptions)
            pairs, shares = pairs + batch.pairs, shares + batch.shares
            yield batch.rows
            advance(end - begin)

    with replacing(work.target) as beside:
        facts = write_parquet(beside, SCHEMA, batches())
    remembered: dict[str, Any] = {
        "facts": facts.as_json(), "exceptions": exceptions, "pairs": pairs, "shares": shares,
    }  # fmt: skip
    atomic_write(work.parts / f"{work.target.name}.json", json.dumps(remembered).encode())
    return ShardDone(facts, exceptions, pairs, shares)
