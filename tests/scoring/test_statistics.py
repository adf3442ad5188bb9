"""Tests of two systems: the exchange of documents, documents crossed with runs, corrections."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eraser_hub.metrics.statistics import Score, divide
from eraser_hub.scoring.statistics import (
    compute_p_value,
    exchange_systems,
    find_columns,
    find_t_quantile,
    fit_difference,
    holm,
)

from ..metrics.clustered_cases import CLUSTERED, read_case

MEAN = Score(lambda sums: divide(sums["sum"], sums["count"], np.nan))


@pytest.mark.parametrize("case", CLUSTERED["cases"])
def test_exchange_of_clusters_has_the_golden_p(case):
    first, second = (read_case(case, side) for side in "ab")
    sums = [own.cluster_sums() for own in (first, second)]
    p = exchange_systems(*sums, first.scores, {"value": list(sums[0])})["value"]
    assert p == pytest.approx(case["expected"]["difference"]["exchange_p"], abs=1e-9)


def make_sums(values):
    return {"sum": np.asarray(values, dtype=float), "count": np.ones(len(values)), "other": np.arange(len(values))}


def test_clusters_that_do_not_differ_change_nothing():
    random = np.random.default_rng(0)
    values = random.normal(size=40)
    moved = values + np.r_[np.full(8, 0.1), np.zeros(32)]
    assert find_columns(MEAN, make_sums(values)) == {"count": (40,), "sum": (40,)}
    read = {"mean": ["count", "sum"]}
    p = exchange_systems(make_sums(values), make_sums(moved), {"mean": MEAN}, read)["mean"]
    assert p == 2 / 2**8, "all 2^8 exchanges, once"
    moved[8:20] += random.normal(size=12)
    p = [
        exchange_systems(make_sums(values), make_sums(moved), {"mean": MEAN}, read, draws)["mean"]
        for draws in (99, 9999)
    ]
    assert p[0] * 100 == pytest.approx(round(p[0] * 100)) and abs(p[0] - p[1]) < 0.15


def test_a_difference_that_is_not_finite_has_no_p():
    values = np.arange(20.0)
    read = {"mean": ["count", "sum"]}
    for other in (np.r_[values[:-1], np.inf], np.r_[values[:-1], np.nan]):
        assert math.isnan(exchange_systems(make_sums(values), make_sums(other), {"mean": MEAN}, read)["mean"])


def test_one_run_of_each_is_a_paired_t_test_where_no_document_stands_out():
    stats = pytest.importorskip("scipy.stats")
    first, second = np.random.default_rng(1).uniform(size=(2, 30))
    second += 0.1
    fit = fit_difference(first[:, None], second[:, None])
    assert fit.df == pytest.approx(29) and float(compute_p_value(fit)) == pytest.approx(
        stats.ttest_rel(first, second).pvalue
    )
    first[0] += 10
    assert fit_difference(first[:, None], second[:, None]).df < 2.2


def test_mean_squares_of_documents_and_runs():
    """A table by hand: two documents more than runs, runs that move all documents alike."""
    documents, runs = np.array([0.0, 1, 2, 3, 4, 5]), np.array([0.0, 0.3, 0.6])
    first, second = documents[:, None] + runs, 0.5 * documents[:, None] + 0 * runs
    fit = fit_difference(first, second)
    assert fit.value == pytest.approx(0.5 * 2.5 + 0.3) and fit.rest == pytest.approx(0)
    assert fit.documents == pytest.approx(0.25 * 3.5 / 6) and fit.runs == pytest.approx(0.09 / 3)
    assert fit.df == pytest.approx((0.875 / 6 + 0.03) ** 2 / ((0.875 / 6) ** 2 / 5 + 0.03**2 / 2))
    paired = fit_difference(first, second + runs, paired=True)
    assert paired.runs == pytest.approx(0), "what moves both alike is no uncertainty of their difference"
    assert fit_difference(first, second + runs).runs == pytest.approx(0.06)


@pytest.mark.parametrize("family", CLUSTERED["families"])
def test_holm_has_the_golden_values(family):
    assert holm(family["p"]) == pytest.approx(family["expected"]["holm"], abs=1e-9)
    assert math.isnan(holm([math.nan, *family["p"]])[0])


def test_quantiles_of_t_are_those_of_scipy():
    special = pytest.importorskip("scipy.special")
    for df in (3, 5.5, 20, 1000):
        for p in (0.8, 0.95, 0.975, 0.995):
            assert find_t_quantile(df, p) == pytest.approx(special.stdtrit(df, p), rel=0.01 if p > 0.99 else 0.002)
