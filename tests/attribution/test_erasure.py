"""Rankings, rates, spans and random rationales."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.attribution import erasure

pytestmark = pytest.mark.unit

quick = settings(max_examples=60, derandomize=True, deadline=None)
scores = st.lists(st.integers(-3, 3).map(float), max_size=40).map(np.array)


@quick
@given(scores)
def test_ties_break_by_position(values):
    order = erasure.rank_tokens(values)
    assert sorted(order.tolist()) == list(range(len(values)))
    for left, right in pairwise(order):
        assert (-values[left], left) < (-values[right], right)


@quick
@given(st.integers(0, 500), st.floats(0, 1))
def test_a_rate_is_at_least_one_token_and_at_most_all(tokens, rate):
    count = erasure.count_tokens_at(rate, tokens)
    assert 0 <= count <= tokens
    assert count >= (1 if rate > 0 and tokens else 0)
    assert erasure.count_tokens_at(1.0, tokens) == tokens
    assert erasure.count_tokens_at(0.0, tokens) == 0
    assert abs(count - rate * tokens) <= 1


@quick
@given(st.lists(st.integers(0, 12), min_size=1, max_size=5), st.data())
def test_spans_cover_exactly_the_positions_and_never_touch(lengths, data):
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    chosen = sorted(data.draw(st.sets(st.integers(0, max(bounds[-1] - 1, 0)), max_size=bounds[-1])))
    spans = erasure.to_spans(chosen, bounds)
    assert len(spans) == len(lengths)
    back = [bounds[d] + p for d, inside in enumerate(spans) for start, end in inside for p in range(start, end)]
    assert back == chosen
    for length, inside in zip(lengths, spans, strict=True):
        assert all(0 <= start < end <= length for start, end in inside)
        assert all(one[1] < other[0] for one, other in pairwise(inside))


@quick
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


def test_random_numbers_depend_on_seed_id_and_purpose_alone():
    draw = erasure.make_generator(1, "a", "scores").random(5)
    assert np.array_equal(draw, erasure.make_generator(1, "a", "scores").random(5))
    others = [
        erasure.make_generator(2, "a", "scores"),
        erasure.make_generator(1, "b", "scores"),
        erasure.make_generator(1, "a", "x"),
    ]
    assert all(not np.array_equal(draw, other.random(5)) for other in others)


def test_occluding_takes_the_rate_of_the_rationale():
    random = np.random.default_rng(0)
    rationale = np.array([2, 3, 5, 8])
    assert erasure.draw_occluded_rationale(random, rationale, 0.0).tolist() == [2, 3, 5, 8]
    assert erasure.draw_occluded_rationale(random, rationale, 1.0).tolist() == []
    assert set(erasure.draw_occluded_rationale(random, rationale, 0.5).tolist()) < {2, 3, 5, 8}
    assert len(erasure.draw_occluded_rationale(random, rationale, 0.5)) == 2


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(0.0, []), (0.01, [2, 3, 4]), (0.5, [2, 3, 4]), (0.51, [0, 1, 2, 3, 4]), (1.0, [0, 1, 2, 3, 4, 5])],
)
def test_as_few_units_as_hold_the_share(rate, expected):
    found = erasure.select_top_units(np.array([0.2, 0.9, 0.2]), np.array([0, 2, 5, 6]), rate)
    assert found.tolist() == expected
