"""build -> load_dataset -> export gives the values of every record and document back; bad files are named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import eraser_hub
from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.records import readers

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


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(arbitrary_corpora())
def test_every_quirk_comes_back(tmp_path_factory: pytest.TempPathFactory, corpus: dict[str, Any]) -> None:
    """Ids of both kinds, docids absent, null and in any order, double encoding, keys beyond the format, odd names."""
    folder = tmp_path_factory.mktemp("any")
    raw = write(folder / "in", corpus)
    ERASER.build([corpus["config"]], source=folder / "in", out=folder / "hub")
    ERASER.export(folder / "hub" / "eraser", None, out=folder / "out")
    assert values(folder / "out" / corpus["config"]) == values(raw)
    shutil.rmtree(folder)


# -- what is refused, and where ---------------------------------------------------------------------------------------


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


# -- places ------------------------------------------------------------------------------------------------------------


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


def test_skipped_files_are_named_with_the_reason_and_links_are_followed(samples: Path, tmp_path: Path) -> None:
    """And keys beyond the format, which are kept for export and are no columns."""
    shutil.copytree(samples / "eraser", tmp_path / "elsewhere")
    (tmp_path / "in").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "eraser").symlink_to(tmp_path / "there")
    (tmp_path / "there").mkdir()
    path = tmp_path / "in" / "movies" / "val.jsonl"
    path.write_text('{"zebra": [1], ' + path.read_text("utf-8")[1:], "utf-8")
    notes = ERASER.build(["movies", "boolq"], source=tmp_path / "in", out=tmp_path / "hub").notes
    for name, reason in (
        ("human_performance_1.jsonl", "predictions"),
        ("dev_data.jsonl", "docids"),
        ("test.jsonl.bak", "'posR_104.txt'"),
        ("README", ""),
        ("val.jsonl", "'zebra' (in 1)"),
    ):
        assert any(name in line and reason in line for line in notes), name
    assert (tmp_path / "hub" / "eraser").is_symlink() and (tmp_path / "there" / "movies").is_dir()


def test_an_export_keeps_nothing_that_would_be_read_with_it(hub: Path, tmp_path: Path) -> None:
    ERASER.export(hub / "eraser", ["movies"], out=tmp_path)
    (tmp_path / "movies" / "docs.jsonl").write_text("{}")
    with refused(file=tmp_path / "movies" / "docs.jsonl"):
        ERASER.export(hub / "eraser", ["movies"], out=tmp_path, force=True)
    with refused("outside the dataset", argument="out"):
        eraser_hub.export(hub / "eraser", out=hub / "eraser", force=True)


@pytest.mark.parametrize("file", ["../../owned.jsonl", "", "a/b"])
def test_a_hostile_release_json_reaches_no_other_path(file: str, hub: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(hub / "eraser", tmp_path / "eraser"))
    sign(copy, lambda configs: configs["movies"]["splits"]["train"]["facts"].update(file=file))
    with refused(repr(file), file=copy / "release.json"):
        ERASER.export(copy, ["movies"], out=tmp_path / "out")
    assert not list(tmp_path.rglob("owned*"))


def test_what_a_build_did_not_write_is_not_exported(hub: Path, samples: Path, tmp_path: Path) -> None:
    """A lost split, other facts, rows of one position, a lost file."""
    folder = Path(shutil.copytree(hub / "eraser", tmp_path / "eraser"))
    good = (folder / "release.json").read_text()
    for change in (
        lambda configs: configs["movies"]["splits"].pop("test"),
        lambda configs: configs["movies"]["splits"]["test"]["facts"].update(docids="absent"),
        lambda configs: configs.pop("cose"),
    ):
        release = json.loads(good)
        change(release["configs"])
        (folder / "release.json").write_text(json.dumps(release))
        with refused("release.json"):
            ERASER.export(folder, ["movies"], out=tmp_path / "raw")
        assert not (tmp_path / "raw").exists() and ERASER.check(folder, ["movies"]).failed
    (folder / "release.json").write_text(good)
    path = folder / "movies" / "validation-00000-of-00001.parquet"
    rows = pq.read_table(path)
    same = [{**row, "position": 1} for row in rows.to_pylist()]
    pq.write_table(pa.Table.from_pylist(same, rows.schema), path)
    sign(folder)
    with refused("found 1 again", file=path):
        ERASER.export(folder, ["movies"], out=tmp_path / "raw")
    path.unlink()
    with refused("no such file"):
        ERASER.export(folder, ["movies"], out=tmp_path / "raw")
    with refused("build movies again", file=folder):
        ERASER.build(["boolq"], source=samples / "eraser", out=folder.parent)
