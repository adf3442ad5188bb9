"""A forked worker for each batch of cases, an alarm for each case; a case that stops its worker is judged so."""

from __future__ import annotations

import io
import os
import pickle
import random
import resource
import select
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from .cases import Expect, Pair, World, pairs
from .judging import half_written, judge, tell
from .runs import CASE_SECONDS, Outcome, run_call, run_in_folder, timed

BATCH, MEMORY_BYTES = 50, 3 << 30


@dataclass
class Verdict:
    """A judged case: its kind is a column of the table; a fault says what was wrong."""

    verb: str
    number: int
    name: str
    row: str
    kind: str
    fault: str = ""
    outcome: Outcome | None = None
    story: str = ""


@cache
def order(verb: str, seed: int) -> list[Pair]:
    """All pairs of the verb, shuffled: every one has its turn before any comes again."""
    every = list(pairs(verb))
    random.Random(f"{seed} {verb}").shuffle(every)
    return every


def pair_of(verb: str, number: int, seed: int) -> Pair:
    """The plan and mutator of that case."""
    every = order(verb, seed)
    return every[number % len(every)]


def sound_world(verb: str, number: int, seed: int, stock: Path) -> World:
    """The case before its mutator."""
    return pair_of(verb, number, seed).plan(random.Random(f"{seed} {verb} {number}"), stock)


def make_case(verb: str, number: int, seed: int, stock: Path) -> tuple[Pair, World, Expect]:
    """The case of that number: the same for the same seed."""
    pair, world = pair_of(verb, number, seed), sound_world(verb, number, seed, stock)
    expect = pair.mutator(world) or Expect("anything")
    if pair.part and pair.part not in world.parts:  # the verb does not judge this part
        expect = Expect("anything")
    return pair, world, expect


def base_key(pair: Pair) -> str:
    return f"{pair.verb} {pair.plan.__name__}"


def run_case(verb: str, number: int, seed: int, stock: Path, bases: dict[str, Any]) -> Verdict:
    """Make, run and judge one case, a command in a folder of its own."""
    pair, world, expect = make_case(verb, number, seed, stock)
    if world.call:
        outcome, damage = timed(lambda: run_call(world)), ""
    else:
        outcome, damage = run_in_folder(world, partial(half_written, world))
    kind, fault = judge(expect, world, outcome, damage, bases.get(base_key(pair)))
    story = "" if not fault else tell(sound_world(verb, number, seed, stock), world, expect)
    outcome.scores = None
    return Verdict(verb, number, pair.name, expect.row, kind, fault, outcome, story)


def work(batch: Sequence[tuple[str, int]], seed: int, stock: Path, bases: dict[str, Any], pipe: int) -> None:
    """In the child: run the batch, write a pickled verdict after each case."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    with open(pipe, "wb") as out:
        for verb, number in batch:
            try:
                verdict = run_case(verb, number, seed, stock, bases)
            except Exception as error:  # a fault of the attack's own
                verdict = Verdict(
                    verb, number, pair_of(verb, number, seed).name, "anything", "traceback", f"attack: {error!r}"
                )
                verdict.story = traceback.format_exc()
            data = pickle.dumps(verdict)
            out.write(len(data).to_bytes(4, "little") + data)
            out.flush()


def run_batch(batch: Sequence[tuple[str, int]], seed: int, stock: Path, bases: dict[str, Any]) -> Iterator[Verdict]:
    """Fork a worker for the batch; after a case that kills or stops it another worker does the rest."""
    rest = list(batch)
    while rest:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            _be_child(partial(work, rest, seed, stock, bases, writer))
        os.close(writer)
        try:
            with open(reader, "rb", buffering=0) as pipe:
                while rest:
                    verdict, why = read_verdict(pipe)
                    verb, number = rest.pop(0)
                    name = pair_of(verb, number, seed).name
                    yield verdict or Verdict(verb, number, name, "anything", why, "the worker died or stood still")
                    if verdict is None:
                        break
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _be_child(act: Callable[[], Any]) -> None:
    status = 1
    try:
        act()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def read_verdict(pipe: io.FileIO) -> tuple[Verdict | None, str]:
    """(the next verdict, ""), or (None, the column that a silent worker counts in)."""
    data, size = b"", 4
    while len(data) < size:
        if not select.select([pipe], [], [], 2 * CASE_SECONDS)[0]:
            return None, "hang"
        piece = pipe.read(size - len(data))
        if not piece:
            return None, "traceback"
        data += piece
        if len(data) == 4 and size == 4:
            size += int.from_bytes(data, "little")
    return pickle.loads(data[4:]), ""
