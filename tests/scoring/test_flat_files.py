"""``score`` on two flat files: the numbers of instances and a corpus, and errors with file and line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eraser_hub
from eraser_hub.metrics.plain import instances_from
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit

from ..refusals import refused

GOLD: list[dict[str, Any]] = [
    {"id": "a", "tokens": ["a", "fine", "film", "."], "rationale": [0, 1, 0, 0], "label": "good"},
    {"id": "b", "tokens": ["dull", "from", "the", "start"], "rationale": [1, 0, 0, 0], "label": "bad"},
]
PREDICTED: list[dict[str, Any]] = [
    {"id": "b", "rationale": [1, 0, 0, 0], "scores": [0.9, 0.1, 0.2, 0.3], "label": "good"},
    {"id": "a", "rationale": [0, 1, 1, 0], "scores": [0.1, 0.9, 0.5, 0.0], "label": "good"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_the_numbers_are_those_of_instances(suffix: str, tmp_path: Path) -> None:
    gold, predicted = write(tmp_path / f"gold.{suffix}", GOLD), write(tmp_path / f"p.{suffix}", PREDICTED)
    scores = eraser_hub.score(predicted, dataset=gold)
    assert scores.scores["token_micro_f1"] == 0.8 and scores.scores["average_precision"] == 1.0
    assert scores.scores["accuracy"] == 0.5
    rows = {row["id"]: row for row in PREDICTED}
    ordered = [rows[row["id"]] for row in GOLD]
    instances = instances_from([{**one, "tokens": row["tokens"]} for one, row in zip(ordered, GOLD, strict=True)])
    again = eraser_hub.score(write(tmp_path / "instances.jsonl", instances), dataset=gold)
    assert again.scores == scores.scores and again.signature == scores.signature
    assert not any("run.json" in note for note in scores.notes)


@pytest.mark.parametrize(
    ("side", "line", "change", "field"),
    [
        ("p", 2, {"rationale": [0, 1]}, "rationale"),
        ("p", 1, {"rationale": [[0, 9]]}, "rationale[0]"),
        ("p", 1, {"id": "c"}, "annotation_id"),
        ("p", 2, {"tokens": ["a", "fine", "film", "!"]}, "text"),  # as many tokens, and another text
        ("gold", 2, {"rationale": [0, 3, 0, 0]}, "rationale"),
        ("gold", 1, {"tokens": [1]}, "text"),
    ],
)
def test_faults_name_the_files_of_the_user(
    side: str, line: int, change: dict[str, Any], field: str | None, tmp_path: Path
) -> None:
    rows = {"gold": [dict(row) for row in GOLD], "p": [dict(row) for row in PREDICTED]}
    rows[side][line - 1] |= change
    files = {name: write(tmp_path / f"{name}.jsonl", some) for name, some in rows.items()}
    with refused(file=files[side], line=line, field=field):
        score(ScoredSplit(files["gold"]), files["p"])


def test_plain_rows_answer_a_dataset(samples: Path, tmp_path: Path) -> None:
    where: Any = {"dataset": samples / "eraser" / "movies", "split": "val"}
    file, rows = samples / "predictions" / "eraser" / "movies.val.jsonl", []
    for row in map(json.loads, file.read_text("utf-8").splitlines()):
        (rationale,) = row["rationales"]
        spans = [[span["start_token"], span["end_token"]] for span in rationale["hard_rationale_predictions"]]
        rows.append({"id": row["annotation_id"], "rationale": spans, "label": row["classification"]})
    found, expected = (eraser_hub.score(one, **where) for one in (write(tmp_path / "p.jsonl", rows), file))
    for key in ("token_macro_f1", "iou_macro_f1", "macro_f1"):
        assert found[key] == expected[key]
    with refused("24 of the file's ids are those of val", file="p.jsonl", field="annotation_id"):
        eraser_hub.score(tmp_path / "p.jsonl", **where | {"split": "test"})
    with refused("the gold", file="val.jsonl", line=1):
        eraser_hub.score(where["dataset"] / "val.jsonl", **where)
    rows[2]["rationale"] = [[0, 10**6]]
    with refused(file="p.jsonl", line=3, instance=rows[2]["id"], field="rationale[0]"):
        eraser_hub.score(write(tmp_path / "p.jsonl", rows), **where)


def test_rows_without_ids_and_labels_and_numbers_as_labels(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", [{"text": "a fine film", "rationale": ["fine"]}])
    scores = eraser_hub.score(write(tmp_path / "p.jsonl", [{"quotes": ["Fine film"], "label": "good"}]), gold)
    assert (scores.scores["token_micro_p"], scores.scores["token_micro_r"]) == (0.5, 1.0)
    assert "accuracy" not in scores.scores and any(note.startswith("labels: none") for note in scores.notes)
    rows = [{"id": f"t{label}", "tokens": ["a", "b"], "rationale": [0, 1], "label": label} for label in range(11)]
    answers = [{"id": row["id"], "rationale": [0, 1], "label": str(row["label"])} for row in rows]
    assert eraser_hub.score(write(tmp_path / "p.jsonl", answers), write(gold, rows))["accuracy"] == 1


def test_runs_a_function_of_a_row_and_what_a_file_has_not(tmp_path: Path) -> None:
    gold, predicted, other = (write(tmp_path / f"{name}.jsonl", PREDICTED) for name in "gpq")
    write(gold, GOLD)
    scores = eraser_hub.score(f"ours={predicted},{other}", gold)
    assert len(scores.runs) == 2 and scores.name == "ours"
    assert eraser_hub.compare(predicted, other, dataset=gold)["comparisons"][0]["keys"]["accuracy"]["difference"] == 0
    with refused(file="none.jsonl"):
        eraser_hub.score(f"ours={predicted},{tmp_path / 'none.jsonl'}", gold)
    assert eraser_hub.score(predicted, gold, metric=lambda row, _: len(row["tokens"]) if "tokens" in row else 0)
    for name, value in (("config", "movies"), ("split", "val"), ("paper", "wang2022")):
        with refused(value, argument=name):
            eraser_hub.score(predicted, gold, **{name: value})
    with refused("found 'genre'", file=gold, line=1):
        eraser_hub.score(predicted, gold, by="genre")
    with refused():
        eraser_hub.score(predicted, write(tmp_path / "none.jsonl", []))
    with refused("found ['name', 'stars']", "`eraser-hub import` makes a corpus", file="products.csv", line=1):
        eraser_hub.score(predicted, write(tmp_path / "products.csv", [{"name": "a", "stars": 5}]))
