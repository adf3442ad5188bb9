"""The documents that the declarations make: up to date, and true of the samples."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from eraser_hub.metrics.match import INSTANCE
from eraser_hub.metrics.rows import find_fault, simplify
from tools.schema import DOCS, RECORDS, documents, json_schema

pytestmark = pytest.mark.unit


def test_the_documents_are_what_the_declarations_say():
    for path, text in documents().items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m tools.schema"
    assert {path.stem for path in (DOCS / "schema").iterdir()} == RECORDS.keys()


@pytest.mark.parametrize("name", RECORDS)
def test_each_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(json_schema(name))


@pytest.mark.parametrize(("name", "folder"), [("instance", "eraser"), ("pair", "bilingual_perturbation")])
def test_the_samples_are_of_their_schema(name, folder, samples):
    validator = jsonschema.Draft202012Validator(json_schema(name))
    lines = [
        line
        for path in (samples / "predictions" / folder).glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]
    assert lines
    for line in lines:
        validator.validate(json.loads(line))


WRONG: list[dict[str, Any]] = [
    {},
    {"annotation_id": 1.5},
    {"annotation_id": "a", "classification": 1},
    {"annotation_id": "a", "rationales": {}},
    {"annotation_id": "a", "rationales": [{"docid": None}]},
    {"annotation_id": "a", "rationales": [{"docid": "d", "hard_rationale_predictions": [{"start_token": 1}]}]},
    {"annotation_id": "a", "rationales": [{"docid": "d", "soft_rationale_predictions": ["x"]}]},
    {"annotation_id": "a", "classification_scores": {"POS": "0.5"}},
    {"annotation_id": "a", "classification_scores": [0.5]},
    {"annotation_id": "a", "thresholded_scores": [{"threshold": None}]},
]


@pytest.mark.parametrize("row", WRONG, ids=json.dumps)
def test_schema_and_reader_refuse_alike(row):
    assert not jsonschema.Draft202012Validator(json_schema("instance")).is_valid(row)
    assert find_fault(simplify(row), INSTANCE)
