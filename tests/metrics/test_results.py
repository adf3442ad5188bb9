"""From statistics to the dict that a metric returns."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eraser_hub
from eraser_hub.metrics import results
from eraser_hub.metrics.results import get_group_names, report, score_groups, signature, to_python
from eraser_hub.metrics.statistics_builder import Statistics, divide

from ..refusals import refused

pytestmark = pytest.mark.unit


def finalize(sums):
    mean = divide(sums[..., 0], sums[..., 1], np.nan)
    return {"mean": mean, "points": np.stack([mean, 2 * mean], axis=-1)}


def statistics(values=(1.0, 2.0, 4.0), ids=None):
    values = np.asarray(values, dtype=float)
    table = np.column_stack([values, np.ones(len(values))])
    return Statistics(ids or [f"i{at}" for at in range(len(values))], table, finalize, {"mean": values})


def test_version_is_the_packages():
    assert eraser_hub.__version__ == results.VERSION


def test_result_is_flat_and_plain():
    more = {"by": "g", "by_values": ["x", "y", "x"], "extra": {"pairs": np.int64(3)}}
    found = report(statistics(), "m", {"k": 0.5}, per_instance=True, n_resamples=20, **more)
    assert found["mean"] == 7 / 3 and type(found["mean"]) is float and found["points"] == [7 / 3, 14 / 3]
    assert list(found)[:2] == ["mean", "mean_ci"] and len(found["mean_ci"]) == 2 and len(found["points_ci"]) == 2
    assert found["pairs"] == 3 and type(found["pairs"]) is int
    assert found["per_instance"] == {
        "mean": [1.0, 2.0, 4.0],
        "annotation_id": ["i0", "i1", "i2"],
        "cluster": [0, 1, 2],
    }
    assert found["by"] == {"x": {"mean": 2.5, "points": [2.5, 5.0]}, "y": {"mean": 2.0, "points": [2.0, 4.0]}}
    assert found["signature"] == (
        f"m|n:3|k:0.5|ci:bca|level:0.95|resamples:20|seed:0|cluster:none|clusters:3|by:g|version:{results.VERSION}"
    )
    assert json.loads(json.dumps(found)) == found


def test_nothing_is_added_unasked():
    assert list(report(statistics(), "m", {})) == ["mean", "points", "signature"]


def test_groups_sum_to_the_whole_and_names_are_strings():
    table = statistics(np.arange(9.0))
    groups = score_groups(table, ["a", "b", "c"] * 3)
    assert np.mean([group["mean"] for group in groups.values()]) == pytest.approx(to_python(table.scores()["mean"]))
    assert get_group_names([True, None, 3, np.int64(1), "x", 0.5]) == ["True", "null", "3", "1", "x", "0.5"]
    assert get_group_names([0, 1, 7], ["NEG", "POS"]) == ["NEG", "POS", "7"]
    for wrong in ([["a"]], [{}], [np.zeros(2)]):
        with refused("option-value", "by: ", type(wrong[0]).__name__, "row 0", field="by"):
            get_group_names(wrong)
    with refused("length", "9 values", "found 1", field="by"):
        score_groups(table, ["a"])


def test_undefined_scores_are_nan_without_a_warning(recwarn):
    empty = Statistics(["a"], np.zeros((1, 2)), finalize)
    assert np.isnan(report(empty, "m", {})["mean"])
    assert divide(np.array([1.0, 1.0]), np.array([0.0, 2.0]), empty=0.0).tolist() == [0.0, 0.5]
    assert not recwarn.list


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12), st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_order_does_not_matter(values, data):
    whole = statistics(values)
    order = data.draw(st.permutations(range(len(values))))
    assert to_python(whole.take(order).scores()["mean"]) == pytest.approx(to_python(whole.scores()["mean"]), abs=1e-12)
    part = whole.take(order[:2])
    assert part.ids == [whole.ids[row] for row in order[:2]] and (part.values == whole.values[order[:2]]).all()
    assert (part.per_instance["mean"] == whole.per_instance["mean"][order[:2]]).all()


def test_signature_keeps_its_form_whatever_the_values():
    line = signature("m", {"a": None, "b": True, "c": [0.1, 0.5], "d": "x|y\nz", "e": 1e-5}, version="2")
    assert line == "m|a:none|b:yes|c:0.1,0.5|d:x/y z|e:1e-05|version:2"
