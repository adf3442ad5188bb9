"""Tasks come back in order whoever does them, the first error is the one that is told, and little work starts no process."""

from __future__ import annotations

import os

import pytest

from eraser_hub.conversion import workers as module
from eraser_hub.conversion.workers import WORTH_STARTING, Workers


def doubled(number: int) -> int:
    if number < 0:
        raise ValueError(f"no {number}")
    return 2 * number


def where(_: int) -> int:
    return os.getpid()


def only_in(process: int) -> int:
    if os.getpid() != process:
        os._exit(1)
    return process


def test_what_workers_leave_undone_is_done_here(monkeypatch):
    monkeypatch.setattr(module, "WORTH_STARTING", 0)
    with Workers(2) as workers:
        for _ in range(2):
            assert workers.run(only_in, [(os.getpid(),)] * 6, [1] * 6) == [os.getpid()] * 6


@pytest.mark.parametrize(("num_proc", "weight"), [(1, WORTH_STARTING), (2, 1)])
def test_little_work_starts_no_process(num_proc, weight):
    with Workers(num_proc) as workers:
        assert workers.run(where, [(0,), (1,), (2,)], [weight] * 3) == [os.getpid()] * 3
        assert workers.run(doubled, [], []) == []


def test_results_and_errors_come_in_the_tasks_order(monkeypatch):
    monkeypatch.setattr(module, "WORTH_STARTING", 0)
    monkeypatch.setattr(module, "WORTH_SHARING", 0)
    with Workers(3) as workers:
        done: list[int] = []
        here: list[int] = []

        def own(number: int) -> int:
            here.append(number)
            return doubled(number)

        tasks = [(number,) for number in range(20)]
        assert workers.run(doubled, tasks, [1] * 20, own, done.append) == [2 * number for number in range(20)]
        assert sorted(done + here) == list(range(20)) and here, "each is told once, and this process works too"
        with pytest.raises(ValueError, match="no -1"):
            workers.run(doubled, [(0,), (-1,), (2,), (-3,)], [1] * 4)
        with pytest.raises(ValueError, match="no -9"):
            workers.run(doubled, [(0,), (1,), (2,), (-9,)], [1] * 4)
        assert workers.run(doubled, [(4,), (5,)], [1] * 2) == [8, 10], "they go on after an error"
