"""Sums, clusters and intervals: recorded numbers, scipy as a second opinion, scores that do not vary, few clusters."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from eraser_hub.metrics.statistics import (
    Measured,
    Score,
    Statistics,
    clopper_pearson,
    find_bca_bounds,
    find_components,
    mean,
    number_values,
    sign,
    summarize,
)

from .clustered_cases import CLUSTERED, read_case

pytestmark = pytest.mark.unit


def of(values: Any, counts: Any = None, clusters: Any = None, **score: Any) -> Statistics:
    """Statistics of one score, the mean of the values weighted by the counts."""
    values = np.asarray(values, float)
    counts = np.ones(values.size) if counts is None else np.asarray(counts, float)
    columns = {"score.sum": values * counts, "score.count": counts}
    ids = [str(at) for at in range(values.size)]
    return Statistics(ids, columns, {"score": Score(mean("score"), **score)}, clusters)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("case", CLUSTERED["cases"])
def test_intervals_of_stored_resamples(case: Any, side: str) -> None:
    """Expected values: golden/statistics/clustered.json."""
    statistics, expected = read_case(case, side), case["expected"][side]
    sums, n, value = statistics.cluster_sums(), statistics.n_clusters, float(statistics.values()["value"])
    weights = np.array([np.bincount([int(digit) for digit in drawn], minlength=n) for drawn in case["index"]], float)
    draws = statistics.compute({name: np.tensordot(weights, column, 1) for name, column in sums.items()})["value"]
    left_out = statistics.compute({name: column.sum(axis=0) - column for name, column in sums.items()})["value"]
    assert value == pytest.approx(expected["value"], abs=1e-9)
    assert draws.std(ddof=1) == pytest.approx(expected["standard_error"], abs=1e-9)
    assert find_bca_bounds(value, draws, left_out, 0.95) == pytest.approx(expected["bca"], abs=1e-9)
    without_jackknife = find_bca_bounds(value, draws, np.zeros(0), 0.95)
    assert without_jackknife == pytest.approx(expected["percentile"], abs=1e-9)


@pytest.mark.parametrize("case", CLUSTERED["proportions"])
def test_exact_bounds_of_shares(case: Any) -> None:
    assert clopper_pearson(case["hits"], case["n"]) == pytest.approx(case["expected"], abs=1e-9)


@pytest.mark.parametrize("case", CLUSTERED["components"])
def test_annotations_that_share_documents_are_one_cluster(case: Any) -> None:
    owner = np.repeat(np.arange(len(case["docids"])), [*map(len, case["docids"])])
    items = number_values(name for names in case["docids"] for name in names)
    found = find_components(owner, items, len(case["docids"]))
    expected = case["expected"]
    assert found is None if len({*expected}) == len(expected) else found.tolist() == expected


def test_intervals_agree_with_scipy_and_hang_on_the_seed_alone() -> None:
    values = np.random.default_rng(0).gamma(2, size=60)
    statistics = of(values, low=None, high=None)
    found = statistics.intervals(0.95, 9000, 1)["score"]
    options: Any = {"n_resamples": 9000, "method": "bca", "rng": np.random.default_rng(2)}
    theirs = stats.bootstrap((values,), np.mean, **options).confidence_interval
    # an end is a quantile of 9,000 draws; four standard errors of the difference are .065 of the interval
    assert np.allclose(found, theirs, atol=0.065 * (theirs.high - theirs.low))
    assert found.tolist() == statistics.intervals(0.95, 9000, 1)["score"].tolist()
    assert found.tolist() != statistics.intervals(0.95, 9000, 2)["score"].tolist()
    narrow = statistics.intervals(0.5)["score"]
    assert found[0] < narrow[0] < narrow[1] < found[1]


def test_clusters_are_drawn_as_one() -> None:
    values, clusters = np.random.default_rng(1).gamma(2, size=12), np.repeat(np.arange(4), 3)
    one, sums = of(values, clusters=clusters), values.reshape(4, 3).sum(axis=1)
    assert np.allclose(one.intervals()["score"], of(sums / 3, np.full(4, 3)).intervals()["score"])
    assert one.take(np.array([11, 0, 9])).clusters.tolist() == [1, 0, 1]  # type: ignore[union-attr]
    one.set_clusters("maker", ["x", None, "x", None, *"yyyyyyyy"])
    assert one.n_clusters == 4  # who has none stands for itself


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_a_score_that_no_cluster_changes_has_the_bounds_of_as_many_equal_ones(value: float) -> None:
    """The exact bound of a share that hit 0 of 7 times, of the way from the score to each end of its range."""
    share = stats.beta.ppf(0.975, 1, 7)
    bounds = of([value] * 7).intervals()["score"]
    assert bounds == pytest.approx([value - share * value, value + share * (1 - value)], abs=1e-12)
    unbounded = of([value] * 7, low=None, high=None)
    assert unbounded.intervals()["score"] == pytest.approx([value, value])
    assert unbounded.cautions() == of([value] * 7).cautions() == []


def test_shares_of_single_annotations_are_exact() -> None:
    hits = [1.0] * 7 + [0.0] * 2
    assert of(hits, units="score.count").intervals(0.9)["score"] == pytest.approx(clopper_pearson(7, 9, 0.9))
    clustered = of(hits, clusters=np.arange(9) // 2, units="score.count")
    assert not np.allclose(clustered.intervals(0.9)["score"], clopper_pearson(7, 9, 0.9))


def test_what_has_no_score_has_no_interval() -> None:
    for statistics in (of([0.1]), of([0.1, 0.2], [0, 0])):
        assert np.isnan(statistics.intervals()["score"]).all()
    low, high = of([*np.linspace(0, 1, 29), np.inf], low=None, high=None).intervals()["score"]
    assert np.isfinite(low) and high == np.inf


@pytest.mark.parametrize(
    ("values", "counts", "words"),
    [
        ([0.1], None, "one cluster says nothing"),
        ([0.1, 0.4, 0.2], None, "3 clusters: intervals of fewer than 6 are too short"),
        ([0.1, 0.4, 0.2, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0], "score: 3 of 7 clusters count: intervals are rough"),
    ],
)
def test_few_clusters_have_a_caution(values: Any, counts: Any, words: str) -> None:
    assert [line[: len(words)] for line in of(values, counts).cautions()] == [words]


def test_results_are_flat_and_in_plain_python() -> None:
    measured = Measured(of([0.0, 0.5, 1.0]), {"data": "x|y"}, {"pairs": 3}, ["a note"])
    options: Any = {"by": "kind", "groups": ["b", None, "b"], "per_instance": True, "n_resamples": 9}
    found, notes = summarize("toy", measured, **options)
    assert found["score"] == 0.5 and found["pairs"] == 3 and notes[0] == "a note" and len(notes) == 2
    assert found["by"] == {"b": {"score": 0.5}, "null": {"score": 0.5}}
    assert found["per_instance"] == {"score": [0, 0.5, 1], "annotation_id": ["0", "1", "2"], "cluster": [0, 1, 2]}
    assert "|data:x/y|n:3|" in found["signature"] and json.loads(json.dumps(found)) == found
    assert sign("a", {"x": 0.1 + 0.2, "y": [0.5, True]}) == "a|x:0.30000000000000004|y:0.5,yes"
