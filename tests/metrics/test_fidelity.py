"""Null-normalised fidelity and its curves."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.fidelity import FIDELITY_FIELDS
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity

FULL, ALONE, REST, NULL = FIDELITY_FIELDS.values()


def compute(rows, references=None, **settings):
    return NormalizedFidelity().compute(predictions=rows, references=references, **settings)


def row(full, alone, rest, empty, **more):
    return dict(zip(FIDELITY_FIELDS, (full, alone, rest, empty), strict=True)) | more


@pytest.mark.parametrize(("name", "part"), [("small/normalized_fidelity", "cases"), ("presets/carton2020", "arrays")])
def test_golden_values_per_instance_and_means(golden, name, part):
    # golden/small/normalized_fidelity.json: the paper's formulas; golden/presets/carton2020.json: the authors' code
    for case in json.loads((golden / f"{name}.json").read_text("utf-8"))[part]:
        found = compute([row(*p) for p in zip(*(case[key] for key in FIDELITY_FIELDS), strict=True)], per_instance=True)
        for key, values in case["expected"].items():
            if key in found:
                assert found["per_instance"][key] == pytest.approx(values, abs=1e-9)
                assert found[key] == pytest.approx(np.mean(values), abs=1e-9)


def test_golden_curves(golden):
    # golden/presets/carton2020.json: the authors' code on a linear model, whose rate is the share that is kept
    case = json.loads((golden / "presets/carton2020.json").read_text("utf-8"))
    weights, bias = case["model"]["word_weights"], np.array(case["model"]["bias"])

    def predict(words):
        logits = np.exp(bias + sum(np.array(weights[word]) for word in words))
        return logits / logits.sum()

    for curve in case["curves"]:
        rows = []
        for point in curve["expected"]:
            for trial, sample in enumerate(point["samples"]):
                for at, (text, mask) in enumerate(zip(curve["texts"], sample["rationales"], strict=True)):
                    words = text.split()
                    marks = mask.ljust(len(words), "0")  # words beyond the mask are no part of the rationale
                    kept, rest = ([w for w, mark in zip(words, marks, strict=False) if mark == own] for own in "10")
                    label = predict(words).argmax()
                    p = [predict(part)[label] for part in (words, kept, rest, [])]
                    rows.append(row(*p, id=at, occlusion_rate=1 - point["rate"], trial=trial))
        found = compute(rows)
        for side in ("sufficiency", "comprehensiveness"):
            expected = [point[f"normalized_{side}"] for point in curve["expected"]]
            assert found[f"{side}_curve"] == pytest.approx(expected[::-1], abs=1e-9)


def test_clipping_and_the_smallest_null_difference():
    found = compute([row(0.5, 0.9, 0.9, 0.5 - 9e-6)])
    assert (found["sufficiency"], found["comprehensiveness"], found["normalized_sufficiency"]) == (1, 0, 0)
    finer = compute([row(0.5, 0.9, 0.9, 0.5 - 9e-6)], smallest_null_difference=1e-6)
    assert (
        finer["normalized_sufficiency"] == pytest.approx(1) and "smallest_null_difference:1e-06" in finer["signature"]
    )


def test_a_model_that_hardly_reads_its_input_has_a_note():
    rows = [row(0.5006, 0.5006, 0.5, 0.5), row(0.504, 0.5, 0.5, 0.5), row(0.5, 0.5, 0.5, 0.6), row(0.9, 0.8, 0.6, 0.5)]
    with pytest.warns(UserWarning, match=r"below 0\.01 in 2 of the 3 instances that have one"):
        assert compute(rows)["normalized_comprehensiveness"] > 0.5
    assert NormalizedFidelity().measure(rows[1:], None).notes == []  # one of two; the third has no null difference


def curve_rows(sufficiency, comprehensiveness, trials=2, rates=(0.0, 0.3, 0.6, 1.0), spread=0.0):
    """Rows of three instances whose curves are exactly these functions of the rate (null difference 0.5)."""
    return [
        row(0.9, 0.4 + 0.5 * (sufficiency(rate) - spread * trial), 0.9 - 0.5 * comprehensiveness(rate), 0.4)
        | {"annotation_id": f"i{at}", "occlusion_rate": rate, "trial": trial}
        for at in range(3)
        for rate in rates
        for trial in range(trials)
    ]


def slow(rate):
    return 1 - rate**3


def test_curves_of_rows_in_any_order():
    rows = curve_rows(slow, lambda rate: (1 - rate) ** 3)
    rows[2]["occlusion_rate"] = 0.1 + 0.2
    found = compute(rows[::-1], per_instance=True, n_resamples=20)
    assert found["occlusion_rates"] == [0, 0.3, 0.6, 1]
    assert found["sufficiency_curve"] == pytest.approx([slow(rate) for rate in found["occlusion_rates"]])
    assert found["comprehensiveness_curve"] == pytest.approx([1, 0.343, 0.064, 0], abs=1e-12)
    assert np.shape(found["sufficiency_curve_ci"]) == (4, 2) and found["normalized_sufficiency"] == pytest.approx(1)
    assert np.shape(found["per_instance"]["sufficiency_curve"]) == (3, 4)
    json.dumps(found)


def test_spread_is_over_the_means_of_the_trials():
    found = compute(curve_rows(slow, slow, trials=3, spread=0.1, rates=(0.0, 0.5)))
    assert found["sufficiency_curve_std"] == pytest.approx([np.std([1, 0.9, 0.8]), np.std([0.875, 0.775, 0.675])])
    assert found["comprehensiveness_curve_std"] == pytest.approx([0, 0], abs=1e-12)
    assert found["sufficiency"] == pytest.approx(np.mean([1, 0.95, 0.9]))


def instance(name=7, label="NEG", occluded=True, **more):
    def scores(p):
        return {"NEG": p, "POS": 1 - p}

    points = [
        {"occlusion_rate": rate, "trial": trial, ALONE: scores(0.8 - 0.3 * rate), REST: scores(0.6 + 0.3 * rate)}
        for rate in (0.0, 0.25, 0.5, 1.0)
        for trial in range(2)
    ]
    own = dict(zip((FULL, ALONE, REST, NULL), map(scores, (0.9, 0.8, 0.6, 0.5)), strict=True))
    own |= {"occluded_scores": points} if occluded else {}
    return {"annotation_id": name, "rationales": [{"docid": "d"}], "classification": label, **own, **more}


def test_eraser_instances_are_understood_and_their_own_scores_start_the_curve():
    found, flat = compute([instance(7), instance(8)], n_resamples=9), compute([row(0.9, 0.8, 0.6, 0.5)] * 2)
    assert all(found[key] == flat[key] for key in flat.keys() - {"signature"})
    assert found["occlusion_rates"] == [0.0, 0.25, 0.5, 1.0] and "cluster:documents|clusters:1" in found["signature"]
    assert found["sufficiency_curve"] == pytest.approx([0.75, 0.5625, 0.375, 0.0])


def test_references_lend_their_columns_and_documents():
    rows = [instance(name, occluded=False) for name in range(4)]
    references = [{"id": name, "kind": "ab"[name % 2], "documents": [{"docid": name // 2}]} for name in range(5)]
    with pytest.raises(DataError, match="expected a prediction"):
        compute(rows, references)
    found = compute(rows, references, only_predicted=True, by="kind", n_resamples=9)
    assert found["by"].keys() == {"a", "b"} and "scored:4/5" in found["signature"]
    assert "cluster:documents|clusters:2" in found["signature"]


@pytest.mark.parametrize(
    ("rows", "name", "field", "words"),
    [
        ([row(1.2, 0, 0, 0)], "0", "p_full", "found 1.2"),
        ([row(1, 0, float("nan"), 0)], "0", "p_complement", "found nan"),
        ([{"p_full": 1}], "0", "p_rationale", "found None"),
        ([row(1, 0, 0, 0, id="a"), row(1, 0, 0, 0)], None, "predictions[1]", "expected an id"),
        ([row(1, 0, 0, 0, occlusion_rate=0.0)], None, "predictions[0]", "expected an id"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=1.5)], "1", "occlusion_rate", "found 1.5"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0.5)], None, "occlusion_rate", "rate 0"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0), row(1, 0, 0, 0, id=1)], "1", "occlusion_rate", "None"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0, trial="a")], "1", "trial", "found 'a'"),
        ([row(1, 0, 0, 0, id=1, occlusion_rate=0)] * 2, "1", "occlusion_rate", "rate 0, trial 0 again"),
        (curve_rows(slow, slow)[:-1], "i2", "occlusion_rate", "none at rate 1, trial 1"),
        ([instance(label="MAYBE")], "7", FULL, "'MAYBE'"),
        ([instance(label=3)], "7", "classification", "found 3"),
        ([instance(occluded_scores=[3])], "7", "occluded_scores[0]", "found 3"),
        ([instance(7), instance(8, occluded=False)], "8", "occlusion_rate", "none at rate 0.25"),
    ],
)
def test_wrong_rows_are_named(rows, name, field, words):
    with pytest.raises(DataError) as seen:
        compute(rows)
    assert words in str(seen.value) and (seen.value.instance, seen.value.field) == (name, field)
    with pytest.raises(DataError, match="smallest_null_difference"):
        compute([row(1, 0, 0, 0)], smallest_null_difference=0)
