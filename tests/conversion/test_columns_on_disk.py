"""Columns that were written in parts are read as one, in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.conversion.arrays import (
    booleans,
    distinct,
    first_places,
    in_first_order,
    numbers,
    strings,
    with_nulls,
)
from eraser_hub.conversion.columns_on_disk import ColumnWriter, Strings, put_together, read_numbers

TEXTS = st.lists(st.text(st.sampled_from(["a", "é", "漢", "\x00", "\n", "😀"]), max_size=5), max_size=8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_parts_are_read_as_one(tmp_path_factory, parts, random):
    folder = tmp_path_factory.mktemp("columns")
    for number, texts in enumerate(parts):
        with ColumnWriter(folder / f"part{number}") as writer:
            for text in texts:  # in as many pieces as there are
                writer.strings("texts", strings([text]))
            writer.numbers("sizes", np.array([len(text) for text in texts], np.int32))
    put_together([folder / f"part{number}" for number in range(len(parts))], folder / "whole")
    assert [path.name for path in folder.iterdir()] == ["whole"]
    held = [text for texts in parts for text in texts]
    column = Strings(folder / "whole", "texts")
    assert len(column) == len(held) and column.slice(0, len(held)).to_pylist() == held
    assert read_numbers(folder / "whole", "sizes", np.int32).tolist() == [len(text) for text in held]
    for rows in (random.sample(range(len(held)), len(held)), [0, 0] if held else [], []):
        assert column.take(np.array(rows, np.int64)).to_pylist() == [held[row] for row in rows]


def test_arrays_are_what_pyarrow_makes():
    texts = ["", "é", "a", "😀" * 3]
    assert strings(texts).equals(pa.array(texts)) and strings([]).equals(pa.array([], pa.string()))
    null = np.array([True, False, False, True])
    assert with_nulls(strings(["", "é", "a", ""]), null).equals(pa.array([None, "é", "a", None]))
    bits = [True, False] * 9
    assert booleans(np.array(bits)).equals(pa.array(bits))
    assert numbers(np.arange(5, dtype=np.int32)[::2]).equals(pa.array([0, 2, 4], pa.int32()))


@given(st.lists(st.integers(-3, 3), max_size=12))
def test_distinct_values_and_their_first_places(values):
    array = np.array(values, np.int64)
    assert distinct(array).tolist() == sorted(set(values))
    assert first_places(array).tolist() == [values.index(value) for value in values]
    assert in_first_order(array).tolist() == list(dict.fromkeys(values))
