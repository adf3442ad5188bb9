"""A whole attack: the stock is built, cases of every verb are drawn, run, judged and counted."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from . import annotations, archives, boards, folders, imports, instances, objects, plans_of_verbs  # noqa: F401  (register)
from .cases import NO_INPUT, PLANS, Pair, sound
from .judging import tell
from .kills import kills, publish_kills
from .material import stock_commands, write_stock
from .runs import run_call, run_command, run_in_folder
from .serving import requests
from .workers import BATCH, Verdict, base_key, make_case, order, run_batch, sound_world

COLUMNS = (
    "clean error",
    "success",
    "traceback",
    "hang",
    "wrong acceptance",
    "wrong refusal",
    "unclear",
    "half-written",
)
FAULTS = COLUMNS[2:]
# of a hundred cases; a case of score or of a module takes milliseconds, one of report or build a tenth of a second
WEIGHTS = {
    "score": 22, "compare": 4, "report": 3, "highlight": 4, "board": 4, "build": 8, "export": 3, "check": 4, "stats": 3,
    "explain": 4, "train": 2, "publish": 2, "import": 6, "eraser_agreement": 12, "eraser_faithfulness": 8, "perturbation_map": 5,
    "rationale_set_agreement": 5, "normalized_fidelity": 4, "annotator_agreement": 3, "quote_faithfulness": 3, "ask": 2, "reproduce": 1,
}  # fmt: skip


@contextmanager
def stock() -> Iterator[Path]:
    """A folder with sound inputs of every verb, built by the verbs themselves, and removed at the end."""
    home = Path(tempfile.mkdtemp(prefix="attack-stock-"))
    kept = dict(os.environ)
    os.environ.update(ERASER_HUB_CACHE=str(home / "cache"), TERM="dumb", COLUMNS="200")
    try:
        write_stock(home)
        build_stock(home)
        yield home
    finally:
        os.environ.clear()
        os.environ.update(kept)
        shutil.rmtree(home, ignore_errors=True)


def build_stock(home: Path) -> None:
    """Run the commands of the stock in its folder; the first that fails is told."""
    here = os.getcwd()
    os.chdir(home)
    try:
        for argv in stock_commands():
            outcome = run_command(argv)
            if outcome.rc != 0:
                raise RuntimeError(f"{' '.join(argv)}: exit status {outcome.rc}\n{outcome.err}{outcome.trace}")
    finally:
        os.chdir(here)


def warm_up(home: Path, verbs: Sequence[str]) -> dict[str, Any]:
    """Import what the verbs need, once, by one sound case of every plan; returns the scores of the sound inputs."""
    bases = {}
    for verb in verbs:
        for plan, kinds in PLANS[verb]:
            if not NO_INPUT.issuperset(kinds):
                world = plan(random.Random(0), home)
                outcome = run_call(world) if world.call else run_in_folder(world, lambda *_: "")[0]
                bases[base_key(Pair(verb, plan, sound, ""))] = outcome.scores
    bases["score score_parquet"] = bases.get("score score_raw")
    return bases


def drawn(cases: int, seed: int, verbs: Sequence[str], keep: Callable[[Pair], bool]) -> list[tuple[str, int]]:
    """So many (verb, number), by the weights of the verbs, of the pairs that are kept."""
    share = cases / sum(WEIGHTS[verb] for verb in verbs)
    chosen = []
    for verb in verbs:
        every = order(verb, seed)
        kept = [number for number, pair in enumerate(every) if keep(pair)]
        wanted = max(1, round(WEIGHTS[verb] * share)) if kept else 0
        chosen += [(verb, kept[at % len(kept)] + at // len(kept) * len(every)) for at in range(wanted)]
    return chosen


class Table:
    """Verdicts counted by verb and column; faults kept."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.faults: list[Verdict] = []
        self.names: dict[tuple[str, str], bool] = {}
        self.start = time.monotonic()
        self.busy: Counter[str] = Counter()

    def add(self, verdict: Verdict) -> None:
        counts = self.counts.setdefault(verdict.verb, Counter())
        counts["tried"] += 1
        counts[verdict.kind] += 1
        clean = verdict.kind not in FAULTS
        key = (verdict.verb, verdict.name)
        self.names[key] = self.names.get(key, True) and clean
        if not clean:
            self.faults.append(verdict)

    def __str__(self) -> str:
        heads = ("verb", "tried", *COLUMNS)
        rows = [(verb, *(str(counts[head]) for head in heads[1:])) for verb, counts in self.counts.items()]
        total = Counter[str]()
        for counts in self.counts.values():
            total.update(counts)
        rows.append(("all", *(str(total[head]) for head in heads[1:])))
        widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(heads))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [heads, *rows]
        ]
        seconds = time.monotonic() - self.start
        lines.append(f"{total['tried']} cases in {seconds:.0f} s, {total['tried'] / max(seconds, 1e-9):.0f} a second")
        return "\n".join(lines)


def attack(
    home: Path,
    cases: int,
    seed: int,
    verbs: Sequence[str] = (),
    keep: Callable[[Pair], bool] = lambda pair: True,
    say: Any = None,
) -> Table:
    """Run so many cases of the verbs; ``keep`` chooses among the pairs of plan and mutator."""
    verbs = list(verbs or WEIGHTS)
    bases = warm_up(home, verbs)
    table = Table()
    chosen = drawn(cases, seed, verbs, keep or (lambda pair: True))
    for start in range(0, len(chosen), BATCH):
        batch = chosen[start : start + BATCH]
        for verdict in run_batch(batch, seed, home, bases):
            table.add(verdict)
            if say is not None:
                say(verdict)
    return table


def other_attacks(
    home: Path,
    table: Table,
    seed: int,
    kill_count: int,
    requests_count: int,
    keep: Callable[[str], bool] = lambda name: True,
    say: Any = None,
) -> None:
    """So many kills of each verb that writes, and so many requests to `serve` of the kinds kept, into the table."""
    if kill_count:
        warm_up(home, [verb for verb in WEIGHTS if not verb.startswith(("publish", "compare"))])
    for verdict in chain(
        kills(home, kill_count, seed), publish_kills(home, kill_count, seed), requests(home, requests_count, seed, keep)
    ):
        table.add(verdict)
        if say is not None:
            say(verdict)


def one_case(home: Path, verb: str, number: int, seed: int) -> Verdict:
    """Run one case again, its story told in full."""
    bases = warm_up(home, [verb])
    _, world, expect = make_case(verb, number, seed, home)
    verdict = next(iter(run_batch([(verb, number)], seed, home, bases)))
    verdict.story = verdict.story or tell(sound_world(verb, number, seed, home), world, expect)
    return verdict
