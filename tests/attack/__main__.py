"""``python -m tests.attack``: so many cases, or one again."""

from __future__ import annotations

import argparse
import sys

from tests.conftest import pytest_unconfigure as remove_caches

from .attack import PLANS, Table, Verdict, attack, drawn, one_case, other_attacks, stock
from .findings import findings
from .networks import AVAILABLE
from .outputs import LEFT_OUT


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--cases", type=int, default=500)
    options.add_argument("--kills", type=int, default=0, help="so many kills of each verb that writes")
    options.add_argument("--requests", type=int, default=0, help="so many hostile requests to serve")
    options.add_argument("--verb", action="append", choices=sorted(PLANS), help="repeatable; by default all")
    options.add_argument("--case", type=int, help="run this one case of --verb again and print everything")
    options.add_argument("--faults", help="write every fault to this file")
    options.add_argument("--findings", help="write one fault of each kind, by owner, to this file")
    options.add_argument("--quiet", action="store_true", help="the table alone")
    given = options.parse_args()
    with stock() as home:
        if given.case is not None:
            print(told(one_case(home, given.verb[0], given.case, given.seed), given.seed, whole=True))
            return 0
        say = None if given.quiet else said(given.seed)
        table = Table()
        try:
            if given.cases:
                attack(home, drawn(given.cases, given.seed, given.verb or ()), given.seed, say=say, table=table)
            other_attacks(home, table, given.seed, given.kills, given.requests, say=say)
        except KeyboardInterrupt:
            print("stopped: the table has what was done")
    print(table)
    for words in filter(None, (LEFT_OUT, "networks" * (not AVAILABLE))):
        print(f"left out, which need root or packages: {words}")
    if given.faults:
        with open(given.faults, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n\n".join(told(fault, given.seed) for fault in table.faults) + "\n")
    if given.findings:
        with open(given.findings, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{table}\n{findings(table.faults, given.seed)}\n")
    return 1 if table.faults else 0


def said(seed: int):
    """Print each fault in a line as it comes."""

    def say(verdict: Verdict) -> None:
        if verdict.fault:
            case = f"{verdict.verb} {verdict.name} (--seed {seed} --case {verdict.number})"
            print(
                f"{verdict.kind}: {case}: {verdict.fault}"[:240].encode("ascii", "backslashreplace").decode(),
                flush=True,
            )

    return say


def told(verdict: Verdict, seed: int, whole: bool = False) -> str:
    """A fault with all that reproduces it."""
    outcome = verdict.outcome
    again = f"--seed {seed} --verb {verdict.verb} --case {verdict.number}"
    head = f"== {verdict.kind}: {verdict.verb} {verdict.name}  [{verdict.row}]  {again}"
    lines = [head, verdict.fault, verdict.story]
    if outcome is not None:
        lines.append(f"exit status {outcome.rc}")
        most = None if whole else 1500
        lines += [
            f"{name}: {text[:most]}"
            for name, text in (("stderr", outcome.err), ("trace", outcome.trace[-(most or 10**6) :]))
            if text
        ]
        if whole:
            lines.append(f"stdout: {outcome.out[:5000]}")
    return "\n".join(line for line in lines if line)


try:
    sys.exit(main())
finally:
    remove_caches()
