"""Normalised AOPC: the golden bounds, exact and by beam; how many inputs they take."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.attribution.measures.aopc_bounds import (
    compute_exact_bounds,
    compute_ranking_aopc,
    search_bound,
    search_bounds,
)

from ..closed_form import EXACT, cases, full_of, result_of, worth_of

pytestmark = pytest.mark.unit

CASES = cases("naopc")


@pytest.mark.parametrize("case", [case for case in CASES if "beam" in case["expected"]])
@pytest.mark.parametrize("width", [1, 3, 5])
def test_golden_beams(case, width):
    """With duplicates a beam is the authors'; without, its bounds enclose theirs, within the exact ones."""
    expected, size, full = case["expected"], case["tokens"], full_of(case)
    theirs = expected["beam"][str(width)]
    for greatest, key in ((False, "lower"), (True, "upper")):
        (bound, _) = result_of(search_bound(size, full, width, greatest, duplicates=True), worth_of(case))
        assert bound == pytest.approx(theirs[key], abs=EXACT)
    (lower, upper), inputs = result_of(compute_exact_bounds(size, full), worth_of(case))
    assert (lower, upper) == pytest.approx((expected["lower"], expected["upper"]), abs=EXACT) and inputs == 2**size
    (lower, upper), inputs = result_of(search_bounds(size, full, width), worth_of(case))
    assert expected["lower"] - EXACT <= lower <= theirs["lower"] + EXACT
    assert theirs["upper"] - EXACT <= upper <= expected["upper"] + EXACT
    assert inputs <= 2 * (size + width * size * (size - 1) // 2)


@pytest.mark.parametrize("size", [0, 1])
def test_short_texts(size):
    worth = lambda sets: 0.3 + 0.4 * np.asarray(sets, dtype=float).sum(axis=1)  # noqa: E731
    full = 0.3 + 0.4 * size
    for search in (compute_exact_bounds(size, full), search_bounds(size, full, 5)):
        assert tuple(result_of(search, worth)[0]) == pytest.approx((0.4 * size, 0.4 * size))
    assert result_of(compute_ranking_aopc(np.arange(size), full), worth)[0] == pytest.approx((0.4 * size, 0.4 * size))


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10_000))
def test_bounds_are_those_of_all_orders(size, seed):
    """Any worth of sets; a beam that holds every set of a size is exact."""
    random = np.random.default_rng(seed)
    table = random.random(1 << size)
    worth = lambda sets: table[np.asarray(sets) @ (1 << np.arange(size))]  # noqa: E731
    full = table[-1]
    areas = []
    for order in permutations(range(size)):
        gone = [sum(1 << unit for unit in order[:count]) for count in range(1, size + 1)]
        areas.append(np.mean([full - table[(1 << size) - 1 - erased] for erased in gone]))
    (lower, upper), _ = result_of(compute_exact_bounds(size, full), worth)
    assert (lower, upper) == pytest.approx((min(areas), max(areas)), abs=EXACT)
    wide, _ = result_of(search_bounds(size, full, 1 << size), worth)
    assert tuple(wide) == pytest.approx((lower, upper), abs=EXACT)
