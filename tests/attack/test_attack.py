"""The attack as tests: cases of every verb by seed, kills, and requests to `serve`; `make attack N=..` runs more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .attack import Table, attack, other_attacks, stock
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


def test_five_hundred_cases(home: Path) -> None:
    judge(attack(home, 500, SEED))


@pytest.mark.slow
def test_five_thousand_cases(home: Path) -> None:
    judge(attack(home, 5000, SEED))


def test_sixty_requests(home: Path) -> None:
    table = Table()
    other_attacks(home, table, SEED, 0, 60)
    judge(table)


@pytest.mark.slow
def test_fifty_kills_and_three_hundred_requests(home: Path) -> None:
    table = Table()
    other_attacks(home, table, SEED, 6, 300)
    judge(table)
