"""The faithfulness module: golden values, optional references, against chance, evaluate's machinery."""

from __future__ import annotations

import doctest
import math
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness

from ..refusals import refused
from . import eraser_rows as rows

ROOT = Path(__file__).resolve().parents[2]

seeds = st.integers(0, 10_000)
profile = settings(max_examples=15, derandomize=True, deadline=None)


def compute(predictions: Any, references: Any = None, **options: Any) -> dict[str, Any]:
    result = EraserFaithfulness().compute(predictions=predictions, references=references, **options)
    assert result is not None
    return result


@pytest.mark.parametrize("corpus", ["movies", "multirc", "fever", "evidence_inference", "cose"])
def test_golden_values(corpus: str, reference_scores: Path, corpora: Path) -> None:
    """Values: golden/eraser_metrics/CORPUS/scores.json (the reference scorer), every key, lists and Dataset."""
    predictions, references, scores = rows.golden_case(reference_scores, corpora, corpus)
    for way in (
        (predictions, references),
        (datasets.Dataset.from_list(predictions), datasets.Dataset.from_list(references)),
    ):
        found = compute(*way)
        for key, value in scores["classification_scores"].items():
            if key == "prf":
                assert found["macro_f1"] == pytest.approx(value["macro avg"]["f1-score"], abs=1e-9)
            else:
                assert found[key] == pytest.approx(value, abs=1e-9)


def test_references_are_optional() -> None:
    predictions, references = rows.random_case(1)
    alone, joined = compute(predictions), compute(predictions, references)
    assert "accuracy" not in alone and "tokens_to_flip_ratio" not in alone
    assert {"accuracy", "macro_f1", "tokens_to_flip_ratio"} <= joined.keys()
    for key in alone:
        if key != "signature":
            assert joined[key] == pytest.approx(alone[key])


def test_tokens_to_flip_counts_each_evidence_document_once() -> None:
    predictions, references = rows.random_case(2, n=3, documents=2)
    for row in references:
        row["evidences"] = [row["evidences"][0], row["evidences"][0]]
    shares = [
        one["tokens_to_flip"] / len(row["documents"][0]["text"].replace("\n", " ").split(" "))
        for one, row in zip(predictions, references, strict=True)
    ]
    assert compute(predictions, references)["tokens_to_flip_ratio"] == pytest.approx(np.mean(shares))


@profile
@given(seeds)
def test_order_batches_and_label_order_do_not_matter(seed: int) -> None:
    predictions, references = rows.random_case(seed)
    expected = compute(predictions, references)
    metric = EraserFaithfulness()
    for one in predictions[::-1]:
        flipped = {
            key: dict(reversed(value.items())) if key.endswith("classification_scores") else value
            for key, value in one.items()
        }
        metric.add(prediction=flipped)
    metric.add_batch(references=references)
    found = metric.compute()
    for key, value in expected.items():
        if key != "signature":
            assert found[key] == pytest.approx(value, abs=1e-12)


@profile
@given(seeds)
def test_ranges(seed: int) -> None:
    predictions, references = rows.random_case(seed)
    info = EraserFaithfulness().info
    for key, value in compute(predictions, references).items():
        if key in ("signature", "aopc_thresholds"):
            continue
        low, high = info.ranges[key]
        assert key in info.higher_is_better
        for number in value if isinstance(value, list) else [value]:
            assert (low is None or number >= low - 1e-12) and (high is None or number <= high + 1e-12)
    assert info.higher_is_better["sufficiency"] is False and info.higher_is_better["comprehensiveness"] is True


def test_settings_extend_the_result() -> None:
    predictions, references = rows.random_case(3, n=10)
    found = compute(predictions, references, per_instance=True, confidence_level=0.8, n_resamples=60, by="source")
    low, high = found["comprehensiveness_ci"]
    assert low <= found["comprehensiveness"] <= high
    assert np.mean(found["per_instance"]["comprehensiveness"]) == pytest.approx(found["comprehensiveness"])
    assert np.shape(found["per_instance"]["sufficiency_aopc_points"]) == (10, 5)
    halves = [found["by"][name]["sufficiency"] for name in ("s0", "s1")]
    assert np.mean(halves) == pytest.approx(found["sufficiency"])
    assert "aopc:0.01,0.05,0.1,0.2,0.5" in found["signature"] and "ci:bca" in found["signature"]


