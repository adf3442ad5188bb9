"""``human_rationales``: what is built of odd and missing files, checks, tables, the real files."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from eraser_hub.conversion.built import BuiltDataset, open_built
from eraser_hub.conversion.human_rationales.dataset import DATASET

from ...refusals import refused


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> BuiltDataset:
    """The samples, built once."""
    return open_built(
        DATASET.build(None, source=samples / "human_rationales", out=tmp_path_factory.mktemp("hub")).folder
    )


def test_wikiattack_without_comments_builds_and_says_what_is_missing_and_where_it_is(
    samples: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = "wiki_attack_dev_rationale.csv"
    shutil.copy(samples / "human_rationales" / "wikiattack" / name, tmp_path / name)
    with caplog.at_level(logging.WARNING, "eraser_hub"):
        result = DATASET.build(None, source=tmp_path, out=tmp_path / "hub")
    assert result.rows == {"wikiattack": {"validation": 5}}
    notes = "\n".join(result.notes)
    for file, number in (("attack_annotated_comments.tsv", 7554634), ("attack_annotations.tsv", 7554637)):
        assert f"{tmp_path / file}: " in notes and f"figshare.com/files/{number}" in notes
    assert "sst" in caplog.text and "trainDevTestTrees_PTB.zip" in caplog.text
    rows = open_built(result.folder).rows("wikiattack", "validation")
    assert all(row["text"] is None and row["label"] is None and row["rationale_mask"] for row in rows)
    checked = DATASET.check(result.folder)
    assert not checked.errors and {found.kind for found in checked.findings} == {"no text", "no label"}


def test_missing_files_are_named(tmp_path: Path) -> None:
    names = {"sst": "train.txt,dev.txt,test.txt", "wikiattack": "wiki_attack_dev_rationale.csv"}
    for configs in (None, ["sst"], ["wikiattack"]):
        with refused(*(names[config] for config in configs or names), file=tmp_path):
            DATASET.build(configs, source=tmp_path, out=tmp_path / "hub")
    with refused(argument="source"):
        DATASET.build(None, out=tmp_path / "hub")


def test_a_file_of_neutral_trees_alone_makes_no_split_and_is_exported(tmp_path: Path) -> None:
    source = tmp_path / "sst"
    source.mkdir()
    (source / "train.txt").write_text("(2 meh)\n(2 so)\n")
    (source / "dev.txt").write_text("(3 good)\n")
    result = DATASET.build(None, source=tmp_path, out=tmp_path / "hub")
    assert result.rows == {"sst": {"validation": 1}}
    assert any(note.startswith(f"{source / 'train.txt'}: ") and note.endswith("train") for note in result.notes)
    DATASET.export(result.folder, None, out=tmp_path / "raw")
    assert (tmp_path / "raw" / "sst" / "trees" / "train.txt").read_bytes() == (source / "train.txt").read_bytes()
    (source / "dev.txt").unlink()
    with refused(file=source / "train.txt"):
        DATASET.build(None, source=tmp_path, out=tmp_path / "hub")


def test_table_2_and_figure_1_stand_beside_the_printed_figures(built: BuiltDataset) -> None:
    tables = DATASET.stats(built.folder).as_json()["tables"]
    rows = {(row["config"], row["split"]): row for row in tables["table_2"]["rows"]}
    assert rows["sst", "all"]["text_length"]["printed"] == "19.3"
    assert rows["wikiattack", "all"]["rationale_percent"]["printed"] == "19.1"
    wiki = [row for split in ("validation", "test") for row in built.rows("wikiattack", split)]
    attack = next(row for row in wiki if row["id"] == "1000023")
    assert [t for t, bit in zip(attack["tokens"], attack["rationale_mask"], strict=True) if bit] == [
        "clueless",
        "vandal",
    ]
    masks = [row["rationale_mask"] for row in wiki if row["label"] == 1]
    classes = {(row["config"], row["label"]): row for row in tables["figure_1"]["rows"]}
    figure = classes["wikiattack", "personal-attack"]
    assert figure["rows"]["value"] == len(masks) and figure["rationale_percent"]["printed"] == "35"
    share = 100 * sum(sum(mask) / len(mask) for mask in masks) / len(masks)
    assert figure["rationale_percent"]["value"] == pytest.approx(share)


def test_the_real_files(corpora: Path, tmp_path: Path) -> None:
    if not (corpora / "sst").is_dir() or not (corpora / "wikiattack").is_dir():
        pytest.skip("skipped: no sst or wikiattack")
    result = DATASET.build(None, source=corpora, out=tmp_path / "hub")
    assert result.rows == {"sst": {"validation": 872}, "wikiattack": {"validation": 549}}
    assert any(note.endswith("dev.txt: 229 neutral roots") for note in result.notes)
    assert not DATASET.check(result.folder).errors
    DATASET.export(result.folder, None, out=tmp_path / "raw")
    for name in ("sst/trees/dev.txt", "wikiattack/wiki_attack_dev_rationale.csv"):
        assert (tmp_path / "raw" / name).read_bytes() == (corpora / name).read_bytes()
    masks = open_built(result.folder).rows("wikiattack", "validation", ["id", "rationale_mask"])
    marked = [(row["id"], len(row["rationale_mask"]), sum(row["rationale_mask"])) for row in masks]
    assert sum(count > 0 for _, _, count in marked) == 247
    assert [marked[n] for n in (0, 9, -1)] == [("2644049", 110, 0), ("15308779", 6, 0), ("694372614", 6, 6)]
    rows = open_built(result.folder).rows("sst", "validation")
    assert [tuple(phrase.values()) for phrase in rows[0]["phrases"]] == [(3, 5, 4), (6, 12, 4)]
    chosen = [(rows[n]["id"], rows[n]["label"], sum(rows[n]["rationale_mask"])) for n in (0, 9, -1)]
    assert chosen == [("dev_1", 1, 8), ("dev_12", 1, 12), ("dev_1101", 0, 5)]
    table = DATASET.stats(result.folder).as_json()["tables"]["table_2"]
    figures = {row["config"]: row for row in table["rows"] if row["split"] == "all"}
    printed = {"text_length": 19.548, "rationale_percent": 44.446, "score_percent": 35.204}
    assert {key: figures["sst"][key]["value"] for key in printed} == pytest.approx(printed, abs=1e-3)
    assert figures["wikiattack"]["rationale_percent"]["value"] == pytest.approx(19.894, abs=1e-3)
