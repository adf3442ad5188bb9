"""The report's section on ways of erasing: each way's scores, and verdicts that flip, flagged in a sentence."""

from __future__ import annotations

import json

import pytest

from eraser_hub.reports.report import make_report
from eraser_hub.scoring.runs import parse_systems
from eraser_hub.scoring.settings import ScoreSettings

from ..refusals import refused

pytestmark = pytest.mark.unit


@pytest.fixture
def page_of(hub, text_of):
    """Makes a report of predictions in a folder: what its page says, and its files."""

    def make(folder, *arguments):
        systems = parse_systems([str(argument) for argument in arguments], several_operators=True)
        settings, part = ScoreSettings(n_resamples=50), {"config": "movies", "split": "validation"}
        written = make_report(hub / "eraser", **part, out=folder / "report", settings=settings, systems=systems)
        return text_of(written.page), written

    return make


def test_two_systems_by_two_ways(page_of, ways):
    text, written = page_of(ways, ways / "ours.jsonl", ways / "theirs.jsonl")
    assert [path.name for path in written.score_files] == ["ours.scores.json", "theirs.scores.json"]
    scores = json.loads(written.score_files[0].read_text())
    assert "runs" not in scores, "ways are no runs to be averaged"
    assert "Ways of erasing" in text and "The same rationales, erased by remove, mask" in text
    assert "comprehensiveness flips with the way of erasing, so it favours neither system" in text
    other, _ = page_of(ways / "plain", ways / "ours.remove.jsonl", ways / "theirs.remove.jsonl")
    assert "Ways of erasing" not in other


def test_one_system_and_one_that_lacks_a_way(page_of, ways):
    text, _ = page_of(ways, ways / "ours.jsonl")
    assert "Scores by way of erasing" in text and "Kendall" not in text
    with refused("score-missing", "none by mask", field="theirs.remove"):
        page_of(ways, ways / "ours.jsonl", ways / "theirs.remove.jsonl")
