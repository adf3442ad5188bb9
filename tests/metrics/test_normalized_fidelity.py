"""Null-normalised fidelity and its curves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.fidelity import KEYS, drop_slope, normalized_fidelity, reading
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity

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
    return [
        row(
            0.9, 0.4 + 0.5 * (suff(rate) - spread * trial), 0.9 - 0.5 * comp(rate), 0.4,
            annotation_id=f"i{at}", occlusion_rate=rate, trial=trial, group="xy"[at % 2],
        )
        for at in range(n) for rate in rates for trial in range(trials)
    ]  # fmt: skip


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


def instance(label="NEG", occluded=True, **more):
    scores = {"classification_scores": 0.9, "sufficiency_classification_scores": 0.8,
              "comprehensiveness_classification_scores": 0.6, "null_classification_scores": 0.5}  # fmt: skip
    own = {key: {"NEG": p, "POS": 1 - p} for key, p in scores.items()}
    points = [
        {"occlusion_rate": rate, "trial": trial,
         "sufficiency_classification_scores": {"NEG": 0.8 - 0.3 * rate, "POS": 0.2 + 0.3 * rate},
         "comprehensiveness_classification_scores": {"NEG": 0.6 + 0.3 * rate, "POS": 0.4 - 0.3 * rate}}
        for rate in (0.25, 0.5, 1.0) for trial in range(2)
    ]  # fmt: skip
    return {"annotation_id": 7, "rationales": [], "classification": label, **own,
            **({"occluded_scores": points} if occluded else {}), **more}  # fmt: skip


def test_eraser_instances_are_understood_and_their_own_scores_start_the_curve():
    found = compute([instance(), instance(annotation_id=8)])
    flat = compute([row(0.9, 0.8, 0.6, 0.5)] * 2)
    assert all(found[key] == flat[key] for key in KEYS)
    assert found["occlusion_rates"] == [0.0, 0.25, 0.5, 1.0]
    assert found["sufficiency_curve"] == pytest.approx([0.75, 0.5625, 0.375, 0.0])
    assert set(compute([instance(occluded=False)])) == {*KEYS, "signature"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(1.2, 0, 0, 0)], r"prediction '0': p_full: expected a probability in \[0, 1\], found 1.2"),
        ([row(1, 0, 0, 0), row(1, -0.1, 0, 0)], r"prediction '1': p_rationale: .*found -0.1"),
        ([row(1, 0, float("nan"), 0)], r"p_complement: .*found nan"),
        ([row(1, 0, 0, "0.5")], r"p_empty: .*found '0.5'"),
        ([row(True, 0, 0, 0)], r"p_full: .*found True"),
        ([{"p_full": 1}], r"p_rationale: .*found None"),
        ([row(1, 0, 0, 0, annotation_id="a"), row(1, 0, 0, 0)], r"prediction 1: .*expected an id"),
        ([row(1, 0, 0, 0, occlusion_rate=0)], r"expected annotation_id"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=1.5)], r"occlusion_rate: expected a rate in \[0, 1\], found 1.5"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0), row(1, 0, 0, 0, id=1)], r"occlusion_rate: expected a rate"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0, trial="a")], r"trial: expected a whole number"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0)] * 2, r"prediction '1': occlusion_rate: .*rate 0, trial 0 twice"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0.5)], r"expected rows at rate 0"),
        (curve_rows(slow, slow)[:-1], r"prediction 'i2': occlusion_rate: .*found none at rate 1, trial 1"),
        (
            [instance(label="MAYBE")],
            r"prediction '7': classification_scores: expected a probability of the label 'MAYBE'",
        ),
        ([instance(label=None)], r"classification: expected a label"),
        ([instance(null_classification_scores=None)], r"null_classification_scores"),
        ([instance(null_classification_scores={"NEG": 0.5, "POS": 0.6})], r"null_classification_scores: .*sum to 1"),
        ([instance(null_classification_scores={"NEG": 0.5, "POS": -0.5})], r"null_classification_scores: .*found -0.5"),
        ([instance(occluded_scores=[3])], r"occluded_scores: expected a list of objects"),
        (
            [instance(), instance(annotation_id=8, occluded=False)],
            r"prediction '8': occluded_scores: expected it in all",
        ),
    ],
)
def test_wrong_rows_are_named(rows, message):
    with pytest.raises(ValueError, match=message):
        compute(rows)


def test_settings_out_of_range():
    for wrong in ({"smallest_null_difference": 0}, {"smallest_null_difference": "a"}, {"fast_slope": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            compute([row(1, 0, 0, 0)], **wrong)
