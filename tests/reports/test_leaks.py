"""Beside a system's scores: what its masks' shapes give away, and what EVAL-X's evaluator tells from them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from eraser_hub.records.digests import compute_file_digest
from eraser_hub.reports.catalogue import metric
from eraser_hub.reports.report import make_report
from eraser_hub.reports.sections import describe_distances
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.score import score_system
from eraser_hub.scoring.scored_split import read_split
from eraser_hub.scoring.scores import Scores
from eraser_hub.scoring.settings import ScoreSettings

from ..refusals import refused

pytestmark = pytest.mark.unit

SETTINGS = ScoreSettings(n_resamples=100)


@pytest.fixture
def split(hub):
    return read_split(hub / "eraser", "movies", "validation")


def predictions(split, leaking: bool) -> list[dict]:
    """Each row's gold label, with the first tokens for POS and the last for NEG, or the fifth to ninth for either."""
    rows = []
    for row in split.labelled:
        document = row["documents"][0]
        end = len(document["text"].split())
        start = 4 if not leaking else 0 if row["classification"] == "POS" else end - 5
        span = {"start_token": start, "end_token": start + 5}
        rationales = [{"docid": document["docid"], "hard_rationale_predictions": [span]}]
        rows.append({key: row[key] for key in ("annotation_id", "classification")} | {"rationales": rationales})
    return rows


def write(path: Path, rows: list[dict], signature: str = "") -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    if signature:
        path.with_name(path.name + ".run.json").write_text(json.dumps({"signature": signature}))
    return path


def test_a_leak_is_told_beside_the_scores(split, tmp_path):
    def leak_of(split, rows: list[dict]) -> Scores:
        return score_system(split, System("ours", (write(tmp_path / "rows.jsonl", rows),)), SETTINGS.everything())

    scores = leak_of(split, predictions(split, True))
    assert scores.scores["mask_leak"] == 1 and scores.intervals["mask_leak"][0] > scores.scores["mask_leak_chance"]
    honest = leak_of(
        split, [row | {"classification": ("NEG", "POS")[at % 2]} for at, row in enumerate(predictions(split, False))]
    )
    assert honest.intervals["mask_leak"][0] <= honest.scores["mask_leak_chance"]
    bare = [row | {"rationales": []} for row in predictions(split, True)]
    alike = [row | {"classification": "POS"} for row in predictions(split, True)]
    for rows in (bare, alike):
        scores = leak_of(split, rows)
        assert "mask_leak" not in scores.scores and any("no mask_leak" in words for words in scores.all_notes)


def evaluated(split, rows: list[dict], right: int) -> list[dict]:
    """An evaluator's predictions on these rationales, that has so many of the first labels right."""
    side = "sufficiency_classification_scores"
    other = {"NEG": "POS", "POS": "NEG"}
    labels = [row["classification"] if at < right else other[row["classification"]] for at, row in enumerate(rows)]
    return [
        row | {side: {name: 0.9 if name == label else 0.1 for name in other}}
        for row, label in zip(rows, labels, strict=True)
    ]


def test_the_page_says_both_in_sentences(hub, split, tmp_path, text_of):
    rows = predictions(split, True)
    ours = write(tmp_path / "ours.jsonl", rows)
    digest = compute_file_digest(ours, hashlib.blake2b(digest_size=6))
    judge = write(tmp_path / "judge.jsonl", evaluated(split, rows, 18), f"rationales:{digest}|erase:remove|seed:1")
    made = reported(hub, tmp_path, System("ours", (ours,)), System("ours", (judge,)))
    scores = json.loads(made.score_files[0].read_text())
    assert scores["mask_leak"] == 1 and scores["eval_x"] == 18 / len(rows)
    low, high = scores["eval_x_ci"]
    assert low < 18 / len(rows) < high
    text = text_of(made.page)
    assert "ours: the shape of its masks gives its labels away (1.000, by chance" in text
    assert "EVAL-X: how often a model trained on random subsets of tokens" in text


def reported(hub, tmp_path, system: System, evaluator: System):
    part = {"config": "movies", "split": "validation", "out": tmp_path / "report", "settings": SETTINGS}
    return make_report(hub / "eraser", **part, systems=[system], evaluators=[evaluator])


def test_evaluators_of_something_else_are_refused(hub, split, tmp_path):
    rows = predictions(split, True)
    ours = write(tmp_path / "ours.jsonl", rows)
    other = write(tmp_path / "other.jsonl", evaluated(split, rows, 3), "rationales:0123456789ab|erase:remove|seed:1")
    short = write(tmp_path / "short.jsonl", evaluated(split, rows, 3)[:4])
    plain = write(tmp_path / "plain.jsonl", rows)

    scores = "sufficiency_classification_scores"
    for evaluator, rule, instance, mentions in (
        (System("ours", (other,)), "file-changed", None, ("ours.jsonl", "rationales:0123456789ab|")),
        (System("ours", (short,)), "score-missing", rows[4]["annotation_id"], (scores,)),
        (System("ours", (plain,)), "score-missing", rows[0]["annotation_id"], (scores,)),
        (System("theirs", (plain,)), "option-value", None, ("evaluator", "(ours)", "'theirs'")),
    ):
        file = None if rule == "option-value" else evaluator.path
        with refused(rule, *mentions, file=file, instance=instance):
            reported(hub, tmp_path, System("ours", (ours,)), evaluator)


def test_distances_and_entropies_are_explained_where_there_are_any():
    far = Scores("ours", scores={"distance_whole": 1.0, "entropy_whole": 0.1})
    plain = Scores("theirs", scores={"entropy_whole": 0.1})
    distance, entropy = describe_distances([far, plain])
    assert distance.startswith("Distance from training texts") and entropy.startswith("Predictive entropy")
    assert describe_distances([plain]) == [entropy] and describe_distances([Scores("none")]) == []
    assert metric("distance_sufficiency").label == "Distance from training texts, rationale alone"
