"""A language model's quotes in reports: scored by quote_faithfulness, beside the same scores as any system has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eraser_hub.reports.sections import compare_all_pairs
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.score import score_system
from eraser_hub.scoring.scored_split import read_split
from eraser_hub.scoring.settings import ScoreSettings

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SETTINGS = ScoreSettings(n_resamples=20, per_instance=True)
PLACE = {"start_token": 0, "end_token": 2, "similarity": 1.0}


def written(path: Path, rows: list[dict]) -> System:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return System(path.stem, (path,))


@pytest.fixture
def movies(hub, tmp_path) -> tuple:
    """A split, and a system that quotes in three of four instances, in one of two something invented."""
    split = read_split(hub / "eraser", "movies", "validation")
    rows = [json.loads(line) for line in (SAMPLES / "predictions/eraser/movies.val.jsonl").read_text().splitlines()]
    for at, row in enumerate(rows):
        quote = {"text": "q", "docid": row["rationales"][0]["docid"], **PLACE}
        invented = {"text": "never", "status": "not_found", "docid": None, "start_token": None, "end_token": None}
        row["quotes"] = ([{**quote, "status": "exact"}] if at % 4 else []) + ([invented] if at % 2 else [])
    return split, rows


def test_quotes_are_scored_and_compared(movies, tmp_path):
    split, rows = movies
    one = written(tmp_path / "one.jsonl", rows)
    two = written(tmp_path / "two.jsonl", [{**row, "quotes": row["quotes"][:1]} for row in rows])
    scored = [score_system(split, s, SETTINGS) for s in (one, two)]
    scores = scored[0].scores
    count = len(rows)
    assert scores["in_text"] == pytest.approx(0.6) and scores["invented"] == pytest.approx(0.4)
    assert scores["instances_with_invented"] == 0.5
    assert 0 < scores["coverage"] < 1 and scores["quotes"] == count * 5 / 4
    assert scored[0].intervals["invented"][0] < 0.4 < scored[0].intervals["invented"][1]
    assert any(line.startswith("quote_faithfulness|") for line in scored[0].signatures)
    assert "token_macro_f1" in scores and "comprehensiveness" in scores
    assert "invented" in json.dumps(compare_all_pairs(scored, SETTINGS, 0.0)["scores"])


def test_predictions_without_quotes_have_no_such_scores(hub):
    split = read_split(hub / "eraser", "movies", "validation")
    system = System("s", (SAMPLES / "predictions/eraser/movies.val.jsonl",))
    scored = score_system(split, system, SETTINGS)
    assert "in_text" not in scored.scores and "quote_faithfulness" not in scored.statistics


def test_quotes_of_pairs(tmp_path):
    from eraser_hub.conversion import get_dataset

    get_dataset("bilingual_perturbation").build(["senti_ch"], out=tmp_path, source=SAMPLES / "bilingual_perturbation")
    split = read_split(tmp_path / "bilingual_perturbation", "senti_ch", "test")
    path = SAMPLES / "predictions/bilingual_perturbation/senti_ch.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["quotes"] = [{"text": "q", "status": "fuzzy", "docid": "sequence_0", **PLACE}]
    system = written(tmp_path / "p.jsonl", rows)
    scored = score_system(split, system, SETTINGS)
    assert scored.scores["fuzzy"] == 1 and "map" in scored.scores
