"""The report's section on ways of erasing: each way's scores, and verdicts that flip, flagged in a sentence."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from eraser_hub.records.errors import DataError
from eraser_hub.reports.report import make_report
from eraser_hub.reports.report_inputs import named_systems
from eraser_hub.reports.system_scores import ReportSettings

PREDICTIONS = Path(__file__).resolve().parents[2] / "samples" / "predictions" / "eraser"
SIDES = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")


@pytest.fixture
def ways(tmp_path):
    """Two systems by two ways; by the second comprehensiveness and sufficiency change places."""
    for name, source in (("ours", "movies.val.jsonl"), ("theirs", "movies.val.baseline.jsonl")):
        rows = [json.loads(line) for line in (PREDICTIONS / source).read_text("utf-8").splitlines()]
        for way in ("remove", "mask"):
            path = tmp_path / f"{name}.{way}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
            path.with_name(path.name + ".run.json").write_text(json.dumps({"signature": f"kd:.1|erase:{way}|seed:1"}))
            for part in [part for row in rows for part in (row, *row.get("thresholded_scores", []))]:
                part[SIDES[0]], part[SIDES[1]] = part[SIDES[1]], part[SIDES[0]]
    return tmp_path


def page_of(hub, folder, *arguments):
    settings = ReportSettings(n_resamples=50)
    written = make_report(
        hub / "eraser", config="movies", split="validation", out=folder / "report", settings=settings,
        systems=named_systems([str(argument) for argument in arguments], ways=True),
    )  # fmt: skip
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", written.page.read_text("utf-8")))), written


def test_two_systems_by_two_ways(hub, ways):
    text, written = page_of(hub, ways, ways / "ours.jsonl", ways / "theirs.jsonl")
    assert [path.name for path in written.score_files] == ["ours.scores.json", "theirs.scores.json"]
    scores = json.loads(written.score_files[0].read_text())
    assert "runs" not in scores, "ways are no runs to be averaged"
    assert "Ways of erasing" in text and "The same rationales, erased by remove, mask" in text
    assert "comprehensiveness flips with the way of erasing, so it favours neither system" in text or (
        "hold by some ways of erasing" in text
    )
    other, _ = page_of(hub, ways / "plain", ways / "ours.remove.jsonl", ways / "theirs.remove.jsonl")
    assert "Ways of erasing" not in other


def test_one_system_and_one_that_lacks_a_way(hub, ways):
    text, _ = page_of(hub, ways, ways / "ours.jsonl")
    assert "Scores by way of erasing" in text and "Kendall" not in text
    with pytest.raises(DataError, match="found none by mask"):
        page_of(hub, ways, ways / "ours.jsonl", ways / "theirs.remove.jsonl")
