"""build -> load_dataset -> export gives the values of every record and document back; bad files are named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from hypothesis import HealthCheck, given, settings

import eraser_hub
from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.eraser import rows as eraser_rows
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.records import readers
from eraser_hub.records.errors import DataError

from ...command_line import invoke
from ...refusals import refused
from ..signing import sign
from .corpus_strategies import corpora as arbitrary_corpora
from .corpus_strategies import values, write

ERASER = get_dataset("eraser")
NO_SPLITS = ("dev_data.jsonl", "test_data.jsonl")  # of boolq, and people's performance: skipped with a reason
REAL = ("movies", "multirc", "fever", "boolq", "evidence_inference", "cose")


def released(folder: Path) -> dict[str, Any]:
    """The values of a raw folder, without the files that are no splits."""
    return {k: v for k, v in values(folder).items() if k not in NO_SPLITS and not k.startswith("human_performance")}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    out = tmp_path_factory.mktemp("hub")
    ERASER.build(None, source=samples / "eraser", out=out)
    return out


@pytest.fixture
def cose(tmp_path: Path, samples: Path) -> Path:
    """A folder with cose alone, to be spoilt."""
    return Path(shutil.copytree(samples / "eraser" / "cose", tmp_path / "in" / "cose"))


def build(raw: Path, config: str | None = None) -> Path:
    return ERASER.build([config] if config else None, source=raw, out=raw.parent / "hub").folder


@pytest.mark.parametrize("config", CONFIGS)
def test_the_samples_come_back(config: str, samples: Path, hub: Path, tmp_path: Path) -> None:
    ERASER.export(hub / "eraser", [config], out=tmp_path)
    assert values(tmp_path / config) == released(samples / "eraser" / config)


@pytest.mark.parametrize("config", REAL)
def test_real_corpora_come_back(config: str, corpora: Path, tmp_path: Path) -> None:
    if not (corpora / config).is_dir():
        pytest.skip(f"skipped: no {config} among the real corpora")
    folder = ERASER.build([config], source=corpora, out=tmp_path / "hub").folder
    ERASER.export(folder, None, out=tmp_path / "raw")
    assert values(tmp_path / "raw" / config) == released(corpora / config)
    assert not ERASER.check(folder).errors


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(arbitrary_corpora())
def test_every_quirk_comes_back(tmp_path_factory: pytest.TempPathFactory, corpus: dict[str, Any]) -> None:
    """Ids of both kinds, docids absent, null and in any order, double encoding, keys beyond the format, odd names."""
    folder = tmp_path_factory.mktemp("any")
    raw = write(folder / "in", corpus)
    ERASER.build([corpus["config"]], source=folder / "in", out=folder / "hub")
    ERASER.export(folder / "hub" / "eraser", None, out=folder / "out")
    assert values(folder / "out" / corpus["config"]) == values(raw)
    shutil.rmtree(folder)


@pytest.mark.parametrize("config", CONFIGS)
def test_load_dataset_gives_the_records(config: str, samples: Path, hub: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(hub)
    loaded = load_dataset("eraser", config, cache_dir=str(tmp_path))
    raw = released(samples / "eraser" / config)
    for split, rows in loaded.items():
        records = [record for _, record in raw[f"{'val' if split == 'validation' else split}.jsonl"]]
        assert rows.features["classification"].names == list(CONFIGS[config].label_names)
        assert next(iter(load_dataset("eraser", config, split=split, streaming=True))) == rows[0]
        for row in rows:
            record = records[row["position"] - 1]
            assert (row["annotation_id"], row["query"]) == (str(record["annotation_id"]), record["query"])
            assert row["label"] == record["classification"] == CONFIGS[config].label_names[row["classification"]]
            spans = [[(e["docid"], e["start_token"], e["end_token"], e["text"]) for e in g] for g in row["evidences"]]
            assert spans == [
                [(e["docid"], e["start_token"], e["end_token"], e["text"]) for e in g] for g in record["evidences"]
            ]


def test_rows_of_one_document_stand_together_in_small_row_groups(samples: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(eraser_rows, "ROW_GROUP_BYTES", 800)
    folder = ERASER.build(["fever"], source=samples / "eraser", out=tmp_path / "hub").folder
    ERASER.export(folder, None, out=tmp_path / "raw")
    assert values(tmp_path / "raw" / "fever") == released(samples / "eraser" / "fever")


# -- what is refused, and where ---------------------------------------------------------------------------------------

EVIDENCE = {"docid": "two", "text": "b", "start_token": 1, "end_token": 2, "start_sentence": 0, "end_sentence": 1}


def small(folder: Path, **changes: Any) -> Path:
    """A movies corpus of three lines; ``changes`` replace the second record's fields."""
    target = folder / "movies"
    (target / "docs").mkdir(parents=True)
    lines = []
    for name in ("one", "two", "three"):
        (target / "docs" / name).write_text("a b c\nd e")
        evidence = EVIDENCE | {"docid": name}
        record = {"annotation_id": name, "classification": "POS", "query": "q", "query_type": None}
        if name == "two":
            evidence |= {key: value for key, value in changes.items() if key in evidence}
            record |= {key: value for key, value in changes.items() if key in record}
        lines.append(json.dumps(record | {"evidences": [[evidence]]}))
    (target / "train.jsonl").write_text("\n".join(lines) + "\n")
    return target


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"end_token": 6}, "has 5 tokens, found the end 6"),
        ({"start_token": 3}, "at or after the start 3, found 2"),
        ({"start_token": -2}, "found -2"),
        ({"docid": "gone"}, "found 'gone', which is not there"),
        ({"docid": "../docs/one"}, "which is not there"),
        ({"classification": "GOOD"}, "expected one of 'NEG', 'POS', found 'GOOD'"),
        ({"annotation_id": "one"}, "again (first on line 1)"),
        ({"query": None}, "found null"),
    ],
)
def test_a_bad_record_is_named_and_leaves_nothing_behind(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    raw = small(tmp_path / "in", **changes)
    outcome = invoke(["build", "eraser", "--source", tmp_path / "in", "--out", tmp_path / "hub"])
    assert outcome.exit_code == 1 and said in outcome.stderr
    assert f"{raw / 'train.jsonl'}:2: " in outcome.stderr
    assert not (tmp_path / "hub").exists()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda one, two: [one + two, ""], 1),
        (lambda one, two: ["", one + two], 1),
        (lambda one, two: [one[:30], one[30:] + two], 1),
        (lambda one, two: [one, two + "{}"], 2),
    ],
)
def test_a_line_is_one_record(change: Callable[[str, str], list[str]], line: int, tmp_path: Path) -> None:
    """JSON that would be whole without the lines' ends is refused all the same."""
    raw = small(tmp_path / "in")
    lines = (raw / "train.jsonl").read_text().splitlines()
    (raw / "train.jsonl").write_text("\n".join([*change(*lines[:2]), lines[2]]) + "\n")
    with refused(file=raw / "train.jsonl", line=line):
        build(tmp_path / "in")


