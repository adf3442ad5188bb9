"""The builder classes: the same rows as the Parquet, from the raw files."""

from __future__ import annotations

import shutil
from pathlib import Path

import datasets
import pytest

from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.datasets_scripts.eraser import Eraser

from ..refusals import refused


@pytest.fixture(scope="module")
def hub(tmp_path_factory, samples: Path) -> Path:
    out = tmp_path_factory.mktemp("hub")
    get_dataset("eraser").build(None, source=samples / "eraser", out=out)
    return out / "eraser"


@pytest.mark.parametrize("config", CONFIGS)
def test_builder_and_parquet_give_the_same_rows(config, samples, hub, tmp_path):
    builder = Eraser(config, data_dir=str(samples / "eraser"), cache_dir=str(tmp_path))
    builder.download_and_prepare()
    prepared = builder.as_dataset()
    for split, rows in prepared.items():
        paths = [str(path) for path in sorted((hub / config).glob(f"{split}-0*.parquet"))]
        published = datasets.Dataset.from_parquet(paths, cache_dir=str(tmp_path / "p"))
        assert rows.features == published.features and list(rows) == list(published)
        assert list(builder.as_streaming_dataset(split)) == list(rows)


def test_release_and_dataset_names_of_splits(samples, tmp_path):
    builder = Eraser("cose", data_dir=str(samples / "eraser" / "cose"), cache_dir=str(tmp_path))
    builder.download_and_prepare()
    assert builder.as_dataset("val").to_list() == builder.as_dataset("validation").to_list()
    assert next(iter(builder.as_streaming_dataset("val"))) == builder.as_dataset("validation")[0]
    assert len(builder.as_dataset("train_sanity")) == 3


def test_configs_are_listed_and_movies_is_the_default(samples):
    assert [config.name for config in Eraser.BUILDER_CONFIGS] == list(CONFIGS)
    assert Eraser(data_dir=str(samples / "eraser")).config.name == "movies"


def test_parquet_can_be_prepared(samples, tmp_path):
    builder = Eraser("esnli", data_dir=str(samples / "eraser"), cache_dir=str(tmp_path))
    builder.download_and_prepare(str(tmp_path / "out"), file_format="parquet")
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 3


def test_changed_files_are_not_served_from_the_cache(samples, tmp_path):
    shutil.copytree(samples / "eraser" / "cose", tmp_path / "cose")
    first = Eraser("cose", data_dir=str(tmp_path), cache_dir=str(tmp_path / "c"))
    train = tmp_path / "cose" / "train.jsonl"
    train.write_bytes(b"".join(train.read_bytes().splitlines(keepends=True)[:4]))
    second = Eraser("cose", data_dir=str(tmp_path), cache_dir=str(tmp_path / "c"))
    assert first.cache_dir != second.cache_dir
    second.download_and_prepare()
    assert len(second.as_dataset("train")) == 4


def test_bad_data_is_named_by_file_and_line(samples, tmp_path):
    shutil.copytree(samples / "eraser" / "cose", tmp_path / "cose")
    train = tmp_path / "cose" / "train.jsonl"
    train.write_bytes(train.read_bytes()[:-40])
    with refused(file="cose/train.jsonl", line=8):
        list(Eraser("cose", data_dir=str(tmp_path)).as_streaming_dataset("train"))


def test_an_unknown_config_is_named():
    with refused(" movies, ", "'snli'"):
        Eraser("snli")
