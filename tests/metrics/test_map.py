"""MAP of original/perturbed pairs."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.map import compare_rankings
from eraser_hub.metrics.perturbation_map import PerturbationMap

rankings = st.lists(st.sampled_from("abcdef"), max_size=15)


def compute(predictions, references, **settings):
    return PerturbationMap().compute(predictions=predictions, references=references, **settings)


def rows():
    predictions = [
        {"id": 1, "rationale_tokens": [["a", "b"], ["x"]], "kd": [0.25]},
        {"id": "2", "rationale_tokens": [["b", "a"], ["x"]], "kd": [0.25]},
        {"id": 3, "rationale_tokens": [["a", "b"], ["y"]], "kd": [0.25]},
    ]
    references = [
        {"id": "1", "sample_type": "ori", "rel_ids": [2, "3"]},
        {"id": 2, "sample_type": "disturb", "rel_ids": []},
        {"id": 3, "sample_type": "disturb"},
    ]
    return predictions, references


@given(rankings, rankings)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_kernel_is_equation_2_and_formula_two(original, perturbed):
    hits, equation, total = 0, 0.0, 0.0
    for i, token in enumerate(perturbed, 1):
        equation += sum(token in original[:i] for token in perturbed[:i]) / i
        hits += token in original[:i]
        total += hits / i
    expected = [sums / max(len(perturbed), 1) for sums in (equation, total)]
    assert compare_rankings(original, perturbed) == pytest.approx(expected, abs=1e-12)
    assert compare_rankings(original, original) == ((1.0, 1.0) if original else (0.0, 0.0))


def test_golden_values(golden):
    # golden/small/perturbation.json: 80 cases of the benchmark's scorer
    for case in json.loads((golden / "small" / "perturbation.json").read_text("utf-8"))["cases"]:
        with pytest.warns(UserWarning, match="no kd"):
            found = compute(case["predictions"], case["golden"])
        assert found["map"] == pytest.approx(case["expected"]["map"], abs=1e-9)


def test_paper_divides_by_the_gold_records(golden):
    # golden/presets/map_top.json: the authors' code, whose denominator are the perturbed records, scored or not
    partly = 0
    for case in json.loads((golden / "presets" / "map_top.json").read_text("utf-8"))["cases"]:
        predictions = []
        for row in case["rankings"]:
            full = [[token for _, token in sequence] for sequence in row["ranking"]]
            ratios = case["ratios"] * len(full) if len(case["ratios"]) == 1 else case["ratios"]
            tops = [sequence[: math.ceil(kd * len(sequence))] for sequence, kd in zip(full, ratios, strict=True)]
            more = {"ranked_tokens": full, "kd": case["ratios"]}
            predictions.append({"id": row["id"], "rationale_tokens": tops, **more})
        found = compute(predictions, case["records"], paper="wang2022")
        assert found["map"] == pytest.approx(case["expected"]["map_top_ceil"], abs=1e-9)
        assert found["map_full_ranking"] == pytest.approx(case["expected"]["map_full"], abs=1e-9)
        shares = ",".join(f"{share:g}" for share in dict.fromkeys(case["ratios"]))
        assert f"|paper:wang2022|kd:{shares}|" in found["signature"]
        partly += found["pairs"] < sum(row["sample_type"] == "disturb" for row in case["records"])
    assert partly > 3


def test_pairs_and_sequences_are_averaged_and_an_original_is_one_annotation():
    found = compute(*rows(), per_instance=True)
    # pair (1, 2): (0.5 + 1) / 2; pair (1, 3): (1 + 0) / 2
    assert found["map"] == pytest.approx((0.75 + 0.5) / 2) and found["pairs"] == 2
    scores = {"map": [0.625], "map_prefix_hits": [(0.625 + 0.5) / 2]}
    assert found["per_instance"] == {**scores, "annotation_id": ["1"], "cluster": [0]}
    predictions, references = rows()
    assert compute(predictions, references[:1])["map"] == found["map"]  # perturbed records need no row
    assert "scored:1/2" in compute(predictions[:2], references, only_predicted=True)["signature"]


def test_originals_that_share_a_perturbed_record_are_one_cluster():
    predictions, references = rows()
    predictions += [{"id": 4, "rationale_tokens": [["a"], ["b"]], "kd": [0.25]}]
    references += [{"id": 4, "sample_type": "ori", "rel_ids": [3]}]
    assert compute(predictions, references, per_instance=True)["per_instance"]["cluster"] == [0, 0]


@pytest.mark.parametrize(
    ("side", "fields", "field", "found"),
    [
        (0, {"rationale_tokens": []}, "rationale_tokens", "[]"),
        (0, {"rationale_tokens": ["a", "b"]}, "rationale_tokens[0]", "'a'"),
        (0, {"rationale_tokens": [["a", 3], ["x"]]}, "rationale_tokens[0][1]", "3"),
        (0, {"ranked_tokens": [["a"], ["b"]]}, "ranked_tokens", "none"),
        (0, {"rationale_token": [["a"]]}, "rationale_token", "'rationale_tokens'"),
        (0, {"kd": ["x"]}, "kd[0]", "'x'"),
        (0, {"kd": [1.5]}, "kd", "1.5"),
        (0, {"kd": [True]}, "kd", "True"),
        (1, {"sample_type": "original"}, "sample_type", "'original'"),
        (1, {"rel_ids": [2, True]}, "rel_ids[1]", "True"),
        (1, {"rel_ids": [2, "2", 3]}, "rel_ids", "['2', '2', '3']"),
        (1, {"rel_ids": [1, 2, 3]}, "rel_ids", "['1', '2', '3']"),
        (1, {"rel_ids": [2, 3, 77]}, None, "1 of 4"),
    ],
)
def test_wrong_rows_are_named(side, fields, field, found):
    both = rows()
    both[side][0].update(fields)
    with pytest.raises(DataError) as caught:
        compute(*both)
    assert caught.value.field == field and found in caught.value.message
    assert caught.value.instance in ("1", "2", "77")


def test_what_cannot_be_scored_is_an_error():
    predictions, references = rows()
    with pytest.raises(DataError, match=r"'ori'.*no pair"):
        compute(predictions, [{**row, "sample_type": "disturb"} for row in references])
    with pytest.raises(DataError, match="wang2022, found 'eraser'"):
        compute(predictions, references, paper="eraser")
