"""What scoring says beside the numbers: what was left out, fields it does not know, parts of a split, other splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub.conversion import get_dataset
from eraser_hub.scoring.result import Scores
from eraser_hub.scoring.score import ScoreSettings, ask_about, score
from eraser_hub.scoring.scored_split import ScoredSplit

from ..metrics.eraser_rows import random_case
from ..refusals import refused
from .small_corpora import Inputs, compare, nested, written

pytestmark = pytest.mark.unit

Rows = list[dict[str, Any]]


@pytest.mark.parametrize("by_rows", [False, True])
def test_only_predicted(by_rows: bool, tmp_path: Path) -> None:
    predictions, references = random_case(3, n=12)
    inputs = written(tmp_path, predictions[:7], references)
    with refused("5 of 12 annotations", "`only_predicted`", file="p.jsonl"):
        score(*inputs)
    settings = {"per_instance": True, "by": "classification", "n_resamples": 50} if by_rows else {}
    scored = score(*inputs, ScoreSettings(only_predicted=True, **settings))
    assert all(line.count("|scored:7/12|") == 1 for line in scored.signatures) and "7 of 12" in "".join(scored.notes)
    (tmp_path / "alone").mkdir()
    alone = nested(score(*written(tmp_path / "alone", predictions[:7], references[:7]), ScoreSettings(**settings)))
    compare(nested(scored), {key: alone[key] for key in alone.keys() - {"config", "signature", "data_digest"}})


@pytest.mark.parametrize("built", [False, True])
def test_a_wrong_split_names_the_one_that_fits(built: bool, samples: Path, tmp_path: Path) -> None:
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    inputs = Inputs(ScoredSplit(samples / "eraser" / "movies", "train"), results)
    if built:
        get_dataset("eraser").build(source=samples / "eraser", configs=["movies"], out=tmp_path)
        inputs = Inputs(ScoredSplit(split="train", dataset=tmp_path / "eraser", config="movies"), results)
    with refused(f"those of {'validation' if built else 'val'}", file=results, line=1) as caught:
        score(*inputs)
    assert len(str(caught.error).splitlines()) == 1
    human = samples / "eraser" / "movies" / "human_performance_1.jsonl"  # predictions, beside the annotations
    with refused("those of test.jsonl.bak", file=human, line=12):
        score(ScoredSplit(human.parent, "test"), human)


@pytest.mark.parametrize(
    ("values", "gaps", "question"),
    [
        ({"average_precision": 0.1}, [-0.1, -0.12, -0.08], "are token scores negated?"),
        ({"average_precision": 0.1}, [-0.3, 0.1, -0.1], ""),  # as random scores may be
        ({"comprehensiveness": 0.05, "sufficiency": 0.6}, [], "were the two exchanged?"),
        ({"iou_macro_f1": 1.022}, [], "iou_matched_f1 counts each once"),
        ({"average_precision": 0.3, "comprehensiveness": 0.4, "sufficiency": 0.1}, [0.1, 0.1], ""),
    ],
)
def test_what_looks_like_a_mistake_is_asked_about(values, gaps, question):
    scores = Scores(scores=values, chance={"average_precision": 0.2})
    lines = list(ask_about(scores, [np.stack([gaps, np.ones(len(gaps))], axis=1)]))
    assert [line.endswith(question) for line in lines] == ([True] if question else [])


def test_what_is_left_out_and_unknown_fields_are_said_once_with_their_numbers(tmp_path: Path) -> None:
    predictions, references = random_case(3, n=12)
    for row in predictions:
        del row["thresholded_scores"], row["tokens_to_flip"]
        for rationale in row["rationales"]:
            del rationale["soft_rationale_predictions"], rationale["soft_sentence_predictions"]
    expected = nested(score(*written(tmp_path, predictions, references)))
    for row in predictions[:5]:
        row["zebra"] = {"any": ["thing", 1e-3, None]}
    predictions[7]["rationales"][0]["wall_clock"] = 0.5
    scored = score(*written(tmp_path, predictions, references))
    (note,) = [note for note in scored.notes if "zebra" in note or "wall" in note]
    assert "rationales.wall_clock (in 1), zebra (in 5)" in note
    compare(nested(scored), {key: part for key, part in expected.items() if key != "predictions_sha256"})
    notes = " ".join(scored.notes)
    for scores, lacking in (
        ("AUPRC, AP, ROC-AUC", "soft_rationale_predictions"),
        ("sentence AUPRC, AP, ROC-AUC", "soft_sentence_predictions"),
        ("comprehensiveness_aopc, sufficiency_aopc", "thresholded_scores"),
        ("tokens_to_flip_ratio", "tokens_to_flip"),
    ):
        assert f"{scores} (no {lacking})" in notes