def test_errors_of_a_later_batch_tell_the_files_line(cose: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers.read_line_batches, "__defaults__", (1500,))
    for name, last, mention in (
        ("train.jsonl", lambda lines: lines[-1].replace('"query"', '"quarry"'), "'query'"),
        ("docs.jsonl", lambda lines: lines[0], "line 1)"),
        ("docs.jsonl", lambda _: "[1]", "object"),
    ):
        before = (cose / name).read_text()
        lines = before.splitlines()
        (cose / name).write_text("\n".join([*lines[:-1], last(lines)]) + "\n")
        with refused(mention, file=cose / name, line=len(lines)):
            build(cose.parent)
        (cose / name).write_text(before)


def test_every_kind_of_damage_ends_in_success_or_in_a_clear_error(samples: Path, tmp_path: Path) -> None:
    """A split file cut, flipped, doubled and reversed at many places."""
    raw = Path(shutil.copytree(samples / "eraser" / "boolq", tmp_path / "in" / "boolq"))
    data = (raw / "train.jsonl").read_bytes()
    damaged = [data[:cut] for cut in range(0, len(data), 331)]
    damaged += [data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :] for at in range(0, len(data), 97)]
    damaged += [data + data, b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"), data[::-1]]
    outcomes = set()
    for number, change in enumerate(damaged):
        (raw / "train.jsonl").write_bytes(change)
        try:
            ERASER.build(None, source=tmp_path / "in", out=tmp_path / f"hub{number}")
            outcomes.add("built")
        except DataError as error:
            assert "train.jsonl" in str(error), error
            assert not (tmp_path / f"hub{number}").exists()
            outcomes.add("refused")
    assert outcomes == {"built", "refused"}


@pytest.mark.parametrize("damaged", ["val.jsonl", "docs.jsonl", "*.jsonl"])
def test_one_bad_corpus_keeps_no_other_from_being_built(damaged: str, samples: Path, tmp_path: Path, caplog) -> None:
    for name in ("cose", "esnli", "movies"):
        shutil.copytree(samples / "eraser" / name, tmp_path / "in" / name)
    folder = ERASER.build(["cose"], source=tmp_path / "in", out=tmp_path / "hub").folder
    old = (folder / "cose" / "train-00000-of-00001.parquet").read_bytes()
    for path in (tmp_path / "in" / "cose").glob(damaged):
        path.unlink() if damaged == "*.jsonl" else path.write_text(path.read_text("utf-8") + "{\n", encoding="utf-8")
    with refused(tmp_path / "in" / "cose"):
        build(tmp_path / "in")
    assert list(json.loads((folder / "release.json").read_text())["configs"]) == ["movies", "cose", "esnli"]
    assert (folder / "cose" / "train-00000-of-00001.parquet").read_bytes() == old, "what stood there stays"
    assert any("esnli: train" in line for line in caplog.messages)
    with refused(tmp_path / "in" / "cose"):
        ERASER.build(None, source=tmp_path / "in", out=tmp_path / "new")
    assert not list((tmp_path / "new").rglob("*cose*"))


# -- what is told ------------------------------------------------------------------------------------------------------


def test_skipped_files_are_named_with_the_reason(samples: Path, tmp_path: Path) -> None:
    notes = ERASER.build(["movies", "boolq", "fever"], source=samples / "eraser", out=tmp_path).notes
    for name, reason in (
        ("human_performance_1.jsonl", "predictions"),
        ("dev_data.jsonl", "another format (its first line: docids: expected a list or null, found the string"),
        ("test.jsonl.bak", "is a backup"),
        ("test.jsonl.bak", "the record 'posR_104.txt' stands in this backup alone, and is not built"),
        ("README", "no .jsonl file"),
    ):
        assert any(name in line and reason in line for line in notes), name


def test_keys_beyond_the_format_are_told(cose: Path) -> None:
    lines = (cose / "val.jsonl").read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "zebra": [1]})
    (cose / "val.jsonl").write_text("\n".join(lines) + "\n")
    notes = ERASER.build(None, source=cose.parent, out=cose.parent / "hub").notes
    expected = f"{cose / 'val.jsonl'}: keys beyond the format are kept for export, and are no columns: 'zebra' (in 1)"
    assert expected in notes


