"""Rows, typed lines and Arrow tables become the same arrays; what they do not take, `faults` finds."""

from __future__ import annotations

import copy
import json
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eraser_hub.metrics.arrow_columns import flatten_table
from eraser_hub.metrics.columns import Level, ObjectColumns, UnsuitedError, find_issues
from eraser_hub.metrics.flatten import PREDICTION, REFERENCE, SIDES, Side, flatten_rows
from eraser_hub.metrics.issues import Issues
from eraser_hub.metrics.unknown_fields import UnknownFields
from eraser_hub.records.predictions import read_chunks

from .eraser_rows import random_case

pytestmark = pytest.mark.unit
KEYS = st.sampled_from(["POS", "docid", "start_token"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -(2**63) - 1, 2**70, 10**400]),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=2)), max_size=3),
    st.dictionaries(
        st.sampled_from(["POS", "docid", "start_token"]), st.one_of(st.none(), st.floats(), st.text()), max_size=2
    ),
)


def same(one: Any, two: Any) -> None:
    for item in fields(one):
        first, second = list(getattr(one, item.name)), list(getattr(two, item.name))
        np.testing.assert_array_equal(np.asarray(first), np.asarray(second), item.name)


@pytest.mark.parametrize("side", [PREDICTION, REFERENCE], ids=lambda side: side.name)
@pytest.mark.parametrize("seed", range(4))
def test_rows_and_tables_are_the_same_arrays(side: Side, seed: int) -> None:
    rows = random_case(seed, n=12)[side is REFERENCE]
    by_rows, _ = flatten_rows(rows, side, Issues())
    by_table, _ = flatten_table(pa.Table.from_pylist(rows), side, Issues())
    same(by_rows, by_table)


@pytest.mark.parametrize("seed", range(4))
def test_typed_lines_are_the_same_arrays(seed: int, tmp_path: Any) -> None:
    rows = random_case(seed, n=12)[0]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (part,) = read_chunks(path)
    same(part.predictions, flatten_rows(rows, PREDICTION, Issues())[0])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a row."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [inner for key, one in items for inner in places(one, (*path, key))]


@given(st.data())
def test_what_is_not_taken_is_found(data: st.DataObject) -> None:
    side = SIDES[data.draw(st.sampled_from(list(SIDES)))]
    row = copy.deepcopy(random_case(1, n=2)[side is REFERENCE][0])
    *path, last = data.draw(st.sampled_from(places(row)))
    holder: Any = row
    for key in path:
        holder = holder[key]
    holder[last] = data.draw(VALUES)
    columns = ObjectColumns(side.record, side.paths, side.texts)
    try:
        columns.add(Level([row], side.record))
    except UnsuitedError:
        assert list(find_issues(row, side.record)) or UnknownFields().count_row(row, side.record)
    else:
        flatten_rows([row], side, Issues())
