"""What is drawn together: documents that annotations share, originals and their perturbed records, a column."""

from __future__ import annotations

import json
import warnings

import datasets
import numpy as np
import pytest

from eraser_hub.metrics.clusters import cluster_by_items, find_components, number_values
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement
from eraser_hub.metrics.resampling import bootstrap_intervals

from ..refusals import refused
from .eraser_rows import random_case
from .family import made_up


def test_components_meet_the_golden_values(golden):
    for case in json.loads((golden / "statistics" / "clustered.json").read_text())["components"]:
        numbers = cluster_by_items("documents", case["docids"]).numbers
        assert (list(range(len(case["docids"]))) if numbers is None else numbers.tolist()) == case["expected"]


def test_a_long_chain_is_one_cluster_and_strangers_stand_for_themselves():
    owner = np.repeat(np.arange(500), 2)
    item = np.stack([np.arange(500), np.arange(1, 501)], axis=1).ravel()
    assert set(find_components(owner, item, 501).tolist()) == {0, 1}
    assert find_components(np.arange(3), np.arange(3), 3) is None
    assert find_components(np.zeros(0, int), np.zeros(0, int), 2) is None
    assert number_values(["b", 1, "b"]).tolist() == [0, 1, 0]


def shared(seed=3, n=9):
    """Annotations of which three each share a document."""
    predictions, references = random_case(seed, n)
    for k, (p, r) in enumerate(zip(predictions, references, strict=True)):
        for side in (r["documents"], *r["evidences"], p["rationales"]):
            for one in side:
                one["docid"] = one["docid"].replace(f"{k}_0", f"shared{k // 3}_{k}")
        r["topic"] = f"t{k % 2}"
    for k, r in enumerate(references):  # a document of its group's first annotation, without evidence
        r["documents"].append({"docid": f"shared{k // 3}", "text": "all of them hold it"})
    return predictions, references


@pytest.mark.parametrize("module", [EraserAgreement, EraserFaithfulness])
@pytest.mark.parametrize("kind", [list, datasets.Dataset.from_list])
def test_annotations_that_share_a_document_are_drawn_together(module, kind):
    predictions, references = shared()
    options = {"per_instance": True, "n_resamples": 60, "seed": 4}
    result = module().compute(predictions=kind(predictions), references=kind(references), **options)
    assert result["per_instance"]["cluster"] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert "|cluster:documents|clusters:3" in result["signature"]
    statistics = module().statistics(predictions, references)
    sums = statistics.values.reshape(3, 3, -1).sum(axis=1)
    expected = bootstrap_intervals(sums, statistics.finalize, n_resamples=60, seed=4)
    for key, bounds in expected.items():
        if key != "any_group_coverage":  # without hits it has other bounds
            assert np.allclose(result[f"{key}_ci"], bounds, equal_nan=True)


def test_the_caller_names_clusters_or_none():
    predictions, references = shared()
    ask = {"predictions": predictions, "references": references, "per_instance": True}
    assert EraserAgreement().compute(**ask, cluster_by="none")["per_instance"]["cluster"] == list(range(9))
    topics = EraserAgreement().compute(**ask, cluster_by="topic", n_resamples=9)
    assert topics["per_instance"]["cluster"] == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert "|cluster:topic|clusters:2" in topics["signature"]
    for k, one in enumerate(predictions):
        one["cluster"] = k // 5
    of_predictions = EraserAgreement().compute(**ask, cluster_by="cluster")
    assert of_predictions["per_instance"]["cluster"] == [0] * 5 + [1] * 4
    for one, value in zip(references, [None, "x", None, "x", np.nan, "y", float("nan"), "y", "y"], strict=True):
        one["maker"] = value
    makers = EraserAgreement().compute(**ask, cluster_by="maker")
    assert makers["per_instance"]["cluster"] == [0, 1, 2, 1, 3, 4, 5, 4, 4], "who has none stands for itself"
    with refused("option-value", "cluster_by: ", "'nothing'", field="cluster_by"):
        EraserAgreement().compute(**ask, cluster_by="nothing")
    with refused("option-value", "cluster_by: ", "'documents'", field="cluster_by"):
        EraserAgreement().compute(**ask, cluster_by="documents")
    with refused("option-value", "cluster_by: ", "'auto'", "found 3", field="cluster_by"):
        EraserAgreement().compute(**ask, cluster_by=3)


def test_faithfulness_without_references_takes_the_rationales_documents_and_says_so():
    predictions, _ = shared()
    for k, one in enumerate(predictions):
        one["rationales"][0]["docid"] = f"shared{k // 3}"
    result = EraserFaithfulness().compute(predictions=predictions, n_resamples=9, per_instance=True)
    assert result["per_instance"]["cluster"] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert "|cluster:documents of rationales|clusters:3" in result["signature"]
    for one in predictions:
        one["rationales"] = []
    assert (
        "|cluster:none|clusters:9" in EraserFaithfulness().compute(predictions=predictions, n_resamples=9)["signature"]
    )


def test_an_original_and_its_perturbed_records_are_one():
    predictions, references = made_up("rationale_set_agreement")
    for at, row in enumerate(references):
        row |= {"sample_type": "disturb" if at % 2 else "ori", "rel_ids": [] if at % 2 else [at + 1]}
    result = RationaleSetAgreement().compute(
        predictions=predictions, references=references, per_instance=True, n_resamples=9
    )
    assert result["per_instance"]["cluster"] == [0, 0, 1, 1, 2, 2, 3, 3] and "|cluster:original|" in result["signature"]
    predictions, references = made_up("perturbation_map")
    result = PerturbationMap().compute(predictions=predictions, references=references, n_resamples=9)
    assert "|cluster:original|clusters:8" in result["signature"]


def test_rows_with_documents_are_drawn_by_them():
    rows, _ = made_up("normalized_fidelity")
    references = [{**row, "documents": [{"docid": f"d{at // 4}", "text": "t"}]} for at, row in enumerate(rows)]
    result = NormalizedFidelity().compute(predictions=rows, references=references, per_instance=True, n_resamples=9)
    assert result["per_instance"]["cluster"] == [0] * 4 + [1] * 4


def test_small_classes_are_said_once_where_intervals_are_asked_for():
    predictions, references = random_case(3, n=6)
    with pytest.warns(UserWarning, match=r"eraser_faithfulness: .* 5 .*(NEG|POS) \(\d\)"):
        EraserFaithfulness().compute(predictions=predictions, references=references, n_resamples=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EraserFaithfulness().compute(predictions=predictions, references=references)