def test_points_ascend_whatever_the_order() -> None:
    predictions, _ = rows.random_case(4)
    expected = compute(predictions)
    for one in predictions:
        one["thresholded_scores"].reverse()
    found = compute(predictions, aopc_thresholds=[0.5, 0.2, 0.1, 0.05, 0.01])
    assert found["aopc_thresholds"] == [0.01, 0.05, 0.1, 0.2, 0.5]
    assert found["comprehensiveness_aopc_points"] == expected["comprehensiveness_aopc_points"]


def test_against_random_rationales() -> None:
    predictions, _ = rows.random_case(5)
    for one in predictions:
        one["comprehensiveness_classification_scores"] = {"NEG": 0.5, "POS": 0.5} | {one["classification"]: 0.0}
        other = next(label for label in rows.LABELS if label != one["classification"])
        one["comprehensiveness_classification_scores"][other] = 1.0
        drawn = {one["classification"]: 0.9, other: 0.1}
        one["random_rationales"] = [{name: dict(drawn) for name in rows.ERASED} for _ in range(3)]
    chance = compute(predictions)["comprehensiveness_chance"]
    assert chance["p_value"] == 0.25 and chance["win_rate"] == 1.0 and chance["mean_win_rate"] == 1.0
    assert chance["draws"] == 3
    predictions[2]["random_rationales"].pop()
    with refused("length", "3 draws", "found 2", instance="a2", field="random_rationales"):
        compute(predictions)


def test_class_label_numbers_need_names() -> None:
    predictions, references = rows.random_case(6)
    expected = compute(predictions, references)
    numbered = [{**row, "classification": rows.LABELS.index(row["classification"])} for row in references]
    with refused("label-unknown", "label_names", instance="a0", field="classification", total=1):
        compute(predictions, numbered)
    assert compute(predictions, numbered, label_names=rows.LABELS)["accuracy"] == expected["accuracy"]
    features = datasets.Dataset.from_list(numbered).cast_column(
        "classification", datasets.ClassLabel(names=rows.LABELS)
    )
    found = compute(predictions, features, by="classification")
    assert found["accuracy"] == expected["accuracy"] and set(found["by"]) <= set(rows.LABELS)
    numbered[0]["classification"] = 7
    with refused("label-unknown", "found 7", instance="a0", field="classification", total=1):
        compute(predictions, numbered, label_names=rows.LABELS)


def test_a_label_that_no_partial_file_shows_is_known_by_name() -> None:
    predictions, references = rows.random_case(7, n=2)
    for row in references:
        row["classification"] = "NEG"
    assert not math.isnan(compute(predictions, references)["accuracy"])


def test_nothing_to_score() -> None:
    fields = [f"{side}_classification_scores" for side in ("comprehensiveness", "sufficiency")]
    with refused("score-missing", *fields, "thresholded_scores", field="predictions"):
        compute([{"annotation_id": "a", "rationales": []}])
    with refused("empty", "predictions"):
        compute([])


