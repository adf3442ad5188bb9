"""Corpora of a few rows, and results that are compared number by number."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from eraser_hub.metrics.errors import DataError
from eraser_hub.scoring.result import Scores
from eraser_hub.scoring.scored_split import ScoredSplit

Rows = list[dict[str, Any]]


def nested(scores: Scores) -> dict[str, Any]:
    """The reference scorer's keys where there are any, and the score file's."""
    try:
        reference = scores.to_eraser()
    except DataError:
        reference = {}
    return {**reference, **scores.as_json()}


def compare(found: Any, expected: Any, path: str = "") -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            compare(found[key], value, f"{path}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for k, value in enumerate(expected):
            compare(found[k], value, f"{path}/{k}")
    elif isinstance(expected, str):
        assert found == expected, path
    elif expected is None:
        assert found is None or math.isnan(found), path
    else:
        assert found == pytest.approx(expected, abs=1e-9, nan_ok=True), path


def lines(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def annotation(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a release has it: with a query, and with every field of its evidences."""
    kept = {key: row[key] for key in ("annotation_id", "classification", "source") if key in row}
    unsaid = {"text": "", "start_sentence": -1, "end_sentence": -1}
    return kept | {"query": "", "evidences": [[unsaid | one for one in group] for group in row["evidences"]]}


class Inputs(NamedTuple):
    """What is scored: predictions, and what they answer."""

    source: ScoredSplit
    results: Path


def written(folder: Path, predictions: Rows, references: Rows, docs: str = "docs.jsonl") -> Inputs:
    """A corpus as released, and predictions."""
    documents = {one["docid"]: one["text"] for row in references for one in row["documents"]}
    if docs == "docs.jsonl":
        lines(folder / docs, [{"docid": docid, "document": text} for docid, text in documents.items()])
    else:
        (folder / "docs").mkdir()
        for docid, text in documents.items():
            (folder / "docs" / docid).write_text(text, "utf-8")
    lines(folder / "val.jsonl", [annotation(row) for row in references])
    return Inputs(ScoredSplit(folder, "val"), lines(folder / "p.jsonl", predictions))
