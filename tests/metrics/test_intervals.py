"""Intervals: exact bounds of shares, scores that do not vary, and what is said of few documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eraser_hub.metrics.intervals import cautions, clopper_pearson, find_range, intervals
from eraser_hub.metrics.resampling import bootstrap_intervals
from eraser_hub.metrics.results import report
from eraser_hub.metrics.statistics_builder import Statistics, divide

pytestmark = pytest.mark.unit
UNIT = {"score": (0.0, 1.0)}


def finalize(sums):
    return {"score": divide(sums[..., 0], sums[..., 1], np.nan)}


def means(values, weights=None):
    """Return rows whose score is the weighted mean of values."""
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    return np.column_stack([np.asarray(values, float) * weights, weights])


def of(rows, key="score", **more):
    return Statistics([str(at) for at in range(len(rows))], rows, lambda sums: {key: finalize(sums)["score"]}, **more)


def bounds(values, level=0.95, ranges=UNIT, weights=None):
    return intervals(of(means(values, weights)), level, ranges=ranges)["score"]


def count_shares(hits, units):
    columns, rows = ["in_text.sum", "in_text.count"], np.column_stack([hits, units]).astype(float)
    return of(rows, "in_text", columns=columns)


def test_a_share_of_one_quote_a_document_has_exact_bounds_and_few_misses_are_named():
    statistics = count_shares([1] * 8 + [0] * 5, [1] * 9 + [0] * 4)
    found = intervals(statistics, 0.95, ranges={"in_text": (0.0, 1.0)})["in_text"]
    assert np.allclose(found, [stats.beta.ppf(0.025, 8, 2), stats.beta.ppf(0.975, 9, 1)])
    assert cautions(statistics) == ["fewer than 5 misses of in_text (1): their intervals are rough or wide"]
    assert cautions(count_shares([1] * 3 + [0] * 10, [1] * 13)) == [
        "fewer than 5 hits of in_text (3): their intervals are rough or wide"
    ]
    assert cautions(count_shares([1] * 13, [1] * 13)) == [], "without a miss the bound is exact"


def test_a_share_of_several_quotes_a_document_counts_documents_with_quotes():
    units = [2, 3, 2, 2, 1, 3, 0, 0]
    found = intervals(count_shares(units, units), 0.95, ranges={"in_text": (0.0, 1.0)})["in_text"]
    assert np.allclose(found, [0.025 ** (1 / 6), 1.0]), "6 documents quote"
    mixed = intervals(count_shares([2, 3, 1, 2, 0, 3, 0, 0], units), 0.95, ranges={"in_text": (0.0, 1.0)})["in_text"]
    assert not np.allclose(mixed, clopper_pearson(11, 13)), "quotes of a document are not independent"


@pytest.mark.parametrize(("hits", "highest"), [(0, 1.0), (2, None)])
def test_iou_passes_1_only_where_a_gold_span_is_hit_twice(hits, highest):
    scores = {"iou_micro_p": np.array(hits / 4), "iou_matched_p": np.array(hits / 8), "iou_micro_p@0.1": np.array(0.5)}
    ranges = {"iou_macro_r": (0.0, None), "iou_macro_f1": (0.0, 2.0)}
    assert find_range("iou_macro_r", scores, ranges) == (0.0, highest)
    assert find_range("iou_macro_f1", scores, ranges) == (0.0, 2.0 if highest is None else 1.0)
    assert find_range("iou_macro_r@0.1", scores, ranges) == (0.0, None), "its own threshold counts"


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_a_score_that_no_document_changes_has_the_bounds_of_as_many_equal_ones(value):
    """The exact bound of a share that hit 0 of 7 times, of the way from the score to each end of its range."""
    share = stats.beta.ppf(0.975, 1, 7)
    expected = [value - share * value, value + share * (1 - value)]
    assert np.allclose(bounds([value] * 7), expected, atol=1e-12)
    assert cautions(of(means([value] * 7))) == []
    assert bounds([value] * 7, ranges=None) == pytest.approx([value, value]), "no range: that of the resamples"
    assert np.isnan(bounds([value])).all() and np.isnan(bounds([np.nan, np.nan])).all()


def test_shares_with_one_repeated_document_have_an_interval():
    """No exact bound holds where two quotes are of one text; the resamples do not leave the interval out."""
    for hits, n in ((19, 21), (5, 25)):
        right = np.r_[np.ones(hits), np.zeros(n - hits)]
        low, high = intervals(of(means(right), "accuracy", clusters=np.r_[0, np.arange(n - 1)]), 0.95)["accuracy"]
        exact = clopper_pearson(hits, n)
        assert low == pytest.approx(exact[0], abs=0.07) and high == pytest.approx(exact[1], abs=0.07)


def test_documents_that_lack_a_score_are_not_counted():
    whole = means([0.1, 0.4, 0.2, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0])
    assert cautions(of(whole)) == ["score: 3 of 7 clusters count: intervals of fewer than 6 are too short"]


def test_few_documents_have_a_caution_and_one_has_no_interval():
    assert cautions(of(means([0.1, 0.4, 0.2]))) == ["3 clusters: intervals of fewer than 6 are too short"]
    assert "no interval" in cautions(of(means([0.1])))[0]
    assert np.isnan(intervals(of(means([0.1])), 0.95)["score"]).all()


def test_intervals_are_bca_and_the_signature_says_so():
    rows = means(np.random.default_rng(3).uniform(size=20))
    expected = bootstrap_intervals(rows, finalize)["score"]
    assert intervals(of(rows), 0.95, ranges=UNIT)["score"].tolist() == expected.tolist()
    assert "|ci:bca|level:0.95|resamples:1000|seed:0|" in report(of(rows), "m", {}, confidence_level=0.95)["signature"]


def test_shares_of_single_annotations_are_exact_and_the_signature_names_them():
    hits = of(means([1.0] * 7 + [0.0] * 2), "accuracy")
    assert intervals(hits, 0.9)["accuracy"].tolist() == list(clopper_pearson(7, 9, 0.9))
    assert "|ci:bca|exact:accuracy|level:0.9|" in report(hits, "m", {}, confidence_level=0.9)["signature"]
    clustered = of(means([1.0] * 7 + [0.0] * 2), "accuracy", clusters=np.arange(9) // 2)
    assert "exact" not in report(clustered, "m", {}, confidence_level=0.9)["signature"]
