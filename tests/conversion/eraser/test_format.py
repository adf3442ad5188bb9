"""Reading ERASER files: every value as it was, every issue named by file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import UNSET

from eraser_hub.conversion.eraser.checked import read_checked
from eraser_hub.conversion.eraser.documents import read_documents
from eraser_hub.conversion.eraser.format import (
    Annotation,
    read_annotations,
)
from eraser_hub.records.errors import DataError

from ...refusals import refused

pytestmark = pytest.mark.unit

EVIDENCE = {"docid": "d", "text": "a", "start_token": 0, "end_token": 1, "start_sentence": 0, "end_sentence": 1}
RECORD = {"annotation_id": "x", "classification": "POS", "evidences": [[EVIDENCE]], "query": "q", "query_type": None}


def as_json(record: Annotation) -> dict:
    """The record as it stands in a file."""
    value = {name: getattr(record, name) for name in Annotation.__struct_fields__ if getattr(record, name) is not UNSET}
    names = ("docid", "text", "start_token", "end_token", "start_sentence", "end_sentence")
    return {**value, "evidences": [[{n: getattr(e, n) for n in names} for e in group] for group in record.evidences]}


def refuse_line(line: bytes | str, tmp_path: Path, *mentions: object, field: str | None = None) -> DataError:
    path = tmp_path / "train.jsonl"
    good = json.dumps(RECORD).encode() + b"\n"
    path.write_bytes(good + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    with refused(*mentions, file=path, line=2, field=field) as caught:
        list(read_annotations(path))
    assert str(caught.error).startswith(f"{path}:2: ")
    return caught.error


LINE, REST = json.dumps(RECORD), ", " + json.dumps(RECORD)[1:]


@pytest.mark.parametrize(
    ("line", "mentioned"),
    [
        (b"", ""),
        (LINE[:-9], "end of data"),
        ("[]", "list"),
        (LINE.replace("POS", "\xff").encode("latin-1"), "0xff"),
        (LINE.replace('"POS"', "NaN"), "invalid character"),
        ("[" * 100_000, "deeply"),
        ('{"note": ' + "[" * 64 + "]" * 64 + REST, "deeply"),
        ('{"note": [-1e400]' + REST, "range"),
        (LINE.replace('"x"', "1" * 5000), "range"),
        (LINE.replace('"q"', '"\\ud800"'), "JSON"),
    ],
)
def test_what_is_no_record_is_named_by_file_and_line(line, mentioned, tmp_path):
    refuse_line(line, tmp_path, mentioned)


SPAN = "evidences[0][0]"


@pytest.mark.parametrize(
    ("change", "field", "mentioned"),
    [
        ({"annotation_id": True}, "annotation_id", "true"),
        ({"classification": 8141}, "classification", 8141),
        ({"query": None}, "query", "null"),
        ({"evidences": [EVIDENCE]}, "evidences[0]", "object"),
        ({"evidences": [[{**EVIDENCE, "end_token": 1.5}]]}, f"{SPAN}.end_token", "1.5"),
        ({"evidences": [[{**EVIDENCE, "end_token": 2**31}]]}, f"{SPAN}.end_token", 2**31),
        ({"evidences": [[{**EVIDENCE, "more": 1}]]}, SPAN, "'more'"),
        ({"query": ...}, None, "'query'"),
        ({"evidences": [[{k: v for k, v in EVIDENCE.items() if k != "text"}]]}, SPAN, "'text'"),
        ({"eviidences": "x"}, "'eviidences'", "'evidences'"),
        ({"doc_ids": "x"}, "'doc_ids'", "'docids'"),
    ],
)
def test_a_wrong_field_is_named_by_its_path(change, field, mentioned, tmp_path):
    record = {key: value for key, value in {**RECORD, **change}.items() if value is not ...}
    refuse_line(json.dumps(record), tmp_path, mentioned, field=field)


@pytest.mark.parametrize(
    ("lines", "line"),
    [([LINE + LINE, ""], 1), (["", LINE + LINE], 1), ([LINE[:30], LINE[30:] + LINE], 1), ([LINE, LINE + "{}"], 2)],
)
def test_a_line_is_one_record(lines, line, tmp_path):
    """JSON that would be whole without the lines' ends is refused all the same."""
    (tmp_path / "train.jsonl").write_text("\n".join([*lines, LINE]) + "\n")
    with refused(file="train.jsonl", line=line):
        list(read_annotations(tmp_path / "train.jsonl"))


