"""``bilingual_perturbation``: build, load, export line for line, check, statistics; samples, hostile and real files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.bilingual_perturbation.configs import CONFIGS
from eraser_hub.conversion.bilingual_perturbation.pairs import map_references, pairs
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.dataset import read_release
from eraser_hub.conversion.small_dataset import Entry

from ...refusals import refused

DATASET = HUB_DATASETS["bilingual_perturbation"]
SLOW_FIXTURE = HealthCheck.function_scoped_fixture


def build(source: Path, out: Path, configs: list[str] | None = None):
    """A build; its result."""
    return DATASET.build(configs, out=out, source=source)


def dump(path: Path, records: list[Any], **style: Any) -> None:
    """Records as JSON lines."""
    path.write_text(
        "".join(json.dumps(r, **{"ensure_ascii": False, **style}) + "\n" for r in records), encoding="utf-8"
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """The samples, built once."""
    return build(samples / "bilingual_perturbation", tmp_path_factory.mktemp("hub")).folder


def test_the_samples_come_back_letter_by_letter(built: Path, samples: Path, tmp_path: Path) -> None:
    result = DATASET.export(built, None, out=tmp_path / "raw")
    source = samples / "bilingual_perturbation"
    assert sorted(path.name for path in result.files) == sorted(path.name for path in source.iterdir())
    for path in result.files:
        assert path.read_bytes() == (source / path.name).read_bytes()


def test_every_config_has_the_same_columns_and_its_language(built: Path) -> None:
    rows = {name: open_built(built).rows(name, "test") for name in CONFIGS}
    assert len({tuple(row) for each in rows.values() for row in each}) == 1
    for name, each in rows.items():
        assert {row["language"] for row in each} == {"zh" if name.endswith("_ch") else "en"}
        assert all(row["has_gold"] and row["label"] in (0, 1) for row in each)
        assert {row["sample_type"] for row in each} == {"ori", "disturb"}


def test_the_card_names_languages_and_loads(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import load_dataset

    monkeypatch.chdir(built.parent)
    rows = load_dataset("bilingual_perturbation", "mrc_ch", split="test", cache_dir=str(tmp_path))
    assert list(rows) == open_built(built).rows("mrc_ch", "test")
    assert rows.features["label"].names == ["unanswerable", "answerable"]
    assert load_dataset("bilingual_perturbation", split="test", cache_dir=str(tmp_path)).num_rows == 64  # senti_en
    text = (built / "README.md").read_text(encoding="utf-8")
    assert "| `senti_ch` | Chinese | sentiment analysis | 64 |" in text
    assert "<!--" not in text


def test_the_card_passes_the_hubs_own_parser(built: Path) -> None:
    from huggingface_hub import DatasetCard

    data = DatasetCard.load(built / "README.md").data.to_dict()
    assert data["language"] == ["en", "zh"]
    assert [config["config_name"] for config in data["configs"]] == list(CONFIGS)


def test_samples_are_without_fault(built: Path) -> None:
    report = DATASET.check(built)
    assert [split.findings for split in report.splits] == [[]] * len(CONFIGS)
    assert report.violations == 0


def test_building_one_config_keeps_the_others_and_a_failing_build_keeps_all(samples: Path, tmp_path: Path) -> None:
    source = samples / "bilingual_perturbation"
    folder = build(source, tmp_path / "hub", ["senti_ch"]).folder
    build(source, tmp_path / "hub", ["mrc_en"])
    assert set(read_release(folder, Entry)) == {"senti_ch", "mrc_en"}
    assert DATASET.check(folder).violations == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / "senti_ch").write_text("{", encoding="utf-8")
    with refused(file="hostile/senti_ch", line=1):
        build(hostile, tmp_path / "hub")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in (tmp_path / "hub").iterdir()) == ["bilingual_perturbation"]


IDS = st.lists(st.one_of(st.integers(0, 10**9), st.text("ab-1é", min_size=1, max_size=4)), unique_by=str, max_size=6)
TOKENS = st.lists(st.text(st.characters(codec="utf-8"), max_size=3), max_size=5)
EXTRA = st.dictionaries(
    st.sampled_from(["url", "note", "质量", "score"]),
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.lists(st.integers(), max_size=2)),
    max_size=2,
)


@st.composite
def corpora_of_lines(draw: st.DrawFn) -> tuple[list[dict], list[dict]]:
    """Arbitrary public and gold records that fit one another."""
    public, gold = [], []
    for identifier in draw(IDS.filter(bool)):
        tokens = draw(TOKENS)
        record: dict[str, Any] = {"id": identifier, "context": "".join(tokens), "sent_token": tokens}
        record["sample_type"] = draw(st.sampled_from(["ori", "disturb"]))
        if draw(st.booleans()):
            record["rel_ids"] = [f"x{n}" for n in range(draw(st.integers(0, 2)))]
        public.append(record | draw(EXTRA))
        if draw(st.booleans()) and tokens:
            sets = draw(st.lists(st.lists(st.integers(0, len(tokens) - 1), max_size=3), max_size=3))
            spelled = draw(st.sampled_from(["strings", "numbers", "flat"]))
            entry: dict[str, Any] = {"sent_id": identifier, "sent_label": draw(st.integers(0, 1)), "sent_token": tokens}
            if spelled == "flat":
                entry["rationales"] = [str(index) for chosen in sets for index in chosen]
            else:
                entry["rationale_ids"] = [[[str(i) if spelled == "strings" else i for i in s] for s in sets]]
            gold.append(entry | draw(EXTRA))
    return public, draw(st.permutations(gold))


@settings(derandomize=True, max_examples=25, deadline=None, suppress_health_check=[SLOW_FIXTURE])
@given(corpora_of_lines(), st.booleans(), st.sampled_from([(", ", ": "), (",", ":")]))
def test_whatever_was_built_is_exported_letter_by_letter(
    tmp_path_factory: pytest.TempPathFactory, corpus: tuple[list, list], ascii_only: bool, separators: tuple
) -> None:
    place = tmp_path_factory.mktemp("round")
    source = place / "source"
    source.mkdir()
    dump(source / "senti_en", corpus[0], ensure_ascii=ascii_only, separators=separators)
    if corpus[1]:
        dump(source / "senti_en_golden.jsonl", corpus[1], ensure_ascii=ascii_only, separators=separators)
    folder = build(source, place / "hub").folder
    DATASET.export(folder, None, out=place / "raw")
    for path in source.iterdir():
        assert (place / "raw" / path.name).read_bytes() == path.read_bytes()
    assert len(open_built(folder).rows("senti_en", "test")) == len(corpus[0])


def test_odd_lines_are_kept_whole(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    odd = (
        '\ufeff{"id": 1, "context": "a b", "sent_token": ["a", "b"], "sample_type": "ori", "rel_ids": [2]}\r\n'
        '{ "sample_type":"disturb",  "id":"2","context":"\\u0061","sent_token":["a"],"x":1e30,"y":{"z":[1.50]}}'
    )
    (source / "senti_en").write_bytes(odd.encode())
    folder = build(source, tmp_path / "hub").folder
    (exported,) = DATASET.export(folder, ["senti_en"], out=tmp_path / "raw").files
    assert exported.read_bytes() == odd.encode()


def test_lines_that_are_missing_are_no_empty_file(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "bilingual_perturbation"
    shutil.copytree(built, copy)
    (copy / "records" / "mrc_en.parquet").unlink()
    with refused("the 6 ", "mrc_en", " 0", file="mrc_en.parquet"):
        DATASET.export(copy, ["mrc_en"], out=tmp_path / "raw")


def test_a_folder_that_another_version_built_is_refused(built: Path, tmp_path: Path, samples: Path) -> None:
    copy = tmp_path / "bilingual_perturbation"
    shutil.copytree(built, copy)
    release = json.loads((copy / "release.json").read_text(encoding="utf-8"))
    del release["format"]
    (copy / "release.json").write_text(json.dumps(release), encoding="utf-8")
    for verb in (
        lambda: DATASET.export(copy, None, out=tmp_path / "raw"),
        lambda: build(samples / "bilingual_perturbation", tmp_path, ["mrc_en"]),
    ):
        with refused("2", "None", file="release.json"):
            verb()


def test_export_overwrites_nothing_and_reaches_no_other_path(built: Path, tmp_path: Path) -> None:
    (tmp_path / "senti_ch").write_text("mine")
    with refused(file=tmp_path / "senti_ch"):
        DATASET.export(built, None, out=tmp_path)
    assert (tmp_path / "senti_ch").read_text() == "mine"
    for name in ("../outside", "/tmp/outside", "", "a/../../b"):
        copy = tmp_path / "copy"
        shutil.copytree(built, copy, dirs_exist_ok=True)
        release = json.loads((copy / "release.json").read_text(encoding="utf-8"))
        release["configs"]["mrc_en"]["files"][0]["file"] = name
        (copy / "release.json").write_text(json.dumps(release), encoding="utf-8")
        with refused(repr(name), file="copy/release.json"):
            DATASET.export(copy, ["mrc_en"], out=tmp_path / "raw")


def senti(identifier: int, **fields: Any) -> dict[str, Any]:
    """A public record."""
    return {"id": identifier, "context": "so good", "sent_token": ["so", "good"], "sample_type": "ori", **fields}


@pytest.mark.parametrize(
    ("records", "check"),
    [
        ([senti(1, rel_ids=[2])], "rel_ids without a record"),
        ([senti(1, rel_ids=[2]), senti(2, rel_ids=[1])], "rel_ids name an original"),
        ([senti(1, rel_ids=[2]), senti(2, sample_type="disturb", rel_ids=[3])], "rel_ids of a perturbed record"),
        ([senti(1, context="so bad")], "tokens do not spell the text"),
        ([senti(1, sent_token=[])], "tokens do not spell the text"),
    ],
)
def test_violations_are_found(tmp_path: Path, records: list[dict], check: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    dump(source / "senti_en", records)
    report = DATASET.check(source)
    levels = {finding.check: finding.level for split in report.splits for finding in split.findings}
    assert levels[check] == "violation"
    assert report.violations


def test_an_empty_gold_set_is_a_violation_and_a_partial_golds_rel_ids_are_a_note(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    dump(source / "senti_en", [senti(1, rel_ids=[2]), senti(2, sample_type="disturb")])
    gold = {"sent_id": 1, "sent_token": ["so", "good"], "sent_label": 1, "rationale_ids": [[[1], []]], "rel_ids": [9]}
    dump(source / "senti_en_golden.jsonl", [gold])
    report = DATASET.check(source)
    levels = {finding.check: finding.level for split in report.splits for finding in split.findings}
    assert levels["empty gold set"] == "violation"
    assert levels["rel_ids beyond a partial gold"] == "note"


def test_missing_files_are_named(tmp_path: Path, samples: Path) -> None:
    with refused(tmp_path / "senti_en", "luge.ai", file=tmp_path):
        build(tmp_path, tmp_path / "hub")
    with refused("`source`", "luge.ai"):
        DATASET.build(None, out=tmp_path / "hub")
    shutil.copy(samples / "bilingual_perturbation" / "mrc_en", tmp_path / "mrc_en")
    result = build(tmp_path, tmp_path / "hub")
    assert set(result.rows) == {"mrc_en"}
    assert any(note.startswith(f"{tmp_path / 'senti_ch'}: ") for note in result.notes)
    assert any("mrc_en_golden.jsonl" in note for note in result.notes)
    with refused(tmp_path / "senti_ch"):
        build(tmp_path, tmp_path / "hub", ["senti_ch"])


def test_two_gold_files_of_one_config_are_refused(tmp_path: Path, samples: Path) -> None:
    source = samples / "bilingual_perturbation"
    shutil.copy(source / "mrc_en", tmp_path / "mrc_en")
    for name in ("mrc_en_golden.jsonl", "mrc_en_gold2.jsonl"):
        shutil.copy(source / "mrc_en_golden.jsonl", tmp_path / name)
    with refused("gold file of mrc_en", "mrc_en_gold2.jsonl", file="mrc_en_golden.jsonl"):
        build(tmp_path, tmp_path / "hub")


def test_gold_in_a_folder_of_its_own_and_gold_alone(tmp_path: Path, samples: Path) -> None:
    source = samples / "bilingual_perturbation"
    (tmp_path / "luge" / "golden").mkdir(parents=True)
    shutil.copy(source / "senti_ch", tmp_path / "luge" / "senti_ch")
    shutil.copy(source / "senti_ch_golden.jsonl", tmp_path / "luge" / "golden" / "senti_ch")
    shutil.copy(source / "senti_en_golden.jsonl", tmp_path / "luge" / "senti_en_golden.jsonl")
    result = build(tmp_path, tmp_path / "hub")
    assert result.rows == {"senti_en": {"test": 64}, "senti_ch": {"test": 64}}
    assert all(row["has_gold"] for row in open_built(result.folder).rows("senti_ch", "test"))
    DATASET.export(result.folder, None, out=tmp_path / "raw")
    for name in ("senti_ch", "golden/senti_ch", "senti_en_golden.jsonl"):
        assert (tmp_path / "raw" / name).read_bytes() == (tmp_path / "luge" / name).read_bytes()


def test_table_3_stands_beside_the_printed_figures(built: Path) -> None:
    tables = DATASET.stats(built, ["senti_ch"]).as_json()["tables"]
    (row,) = tables["table_3"]["rows"]
    assert row["config"] == "senti_ch"
    assert (row["pairs"]["value"], row["pairs"]["printed"]) == (32, "2160")
    assert row["rationale_percent"]["printed"] == "27.6"
    rows = open_built(built).rows("senti_ch", "test")
    assert row["rationale_percent"]["value"] == pytest.approx(
        100 * sum(r["rationale_ratio"] for r in rows) / len(rows), abs=1e-5
    )


def test_pairs_join_rows_and_predictions(built: Path, samples: Path) -> None:
    rows = open_built(built).rows("senti_ch", "test")
    text = (samples / "predictions" / "bilingual_perturbation" / "senti_ch.jsonl").read_text(encoding="utf-8")
    predictions = [json.loads(line) for line in text.splitlines()]
    joined = pairs(rows, predictions)
    assert len(joined) == 32
    for pair in joined:
        assert pair["original"]["rel_ids"] == [pair["perturbed_id"]]
        assert pair["perturbed"]["original_id"] == pair["original_id"]
        assert str(pair["perturbed_prediction"]["id"]) == pair["perturbed_id"]
        for side in ("original", "perturbed"):
            ranked = pair[f"{side}_prediction"]["ranked_tokens"][0]
            assert sorted(ranked) == sorted(pair[side]["tokens"][0])
    with refused(instance="1"):
        pairs(rows, predictions[1:])
    with refused("row", instance="1"):
        pairs([*rows, rows[0]])


def cli(*words: object) -> subprocess.CompletedProcess[str]:
    """The command line."""
    return subprocess.run(
        [sys.executable, "-m", "eraser_hub", *map(str, words)], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_the_command_line_from_build_to_export(tmp_path: Path, samples: Path) -> None:
    hub, raw = tmp_path / "hub", tmp_path / "raw"
    source = samples / "bilingual_perturbation"
    run = cli("build", "bilingual_perturbation", "--source", source, "--out", hub, "--config", "senti_ch")
    assert run.returncode == 0, run.stderr
    assert "senti_ch: test 64" in run.stdout
    assert cli("check", "--dataset", hub / "bilingual_perturbation").returncode == 0
    run = cli("stats", "--dataset", hub / "bilingual_perturbation")
    assert run.returncode == 0 and "27.6" in run.stdout
    assert cli("export", "--dataset", hub / "bilingual_perturbation", "--out", raw).returncode == 0
    assert (raw / "senti_ch").read_bytes() == (source / "senti_ch").read_bytes()
    (tmp_path / "senti_en").write_text('{"id": 1, "rel_ids": [1]}\n')
    run = cli("build", "bilingual_perturbation", "--source", tmp_path, "--out", hub)
    assert run.returncode == 1
    assert run.stderr.startswith(f"{tmp_path / 'senti_en'}:1: instance '1'")
    assert "Traceback" not in run.stderr


def test_the_real_files_come_back_letter_by_letter(corpora: Path, tmp_path: Path) -> None:
    if not (corpora / "luge" / "senti_ch").is_file():
        pytest.skip("skipped: no luge/senti_ch")
    result = build(corpora, tmp_path / "hub")
    assert result.rows == {name: {"test": 40} for name in CONFIGS}
    assert any("the gold's win (1: 1647 -> 2162, 4: 1650 -> 2165)" in note for note in result.notes)
    assert any("senti_ch_predict_2records.jsonl: skipped" in note for note in result.notes)
    assert DATASET.check(result.folder).violations == 0
    files = DATASET.export(result.folder, None, out=tmp_path / "raw").files
    assert len(files) == 7
    for path in files:
        assert path.read_bytes() == (corpora / "luge" / path.name).read_bytes()
    rows = open_built(result.folder).rows("senti_ch", "test")
    assert len(pairs(rows)) == 18  # the gold's two name records that are not in the excerpt
    assert sum(len(row["rel_ids"]) for row in map_references(rows)) == 18
