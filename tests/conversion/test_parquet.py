"""The built folder as readers and the Hub's viewer meet it."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset, load_dataset_builder
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import read_card
from eraser_hub.conversion.card import ConfigWords
from eraser_hub.conversion.eraser.configs import CONFIGS, DEFAULT_CONFIG
from eraser_hub.conversion.eraser.documents import count_tokens
from eraser_hub.conversion.eraser.schema import SCHEMA
from eraser_hub.conversion.parquet import write_parquet
from eraser_hub.metrics.plain import split_sentences, split_tokens

from ..refusals import refused

ERASER = get_dataset("eraser")


@pytest.fixture(scope="module")
def hub(tmp_path_factory, samples: Path) -> Path:
    out = tmp_path_factory.mktemp("hub")
    ERASER.build(None, source=samples / "eraser", out=out)
    return out


@pytest.fixture
def copy(hub, tmp_path) -> Path:
    shutil.copytree(hub / "eraser", tmp_path / "eraser")
    return tmp_path / "eraser"


def parquet_files(hub: Path) -> list[Path]:
    return [path for config in CONFIGS for path in sorted((hub / "eraser" / config).glob("*.parquet"))]


def test_every_file_has_the_one_schema_and_no_huggingface_key(hub):
    for path in parquet_files(hub):
        file = pq.ParquetFile(path)
        assert file.schema_arrow.remove_metadata().equals(SCHEMA), path
        assert b"huggingface" not in (file.metadata.metadata or {}), path
        column = file.metadata.row_group(0).column(0)
        assert column.compression == "ZSTD" and column.has_offset_index and column.has_column_index, path


def test_no_cell_of_a_derived_column_is_left_out(hub):
    for path in parquet_files(hub):
        table = pq.read_table(path)
        for name in SCHEMA.names:
            assert name == "query_type" or table[name].null_count == 0, (path, name)


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_say_what_they_are_derived_from(hub, config):
    for path in sorted((hub / "eraser" / config).glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            tokens = {d["docid"]: split_tokens(d["text"]) for d in row["documents"]}
            masks = {docid: [False] * len(of) for docid, of in tokens.items()}
            flat = [evidence for group in row["evidences"] for evidence in group]
            for e in flat:
                masks[e["docid"]][e["start_token"] : e["end_token"]] = [True] * (e["end_token"] - e["start_token"])
            assert row["rationale_positions"] == [[k for k, m in enumerate(mask) if m] for mask in masks.values()]
            order = list(tokens)
            spans = {(order.index(e["docid"]), e["start_token"], e["end_token"]): e["text"] for e in reversed(flat)}
            assert row["rationale"] == " … ".join(spans[key] for key in sorted(spans) if key[1] < key[2])
            total = sum(map(len, tokens.values()))
            assert row["num_tokens"] == total
            assert row["num_sentences"] == sum(len(split_sentences(d["text"])) for d in row["documents"])
            assert row["rationale_ratio"] == pytest.approx(sum(map(sum, masks.values())) / total, abs=1e-6)


def test_rows_of_one_document_stand_together(hub):
    for path in parquet_files(hub):
        first = [row[0]["docid"] for row in pq.read_table(path)["documents"].to_pylist() if row]
        changes = sum(a != b for a, b in itertools.pairwise(first))
        assert changes == len(set(first)) - 1, path


def test_the_two_calls_of_the_readme(hub, monkeypatch, tmp_path):
    monkeypatch.chdir(hub)
    assert DEFAULT_CONFIG == "movies"
    loaded = load_dataset("eraser", "movies", cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 27, "validation": 24, "test": 13}
    assert (
        loaded["train"].features
        == ConfigWords("", {"classification": ("NEG", "POS")}).make_dataset_info(SCHEMA).features
    )
    streamed = next(iter(load_dataset("eraser", streaming=True)["train"]))
    assert streamed == loaded["train"][0]


def test_the_version_reaches_the_cache_and_goes_by_the_contents(hub, samples, monkeypatch, tmp_path):
    monkeypatch.chdir(hub)
    version = json.loads((hub / "eraser" / "release.json").read_text())["configs"]["cose"]["version"]
    builder = load_dataset_builder("eraser", "cose", cache_dir=str(tmp_path / "c"))
    assert str(builder.info.version) == version and version in builder.cache_dir
    assert builder.info.license == "bsd-3-clause"
    ERASER.build(["cose"], source=samples / "eraser", out=tmp_path / "same")
    assert json.loads((tmp_path / "same/eraser/release.json").read_text())["configs"]["cose"]["version"] == version
    shutil.copytree(samples / "eraser" / "cose", tmp_path / "in" / "cose")
    train = tmp_path / "in" / "cose" / "train.jsonl"
    train.write_text(train.read_text().replace('"classification": "B"', '"classification": "C"', 1))
    ERASER.build(["cose"], source=tmp_path / "in", out=tmp_path / "other")
    assert json.loads((tmp_path / "other/eraser/release.json").read_text())["configs"]["cose"]["version"] != version


def test_card_has_what_the_hub_asks_for(hub):
    metadata = read_card(hub / "eraser" / "README.md")[0]
    assert [c["config_name"] for c in metadata["configs"] if c.get("default")] == ["movies"]
    assert metadata["language"] == ["en"] and metadata["size_categories"] == ["n<1K"]
    assert {info["config_name"]: info["license"] for info in metadata["dataset_info"]} == {
        name: facts.license for name, facts in CONFIGS.items()
    }
    huggingface_hub = pytest.importorskip("huggingface_hub")
    card = huggingface_hub.DatasetCard.load(hub / "eraser" / "README.md")
    assert card.data.pretty_name == metadata["pretty_name"]


def test_a_hostile_release_json_reaches_no_other_path(copy, tmp_path):
    release = json.loads((copy / "release.json").read_text())
    release["configs"]["movies"]["splits"]["train"]["file"] = "../../owned.jsonl"
    (copy / "release.json").write_text(json.dumps(release))
    with refused("'../../owned.jsonl'", file=copy / "release.json"):
        ERASER.export(copy, ["movies"], out=tmp_path / "out")
    assert not list(tmp_path.rglob("owned*"))


def test_no_rows_make_a_file_too(tmp_path):
    assert write_parquet(tmp_path / "f.parquet", SCHEMA, []).num_rows == 0
    assert pq.read_table(tmp_path / "f.parquet").num_rows == 0


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(
        st.text(st.sampled_from(["a", "é", "漢", " ", "\n", "\r", "\t", "\u00a0", "\u200b"]), max_size=12), max_size=6
    )
)
def test_counting_on_bytes_is_the_rule(texts):
    counts = count_tokens(pa.array(["pad", *texts], pa.string()).slice(1))
    assert counts.tolist() == [[len(split_tokens(text)), len(split_sentences(text))] for text in texts]


def test_shared_documents_stand_once_and_read_as_strings(tmp_path):
    texts = ["a long text " * 200, "another one " * 300]
    shared = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 0] * 50, pa.int32()), pa.array(texts))
    plain = pa.table({"text": pa.array(shared.to_pylist())})
    facts = write_parquet(tmp_path / "f.parquet", plain.schema, [pa.table({"text": shared})])
    assert pq.read_table(tmp_path / "f.parquet").equals(plain)
    assert facts.num_bytes == write_parquet(tmp_path / "g.parquet", plain.schema, [plain]).num_bytes
    held = pq.ParquetFile(tmp_path / "f.parquet").metadata.row_group(0).column(0)
    assert held.total_uncompressed_size < 2 * sum(map(len, texts))


@pytest.mark.parametrize("config", ["movies", "boolq", "evidence_inference", "fever", "cose"])
def test_parquet_is_no_larger_than_the_archive(config, corpora, tmp_path):
    """All that the release holds; ``rationale`` says the evidences' texts again, and comes on top."""
    import tarfile

    if not (corpora / config).is_dir():
        pytest.skip(f"skipped: no {config} among the real corpora")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz", compresslevel=6) as tar:
        tar.add(corpora / config, config, filter=lambda member: None if member.name.endswith("README") else member)
    ERASER.build([config], source=corpora, out=tmp_path / "hub")
    files = list((tmp_path / "hub").rglob("*.parquet"))
    again = sum(_compressed(path, "rationale") for path in files)
    assert sum(path.stat().st_size for path in files) - again <= (tmp_path / "a.tar.gz").stat().st_size


def _compressed(path: Path, column: str) -> int:
    metadata = pq.ParquetFile(path).metadata
    chunks = (
        metadata.row_group(k).column(n) for k in range(metadata.num_row_groups) for n in range(metadata.num_columns)
    )
    return sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema == column)
