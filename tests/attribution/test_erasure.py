"""Random rationales and shares of units; rankings, rates and spans: test_engine.py and test_presets.py."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.attribution import erasure

pytestmark = pytest.mark.unit


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 1000), st.data())
def test_shifted_spans_stay_in_their_document_and_keep_their_size(lengths, seed, data):
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    chosen = np.array(
        sorted(data.draw(st.sets(st.integers(0, max(bounds[-1] - 1, 0)), max_size=bounds[-1]))), dtype=int
    )
    moved = erasure.draw_shifted_rationale(np.random.default_rng(seed), chosen, bounds)
    for start, end in pairwise(bounds):
        inside = (chosen >= start) & (chosen < end)
        assert inside.sum() == ((moved >= start) & (moved < end)).sum()
    assert len(set(moved.tolist())) == len(chosen)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(0.0, []), (0.01, [2, 3, 4]), (0.5, [2, 3, 4]), (0.51, [0, 1, 2, 3, 4]), (1.0, [0, 1, 2, 3, 4, 5])],
)
def test_as_few_units_as_hold_the_share(rate, expected):
    found = erasure.select_top_units(np.array([0.2, 0.9, 0.2]), np.array([0, 2, 5, 6]), rate)
    assert found.tolist() == expected
