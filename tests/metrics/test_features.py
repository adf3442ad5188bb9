"""What each module says of itself: features of what it takes, licence, code."""

from __future__ import annotations

import json
from typing import Any

import datasets
import evaluate
import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement
from eraser_hub.publishing.spaces import list_metric_names
from eraser_hub.schema.instance import LIST_FIELDS, NUMBER_FIELDS, SCORE_FIELDS, SOFT_FIELDS


def fits(value: Any, feature: Any) -> bool:
    """Whether a value is of a feature, as far as it goes: fields may lack, none may be unknown."""
    if value is None:
        return True
    if isinstance(feature, list | datasets.List):
        inner = feature[0] if isinstance(feature, list) else feature.feature
        return isinstance(value, list) and all(fits(part, inner) for part in value)
    if isinstance(feature, dict):
        return isinstance(value, dict) and all(
            key in feature and fits(part, feature[key]) for key, part in value.items()
        )
    if isinstance(feature, datasets.Value):
        kinds = {"string": str, "int64": int, "float64": int | float, "bool": bool}
        return isinstance(value, kinds[feature.dtype])
    return isinstance(value, dict) and all(isinstance(part, int | float) for part in value.values())


@pytest.mark.parametrize("name", list_metric_names())
def test_a_module_says_what_it_takes_whose_code_and_under_which_licence(name, tmp_path):
    from eraser_hub.publishing.spaces import build_metrics

    module = evaluate.load(str(build_metrics(tmp_path, [name])[0]))
    assert set(module.features) == {"predictions", "references"}
    assert module.license == "Apache-2.0"
    assert all(url.startswith("https://github.com/") for url in module.codebase_urls)
    for fields in module.features.values():
        assert all(field in module.inputs_description for field in fields if not field.endswith("scores"))


def test_the_features_know_all_fields_of_an_instance():
    known = EraserFaithfulness().features["predictions"]
    names = {field.field.partition(".")[0] for field in NUMBER_FIELDS.values()} | {
        field.field for field in LIST_FIELDS.values()
    }
    scores = {
        field for side, field in SCORE_FIELDS.items() if side != "null"
    }  # normalized_fidelity alone reads that one
    assert names | scores <= set(known)
    rationale = EraserAgreement().features["predictions"]["rationales"].feature
    assert {field.field for field in SOFT_FIELDS.values()} < set(rationale)


def test_the_sample_predictions_are_of_these_features(samples):
    lines = (samples / "predictions" / "eraser" / "movies.val.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        kept = {key: row[key] for key in EraserAgreement().features["predictions"] if key in row}
        assert fits(kept, EraserAgreement().features["predictions"]), row["annotation_id"]
        assert fits(row, EraserFaithfulness().features["predictions"]), row["annotation_id"]
    lines = (samples / "predictions" / "bilingual_perturbation" / "senti_ch.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        for module in (PerturbationMap(), RationaleSetAgreement()):
            known = module.features["predictions"]
            kept = {key: row[key] for key in known if key in row} | {
                "id": str(row["id"])
            }  # ids are compared as strings
            assert fits(kept, known), (module.name, row["id"])
