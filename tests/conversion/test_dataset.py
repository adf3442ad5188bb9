"""What holds for each dataset's build: whose folder it replaces, and what stays of people's files."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.dataset import PartlyBuilt
from eraser_hub.publishing.spaces import build_metrics
from eraser_hub.records.errors import DataError

from ..refusals import refused

# of each dataset a small config
CONFIGS = {name: dataset.default_config for name, dataset in HUB_DATASETS.items()} | {"eraser": "cose"}
Build = Callable[[Path], Path]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(params=[*HUB_DATASETS, "metrics"])
def build(request: pytest.FixtureRequest, samples: Path) -> Build:
    """Builds into ``out/NAME``, and says that folder."""
    if request.param == "metrics":
        return lambda out: build_metrics(out, ["normalized_fidelity"])[0]
    config = CONFIGS[request.param]
    return lambda out: HUB_DATASETS[request.param].build([config], source=samples / request.param, out=out).folder


def test_a_folder_that_no_build_wrote_is_refused_and_stays(build, tmp_path):
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


def test_what_people_put_into_a_built_folder_survives_a_rebuild(build, tmp_path):
    folder = build(tmp_path)
    before = files(folder)
    mine = {"thesis.txt": b"work", ".git/objects/ab/cd": b"x", "notes/a/b.parquet": b"y", "notes/README.md": b"z"}
    for name, content in mine.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to("nowhere")
    (folder / "notes" / "round").symlink_to(folder)
    (folder / "notes" / "empty").mkdir()
    os.mkfifo(folder / "pipe")
    build(tmp_path)
    assert os.readlink(folder / "link") == "nowhere" and os.readlink(folder / "notes" / "round") == str(folder)
    assert (folder / "pipe").is_fifo() and (folder / "notes" / "empty").is_dir()
    (folder / "notes" / "round").unlink()
    assert files(folder) == before | mine


def test_a_raw_corpus_below_out_is_not_replaced_by_what_is_built_of_it(samples, tmp_path, monkeypatch):
    """``--out . --source human_rationales``: the dataset's folder would be the source."""
    shutil.copytree(samples / "human_rationales", tmp_path / "human_rationales")
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    with refused("`out`", file="human_rationales"):
        HUB_DATASETS["human_rationales"].build(None, source=Path("human_rationales"), out=Path())
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "bad", "good", "config"),
    [
        ("bilingual_perturbation", "senti_en", "senti_ch", "senti_en"),
        ("human_rationales", "sst/trees/dev.txt", "wikiattack", "sst"),
    ],
)
def test_one_bad_corpus_keeps_no_other_from_being_built(name, bad, good, config, samples, tmp_path):
    shutil.copytree(samples / name, tmp_path / "in")
    with (tmp_path / "in" / bad).open("a", encoding="utf-8") as file:
        file.write("(((\n")
    with refused(file=tmp_path / "in" / bad, total=1, type=PartlyBuilt) as caught:
        HUB_DATASETS[name].build(None, source=tmp_path / "in", out=tmp_path)
    assert good in caught.error.result.rows and config not in caught.error.result.rows
    assert any(note.startswith(f"{config}: ") for note in caught.error.result.notes)
    with refused(file=tmp_path / "in" / bad) as caught:
        HUB_DATASETS[name].build([config], source=tmp_path / "in", out=tmp_path)
    assert type(caught.error) is DataError


