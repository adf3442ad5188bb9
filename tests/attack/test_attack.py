"""A sample of the attack: every kind of spoiling, requests to `serve`, and, slow, every pair and a kill of each verb.

`make attack` runs the long campaign.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .attack import Table, attack, every_kind, every_pair, other_attacks, stock
from .cases import MUTATORS, Expect, World
from .findings import findings
from .judging import tell
from .outputs import LEFT_OUT
from .workers import make_case, pair_of, sound_world

SEED = 20


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with stock() as folder:
        yield folder


def judge(table: Table) -> None:
    """Print the table; any fault fails, told so that it can be seen again."""
    print(table)
    assert not table.faults, findings(table.faults, SEED)


def test_every_plan_and_every_mutator(home: Path) -> None:
    judge(attack(home, every_kind(SEED), SEED))


@pytest.mark.slow
def test_every_plan_with_every_mutator(home: Path) -> None:
    judge(attack(home, every_pair(SEED), SEED))


def test_devices_and_full_disks_are_tried() -> None:
    if LEFT_OUT:
        pytest.skip(f"left out, which need root: {LEFT_OUT}")
    names = {mutator.__name__ for mutator, _ in MUTATORS["outputs"]}
    assert {"full_tmpfs", "read_only_folder", "disk", "device_that_is_full", "device_that_takes_all"} <= names


def test_a_case_is_the_same_for_the_same_seed(home: Path) -> None:
    for verb, number in every_kind(SEED)[::40]:
        if pair_of(verb, number, SEED).plan.__name__ != "ask_a_server":  # its address is another each time
            told = {tell(*worlds(verb, number, home)) for _ in range(2)}
            assert len(told) == 1


def worlds(verb: str, number: int, home: Path) -> tuple[World, World, Expect]:
    _, world, expect = make_case(verb, number, SEED, home)
    return sound_world(verb, number, SEED, home), world, expect


def test_sixty_requests(home: Path) -> None:
    table = Table()
    other_attacks(home, table, SEED, 0, 60)
    judge(table)


@pytest.mark.slow
def test_a_kill_of_each_verb_that_writes(home: Path) -> None:
    table = Table()
    other_attacks(home, table, SEED, 1, 0)
    judge(table)
