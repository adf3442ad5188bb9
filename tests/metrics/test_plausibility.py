"""Contradictions in legal predictions: each is one note with a count, and honest systems have none."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.score import score, score_system
from eraser_hub.scoring.settings import ScoreSettings

from ..scoring.small_corpora import lines, written

Rows = list[dict[str, Any]]
LABELS = ("NEG", "POS")
FULL, WITHOUT, ALONE = (f"{side}classification_scores" for side in ("", "comprehensiveness_", "sufficiency_"))
BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
RANKINGS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "random": lambda effects, random: random.random(effects.shape),
    "signed": lambda effects, random: effects,
    "absolute": lambda effects, random: np.abs(effects),
    "noisy": lambda effects, random: effects + random.normal(0, 2 * effects.std(), effects.shape),
}


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def simulate(seed: int, ranking: str, n: int = 40, tokens: int = 30, strength: float = 0.5) -> Rows:
    """Predictions of a linear model over random tokens, by a ranking of its tokens."""
    random = np.random.default_rng(seed)
    effects = random.normal(0, strength, (n, tokens, len(LABELS)))
    full = softmax(effects.sum(axis=1))
    label = full.argmax(axis=1)
    own = effects[np.arange(n), :, label]
    order = np.argsort(-RANKINGS[ranking](own - effects.mean(axis=2), random), axis=1)
    ranks = np.argsort(order, axis=1)

    def erase(share: float) -> tuple[np.ndarray, np.ndarray]:
        top = (ranks < np.ceil(share * tokens))[:, :, None]
        return softmax((effects * ~top).sum(axis=1)), softmax((effects * top).sum(axis=1))

    def named(p: np.ndarray) -> dict[str, float]:
        return dict(zip(LABELS, p.tolist(), strict=True))

    sides, curves = erase(0.2), [erase(share) for share in BINS]
    return [
        {
            "annotation_id": f"a{at}",
            "rationales": [{"docid": f"d{at}", "hard_rationale_predictions": [{"start_token": 0, "end_token": 1}]}],
            "classification": LABELS[label[at]],
            FULL: named(full[at]),
            **{name: named(p[at]) for name, p in zip((WITHOUT, ALONE), sides, strict=True)},
            "thresholded_scores": [
                {"threshold": share, WITHOUT: named(without[at]), ALONE: named(alone[at])}
                for share, (without, alone) in zip(BINS, curves, strict=True)
            ],
        }
        for at in range(n)
    ]


def make_references(predictions: Rows) -> Rows:
    return [
        {
            "annotation_id": row["annotation_id"],
            "classification": "POS",
            "documents": [{"docid": f"d{row['annotation_id'][1:]}", "text": "a b c"}],
            "evidences": [[{"docid": f"d{row['annotation_id'][1:]}", "start_token": 0, "end_token": 2}]],
        }
        for row in predictions
    ]


def compute_notes(module: type[Any], predictions: Rows, references: Rows | None = None) -> list[str]:
    """What the module warns of, but for scores that are left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module().compute(predictions=predictions, references=references)
    return [line for line in (str(one.message) for one in caught) if not line.startswith("left out")]


def exchange(row: dict[str, Any], one: str, other: str) -> None:
    row[one], row[other] = row[other], row[one]


@pytest.mark.parametrize("ranking", RANKINGS)
def test_honest_systems_have_no_note(ranking: str) -> None:
    """60 systems of each ranking, of 12 and of 40 instances, of weak and of strong models."""
    for seed in range(60):
        n, strength = (12, 40)[seed % 2], (0.05, 0.5, 2.0)[seed % 3]
        assert compute_notes(EraserFaithfulness, simulate(seed, ranking, n=n, strength=strength)) == []


def test_a_label_that_is_not_the_most_probable_one_is_counted() -> None:
    predictions = simulate(1, "signed")
    for row in predictions[3:10]:
        row["classification"] = LABELS[row["classification"] == "NEG"]
    (note,) = compute_notes(EraserFaithfulness, predictions)
    assert "7 of 40 instances ('a3', 'a4', 'a5', ..)" in note and "exchanged" not in note


def test_a_tie_is_no_contradiction() -> None:
    predictions = simulate(1, "signed")
    for row in predictions:
        row[FULL] = {"NEG": 0.5, "POS": 0.5}
    assert compute_notes(EraserFaithfulness, predictions) == []


