"""Every builder: the rows and features of the built folder, streamed too; the cache; as a script."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.datasets_scripts.builder import RationaleBuilder

from ..refusals import refused

CONFIGS = [(name, config) for name in list_datasets() for config in get_dataset(name).configs]


def get_builder(name: str) -> type[RationaleBuilder]:
    module = importlib.import_module(f"eraser_hub.datasets_scripts.{name}")
    (builder,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, RationaleBuilder) and value.__module__ == module.__name__
    )
    return builder


@pytest.mark.parametrize("name", list_datasets())
def test_configs_are_those_of_the_dataset_and_an_unknown_one_is_named(name: str, samples: Path) -> None:
    dataset, builder = get_dataset(name), get_builder(name)
    assert list(builder.builder_configs) == list(dataset.configs)
    assert builder(data_dir=str(samples / name)).config.name == dataset.default_config
    with refused(f"one of {', '.join(dataset.configs)}, ", "'snli'", argument="config"):
        builder("snli")


@pytest.mark.parametrize(("name", "config"), CONFIGS)
def test_a_builder_gives_the_rows_and_features_of_the_folder(
    name: str, config: str, samples: Path, tmp_path: Path
) -> None:
    from datasets import load_dataset

    builder = get_builder(name)(config, data_dir=str(samples / name), cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    prepared, streamed = builder.as_dataset(), builder.as_streaming_dataset()
    folder = get_dataset(name).build([config], out=tmp_path / "hub", source=samples / name).folder
    loaded = load_dataset(str(folder), config, cache_dir=str(tmp_path / "loaded"))
    assert list(prepared) == list(loaded)
    for split, rows in prepared.items():
        assert rows.features == loaded[split].features and rows.to_list() == list(streamed[str(split)])
        assert sorted(rows.to_list(), key=str) == sorted(loaded[split].to_list(), key=str)
    assert builder.info.description and builder.info.license == get_dataset(name).configs[config].license


@pytest.mark.parametrize("name", ["bilingual_perturbation", "human_rationales"])
def test_without_a_folder_the_samples_are_read_and_can_be_parquet(name: str, tmp_path: Path) -> None:
    builder = get_builder(name)(cache_dir=str(tmp_path))
    builder.download_and_prepare(str(tmp_path / "parquet"), file_format="parquet")
    assert len(list((tmp_path / "parquet").glob("*.parquet"))) == len(builder.info.splits or ())


@pytest.mark.parametrize("name", list_datasets())
def test_changed_files_are_read_anew_and_bad_ones_are_named(name: str, samples: Path, tmp_path: Path) -> None:
    dataset, source = get_dataset(name), shutil.copytree(samples / name, tmp_path / "source")
    config = "cose" if name == "eraser" else dataset.default_config
    raw = dataset.open_raw(source, config)
    split, file = next(iter(raw.splits)), raw.sources[0]

    def make(**options: Any) -> RationaleBuilder:
        return get_builder(name)(config, data_dir=str(source), cache_dir=str(tmp_path / "cache"), **options)

    first = make()
    assert first.cache_dir == make().cache_dir != make(hash="of the script").cache_dir
    lines = file.read_bytes().splitlines(keepends=True)
    for path in source.rglob("*golden*"):  # whose records would be appended
        path.unlink()
    file.write_bytes(b"".join(lines[:-1]))
    second = make()
    second.download_and_prepare()
    assert first.cache_dir != second.cache_dir and 0 < second.as_dataset(split).num_rows < len(lines)
    file.write_bytes(b"".join(lines[:-1]) + b"(((\n")
    with refused(file=file, line=len(lines)):
        list(make().as_streaming_dataset(split))
    shutil.rmtree(source)
    source.mkdir()
    with refused(file=source):
        make()


def test_release_and_dataset_names_of_splits(tmp_path: Path) -> None:
    builder = get_builder("human_rationales")("wikiattack", cache_dir=str(tmp_path))
    builder.download_and_prepare(num_proc=2)
    assert builder.as_dataset("val").to_list() == builder.as_dataset("validation").to_list()
    assert next(iter(builder.as_streaming_dataset("val"))) == builder.as_dataset("validation")[0]


def test_a_corpus_of_ones_own_is_chosen_by_its_folder(samples: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(samples / "eraser" / "cose", tmp_path / "mine")
    (folder / "corpus.yaml").write_text("name: mine\nlabels: [A, B, C, D, E]\n")
    builder = get_builder("eraser")("mine", data_dir=str(folder), cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    other = get_builder("eraser")("cose", data_dir=str(samples / "eraser"))
    assert builder.as_dataset("val").to_list() == list(other.as_streaming_dataset("val"))


@pytest.mark.parametrize("name", list_datasets())
def test_a_script_imports_nothing_relative(name: str) -> None:
    # datasets before 4.0 copies a loading script elsewhere and runs it there
    text = (Path(importlib.import_module(get_builder(name).__module__).__file__ or "")).read_text(encoding="utf-8")
    assert not [line for line in text.splitlines() if line.lstrip().startswith(("from .", "import ."))]
