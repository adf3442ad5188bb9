"""A sample of the attack: every kind of spoiling, requests to `serve`, and, slow, every pair and a kill of each verb.

`make attack` runs the long campaign.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .attack import Table, attack, every_kind, every_pair, other_attacks, stock
from .findings import findings

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


def test_sixty_requests(home: Path) -> None:
    table = Table()
    other_attacks(home, table, SEED, 0, 60)
    judge(table)


@pytest.mark.slow
def test_a_kill_of_each_verb_that_writes(home: Path) -> None:
    table = Table()
    other_attacks(home, table, SEED, 1, 0)
    judge(table)
