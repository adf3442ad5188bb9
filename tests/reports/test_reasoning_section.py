"""A language model's reasoning in reports: tests beside their controls, and the step after which each answer stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eraser_hub.reports.report import make_report
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.settings import ScoreSettings
from tools.browser import view_as

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.fixture
def rows() -> list[dict]:
    """Predictions whose answers settle at the second of three steps; in every fourth at once."""
    lines = (SAMPLES / "predictions/eraser/movies.val.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for at, row in enumerate(rows):
        label = row["classification"]
        other = "NEG" if label == "POS" else "POS"
        early = [label] * 4 if at % 4 == 0 else [other, None, label, label]
        row["reasoning_steps"] = ["It is <b>long</b>.", "It is dull.", "So."]
        row["reasoning_tests"] = [
            *({"test": "early_answering", "kept": kept, "classification": one} for kept, one in enumerate(early)),
            {"test": "filler", "classification": other},
            {"test": "unchanged", "classification": label},
            {"test": "suggested_answer", "classification": other if at % 2 else label, "mentioned": at % 4 == 1},
            {"test": "suggested_answer_control", "classification": label},
        ]
    return rows


def report(hub: Path, folder: Path, rows: list[dict]) -> Path:
    path = folder / "model.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings, systems = ScoreSettings(n_resamples=20), [System("model", (path,))]
    dataset = hub / "eraser"
    files = make_report(
        dataset, config="movies", split="validation", systems=systems, out=folder / "report", settings=settings
    )
    return files.page


def test_tests_and_steps_are_shown(hub, tmp_path, rows, text_of):
    page = report(hub, tmp_path, rows)
    words, count = text_of(page), len(rows)
    scores = json.loads((tmp_path / "report" / "model.scores.json").read_text("utf-8"))
    assert (scores["flip_filler"], scores["flip_unchanged"]) == (1, 0)
    assert scores["mention_suggested_answer"] == pytest.approx(0.5)
    assert "model: tests of its reasoning." in words and "filler in place of the steps" in words
    name = rows[1]["annotation_id"]
    assert f"model, {name}: {rows[1]['classification']}, settled after step 2 of 3" in words
    assert f"model, {rows[0]['annotation_id']}: {rows[0]['classification']}, settled before the first step" in words
    assert f"model: steps of the first 10 of {count} instances." in words
    assert "no answer" in words
    tests, measures = words.split("model: tests of its reasoning.")[1].split("model: its steps beside its answers.")
    assert "Answer settled at (share of steps)" in measures and "Answer settled at" not in tests
    assert "[–, –]" not in words
    assert "<b>long</b>" not in page.read_text("utf-8").split("reasoning-section", 2)[2].split("documents-section")[0]


def test_models_without_steps_have_no_such_section(hub, tmp_path, rows):
    for row in rows:
        del row["reasoning_steps"], row["reasoning_tests"]
    assert "reasoning-section" not in report(hub, tmp_path, rows).read_text("utf-8")


def test_steps_without_tests_say_what_asks_them(hub, tmp_path, rows, text_of):
    for row in rows:
        row["reasoning_tests"] = []
    assert "ask --reasoning-tests all" in text_of(report(hub, tmp_path, rows))


def test_tests_that_were_not_asked_have_no_line(hub, tmp_path, rows, text_of):
    words = text_of(report(hub, tmp_path, rows)).split("model: tests of its reasoning.")[1].split("settled before")[0]
    assert "a mistake added to a step" not in words and "a word inserted" not in words


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_long_steps_leave_their_answers_in_sight(browser, hub, tmp_path, rows, width):
    for row in rows:
        row["reasoning_steps"][1] = "The middle hour drags , and a subplot about a clock goes nowhere . " * 4
    try:
        view_as(browser, width, "light")
        browser.get(report(hub, tmp_path, rows).as_uri())
        browser.execute_script(
            "document.querySelectorAll('#reasoning-section, details').forEach(d => { d.open = true; })"
        )
        cells = (
            "return [...document.querySelectorAll('#reasoning-section td')].map(c => c.getBoundingClientRect().right)"
        )
        assert max(browser.execute_script(cells)) <= width
        assert browser.execute_script("return document.documentElement.scrollWidth") == width
    finally:
        view_as(browser)
