"""Rows of human_rationales (tokens and their mask) as references of the modules."""

from __future__ import annotations

from typing import Any

import datasets
import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness

ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "tokens": ["a", "warm", "film", "."],
        "rationale_mask": [False, True, True, False],
        "label": 1,
        "source": "x",
    },
    {"id": 2, "tokens": ["dull 2", "."], "rationale_mask": [True, False], "label": 0, "source": "y"},
]


def instance(name: int, end: int, size: int, label: str) -> dict[str, Any]:
    rationale = {"docid": str(name), "hard_rationale_predictions": [{"start_token": 0, "end_token": end}]}
    rationale["soft_rationale_predictions"] = [1.0] * end + [0.0] * (size - end)
    p = {
        "classification_scores": {"NEG": 0.25, "POS": 0.75},
        "sufficiency_classification_scores": {"NEG": 0.5, "POS": 0.5},
    }
    return {"annotation_id": name, "classification": label, "rationales": [rationale], **p}


PREDICTIONS = [instance(1, 2, 4, "POS"), instance(2, 1, 2, "POS")]


def forms() -> dict[str, Any]:
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "tokens": datasets.List(datasets.Value("string")),
            "rationale_mask": datasets.List(datasets.Value("bool")),
            "label": datasets.ClassLabel(names=["NEG", "POS"]),
            "source": datasets.Value("string"),
        }
    )
    dataset = datasets.Dataset.from_list([{**row, "id": str(row["id"])} for row in ROWS], features=features)
    return {"rows": ROWS, "Dataset": dataset, "IterableDataset": dataset.to_iterable_dataset()}


@pytest.mark.parametrize("form", ["rows", "Dataset", "IterableDataset"])
def test_rows_of_tokens_are_references(form: str) -> None:
    """By hand: of tokens [1, 3) and [0, 1), [0, 2) and [0, 1) are predicted: 2 of 3 are right, 2 of 3 are there."""
    names = {"label_names": ["NEG", "POS"]} if form == "rows" else {}
    found = EraserAgreement().compute(predictions=PREDICTIONS, references=forms()[form], by="source", **names)
    assert found["token_micro_p"] == found["token_micro_r"] == pytest.approx(2 / 3)
    assert found["by"]["y"]["token_micro_f1"] == 1
    found = EraserFaithfulness().compute(predictions=PREDICTIONS, references=forms()[form], **names)
    assert found["accuracy"] == 0.5 and found["sufficiency"] == 0.25
