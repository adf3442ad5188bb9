"""``bilingual_perturbation``: where files are found, what is built of odd ones, checks, Table 3, real files."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.conversion.bilingual_perturbation.dataset import DATASET
from eraser_hub.conversion.bilingual_perturbation.format import CONFIGS
from eraser_hub.conversion.built import open_built

from ...refusals import refused


def write(path: Path, records: list[Any]) -> None:
    """Write records as JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_missing_files_and_two_of_one_role_are_named(tmp_path: Path, samples: Path, caplog) -> None:
    with refused(tmp_path / "senti_en", "luge.ai", file=tmp_path):
        DATASET.build(None, source=tmp_path, out=tmp_path / "hub")
    with refused("luge.ai", argument="source"):
        DATASET.build(None, out=tmp_path / "hub")
    source = samples / "bilingual_perturbation"
    shutil.copy(source / "mrc_en", tmp_path / "mrc_en")
    with refused(tmp_path / "senti_ch"):
        DATASET.build(["senti_ch"], source=tmp_path, out=tmp_path / "hub")
    with caplog.at_level(logging.WARNING, "eraser_hub"):
        result = DATASET.build(None, source=tmp_path, out=tmp_path / "hub")
    assert set(result.rows) == {"mrc_en"}
    assert "senti_ch, " in caplog.text and any("mrc_en_golden.jsonl" in note for note in result.notes)
    for name in ("mrc_en_golden.jsonl", "mrc_en_gold2.jsonl"):
        shutil.copy(source / "mrc_en_golden.jsonl", tmp_path / name)
    with refused("gold file of mrc_en", "mrc_en_gold2.jsonl", file="mrc_en_golden.jsonl"):
        DATASET.build(None, source=tmp_path, out=tmp_path / "hub")


def test_gold_in_a_folder_of_its_own_and_gold_alone(tmp_path: Path, samples: Path) -> None:
    source, luge = samples / "bilingual_perturbation", tmp_path / "luge"
    (luge / "golden").mkdir(parents=True)
    copies = {"senti_ch": "senti_ch", "golden/senti_ch": "senti_ch_golden.jsonl"}
    for name, original in {**copies, "senti_en_golden.jsonl": "senti_en_golden.jsonl"}.items():
        shutil.copy(source / original, luge / name)
    result = DATASET.build(None, source=tmp_path, out=tmp_path / "hub")
    assert result.rows == {"senti_en": {"test": 64}, "senti_ch": {"test": 64}}
    assert all(row["has_gold"] for row in open_built(result.folder).rows("senti_ch", "test"))
    DATASET.export(result.folder, None, out=tmp_path / "raw")
    for name in copies:
        assert (tmp_path / "raw" / "senti_ch" / name).read_bytes() == (luge / name).read_bytes()
    assert DATASET.build(None, source=tmp_path / "raw", out=tmp_path / "again").rows == result.rows


def senti(identifier: int, **fields: Any) -> dict[str, Any]:
    """Return a public record."""
    return {"id": identifier, "context": "so good", "sent_token": ["so", "good"], "sample_type": "ori", **fields}


GOLD = {"sent_id": 1, "sent_token": ["so", "good"], "sent_label": 1, "rationale_ids": [[[1], []]], "rel_ids": [9]}
PAIR = [senti(1, rel_ids=[2]), senti(2, sample_type="disturb")]


@pytest.mark.parametrize(
    ("records", "gold", "kind", "known"),
    [
        ([senti(1, rel_ids=[2])], None, "rel_ids without a record", False),
        ([senti(1, rel_ids=[2]), senti(2, rel_ids=[1])], None, "rel_ids name an original", False),
        ([PAIR[0], senti(2, sample_type="disturb", rel_ids=[3])], None, "rel_ids of a perturbed record", False),
        ([senti(1, context="so bad")], None, "tokens do not spell the text", False),
        (PAIR, GOLD, "empty gold set", False),
        (PAIR, GOLD, "rel_ids beyond a partial gold", True),
    ],
)
def test_faults_are_found_and_quirks_are_known(
    tmp_path: Path, records: list, gold: Any, kind: str, known: bool
) -> None:
    write(tmp_path / "senti_en", records)
    if gold:
        write(tmp_path / "senti_en_golden.jsonl", [gold])
    assert {each.kind: bool(each.why) for each in DATASET.check(tmp_path).findings}[kind] is known


def test_table_3_counts_pairs(samples: Path, tmp_path: Path) -> None:
    folder = DATASET.build(["senti_ch"], out=tmp_path, source=samples / "bilingual_perturbation").folder
    (row,) = DATASET.stats(folder).as_json()["tables"]["table_3"]["rows"]
    assert (row["pairs"]["value"], row["pairs"]["printed"], row["rationale_percent"]["printed"]) == (32, "2160", "27.6")


def test_the_real_files(corpora: Path, tmp_path: Path) -> None:
    if not (corpora / "luge" / "senti_ch_golden_2records.jsonl").is_file():
        pytest.skip("skipped: no luge/senti_ch")
    result = DATASET.build(None, source=corpora, out=tmp_path / "hub")
    assert result.rows == {name: {"test": 40} for name in CONFIGS}
    assert any("the gold's win (1: 1647 -> 2162, 4: 1650 -> 2165)" in note for note in result.notes)
    assert any("senti_ch_predict_2records.jsonl: skipped" in note for note in result.notes)
    assert not DATASET.check(result.folder).errors
    DATASET.export(result.folder, None, out=tmp_path / "raw")
    exported = [path for path in (tmp_path / "raw").rglob("*") if path.is_file()]
    assert len(exported) == 7
    assert all(path.read_bytes() == (corpora / "luge" / path.name).read_bytes() for path in exported)
    rows = open_built(result.folder).rows("senti_ch", "test")
    first, second = rows[:2]
    assert (first["id"], first["label"], first["rel_ids"]) == ("1", 0, ["2162"])
    assert first["rationale_ids"] == [[[2, 3, 7], [11, 12, 13]]]
    assert (second["id"], second["label"], second["rel_ids"]) == ("4", 1, ["2165"])
    assert second["rationale_ids"] == [[[5, 6, 9], [15, 16, 17, 18]]]