def test_doctests_run(spaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(spaces)
    tests = doctest.DocTestParser().get_doctest(EraserFaithfulness().inputs_description, {}, "inputs", None, None)
    runner = doctest.DocTestRunner()
    runner.run(tests)
    assert tests.examples and runner.failures == 0


BOUNDS = {"lower": -0.1, "upper": 0.7, "sufficiency_lower": -0.2, "sufficiency_upper": 0.6}


def asked_more(seed: int = 3, **more: Any) -> list[dict[str, Any]]:
    """Random predictions whose rankings were asked more; ``more`` replaces fields of the second, None removes one."""
    predictions, _ = rows.random_case(seed)
    for one in predictions:
        one |= {
            "aopc_bounds": {**BOUNDS, "method": "exact", "beam": 0},
            "soft_scores": {"comprehensiveness": 0.25, "sufficiency": 0.5, "draws": 4, "standard_error": 0.1},
            "sensitivity_max": 0.5,
            "infidelity": 2.0,
        }
    for key, value in more.items():
        holder: Any = predictions[1]
        *path, last = key.split(".")
        for name in path:
            holder = holder[name]
        holder[last] = value
        if value is None:
            del holder[last]
    return predictions


def test_naopc_normalises_the_aopc_that_its_bounds_speak_of() -> None:
    """That over all lengths where it stands beside them, else that over the thresholds; in both ways by instance."""
    predictions = asked_more()
    result = compute(predictions, per_instance=True, confidence_level=0.9, n_resamples=200)
    for side, lower, upper in (("comprehensiveness", -0.1, 0.7), ("sufficiency", -0.2, 0.6)):
        expected = (np.array(result["per_instance"][f"{side}_aopc"]) - lower) / (upper - lower)
        assert result["per_instance"][f"naopc_{side}"] == pytest.approx(expected.tolist(), abs=1e-12)
        assert result[f"naopc_{side}"] == pytest.approx(expected.mean(), abs=1e-12)
        low, high = result[f"naopc_{side}_ci"]
        assert low <= result[f"naopc_{side}"] <= high
    for one in predictions:
        one["aopc_bounds"] |= {"comprehensiveness": 0.3, "sufficiency": 0.2}
    bounded = compute(predictions)
    assert (bounded["naopc_comprehensiveness"], bounded["naopc_sufficiency"]) == pytest.approx((0.5, 0.5))
    assert (result["soft_comprehensiveness"], result["soft_sufficiency"]) == (0.25, 0.5)
    assert (result["sensitivity_max"], result["infidelity"]) == (0.5, 2.0)


@pytest.mark.parametrize(
    ("more", "rule", "found"),
    [
        ({"aopc_bounds": None}, "key-missing", "none"),
        ({"aopc_bounds": []}, "type", "[]"),
        ({"aopc_bounds.upper": None}, "key-missing", "none"),
        ({"aopc_bounds.upper": "high"}, "type", "'high'"),
        ({"aopc_bounds.upper": -0.5}, "range", "-0.5"),
        ({"aopc_bounds.lowre": 0.1}, "key-unknown", "'lower'"),
        ({"aopc_bounds.lower": float("-inf")}, "range", "-inf"),
        ({"soft_scores.sufficiency": 1.5}, "range", "1.5"),
        ({"infidelity": -1}, "range", "-1"),
        ({"infidelity": 10**400}, "range", "inf"),
        ({"sensitivity_max": True}, "type", "True"),
    ],
)
def test_wrong_numbers_of_rankings_are_told(more: dict[str, Any], rule: str, found: str) -> None:
    (name,) = more
    field = "aopc_bounds.lower" if more == {"aopc_bounds": None} else name
    with refused(rule, found, instance="a1", field=field):
        compute(asked_more(**more))


def test_what_a_ranking_lacks_is_left_out_in_one_line() -> None:
    predictions = asked_more()
    for one in predictions:
        del one["thresholded_scores"], one["aopc_bounds"]["sufficiency_lower"]
        one["rationales"] = [{"docid": own["docid"]} for own in one["rationales"]]
    with pytest.warns(UserWarning, match="naopc_comprehensiveness") as told:
        result = compute(predictions)
    line = str(told[0].message)
    assert "naopc_comprehensiveness (no aopc_bounds.comprehensiveness)" in line
    assert "naopc_sufficiency (no aopc_bounds.sufficiency_lower)" in line
    assert not any(key.startswith("naopc") for key in result)


def test_tokens_to_flip_without_evidence_are_undefined() -> None:
    span = {"docid": "d", "start_token": 0, "end_token": 1, "start_sentence": -1, "end_sentence": -1}
    references = [
        {
            "annotation_id": name,
            "classification": "A",
            "documents": [{"docid": "d", "text": "a b c d"}],
            "evidences": own,
        }
        for name, own in (("with", [[span]]), ("without", []))
    ]
    predictions = [
        {"annotation_id": one["annotation_id"], "rationales": [], "classification": "A", "tokens_to_flip": 2}
        for one in references
    ]
    ratios = compute(predictions, references, per_instance=True)["per_instance"]["tokens_to_flip_ratio"]
    assert ratios[0] == 0.5 and np.isnan(ratios[1])
