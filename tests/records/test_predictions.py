"""Prediction files: typed instances, flat parts, and what is wrong with a line."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.flat import Predictions, concatenate
from eraser_hub.metrics.flatten import PREDICTION, flatten_rows
from eraser_hub.metrics.issues import Issues
from eraser_hub.records import predictions as module
from eraser_hub.records.lines import read_line_batches
from eraser_hub.records.predictions import instances, read_chunks, read_plain_rows

from ..metrics.eraser_rows import random_case
from ..refusals import refused


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few instances a part, so that small files have many."""
    for name, value in {"BLOCK": 300, "PART": 2000, "LEAST_ROWS": 1, "MOST_ROWS": 3}.items():
        monkeypatch.setattr(module, name, value)


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def by_row(rows: list[dict[str, Any]]) -> Predictions:
    return flatten_rows(rows, PREDICTION, Issues())[0]


def columns(record: Predictions) -> dict[str, Any]:
    """What two records must share, however they number documents and labels."""
    return {
        "ids": list(record.ids),
        "docs": [record.docids[code] for code in record.doc],
        "labels": [None if code < 0 else record.labels[code] for code in record.classification],
        "full": [{record.labels[at]: p for at, p in enumerate(row) if not np.isnan(p)} for row in record.full.tolist()],
        **{name: getattr(record, name).tolist() for name in ("hard", "start", "end", "soft_scores", "sentence_scores")},
        **{name: getattr(record, name).tolist() for name in ("instance", "rationales", "thresholds", "threshold")},
    }


def test_parts_are_the_rows_of_the_file(tmp_path: Path, small_parts: None) -> None:
    rows, _ = random_case(5, n=40)
    for row in rows[::7]:
        row["annotation_id"] = int(row["annotation_id"][1:])
    path = lines(tmp_path / "p.jsonl", rows)
    several = list(read_chunks(path))
    assert len(several) > 3 and not any(part.issues.total for part in several)
    assert [line for part in several for line in part.lines] == list(range(1, 41))
    assert columns(concatenate([part.predictions for part in several])) == columns(by_row(rows))
    datasets.Dataset.from_list([{**row, "annotation_id": str(row["annotation_id"])} for row in rows]).to_parquet(
        str(tmp_path / "p.parquet")
    )
    several = list(read_chunks(tmp_path / "p.parquet"))
    assert len(several) > 3 and [line for part in several for line in part.lines] == list(range(1, 41))
    assert columns(concatenate([part.predictions for part in several])) == columns(by_row(rows))


def test_instances_are_typed_and_know_their_line(tmp_path: Path) -> None:
    rows, _ = random_case(5, n=4)
    path = lines(tmp_path / "p.jsonl", rows)
    found = list(instances(path))
    assert [number for number, _ in found] == [1, 2, 3, 4]
    rationale: Any = found[1][1].rationales[0]  # type: ignore[index]
    assert rationale.docid == rows[1]["rationales"][0]["docid"]
    assert rationale.soft_rationale_predictions == rows[1]["rationales"][0]["soft_rationale_predictions"]
    assert found[1][1].classification_scores == rows[1]["classification_scores"]  # type: ignore[attr-defined]
    datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "p.parquet"))
    again = list(instances(tmp_path / "p.parquet"))
    assert [number for number, _ in again] == [1, 2, 3, 4]
    assert [[getattr(one, name) for name in ("annotation_id", "classification_scores")] for _, one in again] == [
        [getattr(one, name) for name in ("annotation_id", "classification_scores")] for _, one in found
    ]


def of_a(rest: str) -> str:
    return f'{{"annotation_id": "a", {rest}'


def of_d(rest: str) -> str:
    return of_a(f'"rationales": [{{"docid": "d", {rest}}}]}}')


