"""Where an import reads, what it writes, and which files and arguments it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

import eraser_hub
from eraser_hub import import_corpus

from ...command_line import Result, invoke
from ...refusals import refused
from .corpora import Row, rows_of, write_lines

MASKS: dict[str, Any] = {"tokens": "tokens", "mask": "mask", "label": "label"}
GOOD: Row = {"tokens": ["a", "fine", "film"], "mask": [0, 1, 0], "label": "good"}
FILES = ("train.jsonl", "docs.jsonl", "corpus.yaml")


def typed(*words: object) -> Result:
    return invoke(["import", *words])


# -- sources ----------------------------------------------------------------------------------------------------------


def test_the_same_rows_from_every_kind_of_source(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "a fine film", "quotes": ["fine"], "label": "good"},
        {"id": "b", "text": "it, ends", "quotes": ["it"], "label": "bad"},
    ]
    held = datasets.Dataset.from_list(rows)
    held.to_parquet(tmp_path / "rows.parquet")
    held.to_csv(tmp_path / "rows.csv")
    held.save_to_disk(str(tmp_path / "saved"))
    write_lines(tmp_path / "rows.jsonl", rows)
    write_lines(tmp_path / "lines.json", rows)
    (tmp_path / "list.json").write_text("\ufeff" + json.dumps(rows, indent=1), encoding="utf-8")
    (tmp_path / "object.json").write_text(json.dumps({row["id"]: row for row in rows}))
    (tmp_path / "marked.csv").write_bytes(
        b"\xef\xbb\xbf" + (tmp_path / "rows.csv").read_bytes().replace(b"\n", b"\r\n")
    )
    sources: list[Any] = [path for path in sorted(tmp_path.iterdir()) if path.name not in ("train", "state.json")]
    sources += [rows, held, held.with_format("numpy"), held.to_iterable_dataset(), held.to_pandas()]
    columns: dict[str, Any] = {"text": "text", "quotes": "quotes", "label": "label", "id": "id"}
    done = [import_corpus(one, "mine", out=tmp_path / f"out{at}", **columns) for at, one in enumerate(sources)]
    assert len(done) == 13
    for one in done:
        assert [(one.folder / name).read_bytes() for name in FILES] == [
            (done[0].folder / name).read_bytes() for name in FILES
        ]
    with refused("iterator", argument="source"):
        import_corpus(iter(rows), "mine", out=tmp_path / "none", **columns)


def test_the_names_of_a_class_label_are_kept_wherever_they_stand(tmp_path: Path) -> None:
    def hold(*names: str) -> datasets.Dataset:
        lists = {"tokens": datasets.List(datasets.Value("string")), "mask": datasets.List(datasets.Value("int8"))}
        labels = {"label": datasets.List(datasets.ClassLabel(names=[*names]))}
        rows = [{"tokens": ["a"], "mask": [1], "annotators": {"label": [1, 1, 0]}}]
        return datasets.Dataset.from_list(rows, features=datasets.Features({**lists, "annotators": labels}))

    hold("neg", "pos").to_parquet(tmp_path / "rows.parquet")
    columns = {**MASKS, "label": "annotators.label"}
    for at, source in enumerate((tmp_path / "rows.parquet", hold("neg", "pos"))):
        done = import_corpus(source, "mine", out=tmp_path / str(at), **columns)
        assert done.labels == ["neg", "pos"] and rows_of(done.folder)[0]["classification"] == 1
    with refused("'pos'", "'y'", field="annotators.label"):
        splits = {"train": hold("neg", "pos"), "test": hold("x", "y")}
        import_corpus(splits, "mine", out=tmp_path / "2", **columns)


def test_splits(tmp_path: Path, samples: Path) -> None:
    """Of rows in memory, of files, and of a folder that load_dataset takes: what is left out is said."""
    rows = [{**GOOD, "label": label} for label in ("good", "bad", "good")]
    held = datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split in ("train", "val")})
    assert import_corpus(held, "mine", out=tmp_path / "1", **MASKS).rows == {"train": 3, "val": 3}
    assert import_corpus(held, "mine", out=tmp_path / "2", split={"test": "val"}, **MASKS).rows == {"test": 3}
    with refused("val", "'dev'", argument="split"):
        import_corpus(held, "mine", out=tmp_path / "3", split={"test": "dev"}, **MASKS)
    built = eraser_hub.build("human_rationales", config="sst", out=tmp_path, source=samples / "human_rationales")
    columns = ("--tokens", "tokens", "--mask", "rationale_mask", "--id", "id", "--label", "label", "--name", "again")
    done = typed("--source", tmp_path / "human_rationales", *columns, "--out", tmp_path / "one")
    assert built and done.exit_code == 0 and "split: train (left out: validation, test;" in done.stderr, done.output
    splits = ("--split", "val=validation", "--split", "test=test")
    done = typed("--source", tmp_path / "human_rationales", *columns, *splits, "--out", tmp_path / "all")
    assert "again: val 3, test 4; labels" in done.stdout


def test_the_only_candidate_is_the_label(tmp_path: Path) -> None:
    rows = [{**GOOD, "label": name, "id": str(number)} for number, name in enumerate("xyx")]
    path = write_lines(tmp_path / "rows.jsonl", rows)
    done = typed(path, "mine", "--out", tmp_path, "--tokens", "tokens", "--mask", "mask")
    assert done.exit_code == 0 and "label: label (x 2, y 1), the only candidate" in done.stderr, done.output
    rows = [{**row, "other": 1 + at // 2} for at, row in enumerate(rows)]
    with refused("label (x 2, y 1)", "other (1 2, 2 1)", argument="label"):
        import_corpus(rows, "m", out=tmp_path, tokens="tokens")


def test_a_column_of_texts_as_the_label_is_noted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for labels, notes in (([f"text {at}" for at in range(8)], 1), (["x" * 70, "y"], 1), ([*"abcdefgh"] * 2, 0)):
        caplog.clear()
        import_corpus([{**GOOD, "label": label} for label in labels], "mine", out=tmp_path, force=True, **MASKS)
        assert sum(f"labels: {len({*labels})} in {len(labels)} rows" in line for line in caplog.messages) == notes


@pytest.mark.parametrize(
    ("name", "content", "line", "mentions"),
    [
        ("rows.txt", b"x", None, (".csv, .tsv", "'rows.txt'")),
        ("rows.xlsx", b"PK", None, ("workbook", "CSV")),
        ("rows.jsonl", b"\xff\n", 1, ("0xff",)),
        ("rows.jsonl", b"", None, ("no row",)),
        ("rows.json", b"[" * 3000, 1, ("deeply",)),
        ("rows.csv", b"tokens,tokens\n1,2\n", 1, ("['tokens', 'tokens']",)),
        ("rows.csv", b"tokens,mask,label\n1,2\n", 2, ("3 fields", " 2")),
        ("rows.csv", b"tokens;mask;label\n1;0;x\n", 2, ("the column", "by ';'", ".csv has ','")),
        ("rows.csv", b'"tokens";"mask";"label"\n"a b";"0 1";"x"\n', 1, ("by ';'",)),
        ("rows.parquet", b"PAR1", None, ("Parquet",)),
        ("scores.json", b'{"signature": "x", "generator": "eraser-hub 1"}', None, ("board --scores",)),
        ("p.jsonl", b'{"rationales": [{"hard_rationale_predictions": []}]}\n', None, ("score --predictions",)),
    ],
)
def test_files_that_are_not_in_order(
    name: str, content: bytes, line: int | None, mentions: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with refused(*mentions, file=name, line=line):
        import_corpus(tmp_path / name, "mine", out=tmp_path / "out", **MASKS)
    assert not (tmp_path / "out").exists()


# -- what is written --------------------------------------------------------------------------------------------------


def test_force_replaces_what_an_import_wrote_and_keeps_the_rest(tmp_path: Path) -> None:
    splits = {"train": [GOOD], "test": [{**GOOD, "tokens": ["an", "odd", "film"]}]}
    target = import_corpus(splits, "mine", out=tmp_path, **MASKS).folder
    with refused("`force`", file="mine"):
        import_corpus([GOOD], "mine", out=tmp_path, **MASKS)
    (target / "corpus.yaml").write_text((target / "corpus.yaml").read_text() + "license: mit\n")
    (target / "annotators").mkdir()
    (target / "annotators" / "others.parquet").write_bytes(b"mine")
    (target / "val.jsonl").write_text("mine\n")
    import_corpus([{**GOOD, "label": "new"}], "mine", out=tmp_path, force=True, **MASKS)
    assert sorted(path.name for path in target.glob("*.jsonl")) == ["docs.jsonl", "train.jsonl", "val.jsonl"]
    assert (target / "annotators" / "others.parquet").read_bytes() == b"mine"
    values = {"name": "mine", "labels": ["new"], "license": "mit"}
    assert yaml.safe_load((target / "corpus.yaml").read_text()) == values
    (target / ".import.json").unlink()
    with refused("`out`", file="mine"):
        import_corpus([GOOD], "mine", out=tmp_path, force=True, **MASKS)


@pytest.mark.parametrize(
    ("arguments", "argument", "mentions"),
    [
        ({}, None, ("`tokens`, `text`", "rows.jsonl has 'tokens', 'mask', 'label'")),
        ({"text": "t", "mask": "m", "spans": "m"}, None, ("found `mask` and `spans`",)),
        ({"tokens": ["t", "u"], "mask": "m"}, "mask", ("`tokens` (2)", "found 1")),
        ({"tokens": "t", "mask": "m", "offsets": "tokens"}, "offsets", ("`spans`",)),
        ({"tokens": "t", "mask": "m", "split": ["x"]}, "split", ("SPLIT=FILE", "'x'")),
        ({"tokens": "t", "mask": "m", "split": {"train": "x.jsonl"}}, "split", ("`source`",)),
        ({"tokens": "t", "mask": "m", "span_label": "x"}, "span_label", ()),
    ],
)
def test_arguments_that_do_not_go_together(
    arguments: dict[str, Any], argument: str | None, mentions: tuple[str, ...], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [GOOD])
    with refused(*mentions, argument=argument):
        import_corpus(path, "mine", out=tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
    assert typed(path, "mine", "--out", tmp_path, "--text", "t", "--spans", "m", "--offsets", "words").exit_code == 2


def test_what_is_no_table_says_what_takes_it_and_a_source_is_not_replaced(tmp_path: Path, samples: Path) -> None:
    folder = import_corpus([GOOD], "mine", out=tmp_path, **MASKS).folder
    for source, name, mentioned in (
        (folder, "mine", "build own"),
        (samples / "eraser" / "movies", "movies", "build own"),
        (tmp_path / "nothing", "nothing", "org/name"),
        (tmp_path / "nothing.jsonl", "nothing.jsonl", ""),
    ):
        with refused(mentioned, file=name):
            import_corpus(source, "again", out=tmp_path, **MASKS)
    source = write_lines(folder / "docs.jsonl", [GOOD])
    before = source.read_bytes()
    with refused(file=source):
        import_corpus(source, "mine", out=tmp_path, force=True, **MASKS)
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    ("argument", "value", "mentioned"),
    [("name", name, repr(name)) for name in ("../up", "a/b", "movies", "", "documents", "a b")]
    + [("split", {split: "train"}, split) for split in ("all", "docs", "a b", "../x")]
    + [("split", {"val": "train", "validation": "train"}, "val, validation")],
)
def test_names_that_no_corpus_can_have(argument: str, value: Any, mentioned: str, tmp_path: Path) -> None:
    with refused(mentioned, argument=argument):
        import_corpus({"train": [GOOD]}, **{"name": "mine", "out": tmp_path, **MASKS, argument: value})
