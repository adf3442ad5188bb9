"""A corpus of task labels alone through the verbs: faithfulness is scored, agreement is left out, and that is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eraser_hub.conversion.built import read_card

from ..command_line import Result, invoke

pytest.importorskip("sklearn")

WORDS = {"good": ("fine", "warm"), "bad": ("dull", "poor")}
FILLER = ["the", "film", "has", "a", "long", "scene", "by", "the", "sea", "and", "a", "song"]


def run(*words: object) -> Result:
    return invoke(words)


def text(number: int, label: str) -> str:
    words = [FILLER[(number + at) % len(FILLER)] for at in range(8)]
    words[number % 8] = WORDS[label][number // 8 % 2]
    return " ".join(words)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    rows = [{"text": text(number, label), "label": label} for number in range(40) for label in WORDS]
    for split, part in (("train", rows[20:]), ("test", rows[:20])):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
    test = f"test={folder / 'test.jsonl'}"
    words = ("--source", folder / "train.jsonl", "--split", test, "--text", "text", "--out", folder / "corpora")
    done = run("import", *words, "--name", "plain")
    assert done.exit_code == 0, done.output
    assert run("build", "own", "--source", folder / "corpora", "--out", folder / "hub").exit_code == 0
    done = run("train", "--dataset", folder / "hub" / "plain", "--config", "plain", "--model", "logistic-regression",
               "--eval-split", "test", "--out", folder / "model")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "no-rationale: accuracy" in done.stdout and "eval-rationale" not in done.stdout
    assert "eval-rationale: left out, for 0 of 20 instances of test are marked" in " ".join(done.stderr.split())
    return folder


def test_explained_and_scored_by_faithfulness_alone(place: Path, tmp_path: Path) -> None:
    data = ("--dataset", place / "hub" / "plain", "--config", "plain", "--split", "test")
    out = tmp_path / "predictions.jsonl"
    done = run("explain", *data, "--model", place / "model", "--out", out)
    assert done.exit_code == 2 and "none of its 60 training rows has a rationale" in " ".join(done.output.split())
    assert run("explain", *data, "--model", place / "model", "--out", out, "--kd", ".15").exit_code == 0
    done = run("score", *data, "--predictions", out)
    assert done.exit_code == 0 and "comprehensiveness_aopc" in done.stdout
    assert "token_" not in done.stdout and "auprc" not in done.stdout
    assert "20 of 20 annotations without gold rationale" in done.stderr
    raw = run("score", "--dataset", place / "corpora" / "plain", "--split", "test", "--predictions", out)
    assert raw.exit_code == 0 and raw.stdout.splitlines()[1:] == done.stdout.splitlines()[1:]
    done = run("report", *data, "--predictions", out, "--out", tmp_path / "report")
    assert done.exit_code == 0, done.output
    scores = json.loads((tmp_path / "report" / "predictions.scores.json").read_text(encoding="utf-8"))
    assert "comprehensiveness_aopc" in scores and "token_macro_f1" not in scores


def test_the_built_folder_says_that_nothing_is_marked(place: Path) -> None:
    done = run("check", "--dataset", place / "hub" / "plain", "--format", "json")
    assert done.exit_code == 0 and "the annotation marks nothing" in done.stdout
    tables = json.loads(run("stats", "--dataset", place / "hub" / "plain", "--format", "json").stdout)["tables"]
    gold = {row["split"]: row for row in tables["gold"]["rows"]}
    assert gold["test"]["marked_rows"]["value"] == 0 and gold["test"]["unmarked_rows"]["value"] == 20
    assert gold["train"]["density_percent"]["value"] is None
    _, prose = read_card(place / "hub" / "plain" / "README.md")
    assert "| plain | test | 0 | 20 | – | comprehensive or not: unknown |" in prose