# -- places ------------------------------------------------------------------------------------------------------------


def test_an_archive_is_read_like_a_folder(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERASER_HUB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "in").mkdir()
    with tarfile.open(tmp_path / "in" / "cose.tar.gz", "w:gz") as tar:
        tar.add(samples / "eraser" / "cose", "cose")
    ERASER.export(build(tmp_path / "in"), None, out=tmp_path / "raw")
    assert values(tmp_path / "raw" / "cose") == released(samples / "eraser" / "cose")


def test_links_in_a_source_are_followed_and_a_linked_dataset_is_built_where_it_leads(
    samples: Path, tmp_path: Path
) -> None:
    for name in ("in", "hub", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "cose").symlink_to(samples / "eraser" / "cose")
    (tmp_path / "hub" / "eraser").symlink_to(tmp_path / "elsewhere" / "eraser")
    (tmp_path / "elsewhere" / "eraser").mkdir()
    ERASER.build(None, source=tmp_path / "in", out=tmp_path / "hub")
    assert (tmp_path / "hub" / "eraser").is_symlink()
    assert (tmp_path / "elsewhere" / "eraser" / "cose").is_dir()


def test_document_names_are_data(tmp_path: Path) -> None:
    """Names that look alike are two, and those that look like paths are names: in docs.jsonl all come back."""
    names = ["caf\u00e9", "cafe\u0301", "../../etc/passwd", "/etc/passwd", "..", ".", "", "a\x00b", "CON", "x" * 300]
    raw = tmp_path / "in" / "cose"
    raw.mkdir(parents=True)
    fields = {"classification": "A", "evidences": [], "query": "", "query_type": None}
    documents = [{"docid": name, "document": f"a text {number}"} for number, name in enumerate(names)]
    records = [{"annotation_id": f"{number}", "docids": [name], **fields} for number, name in enumerate(names)]
    (raw / "docs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    (raw / "train.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    ERASER.export(build(tmp_path / "in"), None, out=tmp_path / "out")
    assert values(tmp_path / "out" / "cose") == values(raw)


def test_a_locale_without_letters_changes_nothing(samples: Path, tmp_path: Path) -> None:
    """LC_ALL=C, and Python told not to help: fever's documents have names beyond ASCII."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words in (
        ["build", "eraser", "--source", str(samples / "eraser"), "--config", "fever", "--out", str(tmp_path)],
        ["export", "--dataset", str(tmp_path / "eraser"), "--out", str(tmp_path / "raw")],
    ):
        command = [sys.executable, "-m", "eraser_hub", *words]
        run = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert run.returncode == 0, run.stderr
    assert values(tmp_path / "raw" / "fever") == released(samples / "eraser" / "fever")


@pytest.mark.parametrize("file", ["../../owned.jsonl", "", "a/b"])
def test_a_hostile_release_json_reaches_no_other_path(file: str, hub: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(hub / "eraser", tmp_path / "eraser"))
    sign(copy, lambda configs: configs["movies"]["splits"]["train"]["facts"].update(file=file))
    with refused(repr(file), file=copy / "release.json"):
        ERASER.export(copy, ["movies"], out=tmp_path / "out")
    assert not list(tmp_path.rglob("owned*"))


def test_what_a_build_did_not_write_is_not_exported(hub: Path, samples: Path, tmp_path: Path) -> None:
    """Lost files, a lost split, other facts, rows of one position, a configuration that the card lacks."""
    folder = Path(shutil.copytree(hub / "eraser", tmp_path / "eraser"))
    good = (folder / "release.json").read_text()

    def refuse(*mentions: object) -> None:
        with refused(*mentions):
            ERASER.export(folder, ["movies"], out=tmp_path / "raw")
        assert not (tmp_path / "raw").exists()
        assert ERASER.check(folder, ["movies"]).failed
        (folder / "release.json").write_text(good)

    for change in (
        lambda entry: entry["splits"].pop("test"),
        lambda entry: entry["splits"]["test"]["facts"].update(docids="absent"),
        lambda entry: entry["splits"]["train"].update(num_examples=999),
    ):
        release = json.loads(good)
        change(release["configs"]["movies"])
        (folder / "release.json").write_text(json.dumps(release))
        refuse("does not give the version")
    release = json.loads(good)
    del release["configs"]["cose"]
    (folder / "release.json").write_text(json.dumps(release))
    refuse("found cose in one alone")
    path = folder / "movies" / "validation-00000-of-00001.parquet"
    rows = pq.read_table(path)
    column = rows.schema.get_field_index("position")
    same = pa.array([1] * rows.num_rows, pa.int32())
    pq.write_table(rows.set_column(column, rows.schema.field(column), same), path)
    sign(folder)
    with refused("found 1 again", file=path):
        ERASER.export(folder, ["movies"], out=tmp_path / "raw")
    path.unlink()
    with refused("no such file"):
        ERASER.export(folder, ["movies"], out=tmp_path / "raw")
    with refused("build movies again", file=folder):
        ERASER.build(["boolq"], source=samples / "eraser", out=folder.parent)


def test_an_export_keeps_nothing_that_would_be_read_with_it(hub: Path, tmp_path: Path) -> None:
    ERASER.export(hub / "eraser", ["movies"], out=tmp_path)
    (tmp_path / "movies" / "notes.md").write_text("mine")
    ERASER.export(hub / "eraser", ["movies"], out=tmp_path, force=True)
    assert (tmp_path / "movies" / "notes.md").read_text() == "mine"
    (tmp_path / "movies" / "docs.jsonl").write_text("{}")
    with refused(file=tmp_path / "movies" / "docs.jsonl"):
        ERASER.export(hub / "eraser", ["movies"], out=tmp_path, force=True)


def test_an_export_into_its_own_dataset_is_refused(samples: Path, tmp_path: Path) -> None:
    folder = eraser_hub.build("eraser", samples / "eraser", config="movies", out=tmp_path).folder
    with refused("outside the dataset", argument="out"):
        eraser_hub.export(folder, out=folder, force=True)