def test_absent_null_and_list_are_three_things_and_keys_beyond_the_format_are_kept(tmp_path):
    records = [{**RECORD, "annotation_id": 1}, {**RECORD, "docids": None}, {**RECORD, "docids": ["d"]}]
    del records[0]["query_type"]
    more = {"source": {"page": [1, 2.5, None]}}
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, [records[0] | more, *records[1:]])))
    (run,) = read_annotations(path)
    assert [a.docids for a in run.records] == [UNSET, None, ["d"]] and run.records[0].query_type is UNSET
    assert list(map(as_json, run.records)) == records and run.extras == {0: more}


def test_ids_are_looked_up_and_never_joined_to_a_path(tmp_path):
    (tmp_path / "secret").write_text("s")
    (tmp_path / "c" / "docs").mkdir(parents=True)
    (tmp_path / "c" / "docs" / "d").write_text("text")
    documents, _ = read_documents(tmp_path / "c")
    assert documents.number(["d", "../../secret", "/etc/passwd", "..", "."]).tolist() == [0, -1, -1, -1, -1]
    assert documents.texts.to_pylist() == ["text"]


@pytest.mark.parametrize(
    ("line", "mentioned"),
    [
        ('{"docid": "a", "document": "again"}', "'a'"),
        ('{"docid": "b"}', "'document'"),
        ('{"docid": "b", "document": "", "x": 1}', "'x'"),
    ],
)
def test_docs_jsonl_errors_are_named_by_line(line, mentioned, tmp_path):
    (tmp_path / "docs.jsonl").write_text('{"docid": "a", "document": "t"}\n' + line + "\n")
    with refused(mentioned, file="docs.jsonl", line=2):
        read_documents(tmp_path)


# ------------------------------------------------------------------------------------- the one check of annotations


def test_annotations_are_read_as_strictly_as_a_build_reads_them(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "d").write_text("a b\nc", encoding="utf-8")

    def checked(*changes: dict, labels=("POS", "NEG")) -> list[str]:
        path = tmp_path / "val.jsonl"
        records = [{**RECORD, "annotation_id": f"v{k}", **change} for k, change in enumerate(changes)]
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        runs = read_checked(path, labels, read_documents(tmp_path)[0], {})
        return [record.annotation_id for part in runs for record in part.run.records]

    assert checked({}, {"classification": "NEG"}) == ["v0", "v1"]
    assert checked({"classification": "any"}, labels=None) == ["v0"]
    for change, field, mentions in (
        ({"classification": "any"}, "classification", ("'v1'", "'POS', 'NEG'", "'any'")),
        ({"annotation_id": "v0"}, "annotation_id", ("'v0'", "line 1")),
        ({"docids": ["nowhere"]}, "docids", ("'nowhere'",)),
        ({"evidences": [[{**EVIDENCE, "docid": "nowhere"}]]}, f"{SPAN}.docid", ("'nowhere'",)),
        ({"evidences": [[{**EVIDENCE, "end_token": 814}]]}, f"{SPAN}.end_token", ("3 tokens", 814)),
        ({"evidences": [[{**EVIDENCE, "start_token": 814}]]}, f"{SPAN}.end_token", (814,)),
        ({"evidences": [[{**EVIDENCE, "start_token": -2}]]}, f"{SPAN}.start_token", (-2,)),
        ({"evidences": None}, "evidences", ("null",)),
    ):
        with refused(*mentions, line=2, field=field):
            checked({}, change)