SPAN = "rationales[0].hard_rationale_predictions[0]"
# a line, the rule that it breaks, the field where one is named, and what is said of the value
WRONG: list[tuple[str, str, str | None, tuple[str, ...]]] = [
    (
        of_d('"soft_rationale_predictions": ["x"]'),
        "type",
        "rationales[0].soft_rationale_predictions[0]",
        ("a number", "'x'"),
    ),
    (of_a('"rationales": [{}]}'), "type", "rationales[0].docid", ("None",)),
    ('{"rationales": []}', "type", "annotation_id", ("None",)),
    ("[1]", "type", None, ("a list",)),
    (of_a('"classification_scores": {"x": NaN}}'), "syntax", None, ("NaN",)),
    ('{"annotation_id": "a"', "syntax", None, ("at character 22 of 21",)),
    ("", "empty", None, ()),
    (of_a('"classification": "x", "classification": "x"}'), "key-twice", None, ("'classification'",)),
    (of_a('"classification": null, "classification": "x"}'), "key-twice", None, ("'classification'",)),
    (of_a('"rationale": []}'), "key-unknown", "rationale", ("'rationales'",)),
    (
        of_d('"hard_rationale_prediction": []'),
        "key-unknown",
        "rationales[0].hard_rationale_prediction",
        ("'hard_rationale_predictions'",),
    ),
    (
        of_d('"hard_rationale_predictions": [{"start_token": 0, "end_tokn": 1}]'),
        "key-unknown",
        f"{SPAN}.end_tokn",
        ("'end_token'",),
    ),
    (of_a('"x": ' + "[" * 70 + "]" * 70 + "}"), "size-limit", None, ("64 levels",)),
]


@pytest.mark.parametrize(("line", "rule", "field", "found"), WRONG)
def test_what_is_wrong_is_told_with_its_line_and_field(
    line: str, rule: str, field: str | None, found: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"annotation_id": "z"}}\n{{"annotation_id": "y"}}\n{line}\n', "utf-8")
    with refused(rule, *found, file=path, line=3) as caught:
        list(instances(path))
    of_instance = None if field in (None, "annotation_id") else "a"
    assert (caught.first.field, caught.first.instance) == (field, of_instance)
    if field is None:
        with refused(rule, *found, file=path, line=3):
            list(read_chunks(path))
        return
    (part,) = read_chunks(path)
    assert list(part.lines) == [1, 2, 3] and part.issues.total == 1
    (issue,) = part.issues
    assert (issue.row, issue.side, issue.field, issue.rule) == (3, "prediction", field, rule)
    assert all(value in issue.message for value in found)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for read in (instances, read_chunks):
        with refused("file-missing", file="nowhere.jsonl"):
            list(read(tmp_path / "nowhere.jsonl"))
    (tmp_path / "cut.parquet").write_bytes(b"PAR1cut")
    for read in (instances, read_chunks):
        with refused("syntax", "Parquet", file="cut.parquet"):
            list(read(tmp_path / "cut.parquet"))


def test_a_column_name_that_is_no_utf8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"annotation_id": ["a"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"annotation_id", b"\x80nnotation_id"))
    for read in (instances, read_chunks):
        with refused("syntax", "Parquet", "'utf-8' codec", file="p.parquet"):
            list(read(path))