@pytest.mark.parametrize("dataset", HUB_DATASETS)
@pytest.mark.parametrize("verb", ["export", "build"])
def test_a_release_json_of_a_wrong_shape_is_named_with_its_field(dataset, verb, samples, tmp_path):
    config = CONFIGS[dataset]
    folder = HUB_DATASETS[dataset].build([config], source=samples / dataset, out=tmp_path).folder
    path = folder / "release.json"
    whole = json.loads(path.read_bytes())
    texts = [
        ("[]", None),
        ("{", None),
        ("\xff", None),
        ('{"format": 2}', None),
        ('{"format": 2, "configs": {"x": 3}}', "x"),
        ("[" * 900, None),
        ('{"format": 2, "format": 2}', None),
    ]
    for key, held in whole["configs"][config].items():
        for wrong in (None, [7]):
            field = f"{config}.{key}[0]" if wrong and isinstance(held, list) else f"{config}.{key}"
            changed = {**whole, "configs": {config: {**whole["configs"][config], key: wrong}}}
            texts.append((json.dumps(changed), field))
    for text, field in texts:
        path.write_text(text, encoding="latin-1")
        before = files(folder)
        with refused(file=path, field=field) as caught:
            if verb == "export":
                HUB_DATASETS[dataset].export(folder, [config], out=tmp_path / "raw")
            else:
                HUB_DATASETS[dataset].build([config], source=samples / dataset, out=tmp_path)
        assert str(caught.error).startswith(str(path)) and files(folder) == before
        assert not (tmp_path / "raw").exists() or not any((tmp_path / "raw").rglob("*.*"))


def verbs(name: str, folder: Path, raw: Path) -> dict[str, Callable[[], object]]:
    dataset = HUB_DATASETS[name]
    return {
        "export": lambda: dataset.export(folder, None, out=raw),
        "check": lambda: dataset.check(folder),
        "stats": lambda: dataset.stats(folder),
    }


def below(values: object) -> list[tuple[list, int]]:
    """The places of a row's nested lists: (list, index)."""
    if isinstance(values, dict):
        return [place for value in values.values() for place in below(value)]
    if isinstance(values, list):
        return [(values, k) for k in range(min(1, len(values)))] + [place for value in values for place in below(value)]
    return []


@pytest.mark.parametrize("name", HUB_DATASETS)
def test_null_cells_are_named_or_do_no_harm(name, samples, tmp_path):
    folder = HUB_DATASETS[name].build([CONFIGS[name]], source=samples / name, out=tmp_path).folder
    for path in [min(folder.glob("*/*.parquet")), *sorted(folder.glob("[dr]*/*.parquet"))]:
        whole = path.read_bytes()
        table = pq.read_table(path)
        for column in table.column_names:
            rows = table.slice(0, 4).to_pylist()
            nested = below(rows[1:2] and rows[1][column])
            for spoil in (None, *range(min(3, len(nested)))):
                damaged = copy.deepcopy(rows)
                if not damaged[1:]:
                    continue
                if spoil is None:
                    damaged[1][column] = None
                else:
                    held, place = below(damaged[1][column])[spoil]
                    held[place] = None
                pq.write_table(pa.concat_tables([pa.Table.from_pylist(damaged, table.schema), table.slice(4)]), path)
                for verb in verbs(name, folder, tmp_path / "raw").values():
                    with contextlib.suppress(DataError):
                        verb()
                    shutil.rmtree(tmp_path / "raw", ignore_errors=True)
        path.write_bytes(whole)


@pytest.mark.parametrize("name", HUB_DATASETS)
def test_damaged_parquet_and_pipes_are_named(name, samples, tmp_path):
    folder = HUB_DATASETS[name].build([CONFIGS[name]], source=samples / name, out=tmp_path).folder
    path = min(folder.glob(f"{CONFIGS[name]}/*.parquet"))
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    ways = {
        "short": lambda: path.write_bytes(b"PAR1"),
        "footer": lambda: path.write_bytes(whole[:footer] + b"\x1b" * 40 + whole[footer + 40 :]),
        "half": lambda: path.write_bytes(whole[: len(whole) // 2]),
        "pipe": lambda: os.mkfifo(path),
        "folder": lambda: path.mkdir(),
    }
    for way in ways.values():
        path.unlink()
        way()
        for verb, run in verbs(name, folder, tmp_path / "raw").items():
            if (name, verb) == ("bilingual_perturbation", "export"):
                continue  # it writes the released lines, which lie beside
            with refused(file=path) as caught:
                run()
            assert str(caught.error).replace("\n", "").isprintable()
            assert not list((tmp_path / "raw").rglob("*.*"))
        if path.is_dir():
            path.rmdir()
            path.touch()
