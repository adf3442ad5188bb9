"""The builder classes: the same rows as the Parquet, from the raw files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import datasets
import pytest

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.datasets_scripts import eraser as script
from eraser_hub.datasets_scripts.eraser import Eraser
from eraser_hub.records.errors import DataError

DERIVED = ("num_tokens", "num_sentences", "position")  # may be null in Parquet, for the Hub's viewer


@pytest.fixture(scope="module")
def hub(tmp_path_factory, samples: Path) -> Path:
    out = tmp_path_factory.mktemp("hub")
    HUB_DATASETS["eraser"].build(None, source=samples / "eraser", out=out)
    return out / "eraser"


def comparable(rows) -> list[dict]:
    return sorted(
        ({key: value for key, value in row.items() if key not in DERIVED} for row in rows),
        key=lambda r: r["annotation_id"],
    )


@pytest.mark.parametrize("config", CONFIGS)
def test_builder_and_parquet_give_the_same_rows(config, samples, hub, tmp_path):
    builder = Eraser(config, data_dir=str(samples / "eraser"), cache_dir=str(tmp_path))
    builder.download_and_prepare()
    prepared = builder.as_dataset()
    for split, rows in prepared.items():
        paths = [str(path) for path in sorted((hub / config).glob(f"{split}-0*.parquet"))]
        published = datasets.Dataset.from_parquet(paths, cache_dir=str(tmp_path / "p"))
        assert comparable(rows) == comparable(published)
        assert rows["position"] == list(range(1, len(rows) + 1))
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
    with pytest.raises(DataError, match=r"train\.jsonl:8: "):
        list(Eraser("cose", data_dir=str(tmp_path)).as_streaming_dataset("train"))


def test_an_unknown_config_is_named():
    with pytest.raises(DataError, match="found 'snli'"):
        Eraser("snli")


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("backwards", [False, True])
def test_documents_are_looked_for_where_they_lie(ascii_only, backwards, tmp_path, monkeypatch):
    """A first row waits for no documents but its own; all rows are there whatever the documents' order and spelling."""
    names = [f"é{number}" for number in range(600)]
    raw = tmp_path / "cose"
    raw.mkdir()
    lines = [
        json.dumps({"docid": name, "document": f"a text {name} " * 20}, ensure_ascii=ascii_only) + "\n"
        for name in names
    ]
    (raw / "docs.jsonl").write_text("".join(reversed(lines) if backwards else lines), encoding="utf-8")
    for split, some in (("train", names[:500]), ("val", names[500:])):
        records = [
            {"annotation_id": name, "classification": "A", "docids": [name], "evidences": [], "query": "q"}
            for name in some
        ]
        (raw / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    decoded: list[int] = []
    decode = script.decode_document_batch
    monkeypatch.setattr(
        script,
        "decode_document_batch",
        lambda batch, *rest, **more: decoded.append(len(batch.lines)) or decode(batch, *rest, **more),
    )
    monkeypatch.setattr(script, "FIRST_BYTES", 1000)
    monkeypatch.setattr(script, "BATCH_BYTES", 3000)
    builder = Eraser("cose", data_dir=str(tmp_path))
    first = next(iter(builder.as_streaming_dataset("validation")))
    assert first["documents"] == [{"docid": names[500], "text": f"a text {names[500]} " * 20}]
    assert sum(decoded) < 300 or not (ascii_only or backwards)
    for split, some in (("train", names[:500]), ("validation", names[500:])):
        rows = list(builder.as_streaming_dataset(split))
        assert [row["documents"][0]["docid"] for row in rows] == some
        assert all(row["documents"][0]["text"] == f"a text {row['annotation_id']} " * 20 for row in rows)
