"""Studentised intervals: closed forms, the choice of a method, open ends, and how often they hold the true score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eraser_hub.metrics.intervals import (
    STUDENT_BELOW,
    cautions,
    choose_method,
    clopper_pearson,
    find_range,
    intervals,
    student_intervals,
)
from eraser_hub.metrics.resampling import CI_METHODS, bootstrap_intervals
from eraser_hub.metrics.results import report
from eraser_hub.metrics.statistics_builder import Statistics, divide
from eraser_hub.records.options import read_options
from eraser_hub.scoring.options import ScoreArguments

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
    return student_intervals(means(values, weights), finalize, level, ranges)["score"]


def test_equally_spaced_values_have_the_interval_of_t():
    values = np.linspace(0.4, 0.6, 9)  # no skewness, and less kurtosis than a normal distribution's
    expected = stats.t.interval(0.9, 8, values.mean(), values.std(ddof=1) / 3)
    assert np.allclose(bounds(values, 0.9), expected, atol=1e-12)
    assert np.allclose(student_intervals(means(values * 9 - 3), finalize, 0.9)["score"], np.array(expected) * 9 - 3)


def test_a_skew_score_joins_t_and_hall():
    values = np.random.default_rng(3).exponential(0.1, 12)
    n, mean, error = 12, values.mean(), values.std(ddof=1) / np.sqrt(12)
    kurtosis = max(stats.kurtosis(values, fisher=False, bias=True), stats.kurtosis(values, fisher=False, bias=False))
    t = stats.t.ppf(0.975, min(11, 2 / ((kurtosis - 1) / n + 2 / (n * (n - 1)))))
    b = stats.skew(values) / np.sqrt(n)
    hall = [3 / b * (np.cbrt(1 + b * (end - b / 6)) - 1) for end in (t, -t)]
    low, high = mean - max(t, hall[0]) * error, mean - min(-t, hall[1]) * error
    assert np.allclose(student_intervals(means(values), finalize)["score"], [low, high], atol=1e-12)


def test_an_interval_ends_at_the_range_of_its_score():
    assert bounds([0.0, 0.0, 0.0, 0.0, 1.0]).tolist() == [0.0, 1.0]
    low, high = student_intervals(means([0.0, 0.0, 0.0, 0.0, 1.0]), finalize)["score"]
    assert low < 0 and high > 1
    rows, two = means([0.0, 0.0, 0.0, 0.0, 1.0]), lambda sums: {"score@0.1": finalize(sums)["score"]}
    assert student_intervals(rows, two, ranges=UNIT)["score@0.1"].tolist() == [0.0, 1.0]


def test_an_interval_of_the_whole_range_is_none_and_is_named():
    statistics = of(means([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
    result = report(statistics, "m", {}, confidence_level=0.95, ranges=UNIT)
    assert np.isnan(result["score_ci"]).all()
    assert cautions(statistics, result=result) == ["score: no interval, because it would cover the whole range"]


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


def test_lists_have_an_interval_for_each_point():
    rows = np.column_stack([means([0.1, 0.4, 0.3]), [0.5, 0.5, 0.6]])
    found = student_intervals(rows, lambda s: {"points": s[..., [0, 2]] / s[..., [1]]})["points"]
    assert found.shape == (2, 2) and np.allclose(found[0], student_intervals(rows[:, :2], finalize)["score"])


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_a_score_that_no_document_changes_has_the_bounds_of_as_many_equal_ones(value):
    """The exact bound of a share that hit 0 of 7 times, of the way from the score to each end of its range."""
    share = stats.beta.ppf(0.975, 1, 7)
    expected = [value - share * value, value + share * (1 - value)]
    assert np.allclose(bounds([value] * 7), expected, atol=1e-12)
    assert cautions(of(means([value] * 7))) == []
    assert np.isnan(student_intervals(means([value] * 7), finalize)["score"]).all(), "no range, no bound"
    assert np.isnan(bounds([value])).all() and np.isnan(bounds([np.nan, np.nan])).all()


def test_a_score_of_one_document_has_no_interval():
    rows = means([0.5, 0.0, 0.0], [1, 0, 0])  # the other documents lack the score
    assert np.isnan(student_intervals(rows, finalize, ranges=UNIT)["score"]).all()
    assert cautions(of(rows))[1:] == ["score: no interval, because one cluster decides it"]
    rows[1, 0] = np.inf
    assert np.isnan(student_intervals(rows, finalize)["score"]).all()


def test_documents_that_lack_a_score_are_no_part_of_its_interval():
    whole, few = means([0.1, 0.4, 0.2, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0]), means([0.1, 0.4, 0.2])
    assert np.allclose(intervals(of(whole), 0.95)["score"], intervals(of(few), 0.95)["score"])
    assert cautions(of(whole)) == ["score: 3 of 7 clusters count: intervals of fewer than 6 are too short"]


def test_few_documents_have_a_caution_and_one_has_no_interval():
    assert cautions(of(means([0.1, 0.4, 0.2]))) == ["3 clusters: intervals of fewer than 6 are too short"]
    assert "no interval" in cautions(of(means([0.1])))[0]
    assert np.isnan(intervals(of(means([0.1])), 0.95)["score"]).all()


@pytest.mark.parametrize("n", [STUDENT_BELOW - 1, STUDENT_BELOW])
def test_auto_is_student_below_a_hundred_documents_and_the_signature_names_it(n):
    rows = means(np.random.default_rng(n).uniform(size=n))
    student, bca = student_intervals(rows, finalize, ranges=UNIT)["score"], bootstrap_intervals(rows, finalize)["score"]
    expected, words = (student, "|ci:student|level:0.95|cluster") if n < 100 else (bca, "|ci:bca|level:0.95|resamples:")
    assert intervals(of(rows), 0.95, ranges=UNIT)["score"].tolist() == expected.tolist()
    assert words in report(of(rows), "m", {}, confidence_level=0.95)["signature"]
    for method, own in (("student", student), ("bca", bca)):
        assert choose_method(method, n) == method
        assert intervals(of(rows), 0.95, ci_method=method, ranges=UNIT)["score"].tolist() == own.tolist()


def test_the_command_line_offers_each_method_and_no_other():
    """Its options are declared without numpy, so that help is quick."""
    assert read_options(ScoreArguments)["interval"].choices == CI_METHODS


def test_shares_of_single_annotations_are_exact_and_the_signature_names_them():
    hits = of(means([1.0] * 7 + [0.0] * 2), "accuracy")
    assert intervals(hits, 0.9)["accuracy"].tolist() == list(clopper_pearson(7, 9, 0.9))
    assert "|ci:student|exact:accuracy|level:0.9|" in report(hits, "m", {}, confidence_level=0.9)["signature"]
    clustered = of(means([1.0] * 7 + [0.0] * 2), "accuracy", clusters=np.arange(9) // 2)
    assert "exact" not in report(clustered, "m", {}, confidence_level=0.9)["signature"]
    bca = report(hits, "m", {}, confidence_level=0.9, ci_method="bca")
    assert "|ci:bca|level:0.9|" in bca["signature"]
    assert bca["accuracy_ci"] == bootstrap_intervals(hits.values, hits.finalize, 0.9)["accuracy"].tolist()


def draw_zeros(random, n):
    return means((random.random(n) < 0.1) * random.uniform(0.3, 1, n))


def draw_uneven(random, n):
    return means(random.normal(0.5, 0.2, n), random.choice([1, 2, 60, 90], n))


@pytest.mark.parametrize(
    ("draw", "n", "truth"), [(draw_zeros, 12, 0.065), (draw_zeros, 25, 0.065), (draw_uneven, 12, 0.5)]
)
def test_intervals_of_few_documents_hold_the_true_score(draw, n, truth):
    """600 samples: a true coverage of .95 has a standard error of .009."""
    random, held = np.random.default_rng(n), {"student": [], "bca": []}
    for _ in range(600):
        rows = draw(random, n)
        for method, share in held.items():
            low, high = intervals(of(rows), 0.95, 100, ci_method=method, ranges=UNIT)["score"]
            share.append(not (low > truth or high < truth))
    assert np.mean(held["student"]) >= 0.93 > 0.9 > np.mean(held["bca"])
