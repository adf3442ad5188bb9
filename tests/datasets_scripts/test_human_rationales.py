"""The builder class of ``human_rationales``: instantiated, streamed, cached, as a script."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import eraser_hub.datasets_scripts.human_rationales as script
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.built import open_built
from eraser_hub.datasets_scripts.human_rationales import HumanRationales

from ..refusals import refused

DATASET = HUB_DATASETS["human_rationales"]


def test_builder_configs_are_those_of_the_dataset() -> None:
    assert tuple(HumanRationales.builder_configs) == DATASET.configs
    assert DATASET.default_config == HumanRationales.DEFAULT_CONFIG_NAME


@pytest.mark.parametrize("name", DATASET.configs)
def test_a_builder_gives_the_rows_and_features_of_the_folder(
    name: str, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import load_dataset

    source = samples / "human_rationales"
    builder = HumanRationales(name, data_dir=str(source), cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    rows = builder.as_dataset()
    result = DATASET.build([name], out=tmp_path / "hub", source=source)
    assert list(rows) == list(result.rows[name])
    monkeypatch.chdir(tmp_path / "hub")
    loaded = load_dataset("human_rationales", name, cache_dir=str(tmp_path / "loaded"))
    streamed = builder.as_streaming_dataset()
    nullable = {"num_tokens", "position"}  # null in the folder where the viewer would stumble
    for split, part in rows.items():
        stored = open_built(result.folder).rows(name, split)
        for row, other in zip(part, stored, strict=True):
            assert {key: value for key, value in row.items() if other[key] is not None or key not in nullable} == {
                key: value for key, value in other.items() if value is not None or key not in nullable
            }
        assert list(streamed[split]) == list(part)
        assert loaded[split].features == part.features


def test_without_a_folder_the_samples_are_read(tmp_path: Path) -> None:
    builder = HumanRationales(cache_dir=str(tmp_path))
    builder.download_and_prepare()
    assert builder.config.name == "sst"
    assert set(builder.as_dataset()) == {"train", "validation", "test"}


def test_changed_files_are_read_anew(samples: Path, tmp_path: Path) -> None:
    def sizes() -> int:
        builder = HumanRationales("sst", data_dir=str(tmp_path), cache_dir=str(tmp_path / "cache"))
        builder.download_and_prepare()
        return builder.as_dataset(split="validation").num_rows

    shutil.copy(samples / "human_rationales" / "sst" / "trees" / "dev.txt", tmp_path / "dev.txt")
    before = sizes()
    with (tmp_path / "dev.txt").open("a", encoding="utf-8") as file:
        file.write("(4 more)\n")
    assert sizes() == before + 1


def test_missing_and_hostile_files_are_refused(tmp_path: Path) -> None:
    with refused("train.txt,dev.txt,test.txt", file=tmp_path):
        HumanRationales("sst", data_dir=str(tmp_path))
    with pytest.raises(ValueError, match="imdb"):
        HumanRationales("imdb", cache_dir=str(tmp_path))
    (tmp_path / "dev.txt").write_text("(3 (2 a)\n")
    builder = HumanRationales("sst", data_dir=str(tmp_path), cache_dir=str(tmp_path / "cache"))
    with pytest.raises(Exception) as error:
        builder.download_and_prepare()
    causes = [error.value, error.value.__cause__, error.value.__context__]
    assert any("dev.txt:1: column" in str(cause) for cause in causes)


def test_the_script_imports_nothing_relative() -> None:
    text = Path(script.__file__).read_text(encoding="utf-8")
    assert not [line for line in text.splitlines() if line.lstrip().startswith(("from .", "import ."))]
