"""Imports of several labels a row, and of numbers: how the task is found, and what the rows become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from eraser_hub.conversion.importing.corpus import NOTES, Columns, Imported, import_corpus
from eraser_hub.conversion.importing.sources import wrap_dataset

from ...refusals import refused
from .corpora import Row, group_masks, rows_of, source

COLUMNS = Columns(("tokens",), ("why",), "labels")
TOKENS = ["so", "glad", "and", "scared"]
BOTH: Row = {"tokens": TOKENS, "labels": ["joy", "fear"], "why": [[0, 1, 0, 0], [0, 0, 0, 1]]}
NONE: Row = {"tokens": ["a", "b"], "labels": [], "why": []}
ONE: Row = {"tokens": ["how", "glad"], "labels": ["joy"], "why": [0, 1]}


def run(rows: list[Row], out: Path, columns: Columns = COLUMNS, **options: Any) -> Imported:
    return import_corpus({"train": source(rows)}, "mine", columns, out, **options)


def read_yaml(result: Imported) -> Any:
    return yaml.safe_load((result.folder / "corpus.yaml").read_text(encoding="utf-8"))


def labelled(result: Imported) -> list[tuple[Any, ...]]:
    """(id, query, class, masks, docids) of each annotation."""
    names = read_yaml(result)["labels"]
    return [
        (
            row["annotation_id"],
            row["query"],
            names[row["classification"]],
            group_masks(row),
            [document["docid"] for document in row["documents"]],
        )
        for row in rows_of(result.folder)
    ]


def test_lists_of_different_lengths_are_labels_and_each_has_its_rationale(tmp_path: Path) -> None:
    result = run([BOTH, NONE, ONE], tmp_path)
    assert result.task == "multi-label" and result.labels == ["fear", "joy"] and result.rows == {"train": 6}
    assert labelled(result) == [
        ("train_1:fear", "fear", "present", [[0, 0, 0, 1]], ["train_1"]),
        ("train_1:joy", "joy", "present", [[0, 1, 0, 0]], ["train_1"]),
        ("train_2:fear", "fear", "absent", [], ["train_2"]),
        ("train_2:joy", "joy", "absent", [], ["train_2"]),
        ("train_3:fear", "fear", "absent", [], ["train_3"]),
        ("train_3:joy", "joy", "present", [[0, 1]], ["train_3"]),
    ]
    content = read_yaml(result)
    assert (content["labels"], content["task"]) == (["absent", "present"], "multi-label")
    assert result.notes[0].startswith("task: multi-label (") and "`task`" in result.notes[0]
    assert f"{NOTES['absent']}: 3" in " ".join(result.notes)


def test_absent_labels_are_left_out_on_request_and_counted(tmp_path: Path) -> None:
    result = run([BOTH, NONE, ONE], tmp_path, absent_labels="drop")
    assert [row[0] for row in labelled(result)] == ["train_1:fear", "train_1:joy", "train_3:joy"]
    notes = " ".join(result.notes)
    assert f"{NOTES['dropped']}: 3" in notes and f"{NOTES['unlabelled']}: 1" in notes


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"labels": {"joy": 1, "fear": 0}, "why": {"joy": [0, 1]}}, COLUMNS),
        ({"labels": {"joy": True, "fear": None}, "why": [0, 1]}, COLUMNS),
        ({"labels": '{"joy": 1, "fear": 0}', "why": "[0, 1]"}, COLUMNS),
        ({"fear": 0, "joy": 1, "why": [0, 1]}, Columns(("tokens",), ("why",), "fear,joy")),
        ({"fear": "0", "joy": "1", "a": None, "b": "[0, 1]"}, Columns(("tokens",), ("a,b",), "fear, joy")),
    ],
)
def test_labels_as_objects_and_as_columns_of_0_and_1(row: Row, columns: Columns, tmp_path: Path) -> None:
    result = run([{"tokens": ["how", "glad"], **row}], tmp_path, columns)
    assert [one[1:4] for one in labelled(result)] == [
        ("fear", "absent", []),
        ("joy", "present", [[0, 1]]),
    ]


def test_a_list_of_classlabels_has_their_order(tmp_path: Path) -> None:
    names = ["joy", "fear", "awe"]
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "labels": datasets.List(datasets.ClassLabel(names=names)),
            "why": datasets.List(datasets.List(datasets.Value("int8"))),
        }
    )
    rows = [{**BOTH, "labels": [0, 1]}, {**ONE, "labels": [0], "why": [[0, 1]]}]
    own = wrap_dataset(datasets.Dataset.from_list(rows, features=features), "memory")
    result = import_corpus({"train": own}, "mine", COLUMNS, tmp_path)
    assert result.labels == names
    assert [row[1:3] for row in labelled(result)][:3] == [("joy", "present"), ("fear", "present"), ("awe", "absent")]


@pytest.mark.parametrize("labels", [[["a", "b"], ["a", "c"]], [["a", "a"], ["a", "b", "c"]], ["a", ["a", "b"]]])
def test_lists_that_may_be_annotators_stay_annotators(labels: list[Any], tmp_path: Path) -> None:
    rows = [{**ONE, "labels": one, "why": [0, 1]} for one in [*labels, ["a"] * 2]]
    result = run(rows, tmp_path)
    assert result.task == "classification" and "task" not in read_yaml(result)


def test_one_rationale_of_several_labels_counts_for_each_and_is_said(tmp_path: Path) -> None:
    result = run([{**BOTH, "why": [0, 1, 1, 0]}, NONE], tmp_path)
    assert [row[3] for row in labelled(result)] == [[[0, 1, 1, 0]], [[0, 1, 1, 0]], [], []]
    assert any(note.startswith(f"{NOTES['shared marks']}: 1") for note in result.notes)


@pytest.mark.parametrize(
    ("row", "rule", "field", "mentioned"),
    [
        ({"labels": ["joy", "joy"]}, "label-unknown", "labels", "multi-label"),
        ({"labels": ["joy", ""]}, "label-missing", "labels[1]", "''"),
        ({"labels": {"joy": 3}}, "choice", "labels.joy", "3"),
        ({"labels": ["joy", "fear", "awe"], "why": [[0, 1, 0, 0]] * 2}, "length", "why", "3 labels"),
    ],
)
def test_labels_and_rationales_that_do_not_fit(row: Row, rule: str, field: str, mentioned: str, tmp_path: Path) -> None:
    with refused(rule, mentioned, file="rows", line=2, field=field):
        run([NONE, {**BOTH, **row}], tmp_path, task="multi-label")


def test_settings_that_do_not_go_with_a_task(tmp_path: Path) -> None:
    with refused("option-conflict", "multi-label", argument="query"):
        run([BOTH, NONE], tmp_path, Columns(("tokens",), ("why",), "labels", query="tokens"))
    with refused("option-value", "'ranking'", argument="task"):
        run([BOTH], tmp_path, task="ranking")
    with refused("option-conflict", "regression", argument="label"):
        run([BOTH], tmp_path, Columns(("tokens",), ("why",), "a,b"), task="regression")


@pytest.mark.parametrize(
    ("cells", "names"),
    [([2.5, 1, 10.0], ["1.0", "2.5", "10.0"]), (["2.5", "-1", "1e1"], ["-1.0", "2.5", "10.0"])],
)
def test_numbers_with_decimals_are_a_regression(cells: list[Any], names: list[str], tmp_path: Path) -> None:
    result = run([{**ONE, "labels": cell} for cell in cells], tmp_path)
    assert result.task == "regression" and result.labels == names
    assert read_yaml(result)["labels"] == names and read_yaml(result)["task"] == "regression"
    assert [row[2] for row in labelled(result)] == [repr(float(cell)) for cell in cells]


def test_whole_numbers_are_a_regression_on_request_alone(tmp_path: Path) -> None:
    rows = [{**ONE, "labels": cell} for cell in (1, 3)]
    assert run(rows, tmp_path).labels == ["1", "3"]
    assert run(rows, tmp_path / "b", task="regression").labels == ["1.0", "3.0"]
    result = run([{**ONE, "labels": cell} for cell in (1, 10**400)], tmp_path / "d")
    assert result.task == "classification" and result.labels == ["1", str(10**400)]
    result = run([{**ONE, "labels": cell} for cell in ("1.5", "2.0")], tmp_path / "c", task="classification")
    assert result.labels == ["1.5", "2.0"] and result.task == "classification"


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        *(
            (None, "label-missing"),
            ("", "label-missing"),
            ("low", "type"),
            (float("nan"), "type"),
            ([1.0, 2.0], "type"),
        ),
        *(("1e999", "type"), (10**400, "type"), (True, "type")),
    ],
)
def test_a_number_that_is_none(cell: object, rule: str, tmp_path: Path) -> None:
    with refused(rule, "regression", file="rows", line=2, field="labels"):
        run([{**ONE, "labels": 0.5}, {**ONE, "labels": cell}], tmp_path, task="regression")


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("name: a\nlabels: [x, y]\ntask: multi-label\n", 2, "labels"),
        ("name: a\nlabels: ['1.0', high]\ntask: regression\n", 2, "labels"),
        ("name: a\nlabels: [x, y]\ntask: ranking\n", 3, "task"),
    ],
)
def test_a_corpus_yaml_whose_labels_are_not_of_its_task(text: str, line: int, field: str) -> None:
    from eraser_hub.conversion.eraser.corpus_yaml import parse_corpus_yaml

    with refused("choice", file="corpus.yaml", line=line, field=field):
        parse_corpus_yaml(text, Path("corpus.yaml"))
