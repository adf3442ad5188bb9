"""The bundled samples: each corpus holds the quirks that its real release has, and predictions stand beside it.

What they give is recorded in tests/golden; that they have no violation, and each quirk that `check` knows, is held by
tests/conversion.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.conversion.eraser.configs import CONFIGS

pytestmark = pytest.mark.unit


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def spans(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [evidence for group in record["evidences"] for evidence in group]


@pytest.mark.parametrize(
    ("file", "quirk"),
    [
        ("movies/train.jsonl", lambda record: "docids" not in record),
        ("movies/test.jsonl", lambda record: record["docids"] is None),
        ("movies/test.jsonl", lambda record: len(record["evidences"]) == 1 < len(record["evidences"][0])),
        ("movies/test.jsonl", lambda record: {span["end_sentence"] for span in spans(record)} == {-1}),
        ("fever/val.jsonl", lambda record: len(record["docids"]) > 1),
        ("fever/dev.jsonl", lambda record: "__" in record["annotation_id"]),
        ("boolq/train.jsonl", lambda record: type(record["annotation_id"]) is int),
        ("boolq/test_comprehensive.jsonl", lambda record: record["docids"] is None),
        ("boolq/test_data.jsonl", lambda record: type(record["docids"]) is str),
        ("evidence_inference/test_exhaustive.jsonl", lambda record: isinstance(record, str)),
        ("cose/train.jsonl", lambda record: isinstance(record["query_type"], str)),
        ("esnli/train.jsonl", lambda record: len({span["docid"] for span in spans(record)}) == 2),
        ("movies/human_performance_1.jsonl", lambda record: "rationales" in record),
    ],
)
def test_a_file_has_the_quirk_of_its_release(samples: Path, file: str, quirk: Callable[[Any], bool]):
    assert any(map(quirk, lines(samples / "eraser" / file)))


def test_odd_signs_names_and_ends_of_files(samples):
    eraser = samples / "eraser"
    assert {folder.name for folder in eraser.iterdir() if folder.is_dir()} == set(CONFIGS)
    assert sum(path.stat().st_size for path in eraser.rglob("*") if path.is_file()) < 300_000
    reviews = [path.read_bytes() for path in (eraser / "movies" / "docs").iterdir()]
    assert any(b"\x12" in review for review in reviews) and any("\u200b".encode() in review for review in reviews)
    assert Counter(reviews).most_common(1)[0][1] == 2, "one review stands under two names"
    names = {path.name for path in (eraser / "fever" / "docs").iterdir()}
    assert any(not name.isascii() for name in names) and any(name.endswith(".") for name in names)
    ends = [(eraser / "boolq" / name).read_bytes().endswith(b"\n") for name in ("train.jsonl", "val.jsonl")]
    assert ends == [True, False]
    backup, test = (lines(eraser / "movies" / name) for name in ("test.jsonl.bak", "test.jsonl"))
    assert len({record["annotation_id"] for record in backup} - {record["annotation_id"] for record in test}) == 1


def test_predictions_of_pairs_rank_the_share_that_they_say(samples):
    rows = lines(samples / "bilingual_perturbation" / "senti_ch")
    predictions = lines(samples / "predictions" / "bilingual_perturbation" / "senti_ch.jsonl")
    assert [row["id"] for row in predictions] == [row["id"] for row in rows]
    for row, prediction in zip(rows, predictions, strict=True):
        (ranked,), (kd,), (places,) = prediction["ranked_tokens"], prediction["kd"], prediction["rationale"]
        assert sorted(ranked) == sorted(row["sent_token"])
        assert prediction["rationale_tokens"] == [ranked[: math.ceil(kd * len(ranked))]]
        assert [row["sent_token"][at] for at in places] == prediction["rationale_tokens"][0]
