"""The built folder as readers and the Hub's viewer meet it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, load_dataset, load_dataset_builder

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.parquet import write_parquet

MAX_FIRST_ROWS_BYTES, FIRST_ROWS = 200 << 10, 10  # of the viewer's first page
MAX_ROW_BYTES = 19 << 10  # longer rows get cells that are cut


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    out = tmp_path_factory.mktemp("hub")
    for name in list_datasets():
        get_dataset(name).build(None, source=samples / name, out=out)
    return out


@pytest.mark.parametrize("name", list_datasets())
def test_the_viewers_rules_hold_on_every_sample(name: str, hub: Path) -> None:
    """Page index, small row groups, ten rows in 200 KB."""
    dataset, built = get_dataset(name), open_built(hub / name)
    for path in (path for config in built.configs for (path,) in built.splits(config).values()):
        file = pq.ParquetFile(path)
        assert file.schema_arrow.remove_metadata().equals(dataset.schema), path
        for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
            assert group.column(0).compression == "ZSTD" and group.total_byte_size < 300 << 20
            assert group.column(0).has_offset_index and group.column(0).has_column_index
        first = [json.dumps(row).encode() for row in file.read().slice(0, FIRST_ROWS).to_pylist()]
        assert sum(min(len(row), MAX_ROW_BYTES) for row in first) < MAX_FIRST_ROWS_BYTES


@pytest.mark.parametrize("name", list_datasets())
def test_a_single_file_has_the_names_of_its_classes(name: str, hub: Path, tmp_path: Path) -> None:
    dataset, built = get_dataset(name), open_built(hub / name)
    for config in built.configs:
        path = next(iter(built.splits(config).values()))[0]
        rows = load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path))
        assert rows.features == dataset.make_features(config)
        for column, names in dataset.configs[config].label_names.items():
            assert rows.features[column] == ClassLabel(names=list(names))


def test_the_version_reaches_the_cache_and_goes_by_the_contents(hub: Path, samples: Path, tmp_path: Path) -> None:
    def version(folder: Path) -> str:
        return json.loads((folder / "release.json").read_text())["configs"]["cose"]["version"]

    eraser, raw = get_dataset("eraser"), tmp_path / "in" / "cose"
    builder = load_dataset_builder(str(hub / "eraser"), "cose", cache_dir=str(tmp_path / "c"))
    assert version(hub / "eraser") in builder.cache_dir
    shutil.copytree(samples / "eraser" / "cose", raw)
    same = eraser.build(None, source=raw.parent, out=tmp_path / "same").folder
    path = raw / "train.jsonl"
    path.write_text(path.read_text("utf-8").replace('"classification": "B"', '"classification": "C"'), "utf-8")
    other = eraser.build(None, source=raw.parent, out=tmp_path / "other").folder
    assert version(same) == version(hub / "eraser") != version(other)


def test_repeated_texts_stand_once_and_read_as_strings(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.string())])
    assert write_parquet(tmp_path / "f.parquet", schema, []) == (0, 0)
    assert pq.read_table(tmp_path / "f.parquet").schema == schema
    texts = ["a long text " * 200, "another one " * 300]
    shared = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 0] * 50, pa.int32()), pa.array(texts))
    plain = pa.table({"text": pa.array(shared.to_pylist())})
    facts = write_parquet(tmp_path / "f.parquet", plain.schema, [pa.table({"text": shared})])
    assert pq.read_table(tmp_path / "f.parquet").equals(plain)
    assert facts.num_bytes == pc.sum(pc.binary_length(plain["text"])).as_py() + 4 * 200
    assert pq.ParquetFile(tmp_path / "f.parquet").metadata.row_group(0).column(0).total_uncompressed_size < 10_000
