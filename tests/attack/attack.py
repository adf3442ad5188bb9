"""A whole attack: the stock is built, cases of every verb are drawn, run, judged and counted."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from . import (  # noqa: F401
    annotations,
    archives,
    boards,
    endpoints,
    folders,
    imports,
    instances,
    networks,
    objects,
    outputs,
    plans_of_verbs,
    semantic,
    versions,
)
from .cases import NO_INPUT, PLANS, Pair, sound
from .judging import tell
from .kills import kills
from .material import stock_commands, write_stock
from .publish_kills import publish_kills
from .runs import run_call, run_command, run_in_folder
from .serving import requests
from .workers import BATCH, Verdict, base_key, make_case, order, pair_of, run_batch, sound_world

FAULTS = ("traceback", "hang", "wrong acceptance", "wrong refusal", "unclear", "half-written")
COLUMNS = ("clean error", "success", *FAULTS)
# of a hundred cases; a case of score or of a module takes milliseconds, one of report or build a tenth of a second
_WORDS = """score 22 compare 4 report 3 highlight 4 board 4 build 8 export 3 check 4 stats 3 explain 4 train 2
    publish 2 import 6 eraser_agreement 12 eraser_faithfulness 8 perturbation_map 5 rationale_set_agreement 5
    normalized_fidelity 4 annotator_agreement 3 quote_faithfulness 3 ask 2 reproduce 1"""
WEIGHTS = dict(zip(_WORDS.split()[::2], map(int, _WORDS.split()[1::2]), strict=True))


@contextmanager
def stock() -> Iterator[Path]:
    """A folder with sound inputs of every verb, built by the verbs themselves, and removed at the end."""
    home = Path(tempfile.mkdtemp(prefix="attack-stock-"))
    kept = dict(os.environ)
    os.environ.update(ERASER_HUB_CACHE=str(home / "cache"), TERM="dumb", COLUMNS="200")
    try:
        write_stock(home)
        if networks.AVAILABLE:
            networks.write_network(home / networks.BERT)
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


def drawn(cases: int, seed: int, verbs: Sequence[str] = ()) -> list[tuple[str, int]]:
    """So many (verb, number), by the weights of the verbs; by default of all."""
    share = cases / sum(WEIGHTS[verb] for verb in verbs or WEIGHTS)
    wanted = {verb: max(1, round(WEIGHTS[verb] * share)) for verb in verbs or WEIGHTS}
    return [(verb, number) for verb, count in wanted.items() for number in range(count)]


def every_pair(seed: int) -> list[tuple[str, int]]:
    """Every plan with every mutator that fits it, once."""
    return [(verb, number) for verb in WEIGHTS for number in range(len(order(verb, seed)))]


def every_kind(seed: int) -> list[tuple[str, int]]:
    """Pairs in which every plan and every mutator comes at least once."""
    chosen, seen, cases = list[tuple[str, int]](), set[Any](), every_pair(seed)
    random.Random(seed).shuffle(cases)
    for verb, number in cases:
        pair = pair_of(verb, number, seed)
        if not seen.issuperset((pair.plan, pair.mutator)):
            seen.update((pair.plan, pair.mutator))
            chosen.append((verb, number))
    return sorted(chosen)


class Table:
    """Verdicts counted by verb and column; faults kept."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.faults: list[Verdict] = []
        self.start = time.monotonic()

    def add(self, verdict: Verdict) -> None:
        counts = self.counts.setdefault(verdict.verb, Counter())
        counts["tried"] += 1
        counts[verdict.kind] += 1
        if verdict.kind in FAULTS:
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
    home: Path, cases: Sequence[tuple[str, int]], seed: int, say: Any = None, table: Table | None = None
) -> Table:
    """Run the cases, each a verb and the number of a pair in its order; into the table."""
    bases = warm_up(home, list(dict.fromkeys(verb for verb, _ in cases)))
    table = table or Table()
    for start in range(0, len(cases), BATCH):
        for verdict in run_batch(cases[start : start + BATCH], seed, home, bases):
            table.add(verdict)
            if say is not None:
                say(verdict)
    return table


def other_attacks(home: Path, table: Table, seed: int, kill_count: int, requests_count: int, say: Any = None) -> None:
    """So many kills of each verb that writes, and so many requests to `serve`, into the table."""
    if kill_count:
        warm_up(home, [verb for verb in WEIGHTS if not verb.startswith(("publish", "compare"))])
    killed = chain(kills(home, kill_count, seed), publish_kills(home, kill_count, seed))
    for verdict in chain(killed, requests(home, requests_count, seed)):
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
