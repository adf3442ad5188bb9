"""What holds for every dataset: build, load, check, export; damage is found, and people's files are kept."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.dataset import HubDataset
from eraser_hub.publishing.spaces import build_metrics
from eraser_hub.records.errors import DataError

from ..hostile.inputs import places
from ..refusals import refused
from .signing import sign

DATASETS = list_datasets()
SMALL = {"eraser": "cose"}  # of each dataset a config whose sample is small; elsewhere the default one


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def small(name: str) -> str:
    return SMALL.get(name, get_dataset(name).default_config)


@pytest.fixture(scope="module", params=DATASETS)
def whole(request: pytest.FixtureRequest, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each dataset, with all configs of its samples; no test changes it."""
    out = tmp_path_factory.mktemp("hub")
    return get_dataset(request.param).build(None, source=samples / request.param, out=out).folder


@pytest.fixture(params=DATASETS)
def folder(request: pytest.FixtureRequest, samples: Path, tmp_path: Path) -> Path:
    """A small config of each dataset, to be damaged."""
    source, config = samples / request.param, small(request.param)
    return get_dataset(request.param).build([config], source=source, out=tmp_path / "hub").folder


def test_a_build_loads_as_its_columns_say_and_is_without_fault(whole: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    dataset, built = get_dataset(whole.name), open_built(whole)
    assert built.configs == list(dataset.configs) and built.default_config == dataset.default_config
    for config in built.configs:
        loaded = load_dataset(str(whole), config, cache_dir=str(tmp_path))
        assert list(loaded) == list(built.splits(config))
        for split, rows in loaded.items():
            assert rows.features == dataset.make_features(config)
            assert rows.to_list() == built.rows(config, str(split)) and len(rows)
    checked = dataset.check(whole)
    assert not checked.errors and checked.rows.keys() == {(c, s) for c in built.configs for s in built.splits(c)}
    assert "<!--" not in (whole / "README.md").read_text(encoding="utf-8")
    assert [table for table in dataset.stats(whole).tables if table.rows]


def test_what_is_exported_is_what_was_built_and_builds_the_same(whole: Path, samples: Path, tmp_path: Path) -> None:
    dataset, built = get_dataset(whole.name), open_built(whole)
    dataset.export(whole, None, out=tmp_path / "raw")
    for config in built.configs:
        for name, path in dataset.open_raw(samples / whole.name, config).files.items():
            assert (tmp_path / "raw" / config / name).read_bytes() == path.read_bytes()
    again = dataset.build(None, source=tmp_path / "raw", out=tmp_path / "hub")
    other = open_built(again.folder)
    for config in built.configs:
        for split in built.splits(config):
            columns = [name for name in dataset.schema.names if name != "attack_share"]
            if config == "wikiattack":  # comments and judgements are files of another release
                columns = ["id", "rationale_mask", "rationale_scores", "position"]
            assert other.rows(config, split, columns) == built.rows(config, split, columns)
    with refused("`force`", file=tmp_path / "raw" / built.configs[0]):
        dataset.export(whole, None, out=tmp_path / "raw")
    before = files(tmp_path / "raw")
    (tmp_path / "raw" / built.configs[0] / "mine.txt").write_bytes(b"mine")
    dataset.export(whole, None, out=tmp_path / "raw", force=True)
    assert files(tmp_path / "raw") == before | {f"{built.configs[0]}/mine.txt": b"mine"}


def list_beside(folder: Path) -> list[Path]:
    """The Parquet files that are no rows of a config."""
    return [path for path in sorted(folder.glob("*/*.parquet")) if path.parent.name in ("documents", "records")]


def spoil(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the rows of a Parquet file."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


def test_damage_is_found(folder: Path) -> None:
    dataset, config = get_dataset(folder.name), small(folder.name)
    path = max(folder.glob(f"{config}/*.parquet"), key=lambda path: pq.read_metadata(path).num_rows)
    label, split = next(iter(dataset.configs[config].label_names)), path.name.partition("-")[0]
    good, card = path.read_bytes(), (folder / "README.md").read_text(encoding="utf-8")
    damage: dict[str, Callable[[list[dict[str, Any]]], object]] = {
        "labels": lambda rows: rows[0].update({label: 99}),
        "ids": lambda rows: rows[1].update({dataset.id_column: rows[0][dataset.id_column]}),
        "rows": lambda rows: rows.pop(),
    }
    for kind, change in damage.items():
        spoil(path, change)
        found = {(each.split, each.kind) for each in dataset.check(folder).findings if not each.why}
        assert {("all", "files"), (split, kind)} <= found
        path.write_bytes(good)
    (folder / "README.md").write_text(card.replace("'0': ", "'0': X"), encoding="utf-8")
    assert "card" in {each.kind for each in dataset.check(folder).findings}
    (folder / "README.md").write_text(card, encoding="utf-8")
    beside = list_beside(folder)[0]
    for spoil_file in (lambda: beside.write_bytes(beside.read_bytes() + b"x"), beside.unlink):
        spoil_file()
        try:
            assert dataset.check(folder).failed
        except DataError as error:  # it needs the file
            assert error.file == beside


def run_verbs(folder: Path, raw: Path) -> Iterator[Callable[[], object]]:
    dataset = get_dataset(folder.name)
    yield lambda: dataset.export(folder, None, out=raw)
    yield lambda: dataset.check(folder)
    yield lambda: dataset.stats(folder)


def test_null_cells_are_named_or_do_no_harm(folder: Path, tmp_path: Path) -> None:
    for path in [min(folder.glob(f"{small(folder.name)}/*.parquet")), *list_beside(folder)]:
        table, good = pq.read_table(path), path.read_bytes()
        rows = table.slice(0, 2).to_pylist()
        for number in range(len(list(places(rows[-1])))):
            damaged = copy.deepcopy(rows)
            values, place = list(places(damaged[-1]))[number]
            values[place] = None
            pq.write_table(pa.concat_tables([pa.Table.from_pylist(damaged, table.schema), table.slice(2)]), path)
            for run in run_verbs(folder, tmp_path / "raw"):
                with contextlib.suppress(DataError):
                    run()
                shutil.rmtree(tmp_path / "raw", ignore_errors=True)
        path.write_bytes(good)


def test_damaged_parquet_and_pipes_are_named(folder: Path, tmp_path: Path) -> None:
    path = min(folder.glob(f"{small(folder.name)}/*.parquet"))
    good = path.read_bytes()
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for way in (
        lambda: path.write_bytes(b"PAR1"),
        lambda: path.write_bytes(good[:footer] + b"\x1b" * 40 + good[footer + 40 :]),
        lambda: path.write_bytes(good[: len(good) // 2]),
        lambda: os.mkfifo(path),
        lambda: path.symlink_to(path.name),
    ):
        path.unlink()
        way()
        export, *verbs = run_verbs(folder, tmp_path / "raw")
        for run in verbs if (folder / "records").is_dir() and folder.name != "eraser" else (export, *verbs):
            with refused(path.name) as caught:
                run()
            assert str(caught.error).replace("\n", "").isprintable()
            assert not list((tmp_path / "raw").rglob("*.*"))


def test_a_release_json_of_a_wrong_shape_is_named_with_its_field(folder: Path, samples: Path, tmp_path: Path) -> None:
    dataset, config, path = get_dataset(folder.name), small(folder.name), folder / "release.json"
    good = json.loads(path.read_bytes())

    def with_entry(**fields: Any) -> str:
        return json.dumps({**good, "configs": {config: {**good["configs"][config], **fields}}})

    texts: dict[str, str | None] = dict.fromkeys(("[]", "{", "\xff", "[" * 900, '{"format": 3, "format": 3}'))
    texts |= {json.dumps({**good, "format": None}): None, json.dumps({**good, "configs": {"x": 3}}): "x"}
    texts |= {with_entry(files={file: "0"}): config for file in ("../outside", "/tmp/outside", "a/../b", "")}
    texts |= {with_entry(**{key: [7]}): f"{config}.{key}" for key in good["configs"][config]}
    for text, field in texts.items():
        path.write_text(text, encoding="latin-1")
        before = files(folder)
        for run in (
            lambda: dataset.export(folder, [config], out=tmp_path / "raw"),
            lambda: dataset.build([config], source=samples / folder.name, out=folder.parent),
        ):
            with refused(file=path, field=field):
                run()
        assert files(folder) == before and not files(tmp_path / "raw")


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "eraser"])
def test_kept_files_stay_below_the_folder(name: str, samples: Path, tmp_path: Path) -> None:
    dataset, config = get_dataset(name), small(name)
    folder = dataset.build([config], source=samples / name, out=tmp_path / "hub").folder
    for file in ("../outside", "/tmp/outside", "", "a/../../b"):
        spoil(folder / "records" / f"{config}.parquet", lambda rows, file=file: rows[0].update(file=file))
        sign(folder)
        with refused(repr(file), file=f"{config}.parquet"):
            dataset.export(folder, None, out=tmp_path / "raw")
        assert not (tmp_path / "raw").exists() and not (tmp_path / "outside").exists()


# -- folders that stand there already ---------------------------------------------------------------------------------


@pytest.fixture(params=[*DATASETS, "metrics"])
def build(request: pytest.FixtureRequest, samples: Path) -> Callable[[Path], Path]:
    """Builds into ``out/NAME``, and says that folder."""
    if request.param == "metrics":
        return lambda out: build_metrics(out, ["normalized_fidelity"])[0]
    name = request.param
    return lambda out: get_dataset(name).build([small(name)], source=samples / name, out=out).folder


def test_a_folder_that_no_build_wrote_is_refused_and_stays(build, tmp_path: Path) -> None:
    folder = build(tmp_path / "there")
    for name in ("thesis.txt", "README.md"):
        mine = tmp_path / name / folder.name
        mine.mkdir(parents=True)
        (mine / name).write_text("years of work", encoding="utf-8")
        with refused("take another ", file=mine):
            build(tmp_path / name)
        assert files(tmp_path / name) == {f"{folder.name}/{name}": b"years of work"}
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / folder.name).write_text("x")
    with refused(file=tmp_path / "file" / folder.name):
        build(tmp_path / "file")
    assert files(tmp_path / "file") == {folder.name: b"x"}
    (tmp_path / "empty" / folder.name).mkdir(parents=True)
    assert files(build(tmp_path / "empty")) == files(folder)


def test_what_people_put_into_a_built_folder_survives_a_rebuild(build, tmp_path: Path) -> None:
    folder = build(tmp_path)
    before = files(folder)
    mine = {"thesis.txt": b"work", ".git/objects/ab/cd": b"x", "notes/a/b.parquet": b"y", "notes/README.md": b"z"}
    for name, content in mine.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to("nowhere")
    (folder / "notes" / "empty").mkdir()
    os.mkfifo(folder / "pipe")
    build(tmp_path)
    assert os.readlink(folder / "link") == "nowhere" and files(folder) == before | mine
    assert (folder / "pipe").is_fifo() and (folder / "notes" / "empty").is_dir()


def test_an_interrupted_build_leaves_the_old_state(folder: Path, samples: Path, monkeypatch) -> None:
    dataset, before = get_dataset(folder.name), files(folder.parent)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HubDataset, "_write_card", stop)
    with pytest.raises(KeyboardInterrupt):
        dataset.build(None, source=samples / folder.name, out=folder.parent)
    assert files(folder.parent) == before
    monkeypatch.undo()
    built = open_built(dataset.build(None, source=samples / folder.name, out=folder.parent).folder)
    assert built.configs == list(dataset.configs) and not dataset.check(folder).errors


