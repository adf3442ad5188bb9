"""Each recipe imports its sample to what it expects, and names its licence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from eraser_hub.conversion.importing.recipes import FOLDER, list_recipes, read_recipe

from ...command_line import Result, invoke
from ...refusals import refused
from .corpora import rows_of

NAMES = ["beeradvocate-aspects", "cos-e", "docred", "e-snli-highlights", "ecqa", "hatexplain", "hotpotqa", "scifact"]


def typed(*words: str) -> Result:
    return invoke(["import", *words])


def write_sample(name: str, folder: Path) -> Path:
    folder.mkdir()
    files = read_recipe(name).sample
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder / next(iter(files))


def test_the_recipes_of_the_issue_are_there() -> None:
    assert list_recipes() == [*NAMES, "toxic-spans"]


@pytest.mark.parametrize("name", list_recipes())
def test_a_sample_gives_what_the_recipe_expects(name: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    source = write_sample(name, tmp_path / "in")
    done = typed("--recipe", name, "--source", str(source), "--name", "mine", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    rows = rows_of(tmp_path / "out" / "mine")
    facts = yaml.safe_load((tmp_path / "out/mine/corpus.yaml").read_text())
    assert len(rows) == recipe.expect["rows"] and facts["labels"] == recipe.expect["labels"]
    assert [row["rationale"] for row in rows] == recipe.expect["rationales"]
    assert facts["license"] == recipe.facts["license"] and facts["citation"].startswith("@inproceedings{")
    assert "not the released file" in recipe.tried and "tried on: " in done.stderr


def test_queries_ids_and_dropped_rows(tmp_path: Path) -> None:
    done = typed("--recipe", "cos-e", "--source", str(write_sample("cos-e", tmp_path / "a")), *_out(tmp_path))
    assert "rows left out by the recipe's step join: 1" in done.stderr
    (row,) = rows_of(tmp_path / "out/mine")
    assert (row["annotation_id"], row["query"]) == ("q1", "tree [sep] shed")
    done = typed(
        "--recipe", "docred", "--source", str(write_sample("docred", tmp_path / "b")), *_out(tmp_path), "--force"
    )
    assert [row["query"] for row in rows_of(tmp_path / "out/mine")] == [
        "Strelsau [sep] Ruritania",
        "Strelsau [sep] Rudolf",
    ]


def _out(folder: Path) -> tuple[str, ...]:
    return ("--name", "mine", "--out", str(folder / "out"))


def test_a_recipe_is_a_file(tmp_path: Path) -> None:
    text = (FOLDER / "toxic-spans.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(text)
    source = write_sample("toxic-spans", tmp_path / "in")
    done = typed("--recipe", str(tmp_path / "mine.yaml"), "--source", str(source), *_out(tmp_path))
    assert done.exit_code == 0 and "train 2; labels marked, unmarked" in done.stdout, done.output


def test_a_row_is_dropped_by_one_step_alone(tmp_path: Path) -> None:
    text = (FOLDER / "cos-e.yaml").read_text(encoding="utf-8")
    choose = "- choose: {column: id, to: again, cases: {}, else: x}\n"
    last = text.index("\nsample:")
    (tmp_path / "mine.yaml").write_text(f"{text[:last]}\n{choose}{text[last:]}", encoding="utf-8")
    source = write_sample("cos-e", tmp_path / "a")
    done = typed("--recipe", str(tmp_path / "mine.yaml"), "--source", str(source), *_out(tmp_path))
    assert done.exit_code == 0, done.output
    assert "step join: 1" in done.stderr and "step choose" not in done.stderr


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    with refused("scifact", argument="recipe"):
        read_recipe("nothing")
    (tmp_path / "bad.yaml").write_text("title: x\n")
    with refused(file=tmp_path / "bad.yaml"):
        read_recipe(str(tmp_path / "bad.yaml"))
    text = (FOLDER / "toxic-spans.yaml").read_text(encoding="utf-8")
    (tmp_path / "step.yaml").write_text(text.replace("- characters:", "- letters:"))
    with refused("'letters'", field="steps"):
        read_recipe(str(tmp_path / "step.yaml"))
    (tmp_path / "claims.jsonl").write_text(
        json.dumps({"id": 1, "claim": "x", "evidence": {}, "cited_doc_ids": [1]}) + "\n"
    )
    words = ("--recipe", "scifact", "--source", str(tmp_path / "claims.jsonl"), *_out(tmp_path))
    done = typed(*words)
    assert done.exit_code == 1 and "corpus.jsonl" in done.stderr
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": 1}\n{\n')
    done = typed(*words)
    assert done.exit_code == 1 and "corpus.jsonl:2: " in done.stderr
    (tmp_path / "posts.json").write_text('[{"x": 3}]')
    done = typed("--recipe", "docred", "--source", str(tmp_path / "posts.json"), *_out(tmp_path))
    assert done.exit_code == 1
    assert typed(*words, "--label", "x").exit_code == 2
