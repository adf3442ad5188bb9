"""Null-normalised fidelity and its curves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.fidelity import KEYS, drop_slope, normalized_fidelity, reading
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity

from ..refusals import refused

probabilities = st.floats(0, 1)


def compute(rows, **settings):
    return NormalizedFidelity().compute(predictions=rows, **settings)


def row(full, alone, rest, empty, **more):
    return {"p_full": full, "p_rationale": alone, "p_complement": rest, "p_empty": empty, **more}


def test_golden_values_per_instance_and_means(golden):
    # golden/small/normalized_fidelity.json: 60 cases of the paper's formulas
    cases = json.loads((golden / "small" / "normalized_fidelity.json").read_text())["cases"]
    assert len(cases) == 60
    for case in cases:
        expected = case.pop("expected")
        found = compute(
            [dict(zip(case, cells, strict=True)) for cells in zip(*case.values(), strict=True)], per_instance=True
        )
        for key, values in expected.items():
            assert np.allclose(found["per_instance"][key], values, atol=1e-9, rtol=0)
            assert found[key] == pytest.approx(np.mean(values), abs=1e-9)
        assert found["per_instance"]["annotation_id"] == [str(at) for at in range(len(case["p_full"]))]


@given(probabilities, probabilities, probabilities, probabilities)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_ranges_and_the_extremes(full, alone, rest, empty):
    scores = {
        key: float(value[0])
        for key, value in normalized_fidelity(*np.array([[full], [alone], [rest], [empty]])).items()
    }
    assert all(0 <= value <= 1 for value in scores.values())
    told = full - empty >= 1e-5
    perfect = normalized_fidelity(*np.array([[full], [full], [empty], [empty]]))
    assert perfect["normalized_sufficiency"][0] == pytest.approx(float(told), abs=1e-9)
    assert perfect["normalized_comprehensiveness"][0] == pytest.approx(float(told), abs=1e-9)
    # an empty rationale is as sufficient as nothing, and takes nothing away
    nothing = normalized_fidelity(*np.array([[full], [empty], [full], [empty]]))
    assert nothing["normalized_sufficiency"][0] == pytest.approx(0, abs=1e-9)
    assert nothing["normalized_comprehensiveness"][0] == 0


def test_clipping_and_the_smallest_null_difference():
    found = compute([row(0.5, 0.9, 0.9, 0.5 - 9e-6)])
    assert (found["sufficiency"], found["comprehensiveness"]) == (1, 0)
    assert (found["normalized_sufficiency"], found["normalized_comprehensiveness"]) == (0, 0)
    finer = compute([row(0.5, 0.9, 0.9, 0.5 - 9e-6)], smallest_null_difference=1e-6)
    assert finer["normalized_sufficiency"] == pytest.approx(1)
    assert "smallest_null_difference:1e-06" in finer["signature"]


# ------------------------------------------------------------------------------------------------------------ curves
RATES = [round(0.05 * k, 2) for k in range(21)]


def curve_rows(suff, comp, trials=2, n=3, rates=RATES, spread=0.0):
    """Rows whose normalised curves are exactly suff(r) and comp(r) (null difference 0.5)."""

    def one(at, rate, trial):
        alone, rest = 0.4 + 0.5 * (suff(rate) - spread * trial), 0.9 - 0.5 * comp(rate)
        place = {"occlusion_rate": rate, "trial": trial}
        return row(0.9, alone, rest, 0.4, annotation_id=f"i{at}", group="xy"[at % 2], **place)

    return [one(at, rate, trial) for at in range(n) for rate in rates for trial in range(trials)]


def slow(rate):
    return 1 - rate**3


def fast(rate):
    return (1 - rate) ** 3


@pytest.mark.parametrize(
    ("suff", "comp", "expected"),
    [(fast, fast, "brevity"), (slow, fast, "redundancy"), (slow, slow, "irrelevance"), (fast, slow, "dependency")],
)
def test_table_4(suff, comp, expected):
    found = compute(curve_rows(suff, comp), by="group")
    assert found["reading"] == expected and found["by"]["x"]["reading"] == expected
    assert found["occlusion_rates"] == RATES
    assert found["sufficiency_curve"] == pytest.approx([suff(rate) for rate in RATES])
    assert found["comprehensiveness_curve"] == pytest.approx([comp(rate) for rate in RATES])
    assert found["normalized_sufficiency"] == pytest.approx(1) and found[
        "normalized_comprehensiveness"
    ] == pytest.approx(1)
    assert (found["sufficiency_slope"] < -1) == (suff is fast)


def test_a_linear_drop_has_slope_minus_one_and_is_fast():
    found = compute(curve_rows(lambda r: 1 - r, lambda r: 0.5 * (1 - r)))
    assert found["sufficiency_slope"] == pytest.approx(-1) and found["comprehensiveness_slope"] == pytest.approx(-1)
    assert found["reading"] == "brevity"
    assert compute(curve_rows(slow, slow), fast_slope=0)["reading"] == "brevity"


def test_spread_is_over_the_trials_means():
    found = compute(curve_rows(slow, slow, trials=3, spread=0.1, rates=[0.0, 0.5]))
    assert found["sufficiency_curve_std"] == pytest.approx([np.std([1, 0.9, 0.8]), np.std([0.875, 0.775, 0.675])])
    assert found["comprehensiveness_curve_std"] == pytest.approx([0, 0], abs=1e-12)
    assert found["sufficiency"] == pytest.approx(np.mean([1, 0.95, 0.9]))


def test_intervals_and_per_instance_of_curves():
    found = compute(curve_rows(slow, fast), per_instance=True, n_resamples=20)
    assert np.array(found["sufficiency_curve_ci"]).shape == (21, 2) and len(found["sufficiency_slope_ci"]) == 2
    assert np.array(found["per_instance"]["comprehensiveness_curve"]).shape == (3, 21)
    json.dumps(found)


def test_rates_are_matched_as_numbers_and_may_come_in_any_order():
    rows = curve_rows(slow, fast, rates=[0.0, 0.3, 0.6])
    for one in rows:
        if one["annotation_id"] == "i1" and one["occlusion_rate"] == 0.3:
            one["occlusion_rate"] = 0.1 + 0.2
    assert compute(rows[::-1])["sufficiency_curve"] == pytest.approx([slow(0), slow(0.3), slow(0.6)])


def test_a_curve_that_starts_at_nothing_has_no_reading():
    found = compute(curve_rows(lambda r: 0.0, slow))
    assert found["reading"] == "undefined" and np.isnan(found["sufficiency_slope"])
    assert reading(float("nan"), -1) == "undefined"
    assert np.isnan(drop_slope(np.array([0.0, 0.9]), np.array([1.0, 0.5])))


FULL, ALONE, REST, NULL = (
    f"{name}classification_scores" for name in ("", "sufficiency_", "comprehensiveness_", "null_")
)


def instance(label="NEG", occluded=True, **more):
    def of(p):
        return {"NEG": p, "POS": 1 - p}

    points = [
        {"occlusion_rate": rate, "trial": trial, ALONE: of(0.8 - 0.3 * rate), REST: of(0.6 + 0.3 * rate)}
        for rate in (0.25, 0.5, 1.0)
        for trial in range(2)
    ]
    own = {FULL: of(0.9), ALONE: of(0.8), REST: of(0.6), NULL: of(0.5)}
    own |= {"occluded_scores": points} if occluded else {}
    return {"annotation_id": 7, "rationales": [], "classification": label, **own, **more}


def test_eraser_instances_are_understood_and_their_own_scores_start_the_curve():
    found = compute([instance(), instance(annotation_id=8)])
    flat = compute([row(0.9, 0.8, 0.6, 0.5)] * 2)
    assert all(found[key] == flat[key] for key in KEYS)
    assert found["occlusion_rates"] == [0.0, 0.25, 0.5, 1.0]
    assert found["sufficiency_curve"] == pytest.approx([0.75, 0.5625, 0.375, 0.0])
    assert set(compute([instance(occluded=False)])) == {*KEYS, "signature"}


@pytest.mark.parametrize(
    ("rows", "rule", "name", "field", "found"),
    [
        ([row(1.2, 0, 0, 0)], "range", "0", "p_full", "1.2"),
        ([row(1, 0, 0, 0), row(1, -0.1, 0, 0)], "range", "1", "p_rationale", "-0.1"),
        ([row(1, 0, float("nan"), 0)], "range", "0", "p_complement", "nan"),
        ([row(1, 0, 0, "0.5")], "range", "0", "p_empty", "'0.5'"),
        ([row(True, 0, 0, 0)], "range", "0", "p_full", "True"),
        ([{"p_full": 1}], "range", "0", "p_rationale", "None"),
        ([row(1, 0, 0, 0, annotation_id="a"), row(1, 0, 0, 0)], "type", None, "annotation_id", "None"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=1.5)], "range", "1", "row 0: occlusion_rate", "1.5"),
        (
            [row(1, 0, 0, 0, id=1, occlusion_rate=0), row(1, 0, 0, 0, id=1)],
            *("range", "1", "row 1: occlusion_rate", "None"),
        ),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0, trial="a")], "type", "1", "row 0: trial", "'a'"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0)] * 2, "id-twice", "1", "occlusion_rate", "rate 0, trial 0 twice"),
        (curve_rows(slow, slow)[:-1], "constant", "i2", "occlusion_rate", "none at rate 1, trial 1"),
        ([instance(label="MAYBE")], "score-missing", "7", FULL, "{'NEG': 0.9"),
        ([instance(label=None)], "type", "7", "classification", "None"),
        ([instance(**{NULL: None})], "score-missing", "7", NULL, "None"),
        ([instance(**{NULL: {"NEG": 0.5, "POS": 0.6}})], "probabilities", "7", NULL, "a sum of 1.1"),
        ([instance(**{NULL: {"NEG": 0.5, "POS": -0.5}})], "range", "7", NULL, "-0.5"),
        ([instance(occluded_scores=[3])], "type", "7", "occluded_scores", "[3]"),
        ([instance(), instance(annotation_id=8, occluded=False)], "key-missing", "8", "occluded_scores", "none"),
    ],
)
def test_wrong_rows_are_named(rows, rule, name, field, found):
    shown = f"prediction {'1' if name is None else repr(name)}"  # who has no id is named by its place
    with refused(rule, shown, f"found {found}", field=field) as seen:
        compute(rows)
    assert seen.first.instance == name
    if "'MAYBE'" in repr(rows):
        assert "'MAYBE'" in str(seen.error)


def test_curves_need_ids_and_a_start():
    with refused("key-missing", "annotation_id", "occlusion_rate", total=1):
        compute([row(1, 0, 0, 0, occlusion_rate=0)])
    with refused("score-missing", "rate 0", field="occlusion_rate", total=1):
        compute([row(1, 0, 0, 0, id=1, occlusion_rate=0.5)])


def test_settings_out_of_range():
    for wrong in ({"smallest_null_difference": 0}, {"smallest_null_difference": "a"}, {"fast_slope": float("nan")}):
        ((name, value),) = wrong.items()
        with refused("option-value", f"{name}: ", f"found {value!r}", field=name):
            compute([row(1, 0, 0, 0)], **wrong)
