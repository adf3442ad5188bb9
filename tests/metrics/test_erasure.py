"""Faithfulness: the reference scorer's values, closed forms, second opinions, chunks, wrong input."""

from __future__ import annotations

import warnings

import datasets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.erasure import (
    compute_drop,
    compute_entropy,
    compute_kl,
    erasure_scores,
    measure_erasure,
    report_labels,
)
from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.match import Matcher, read_gold, read_predictions
from eraser_hub.metrics.statistics import Statistics, concatenate

from ..metrics import eraser_rows as made

probabilities = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda p: sum(p) > 0.01)
BOUNDS = {"lower": -0.1, "upper": 0.7, "sufficiency_lower": -0.2, "sufficiency_upper": 0.6}
FULL, ALONE, REST = (f"{side}classification_scores" for side in ("", "sufficiency_", "comprehensiveness_"))


def compute(predictions, references=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EraserFaithfulness().compute(predictions=predictions, references=references, **options)


@pytest.mark.parametrize("corpus", ["movies", "multirc", "fever", "evidence_inference", "cose"])
def test_golden_values(corpus, reference_scores, corpora):
    # golden/eraser_metrics/CORPUS/scores.json: what the reference scorer printed
    predictions, references, scores = made.golden_case(reference_scores, corpora, corpus)
    found = compute(predictions, references)
    for key, value in scores["classification_scores"].items():
        if key != "prf":
            assert found[key] == pytest.approx(value, abs=1e-9)
    match = Matcher(read_gold(references)).add(read_predictions(predictions))
    report = report_labels(measure_erasure(match), match.labels)
    for label, values in scores["classification_scores"]["prf"].items():
        assert report[label] == pytest.approx(values, abs=1e-9)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=5))
def test_scipy_agrees(rows):
    stats = pytest.importorskip("scipy.stats")
    full, erased = (np.array(column) for column in zip(*rows, strict=True))
    assert compute_entropy(full) == pytest.approx(stats.entropy(full, axis=1), abs=1e-9)
    assert compute_kl(erased, full) == pytest.approx(stats.entropy(erased, full, axis=1), abs=1e-9, rel=1e-9)


def test_closed_forms():
    full, label = np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0])
    assert compute_drop(full, np.stack([full, full[::-1]], axis=1), label) == pytest.approx(
        np.array([[0, 0.3], [0, 0.3]])
    )
    assert compute_kl(full, full).tolist() == [0, 0]
    assert compute_kl(np.array([[0.5, 0.5], [1, 0]]), np.array([[1.0, 0], [0.5, 0.5]])).tolist() == [np.inf, np.log(2)]


def test_chunks_add_up_and_scikit_learn_agrees_on_labels():
    metrics = pytest.importorskip("sklearn.metrics")
    predictions, references = made.random_case(5, n=20)
    matcher, parts = Matcher(read_gold(references)), []
    for at in range(0, 20, 7):
        match = matcher.add(read_predictions(predictions[at : at + 7]))
        parts.append(measure_erasure(match))
    columns = concatenate(parts, [7, 7, 6])
    values = Statistics(match.ids, columns, erasure_scores(columns)).values()
    whole = compute(predictions, references)
    assert all(value.tolist() == pytest.approx(whole[key]) for key, value in values.items())
    labels = [[row["classification"] for row in rows] for rows in (references, predictions)]
    expected = metrics.classification_report(*labels, output_dict=True, zero_division=0)
    report = report_labels(columns, match.labels)
    assert report.keys() == expected.keys()
    assert all(report[key] == pytest.approx(value) for key, value in expected.items())
    assert whole["macro_f1"] == pytest.approx(expected["macro avg"]["f1-score"])


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
    for row in predictions:
        row |= {
            "aopc_bounds": BOUNDS,
            "soft_scores": {"comprehensiveness": 0.25, "sufficiency": 0.5},
            "infidelity": 2.0,
        }
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
        ({FULL: {"NEG": 0.5, "POS": 0.6}}, {}, FULL, "a sum of 1.1"),
        ({REST: {"NEG": -0.5, "POS": 1.5}}, {}, REST, "expected probabilities"),
        ({REST: None}, {}, REST, "found none"),
        ({"thresholded_scores": []}, {}, "thresholded_scores.threshold", "0.01, 0.05"),
        ({}, {"aopc_thresholds": [0.1, 0.5]}, "thresholded_scores.threshold", "the thresholds 0.1, 0.5"),
        ({}, {"label_names": ["neg", "POS"]}, "classification", "did you mean 'neg'"),
        ({"aopc_bounds": None}, {}, "aopc_bounds.lower", "in all or in none"),
        ({"aopc_bounds": []}, {}, "aopc_bounds", "an object"),
        ({"aopc_bounds": {**BOUNDS, "upper": None}}, {}, "aopc_bounds.upper", "in all or in none"),
        ({"aopc_bounds": {**BOUNDS, "upper": "high"}}, {}, "aopc_bounds.upper", "found 'high'"),
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


def test_numbers_of_labels_need_names():
    predictions, references = made.random_case(6)
    expected = compute(predictions, references)["accuracy"]
    numbered = [{**row, "classification": made.LABELS.index(row["classification"])} for row in references]
    with pytest.raises(DataError, match="label_names"):
        compute(predictions, numbered)
    assert compute(predictions, numbered, label_names=made.LABELS)["accuracy"] == expected
    dataset = datasets.Dataset.from_list(numbered).cast_column("classification", datasets.ClassLabel(names=made.LABELS))
    found = compute(predictions, dataset, by="classification")
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