def test_a_raw_corpus_below_out_is_not_replaced_by_what_is_built_of_it(samples, tmp_path, monkeypatch) -> None:
    """``--out . --source human_rationales``: the dataset's folder would be the source."""
    shutil.copytree(samples / "human_rationales", tmp_path / "human_rationales")
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    with refused("`out`", file="human_rationales"):
        get_dataset("human_rationales").build(None, source=Path("human_rationales"), out=Path())
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "bad", "good", "config"),
    [
        ("eraser", "cose/train.jsonl", "movies", "cose"),
        ("bilingual_perturbation", "senti_en", "senti_ch", "senti_en"),
        ("human_rationales", "sst/trees/dev.txt", "wikiattack", "sst"),
    ],
)
def test_one_bad_corpus_keeps_no_other_from_being_built(name, bad, good, config, samples, tmp_path) -> None:
    shutil.copytree(samples / name, tmp_path / "in")
    before = files(get_dataset(name).build([config], source=tmp_path / "in", out=tmp_path / "hub").folder / config)
    with (tmp_path / "in" / bad).open("a", encoding="utf-8") as file:
        file.write("(((\n")
    with refused(file=tmp_path / "in" / bad, total=1):
        get_dataset(name).build(None, source=tmp_path / "in", out=tmp_path / "hub")
    built = open_built(tmp_path / "hub" / name)
    assert good in built.configs and not get_dataset(name).check(built.folder).errors
    assert files(built.folder / config) == before, "what stood there stays"
    before = files(tmp_path / "hub")
    with refused(file=tmp_path / "in" / bad):
        get_dataset(name).build([config], source=tmp_path / "in", out=tmp_path / "hub")
    assert files(tmp_path / "hub") == before