@pytest.mark.parametrize("field", [WITHOUT, ALONE])
@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_full_and_erased_scores_that_are_exchanged(field: str, strength: float) -> None:
    predictions = simulate(2, "signed", strength=strength)
    for row in predictions:
        exchange(row, FULL, field)
    notes = compute_notes(EraserFaithfulness, predictions)
    if field == WITHOUT:  # the label says which
        (note,) = notes
        assert f"that of {WITHOUT} in all" in note and "exchanged" in note
    # on the tokens that speak for the label its probability is as high as on all: only some labels can tell
    assert all("exchanged" in note for note in notes)


@pytest.mark.parametrize("ranking", ["signed", "noisy"])
def test_exchanged_scores_with_the_label_of_the_wrong_field(ranking: str) -> None:
    predictions = simulate(3, ranking, n=80)
    for row in predictions:
        row[FULL], row[WITHOUT] = {"NEG": 0.6, "POS": 0.4}, {"NEG": 0.9, "POS": 0.1}
        row["classification"] = "NEG"
    (note,) = compute_notes(EraserFaithfulness, predictions)
    assert "more probable than on the full input, by 0.300" in note


@pytest.mark.parametrize("ranking", RANKINGS)
def test_erased_scores_that_are_exchanged_at_all_thresholds(ranking: str) -> None:
    predictions = simulate(4, ranking, n=100)
    for row in predictions:
        for point in (row, *row["thresholded_scores"]):
            exchange(point, WITHOUT, ALONE)
    (note,) = compute_notes(EraserFaithfulness, predictions)
    assert note.startswith("thresholded_scores") and "exchanged" in note


@pytest.mark.parametrize("module", [EraserAgreement, EraserFaithfulness])
def test_instances_that_name_documents_of_others_are_counted(module: type[Any]) -> None:
    predictions = simulate(5, "signed", n=12)
    references = make_references(predictions)
    assert compute_notes(module, predictions, references) == []
    for at, row in enumerate(predictions):
        row["rationales"][0]["docid"] = f"d{(at + 1) % 12}"
    (note,) = compute_notes(module, predictions, references)
    assert note == "only documents of other annotations are named in 12 of 12 instances ('a0', 'a1', 'a2', ..)"


def test_some_documents_of_others_beside_the_own_ones_are_legal() -> None:
    predictions = simulate(5, "signed", n=12)
    references = make_references(predictions)
    for at, row in enumerate(predictions):
        row["rationales"].append(copy.deepcopy(row["rationales"][0]) | {"docid": f"d{(at + 1) % 12}"})
    assert compute_notes(EraserAgreement, predictions, references) == []


@pytest.mark.parametrize("docs", ["docs", "docs.jsonl"])
def test_score_says_it_in_the_same_words(tmp_path: Path, docs: str) -> None:
    predictions = simulate(6, "signed", n=12)
    references = make_references(predictions)
    for at, row in enumerate(predictions):
        row["rationales"][0]["docid"] = f"d{(at + 1) % 12}"
        row["classification"] = LABELS[row["classification"] == "NEG"]
    expected = compute_notes(EraserFaithfulness, predictions, references)
    scored = score(*written(tmp_path, predictions, references, docs))
    assert len(expected) == 2 and scored.notes[-2:] == expected
    assert scored.scores["comprehensiveness"] < -0.1


def test_a_run_beside_the_first_has_its_notes_too(tmp_path: Path) -> None:
    predictions = simulate(6, "signed", n=12)
    source, first = written(tmp_path, predictions, make_references(predictions))
    predictions[4]["classification"] = LABELS[predictions[4]["classification"] == "NEG"]
    second = lines(tmp_path / "second.jsonl", predictions)
    notes = score_system(source, System("ours", (first, second)), ScoreSettings()).notes
    assert any("1 of 12 instances ('a4')" in note for note in notes)


def test_a_predicted_document_of_no_annotation_is_legal(tmp_path: Path) -> None:
    predictions = simulate(7, "signed", n=12)
    inputs = written(tmp_path, predictions, make_references(predictions), "docs")
    (tmp_path / "docs" / "other").write_text("a b c", "utf-8")
    text = inputs.results.read_text("utf-8")
    for at in range(12):
        text = text.replace(f'"docid": "d{at}"', '"docid": "other"')
    inputs.results.write_text(text, "utf-8")
    assert not any("only documents" in note for note in score(*inputs).notes)
