"""Flat records: as bytes and back, and batches as one."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from eraser_hub.metrics.flat import FlatRecord, Predictions, References, concatenate, pack, unpack
from eraser_hub.metrics.flatten import PREDICTION, REFERENCE, Side, flatten_rows
from eraser_hub.metrics.issues import Issues

from .eraser_rows import LABELS, random_case

pytestmark = pytest.mark.unit

SIDES = [(Predictions, PREDICTION), (References, REFERENCE)]


def flatten(side: Side, rows: list[dict]) -> FlatRecord:
    return flatten_rows(rows, side, Issues())[0]


def same(one: FlatRecord, two: FlatRecord) -> None:
    for item in fields(one):
        first, second = getattr(one, item.name), getattr(two, item.name)
        assert len(first) == len(second), item.name
        np.testing.assert_array_equal(first, second, item.name)


@pytest.mark.parametrize(("kind", "side"), SIDES)
def test_bytes_and_back(kind: type[FlatRecord], side: Side) -> None:
    rows = random_case(3)[kind is References]
    rows[0]["annotation_id"], rows[1]["annotation_id"] = "a\0", "é \ud800"  # a NUL at the end, half a pair
    record = flatten(side, rows)
    packed, beside = unpack(kind, pack(record, {"a": [1]}))
    same(packed, record)
    assert beside == {"a": [1]}
    same(unpack(kind, pack(flatten(side, [])))[0], flatten(side, []))


@pytest.mark.parametrize(("kind", "side"), SIDES)
def test_batches_are_one(kind: type[FlatRecord], side: Side) -> None:
    """Labels and documents are numbered as in one batch; a label that one batch does not know has no number in it."""
    rows = random_case(4)[kind is References]
    for row in rows[4:]:
        row["classification"] = "MIXED"
        for key in row:
            if key.endswith("classification_scores"):
                row[key] = {"MIXED": 0.5, LABELS[0]: 0.5}
    same(concatenate([flatten(side, rows[:4]), flatten(side, rows[4:])]), flatten(side, rows))
