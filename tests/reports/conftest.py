"""A built sample dataset, and a small report with hostile text."""

from __future__ import annotations

from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpora, built."""
    from eraser_hub.conversion import get_dataset

    out = tmp_path_factory.mktemp("hub")
    get_dataset("eraser").build(None, out=out, source=SAMPLES / "eraser")
    return out


@pytest.fixture
def row() -> dict:
    """A dataset row of two sentences and three evidence groups, one of them over two documents."""
    return {
        "annotation_id": "one",
        "query": "what of it ?",
        "query_type": "",
        "classification": 1,
        "documents": [
            {"docid": "d1", "text": "a fine film with a dull end\nand nothing more"},
            {"docid": "d2", "text": "short"},
        ],
        "evidences": [
            [{"docid": "d1", "text": "fine film", "start_token": 1, "end_token": 3}],
            [
                {"docid": "d1", "text": "film with", "start_token": 2, "end_token": 4},
                {"docid": "d2", "text": "short", "start_token": 0, "end_token": 1},
            ],
            [{"docid": "d1", "text": "", "start_token": 5, "end_token": 5}],
        ],
    }


@pytest.fixture
def instance() -> dict:
    """A model's output for that row."""
    return {
        "annotation_id": "one",
        "rationales": [
            {
                "docid": "d1",
                "hard_rationale_predictions": [{"start_token": 2, "end_token": 5}, {"start_token": 2, "end_token": 5}],
                "soft_rationale_predictions": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0],
            },
            {"docid": "d2", "hard_rationale_predictions": [], "soft_rationale_predictions": [-3.0]},
        ],
        "classification": "POS",
        "classification_scores": {"NEG": 0.25, "POS": 0.75},
    }
