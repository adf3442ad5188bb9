"""Faithfulness: second opinions, what references add, instances without answer, wrong input."""

from __future__ import annotations

import re
import warnings

import datasets
import numpy as np
import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.errors import DataError

from ..metrics import eraser_rows as made

BOUNDS = {"lower": -0.1, "upper": 0.7, "sufficiency_lower": -0.2, "sufficiency_upper": 0.6}
FULL, ALONE, REST = (f"{side}classification_scores" for side in ("", "sufficiency_", "comprehensiveness_"))


def compute(predictions, references=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EraserFaithfulness().compute(predictions=predictions, references=references, **options)


def test_references_add_accuracy_and_the_share_of_tokens():
    predictions, references = made.random_case(2, n=3)
    alone, joined = compute(predictions), compute(predictions, references, per_instance=True)
    assert joined.keys() - alone.keys() == {"accuracy", "macro_f1", "tokens_to_flip_ratio", "per_instance"}
    sizes = [sum(len(one["text"].split()) for one in row["documents"]) for row in references]
    shares = [row["tokens_to_flip"] / size for row, size in zip(predictions, sizes, strict=True)]
    assert joined["per_instance"]["tokens_to_flip_ratio"] == pytest.approx(shares)
    references[0]["evidences"] = []
    shares = compute(predictions, references, per_instance=True)["per_instance"]["tokens_to_flip_ratio"]
    assert np.isnan(shares).tolist() == [True, False, False]
    assert compute([{**row, "tokens_to_flip": None} for row in predictions], references).keys().isdisjoint(shares)


def test_an_instance_without_answer_is_wrong_and_counts_nowhere_else():
    predictions, references = made.random_case(1)
    for row in references:
        row["classification"] = "POS"
    silent = [{"annotation_id": "a0", "outcome": "refused"}, *predictions[1:]]
    found, rest = compute(silent, references), compute(predictions[1:], references, only_predicted=True)
    assert found["accuracy"] == pytest.approx(rest["accuracy"] * 5 / 6)
    assert "answered:5/6" in found["signature"] and "scored:5/6" in rest["signature"]
    same = rest.keys() - {"accuracy", "macro_f1", "signature"}
    assert all(found[key] == pytest.approx(rest[key]) for key in same)


def test_naopc_normalises_the_aopc_that_its_bounds_speak_of():
    predictions, _ = made.random_case(3)
    soft = {"comprehensiveness": 0.25, "sufficiency": 0.5}
    for row in predictions:
        row |= {"aopc_bounds": BOUNDS, "soft_scores": soft, "infidelity": 2.0}
    found = compute(predictions)
    assert found["naopc_comprehensiveness"] == pytest.approx((found["comprehensiveness_aopc"] + 0.1) / 0.8)
    assert (found["soft_comprehensiveness"], found["soft_sufficiency"], found["infidelity"]) == (0.25, 0.5, 2.0)
    for row in predictions:
        row["aopc_bounds"] = BOUNDS | {"comprehensiveness": 0.3, "sufficiency": 0.2}
    predictions[0]["aopc_bounds"] |= {"upper": -0.1, "comprehensiveness": -0.1}
    found = compute(predictions)
    assert (found["naopc_comprehensiveness"], found["naopc_sufficiency"]) == pytest.approx((0.5, 0.5))
    assert "naopc_comprehensiveness:5/6" in found["signature"]


def test_scores_that_lack_a_field_are_named_in_one_line():
    predictions, _ = made.random_case(3)
    for row in predictions:
        del row["thresholded_scores"], row[ALONE]
        row["aopc_bounds"] = {"lower": 0.0, "upper": 1.0}
    with pytest.warns(UserWarning, match="left out") as told:
        found = EraserFaithfulness().compute(predictions=predictions)
    assert "naopc_comprehensiveness (no aopc_bounds.comprehensiveness)" in str(told[0].message)
    assert f"sufficiency (no {ALONE})" in str(told[0].message)
    assert found.keys() == {"comprehensiveness", "comprehensiveness_entropy", "comprehensiveness_kl", "signature"}


@pytest.mark.parametrize(
    ("change", "options", "field", "words"),
    [
        ({REST: None}, {}, REST, "found none"),
        ({}, {"aopc_thresholds": [0.1, 0.5]}, "thresholded_scores.threshold", "the thresholds 0.1, 0.5"),
        ({}, {"label_names": ["neg", "POS"]}, "classification", "did you mean 'neg'"),
        ({"aopc_bounds": None}, {}, "aopc_bounds.lower", "in all or in none"),
        ({"aopc_bounds": {**BOUNDS, "upper": -0.5}}, {}, "aopc_bounds", "lower <= upper"),
        ({"soft_scores": {"comprehensiveness": 0.5, "sufficiency": 1.5}}, {}, "soft_scores.sufficiency", "found 1.5"),
        ({"infidelity": -1}, {}, "infidelity", "found -1"),
    ],
)
def test_wrong_input(change, options, field, words):
    predictions, _ = made.random_case(4, n=4)
    for row in predictions:
        row |= {"aopc_bounds": BOUNDS, "soft_scores": {"comprehensiveness": 0.5, "sufficiency": 0.5}, "infidelity": 2}
    predictions[2] |= change
    with pytest.raises(DataError, match=words) as seen:
        compute(predictions, **options)
    assert seen.value.field == field
    predictions[2]["infidelity"] = 10**400
    with pytest.raises(DataError, match="64 bits"):
        compute(predictions, **options)
    with pytest.raises(DataError, match="nothing to score"):
        compute([{"annotation_id": "a"}])
    with pytest.raises(DataError, match="at least one instance"):
        compute([])


def test_rows_of_human_rationales_are_references_of_both_modules():
    row = {"id": "a0", "tokens": ["so", "good"], "rationale_mask": [0, 1], "label": "POS"}
    found = compute([{**made.random_case(1, n=1)[0][0], "rationales": []}], [row])
    agreed = EraserAgreement().compute(predictions=[[0, 1]], references=[row])
    digests = {re.search("data:[0-9a-f]{12}", result["signature"])[0] for result in (found, agreed)}
    assert "accuracy" in found and "tokens_to_flip_ratio" in found and len(digests) == 1


def test_numbers_of_labels_need_names():
    predictions, references = made.random_case(6)
    expected = compute(predictions, references)["accuracy"]
    numbered = [{**row, "classification": made.LABELS.index(row["classification"])} for row in references]
    with pytest.raises(DataError, match="label_names"):
        compute(predictions, numbered)
    assert compute(predictions, numbered, label_names=made.LABELS)["accuracy"] == expected
    dataset = datasets.Dataset.from_list(numbered).cast_column("classification", datasets.ClassLabel(names=made.LABELS))
    for rows in (dataset, dataset.to_iterable_dataset()):
        found = compute(predictions, rows, by="classification")
        assert found["accuracy"] == expected and set(found["by"]) <= set(made.LABELS)
        assert "macro_f1" in found and not any("macro_f1" in group for group in found["by"].values())
    numbered[0]["classification"] = 7
    with pytest.raises(DataError, match=r"instance 'a0'.*found 7"):
        compute(predictions, numbered, label_names=made.LABELS)


def test_points_ascend_and_documents_of_rationales_are_clusters():
    predictions, _ = made.random_case(4)
    expected = compute(predictions)
    for at, row in enumerate(predictions):
        row["thresholded_scores"].reverse()
        row["rationales"] = [{"docid": f"d{at // 2}"}]
    found = compute(predictions, aopc_thresholds=[0.5, 0.2, 0.1, 0.05, 0.01], n_resamples=9)
    assert found["aopc_thresholds"] == [0.01, 0.05, 0.1, 0.2, 0.5]
    assert found["comprehensiveness_aopc_points"] == expected["comprehensiveness_aopc_points"]
    assert "|cluster:documents|clusters:3|" in found["signature"]
