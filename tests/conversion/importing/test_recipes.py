"""Each recipe imports its sample to what it expects, and names its licence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eraser_hub import import_corpus
from eraser_hub.conversion.importing.recipes import FOLDER, list_recipes, read_recipe

from ...refusals import refused
from .corpora import people_of, rows_of

NAMES = ["beeradvocate-aspects", "cos-e", "docred", "e-snli-highlights", "ecqa", "hatexplain", "hotpotqa", "scifact"]


def write_sample(name: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    files = read_recipe(name).sample
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder / next(iter(files))


@pytest.mark.parametrize("name", [*NAMES, "toxic-spans"])
def test_a_sample_gives_what_the_recipe_expects(name: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    done = import_corpus(write_sample(name, tmp_path), "mine", out=tmp_path / "out", recipe=name)
    rows = rows_of(done.folder)
    facts = yaml.safe_load((done.folder / "corpus.yaml").read_text())
    assert list_recipes() == [*NAMES, "toxic-spans"]
    assert len(rows) == recipe.expect["rows"] and facts["labels"] == recipe.expect["labels"]
    assert [row["rationale"] for row in rows] == recipe.expect["rationales"]
    assert facts["license"] == recipe.license and facts["citation"].startswith("@inproceedings{")


def test_queries_and_rows_without_a_partner(tmp_path: Path) -> None:
    done = import_corpus(write_sample("cos-e", tmp_path), "mine", out=tmp_path / "out", recipe="cos-e")
    (row,) = rows_of(done.folder)
    assert (row["annotation_id"], row["query"]) == ("q1", "tree [sep] shed") and done.counts["recipe"] == 1
    done = import_corpus(write_sample("docred", tmp_path), "two", out=tmp_path / "out", recipe="docred")
    assert [row["query"] for row in rows_of(done.folder)] == ["Strelsau [sep] Ruritania", "Strelsau [sep] Rudolf"]


def write_highlights(folder: Path, *copies: str) -> Path:
    names = "".join(f",Sentence1_marked_{at},Sentence2_marked_{at}" for at in range(1, len(copies) // 2 + 1))
    cells = "".join(f',"{copy}"' for copy in copies)
    (folder / "esnli.csv").write_text(
        f"pairID,gold_label,Sentence1,Sentence2{names}\nx,neutral,a fine film,dull,{cells[1:]}\n"
    )
    return folder / "esnli.csv"


def test_the_highlights_of_three_people(tmp_path: Path) -> None:
    path = write_highlights(tmp_path, "a *fine* *film*", "dull", "*a* fine film", "*dull*", "", "")
    done = import_corpus(path, "mine", out=tmp_path, recipe="e-snli-highlights")
    marks = [[[1, 2], []], [[0], [0]], [[], []]]
    assert people_of(done.folder) == [("x", str(at), None, own) for at, own in enumerate(marks, 1)]
    assert rows_of(done.folder)[0]["evidences"][0][0]["text"] == "fine film"


@pytest.mark.parametrize(
    ("copy", "mentioned"), [("a *fine film", "asterisk"), ("a *good* film", "'fine film'"), ("a *fine*", "' film'")]
)
def test_a_copy_that_is_not_the_text(copy: str, mentioned: str, tmp_path: Path) -> None:
    with refused(mentioned, file="esnli.csv", line=2, field="Sentence1_marked_1"):
        import_corpus(write_highlights(tmp_path, copy, "dull"), "mine", out=tmp_path, recipe="e-snli-highlights")


@pytest.mark.parametrize(
    ("text", "field", "mentioned"),
    [("title: x\n", None, "title"), ("- x", None, ""), ("letters", "steps", "'letters'"), ("{", None, "YAML")],
)
def test_a_recipe_is_a_file(text: str, field: str | None, mentioned: str, tmp_path: Path) -> None:
    toxic = (FOLDER / "toxic-spans.yaml").read_text(encoding="utf-8")
    mine, source = tmp_path / "mine.yaml", write_sample("toxic-spans", tmp_path)
    mine.write_text(toxic)
    assert import_corpus(source, "mine", out=tmp_path, recipe=str(mine)).labels == ["marked", "unmarked"]
    mine.write_text(toxic.replace("- characters:", f"- {text}:") if field else text)
    with refused(mentioned, file=mine, field=field):
        import_corpus(source, "again", out=tmp_path, recipe=str(mine))


@pytest.mark.parametrize(
    ("recipe", "name", "value", "mentioned"),
    [
        ("scifact", "claims.jsonl", {"id": 1, "evidence": {}, "cited_doc_ids": [1]}, "corpus.jsonl"),
        ("docred", "posts.json", [{"labels": 3}], "layout"),
        ("hotpotqa", "posts.json", [{"x": 3}], "'context'"),
    ],
)
def test_files_of_another_layout(recipe: str, name: str, value: Any, mentioned: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(value) + "\n")
    with refused(mentioned, file=name, line=1):
        import_corpus(tmp_path / name, "mine", out=tmp_path, recipe=recipe)