def test_a_small_file_of_very_many_values_is_refused(tmp_path: Path) -> None:
    path, count = tmp_path / "p.parquet", (1 << 24) + 1
    pq.write_table(pa.table({"annotation_id": pa.repeat("a", 1)}), path)
    assert len(list(instances(path))) == 1
    scores = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.repeat(0.0, count))
    pq.write_table(pa.table({"annotation_id": ["a"], "tokens": scores}), path)
    assert path.stat().st_size < 10_000
    with refused("size-limit", f"found {count:,}", file=path):
        list(instances(path))


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("eraser_hub.records.lines.MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"annotation_id": "a"}\n{"annotation_id": "' + b"b" * (6 << 20) + b'"}\n')
    with refused("size-limit", "1,048,576 bytes", file=path, line=2):
        list(instances(path))
    with refused("size-limit", "1,048,576 bytes", file=path):
        list(read_chunks(path))


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(random_case(5, n=4)[0])
    pq.write_table(table.append_column("rationales", table.column("rationales")), tmp_path / "p.parquet")
    for read in (instances, read_chunks, read_plain_rows):
        with refused("key-twice", "'rationales'", file="p.parquet"):
            list(read(tmp_path / "p.parquet"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=30), st.booleans())
def test_ranges_are_whole_lines_and_the_whole_file(tmp_path_factory: Any, rows: list[bytes], ends: bool) -> None:
    path = tmp_path_factory.mktemp("ranges") / "p.jsonl"
    path.write_bytes(b"\n".join(rows) + (b"\n" if ends else b""))
    data = path.read_bytes()
    assume(not data.startswith(b"PAR1"))  # Parquet has no lines
    ranges = list[tuple[int, int]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART", 50)
        patch.setattr(module, "_read", lambda path, *own: (ranges.append(own) or SimpleNamespace(lines=()), 0))
        assert list(read_chunks(path)) == []
    assert b"".join(data[slice(*own)] for own in ranges) == data
    assert all(data[end - 1] == 10 for _, end in ranges[:-1])
    read = [b"".join(lines.data for lines in read_line_batches(path, 16, start, end=end)) for start, end in ranges]
    assert read == [data[slice(*own)] for own in ranges]


def test_other_processes_give_the_same_parts(tmp_path: Path, small_parts: None) -> None:
    rows, _ = random_case(5, n=40)
    for row in rows[::3]:
        row["zebra"] = 1
    path = lines(tmp_path / "p.jsonl", rows)
    # the processes do not know of small parts, but of the ranges they are handed
    expected = list(read_chunks(path))
    found = list(read_chunks(path, 2))
    assert len(found) == len(expected) > 3
    for one, two in zip(found, expected, strict=True):
        assert list(one.lines) == list(two.lines) and columns(one.predictions) == columns(two.predictions)
        assert one.unknown == two.unknown
    assert sum(part.unknown["zebra"] for part in found) == len(rows[::3])
    with path.open("a") as file:
        file.write('{"annotation_id": 1.5}\n{"annotation_id": NaN}\n')
    told = []
    for num_proc in (1, 2):
        with refused("syntax", "NaN", file="p.jsonl", line=42) as caught:
            list(read_chunks(path, num_proc))
        told.append(str(caught.error))
    assert told[0] == told[1]


def test_processes_that_cannot_start_cost_time_alone(tmp_path: Path, small_parts: None, monkeypatch: Any) -> None:
    rows, _ = random_case(5, n=40)
    path = lines(tmp_path / "p.jsonl", rows)

    def broken(*_: Any) -> Any:
        raise BrokenProcessPool

    monkeypatch.setattr(ProcessPoolExecutor, "submit", broken)
    assert sum(len(part.lines) for part in read_chunks(path, 2)) == 40


def test_rows_of_another_kind_come_as_they_stand(tmp_path: Path) -> None:
    several = [{"id": 1, "rationale": [[0, 2]]}, {"id": 2, "rationale": [[1]]}]
    path = lines(tmp_path / "p.jsonl", several)
    assert list(read_plain_rows(path)) == [(1, several[0]), (2, several[1])]
    datasets.Dataset.from_list(several).to_parquet(str(tmp_path / "p.parquet"))
    assert list(read_plain_rows(tmp_path / "p.parquet")) == [(1, several[0]), (2, several[1])]


@pytest.mark.parametrize(("text", "rule", "line"), [('{"id": 1}\n[]\n', "type", 2), ("{", "syntax", 1)])
def test_rows_that_are_none(tmp_path: Path, text: str, rule: str, line: int) -> None:
    (tmp_path / "p.jsonl").write_text(text, "utf-8")
    with refused(rule, file="p.jsonl", line=line):
        list(read_plain_rows(tmp_path / "p.jsonl"))
