"""Flat records: batches as one."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from eraser_hub.metrics.flat import FlatRecord, Predictions, References, concatenate
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
def test_batches_are_one(kind: type[FlatRecord], side: Side) -> None:
    """Labels and documents are numbered as in one batch; a label that one batch does not know has no number in it."""
    rows = random_case(4)[kind is References]
    for row in rows[4:]:
        row["classification"] = "MIXED"
        for key in row:
            if key.endswith("classification_scores"):
                row[key] = {"MIXED": 0.5, LABELS[0]: 0.5}
    same(concatenate([flatten(side, rows[:4]), flatten(side, rows[4:])]), flatten(side, rows))
