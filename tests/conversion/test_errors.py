"""Several faults in one message."""

from __future__ import annotations

import pickle

from eraser_hub.conversion.errors import MOST_SHOWN, DataErrors
from eraser_hub.records.errors import DataError


def test_ten_offenders_and_their_number():
    errors = DataErrors([DataError(f"number {i}") for i in range(14)])
    lines = str(errors).splitlines()
    assert lines[:MOST_SHOWN] == [f"number {i}" for i in range(MOST_SHOWN)]
    assert lines[MOST_SHOWN:] == ["… and 4 more (14 in all)"]
    assert str(pickle.loads(pickle.dumps(errors))) == str(errors)


def test_a_total_beyond_what_was_kept():
    assert str(DataErrors([DataError("a")], total=1000)).endswith("and 999 more (1000 in all)")
