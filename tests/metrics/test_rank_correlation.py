"""Kendall's tau-b against scipy, ties and constants among the lists; overlap of tops."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.rank_correlation import kendall_tau, top_overlap

pytestmark = pytest.mark.unit

pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(-9, 9)), min_size=0, max_size=40)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(pairs)
def test_tau_is_scipys(items: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    left, right = [a for a, _ in items], [b for _, b in items]
    tau = kendall_tau(left, right)
    if len(set(left)) < 2 or len(set(right)) < 2:
        assert math.isnan(tau)
        return
    assert tau == pytest.approx(stats.kendalltau(left, right).statistic, abs=1e-12)
    assert kendall_tau(right, left) == pytest.approx(tau, abs=1e-12)
    assert kendall_tau(left, [-b for b in right]) == pytest.approx(-tau, abs=1e-12)


def test_overlap_of_tops() -> None:
    assert top_overlap([3, 2, 1, 0], [0, 9, 8, 7], 2) == 0.5
    assert math.isnan(top_overlap([1, 1, 1], [3, 2, 1], 2))
    assert math.isnan(top_overlap([3, 2, 1], [1, 1, 1], 2))
    assert math.isnan(top_overlap([], [], 3))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scores", [[math.nan] * 3, [math.nan, 2, 1], [3, 2, math.nan], [3, math.nan, 1]])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_scores_with_a_nan_have_no_top(scores: list[float], count: int) -> None:
    assert math.isnan(top_overlap(scores, [3, 2, 1], count)) and math.isnan(top_overlap([3, 2, 1], scores, count))


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5).filter(
        lambda items: all(len(set(side)) > 1 for side in zip(*items, strict=True))
    ),
    st.integers(1, 5),
)
def test_overlap_is_the_mean_over_all_orders_of_equal_scores(items: list[tuple[int, int]], count: int) -> None:
    left, right = ([item[side] for item in items] for side in (0, 1))
    count = min(count, len(items))

    def tops(scores: list[int]) -> list[set[int]]:
        orders = [sorted(order, key=lambda place: -scores[place]) for order in permutations(range(len(scores)))]
        return [set(order[:count]) for order in orders]

    both = [len(a & b) / count for a in tops(left) for b in tops(right)]
    assert top_overlap(left, right, count) == pytest.approx(sum(both) / len(both), abs=1e-12)
    assert top_overlap(left, right, count) == pytest.approx(top_overlap(right, left, count), abs=1e-12)
