"""Kendall's tau-b against scipy, ties and constants among the lists."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.rank_correlation import kendall_tau

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
