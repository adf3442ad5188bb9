"""Several processes that read a prediction file: the numbers and the errors of one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.records import predictions as reader
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.settings import ScoreSettings

from ..metrics.eraser_rows import random_case
from ..refusals import refused
from .small_corpora import compare, lines, nested, written

pytestmark = pytest.mark.unit


def test_three_processes_give_the_numbers_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictions, references = random_case(5, n=40)
    random.Random(1).shuffle(predictions)
    inputs = written(tmp_path, predictions, references)
    settings = {"iou_thresholds": (0.2, 0.5), "random_baseline": 2}
    expected = nested(score(*inputs, ScoreSettings(**settings)))
    monkeypatch.setattr(reader, "PART", 2000)
    totals = ScoreSettings(**settings, totals_only=True)
    scores = nested(score(*inputs, totals, num_proc=3))
    compare(scores, expected)
    assert scores["signature"] == expected["signature"]
    assert nested(score(*inputs, totals, num_proc=3)) == scores


def another_field(rows: list[dict[str, Any]]) -> None:
    del rows[-1]["tokens_to_flip"]


def twice(rows: list[dict[str, Any]]) -> None:
    rows[-1] = rows[0]


def not_json(rows: list[dict[str, Any]]) -> None:
    rows[-1]["classification_scores"] = {"NEG": float("nan")}


@pytest.mark.parametrize(
    ("change", "rule"), [(another_field, "key-missing"), (twice, "id-twice"), (not_json, "syntax")]
)
def test_what_is_wrong_in_another_share_is_told_as_by_one_process(change: Any, rule: str, tmp_path: Path) -> None:
    predictions, references = random_case(3, n=12)
    change(predictions)
    inputs = written(tmp_path, predictions, references)
    told = []
    for count in (1, 2):
        with refused(rule, file="p.jsonl", line=12) as caught:
            score(*inputs, ScoreSettings(totals_only=True), num_proc=count)
        told.append(str(caught.error))
    assert told[0] == told[1]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    predictions, references = random_case(3, n=3)
    inputs = written(tmp_path, predictions, references)
    with refused("file-missing", file="nowhere.jsonl"):
        score(ScoredSplit(tmp_path, "val"), tmp_path / "nowhere.jsonl", ScoreSettings(totals_only=True), num_proc=2)
    lines(inputs.results, [])
    with refused("empty", file="p.jsonl"):
        score(*inputs, ScoreSettings(totals_only=True), num_proc=2)
