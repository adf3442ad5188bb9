"""``ask`` beside the bare openai client: the same prompts, as many at a time, a server in a process of its own.

python -m benchmarks.throughput         real corpora (ERASER_CORPORA); `python -m benchmarks.asking` prints it too
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, ParamSpec

import openai

from eraser_hub.asking.run import AskConfig, ask, make_plan
from eraser_hub.asking.settings import AskArguments, AskSettings
from eraser_hub.conversion import HUB_DATASETS
from tests.conftest import CORPORA

INSTANCES, CONCURRENCY, LATENCY = 1000, 64, 0.2  # the last in seconds
RUNS = 3
SERVER = Path(__file__).with_name("slow_server.py")
P = ParamSpec("P")
Messages = Sequence[dict[str, str]]


class Took(NamedTuple):
    """What a side took.

    Attributes:
        wall, cpu: seconds, the latter of this process.
    """

    wall: float
    cpu: float


@contextmanager
def server(latency: float) -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    process = subprocess.Popen([sys.executable, SERVER, str(latency)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def _timed(work: Callable[P, object], *how: P.args, **named: P.kwargs) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    work(*how, **named)
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def _bare_client(endpoint: str, prompts: Sequence[Messages], concurrency: int) -> None:
    waiting = iter(prompts)

    async def work(client: openai.AsyncOpenAI) -> None:
        for messages in waiting:
            await client.chat.completions.create(model="scripted", messages=messages)  # type: ignore[arg-type]

    async def all_of_them() -> None:
        async with openai.AsyncOpenAI(base_url=endpoint, api_key="none") as client:
            await asyncio.gather(*(work(client) for _ in range(concurrency)))

    asyncio.run(all_of_them())


def measure(job: AskConfig, concurrency: int, latency: float, runs: int, folder: Path) -> tuple[list[Took], list[Took]]:
    """What the bare client and `ask` took, run by run in turn; prompts are made beforehand for the former alone."""
    plan = make_plan(job, AskSettings("scripted"))
    prompts = [plan.messages(question) for question in plan.questions()]
    bare, whole = list[Took](), list[Took]()
    with server(latency) as endpoint:
        for number in range(-1, runs):  # the first imports and compiles
            few = replace(job, limit=8) if number < 0 else job
            out, cache = folder / f"{number}.jsonl", folder / f"cache{number}"
            place = {"dataset": few.dataset, "config": few.config, "split": few.split, "limit": few.limit}
            how = {"endpoint": endpoint, "out": out, "cache": cache, "concurrency": concurrency, **place}
            one = _timed(_bare_client, endpoint, prompts[: few.limit], concurrency)
            other = _timed(ask, AskArguments("scripted", **how))
            if number >= 0:
                bare.append(one)
                whole.append(other)
    return bare, whole


def table() -> list[str]:
    """The measurement as lines of Markdown."""
    ideal = INSTANCES / CONCURRENCY * LATENCY
    lines = [
        "## throughput: asking a server that takes its time",
        "",
        f"{INSTANCES:,} instances, {CONCURRENCY} at a time, a server with {LATENCY * 1e3:.0f} ms of latency in a "
        f"process of its own: ideal {ideal:.2f} s. `ask` reads the data, asks, keeps each answer, aligns quotes and "
        "writes predictions; the bare openai client sends the same prompts, made beforehand, and reads nothing. In "
        f"turn, {RUNS} times, medians; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.",
        "",
        "| corpus | bare client, s | x ideal | ask, s | x ideal | ask / bare | CPU s bare | CPU s ask |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for config in ("multirc", "movies"):
        with tempfile.TemporaryDirectory() as place:
            HUB_DATASETS["eraser"].build([config], out=Path(place), source=CORPORA)
            split = "validation" if config == "multirc" else "train"
            job = AskConfig(f"{place}/eraser", config, split, INSTANCES)
            bare, whole = measure(job, CONCURRENCY, LATENCY, RUNS, Path(place))
        one, other = (Took(*map(statistics.median, zip(*runs, strict=True))) for runs in (bare, whole))
        lines.append(
            f"| {config} | {one.wall:.2f} | {one.wall / ideal:.2f} | {other.wall:.2f} | {other.wall / ideal:.2f} | "
            f"{other.wall / one.wall:.2f} | {one.cpu:.2f} | {other.cpu:.2f} |"
        )
    return [*lines, "", f"Load at the end {os.getloadavg()[0]:.1f}.", ""]


if __name__ == "__main__":
    print("\n".join(table()))
