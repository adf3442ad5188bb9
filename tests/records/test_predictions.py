"""Prediction files: rows with their lines, what is wrong with a line, and the files of several trainings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.records import predictions as module
from eraser_hub.records.predictions import find_seed_files, make_seed_path, read_chunks, read_instances, read_plain_rows

from ..metrics.eraser_rows import random_case
from ..refusals import refused

pytestmark = pytest.mark.unit


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_chunks_are_the_rows_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CHUNK_BYTES": 2000, "MIN_ROWS": 1, "MAX_ROWS": 3}.items():
        monkeypatch.setattr(module, name, value)
    rows, _ = random_case(5, n=40)
    datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "p.parquet"))
    for path in (lines(tmp_path / "p.jsonl", rows), tmp_path / "p.parquet"):
        chunks = list(read_chunks(path))
        assert len(chunks) > 3
        assert [line for _, numbers in chunks for line in numbers] == list(range(1, 41))
        found = [row for chunk, _ in chunks for row in chunk]
        assert [row["annotation_id"] for row in found] == [row["annotation_id"] for row in rows]
        assert [row["rationales"][0]["docid"] for row in found] == [row["rationales"][0]["docid"] for row in rows]


@pytest.mark.parametrize(
    ("line", "field", "found"),
    [
        ('{"annotation_id": "a", "rationales": [{}]}', "rationales[0].docid", ""),
        ('{"rationales": []}', "annotation_id", "none among rationales"),
        ("[1]", None, "[1]"),
        ("", None, "empty"),
        ('{"annotation_id": "a", "rationale": []}', "rationale", "'rationales'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(
    line: str, field: str | None, found: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"annotation_id": "z"}}\n{{"annotation_id": "y"}}\n{line}\n', "utf-8")
    with refused(found, file=path, line=3, field=field):
        list(read_instances(path))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for name, content, said in (("nowhere", b"", ""), ("p.csv", b"id", "a table"), ("cut", b"PAR1cut", "Parquet")):
        if content:
            (tmp_path / name).write_bytes(content)
        with refused(said, file=name):
            list(read_chunks(tmp_path / name))
    path = tmp_path / "name.parquet"  # the name of its column is no UTF-8
    pq.write_table(pa.table({"annotation_id": ["a"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"annotation_id", b"\x80nnotation_id"))
    with refused("Parquet", file="name.parquet"):
        list(read_chunks(path))
    table = pa.Table.from_pylist(random_case(5, n=4)[0])
    pq.write_table(table.append_column("rationales", table.column("rationales")), path)
    with refused("'rationales'", file="name.parquet"):
        list(read_chunks(path))


def test_a_small_file_of_very_many_values_is_refused(tmp_path: Path) -> None:
    path, count = tmp_path / "p.parquet", (1 << 24) + 1
    pq.write_table(pa.table({"annotation_id": pa.repeat("a", 1)}), path)
    assert len(list(read_plain_rows(path))) == 1
    scores = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.repeat(0.0, count))
    pq.write_table(pa.table({"annotation_id": ["a"], "tokens": scores}), path)
    assert path.stat().st_size < 10_000
    with refused(f"found {count:,}", file=path):
        list(read_plain_rows(path))


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("eraser_hub.records.readers.MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"annotation_id": "a"}\n{"annotation_id": "' + b"b" * (6 << 20) + b'"}\n')
    with refused("1,048,576 bytes", file=path, line=2):
        list(read_chunks(path))


def test_rows_of_another_kind_come_as_they_stand(tmp_path: Path) -> None:
    several = [{"id": 1, "rationale": [[0, 2]]}, {"id": 2, "rationale": [[1]]}]
    path = lines(tmp_path / "p.jsonl", several)
    assert list(read_plain_rows(path)) == [(1, several[0]), (2, several[1])]
    datasets.Dataset.from_list(several).to_parquet(str(tmp_path / "p.parquet"))
    assert list(read_plain_rows(tmp_path / "p.parquet")) == [(1, several[0]), (2, several[1])]


def test_a_missing_file_stands_for_the_files_of_its_run(tmp_path):
    out = tmp_path / "p[1].jsonl"
    assert find_seed_files(out) == [out]
    seeds = [make_seed_path(out, seed) for seed in (2, 10, 1)]
    others = ("p[1].seed-x.jsonl", "p1.seed-3.jsonl", "p[1].seed-4.jsonl.run.json")
    for path in (*seeds, *(tmp_path / name for name in others)):
        path.write_text("")
    assert [path.name for path in find_seed_files(out)] == [f"p[1].seed-{seed}.jsonl" for seed in (1, 2, 10)]
    out.write_text("")
    assert find_seed_files(out) == [out]
