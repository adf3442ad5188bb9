"""The builder class of ``bilingual_perturbation``: instantiated, streamed, cached, as a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eraser_hub.datasets_scripts.bilingual_perturbation as script
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.built import open_built
from eraser_hub.datasets_scripts.bilingual_perturbation import BilingualPerturbation, pairs

from ..refusals import refused

DATASET = HUB_DATASETS["bilingual_perturbation"]


def test_builder_configs_are_those_of_the_dataset() -> None:
    assert tuple(BilingualPerturbation.builder_configs) == DATASET.configs
    assert DATASET.default_config == BilingualPerturbation.DEFAULT_CONFIG_NAME


@pytest.mark.parametrize("name", DATASET.configs)
def test_a_builder_gives_the_rows_and_features_of_the_folder(
    name: str, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import load_dataset

    source = samples / "bilingual_perturbation"
    builder = BilingualPerturbation(name, data_dir=str(source), cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    rows = builder.as_dataset(split="test")
    folder = DATASET.build([name], out=tmp_path / "hub", source=source).folder
    assert list(rows) == open_built(folder).rows(name, "test")
    monkeypatch.chdir(tmp_path / "hub")
    loaded = load_dataset("bilingual_perturbation", name, split="test", cache_dir=str(tmp_path / "loaded"))
    assert loaded.features == rows.features
    assert list(builder.as_streaming_dataset(split="test")) == list(rows)


def test_without_a_folder_the_samples_are_read(tmp_path: Path) -> None:
    builder = BilingualPerturbation(cache_dir=str(tmp_path))
    builder.download_and_prepare(str(tmp_path / "parquet"), file_format="parquet")
    assert builder.config.name == "senti_en"
    assert list((tmp_path / "parquet").glob("*.parquet"))


def test_changed_files_are_read_anew(samples: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    text = (samples / "bilingual_perturbation" / "mrc_en").read_text(encoding="utf-8")

    def titles() -> list[str]:
        builder = BilingualPerturbation("mrc_en", data_dir=str(source), cache_dir=str(tmp_path / "cache"))
        builder.download_and_prepare()
        return builder.as_dataset(split="test")["title"][:]

    (source / "mrc_en").write_text(text, encoding="utf-8")
    before = titles()
    records = [json.loads(line) | {"title": "new"} for line in text.splitlines()]
    (source / "mrc_en").write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    assert titles() == ["new"] * len(before) != before


def test_a_missing_file_and_an_unknown_config_are_refused(tmp_path: Path) -> None:
    with refused(tmp_path / "senti_ch", file=tmp_path):
        BilingualPerturbation("senti_ch", data_dir=str(tmp_path))
    with pytest.raises(ValueError, match="senti_fr"):
        BilingualPerturbation("senti_fr", cache_dir=str(tmp_path))


def test_pairs_of_a_dataset_make_a_dataset(tmp_path: Path) -> None:
    from datasets import Dataset

    builder = BilingualPerturbation("similarity_ch", cache_dir=str(tmp_path))
    builder.download_and_prepare()
    joined = Dataset.from_list(pairs(builder.as_dataset(split="test")))
    assert joined.num_rows == 4
    assert joined[0]["original"]["id"] == joined[0]["perturbed"]["original_id"] == "1"


def test_the_script_imports_nothing_relative() -> None:
    # datasets before 4.0 copies a loading script elsewhere and runs it there
    text = Path(script.__file__).read_text(encoding="utf-8")
    assert not [line for line in text.splitlines() if line.lstrip().startswith(("from .", "import ."))]


def test_perturbation_map_takes_rows_and_predictions_as_they_are(samples: Path, tmp_path: Path, spaces: Path) -> None:
    import evaluate

    builder = BilingualPerturbation("senti_ch", cache_dir=str(tmp_path))
    builder.download_and_prepare()
    rows = builder.as_dataset(split="test")
    text = (samples / "predictions" / "bilingual_perturbation" / "senti_ch.jsonl").read_text(encoding="utf-8")
    predictions = [json.loads(line) for line in text.splitlines()]
    result = evaluate.load(str(spaces / "perturbation_map")).compute(predictions=predictions, references=rows)
    assert result["pairs"] == len(pairs(rows)) == 32
    assert 0 < result["map"] < 1
    agreement = evaluate.load(str(spaces / "rationale_set_agreement"))
    result = agreement.compute(predictions=predictions, references=rows)
    assert 0 < result["token_f1"] < 1
    identical = [{"id": row["id"], "rationale_tokens": [sorted(row["tokens"][0])]} for row in rows]
    twins = {row["id"]: [sorted(row["tokens"][0])] for row in rows if row["sample_type"] == "ori"}
    same = [
        {"id": p["id"], "rationale_tokens": twins.get(row["original_id"] or row["id"])}
        for p, row in zip(identical, rows, strict=True)
    ]
    score = evaluate.load(str(spaces / "perturbation_map")).compute(predictions=same, references=rows)
    assert score["map"] == pytest.approx(1.0)
