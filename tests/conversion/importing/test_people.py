"""Annotators of an import: who marked what, and who gave which label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.conversion.eraser.annotators import read_annotators
from eraser_hub.conversion.eraser.schema import ANNOTATORS, MASKS
from eraser_hub.conversion.importing.corpus import NOTES, Columns, Imported, write_corpus

from ...refusals import refused
from .corpora import Row, group_masks, kept_people, rows_of, source

WIDE = Columns(("tokens",), ("mask",), "label")
LONG = Columns(("tokens",), ("mask",), "label", annotator="who")
BY_ID = Columns(("tokens",), ("mask",), "label", annotator="who", id="id")


def run(rows: list[Row], columns: Columns, out: Path, **options: Any) -> Imported:
    return write_corpus({"train": source(rows)}, "mine", columns, out, **options)


def person(who: str, label: str | None, mask: list[int] | None, tokens: str = "a fine film", **more: Any) -> Row:
    return {"tokens": tokens.split(), "who": who, "label": label, "mask": mask, **more}


def noted(result: Imported, check: str) -> str:
    return next((note.partition(": ")[2] for note in result.notes if note.startswith(NOTES[check])), "")


def test_a_row_with_all_annotators_keeps_who_marked_what(tmp_path: Path) -> None:
    row = {"tokens": ["a", "fine", "film"], "mask": [[0, 1, 0], [0, 1, 1], []], "label": ["good", "good", "bad"]}
    result = run([row], WIDE, tmp_path)
    assert kept_people(result.folder) == [
        ("train_1", "1", "good", [[1]]),
        ("train_1", "2", "good", [[1, 2]]),
        ("train_1", "3", "bad", [[]]),
    ]
    file = pq.read_table(result.folder / "annotators/mine.parquet")
    assert file.schema.equals(ANNOTATORS) and file.column_names[:4] == [
        "annotation_id",
        "annotator",
        "label",
        "rationale_positions",
    ]
    assert file["num_tokens"].to_pylist() == [[3]] * 3 and file["docids"].to_pylist() == [["train_1"]] * 3


def test_a_person_whose_quotes_are_not_found_has_unknown_marks(tmp_path: Path) -> None:
    """Counted as having marked nothing, such a person would lower the agreement."""
    columns = Columns(("text",), ("why",), "label", tokenized=False, kind="quotes", annotator="who", id="id")
    quoted = [
        ("a", "ann", ["fine"]),
        ("a", "bob", ["dull"]),
        ("b", "ann", ["a"]),
        ("b", "bob", []),
        ("c", "ann", ["x"]),
    ]
    rows = [
        {"id": one, "text": "a fine film , a joy", "label": "x", "who": who, "why": why} for one, who, why in quoted
    ]
    result = run(rows, columns, tmp_path)
    assert kept_people(result.folder) == [
        ("a", "ann", "x", [[1]]),
        ("a", "bob", "x", None),
        ("b", "ann", "x", None),
        ("b", "bob", "x", [[]]),
        ("c", "ann", "x", None),
    ]
    assert noted(result, "unlocated") == "3 (rows:2, rows:3, rows:5)"
    assert noted(result, "silent") == "" and noted(result, "no marks") == "2 ('b', 'c')"


def test_names_in_a_list_are_the_annotators(tmp_path: Path) -> None:
    row = {"tokens": ["a", "film"], "mask": [[0, 1], [1, 1]], "label": ["good", "good"], "who": ["ann", 7]}
    assert kept_people(run([row], LONG, tmp_path).folder) == [
        ("train_1", "ann", "good", [[1]]),
        ("train_1", "7", "good", [[0, 1]]),
    ]
    for who in (["ann"], ["ann", "ann"], ["ann", "bob", "cid"]):
        with refused(file="rows", line=1, field="who"):
            run([{**row, "who": who}], LONG, tmp_path / "other")


def test_a_gold_label_is_nobodys(tmp_path: Path) -> None:
    row = {"tokens": ["a", "film"], "mask": [[0, 1], [1, 1]], "label": "good"}
    assert [label for _, _, label, _ in kept_people(run([row], WIDE, tmp_path).folder)] == [None, None]


def test_marks_that_nobody_can_be_named_for_are_kept_apart(tmp_path: Path) -> None:
    row = {"tokens": ["a", "film"], "mask": [[0, 1], [1, 1]], "label": ["good", "good", "bad"]}
    result = run([row, {**row, "mask": None}], WIDE, tmp_path)
    assert kept_people(result.folder) == [
        ("train_1", "1", "good", None),
        ("train_1", "2", "good", None),
        ("train_1", "3", "bad", None),
        ("train_1", "marks 1", None, [[1]]),
        ("train_1", "marks 2", None, [[0, 1]]),
        ("train_2", "1", "good", None),
        ("train_2", "2", "good", None),
        ("train_2", "3", "bad", None),
    ]
    assert noted(result, "unmatched") == "1 (rows:1)"


def test_a_long_table_joins_the_rows_of_a_text(tmp_path: Path) -> None:
    rows = [
        person("ann", "good", [0, 1, 0]),
        person("bob", "bad", [0, 1], "dull film"),
        person("bob", "good", [1, 1, 0]),
        person("cid", "bad", None),
    ]
    result = run(rows, LONG, tmp_path)
    first, second = rows_of(result.folder)
    assert group_masks(first) == [[0, 1, 0], [1, 1, 0]] and first["annotation_id"] == "train_1"
    assert group_masks(second) == [[0, 1]] and second["annotation_id"] == "train_2"
    assert result.rows == {"train": 2} and result.labels == ["bad", "good"]
    assert kept_people(result.folder) == [
        ("train_1", "ann", "good", [[1]]),
        ("train_1", "bob", "good", [[0, 1]]),
        ("train_1", "cid", "bad", [[]]),
        ("train_2", "bob", "bad", [[1]]),
    ]
    assert noted(result, "labels differ").startswith("1 (") and noted(result, "silent").startswith("1 (")
    assert "annotators: 3 of 2 texts; 2 (annotator, text) are missing, most of ann (1 texts)" in result.notes


def test_duplicates_ties_and_missing_labels_are_counted(tmp_path: Path) -> None:
    rows = [
        person("ann", "good", [0, 1, 0], id=1),
        person("ann", "bad", [1, 1, 1], id=1),
        person("bob", None, [0, 0, 1], id=1),
        person("ann", "good", [1, 0, 0], id=2),
        person("bob", "bad", [1, 0, 0], id=2),
        person("bob", "", [1, 0, 0], id=3),
    ]
    result = run(rows, BY_ID, tmp_path)
    assert kept_people(result.folder) == [("1", "ann", "good", [[1]]), ("1", "bob", None, [[2]])]
    assert noted(result, "duplicates") == "1 (rows:2: 'ann')"
    assert noted(result, "ties") == "1 ('2')" and noted(result, "no label") == "1 ('3')"


def test_rows_without_any_label_are_no_corpus(tmp_path: Path) -> None:
    with refused(NOTES["no label"], file="rows"):
        run([person("ann", None, [0, 1, 0])], LONG, tmp_path)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"who": None}, "who"),
        ({"who": " "}, "who"),
        ({"who": 1.5}, "who"),
        ({"label": ["good", "bad"]}, "label"),
        ({"mask": [[0, 1, 0], [1, 1, 0]]}, "mask"),
        ({"tokens": ["another", "fine", "film"]}, "tokens"),
    ],
)
def test_wrong_cells_of_a_long_table(change: Row, field: str, tmp_path: Path) -> None:
    rows = [person("ann", "good", [0, 1, 0], id=1), person("bob", "good", [0, 1, 0], id=1) | change]
    with refused(file="rows", line=2, field=field):
        run(rows, BY_ID, tmp_path)
    with refused(file="rows", line=1, field="whom"):
        run(rows, Columns(("tokens",), ("mask",), "label", annotator="whom"), tmp_path)


def test_a_majority_of_a_long_table_is_one_group(tmp_path: Path) -> None:
    rows = [person(who, "good", mask) for who, mask in zip("abc", ([0, 1, 0], [1, 1, 0], [0, 0, 1]), strict=True)]
    result = run(rows, LONG, tmp_path, annotators="majority")
    assert group_masks(rows_of(result.folder)[0]) == [[0, 1, 0]]
    assert [positions for *_, positions in kept_people(result.folder)] == [[[1]], [[0, 1]], [[2]]]


def test_two_texts_of_a_row_have_a_list_of_positions_each(tmp_path: Path) -> None:
    row = {"one": ["a", "b"], "two": ["c"], "m1": [[0, 1], [1, 0]], "m2": [[1], [0]], "label": "x"}
    result = run([row], Columns(("one", "two"), ("m1", "m2"), "label"), tmp_path)
    assert [positions for *_, positions in kept_people(result.folder)] == [[[1], [0]], [[0], []]]
    (text,) = read_annotators(result.folder / "annotators/mine.parquet", "train").values()
    assert text.lengths == [2, 1] and text.marks.astype(int).tolist() == [[0, 1, 1], [1, 0, 0]]


def test_files_of_version_2_are_read(tmp_path: Path) -> None:
    rows = [{"annotation_id": "a", "split": split, "annotators": [[0, 1], [1, 1]]} for split in ("train", "test")]
    pq.write_table(pa.Table.from_pylist(rows, MASKS), tmp_path / "old.parquet")
    texts = read_annotators(tmp_path / "old.parquet", "test")
    assert list(texts) == ["a"] and texts["a"].marks.tolist() == [[False, True], [True, True]]
    assert texts["a"].names == ["1", "2"] and not texts["a"].labels


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"annotator": None}, "annotator"),
        ({"num_tokens": [1]}, "rationale_positions[0]"),
        ({"rationale_positions": [None]}, "rationale_positions[]"),
        ({"annotator": "ann"}, "annotator"),
    ],
)
def test_a_wrong_file_is_refused(change: Row, field: str, tmp_path: Path) -> None:
    row = {"annotation_id": "a", "annotator": "ann", "label": None, "rationale_positions": [[1]], "split": "train"}
    row |= {"docids": ["d"], "num_tokens": [2]}
    pq.write_table(
        pa.Table.from_pylist([row, {**row, "annotator": "bob"} | change], ANNOTATORS), tmp_path / "x.parquet"
    )
    with refused(file="x.parquet", field=field):
        read_annotators(tmp_path / "x.parquet")
