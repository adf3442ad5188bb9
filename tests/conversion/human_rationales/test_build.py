"""``human_rationales``: build, load, export line for line, check, statistics, from samples, hostile and real files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.dataset import read_release
from eraser_hub.conversion.human_rationales.sentiment_trees import parse_tree
from eraser_hub.conversion.small_dataset import Entry

from ...refusals import refused

DATASET = HUB_DATASETS["human_rationales"]
HEADER = "platform_comment_id,rationale\n"


def build(source: Path, out: Path, configs: list[str] | None = None):
    """A build; its result."""
    return DATASET.build(configs, out=out, source=source)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """The samples, built once."""
    return build(samples / "human_rationales", tmp_path_factory.mktemp("hub")).folder


def test_the_samples_come_back_letter_by_letter(built: Path, samples: Path, tmp_path: Path) -> None:
    result = DATASET.export(built, None, out=tmp_path)
    names = sorted(path.relative_to(tmp_path).as_posix() for path in result.files)
    assert names == [
        "sst/trees/dev.txt",
        "sst/trees/test.txt",
        "sst/trees/train.txt",
        "wikiattack/wiki_attack_dev_rationale.csv",
        "wikiattack/wiki_attack_test_rationale.csv",
    ]
    for name in names:
        assert (tmp_path / name).read_bytes() == (samples / "human_rationales" / name).read_bytes()
    assert len(result.notes) == 1 and "wikiattack" in result.notes[0]


def test_neutral_roots_are_skipped_counted_and_kept(built: Path, samples: Path) -> None:
    facts = {file["split"]: file for file in read_release(built, Entry)["sst"]["files"]}
    for split, name in (("train", "train"), ("validation", "dev"), ("test", "test")):
        text = (samples / "human_rationales" / "sst" / "trees" / f"{name}.txt").read_text(encoding="utf-8-sig")
        trees = [parse_tree(line) for line in text.splitlines()]
        neutral = sum(tree.sentiment == 2 for tree in trees)
        assert facts[split]["skipped"] == {"neutral roots": neutral}
        rows = open_built(built).rows("sst", split)
        assert len(rows) == len(trees) - neutral
        assert {row["sentiment"] > 2 for row in rows} >= {row["label"] == 1 for row in rows}
    assert "`trees/dev.txt` (sst): 1 neutral roots" in (built / "README.md").read_text(encoding="utf-8")


def test_rows_carry_mask_scores_phrases_and_escapes_undone(built: Path) -> None:
    rows = {row["id"]: row for row in open_built(built).rows("sst", "train")}
    row = next(row for row in rows.values() if "-LRB-" in row["tree"])
    assert "(" in row["tokens"] and "(" in row["text"] and "-LRB-" not in row["text"]
    for each in rows.values():
        covered = {n for phrase in each["phrases"] for n in range(phrase["start_token"], phrase["end_token"])}
        assert each["rationale_mask"] == [n in covered for n in range(each["num_tokens"])]
        assert set(each["rationale_scores"]) <= {0.0, 0.5, 1.0}


def test_comments_and_annotations_give_texts_and_labels(built: Path) -> None:
    rows = {row["id"]: row for row in open_built(built).rows("wikiattack", "validation")}
    attack = rows["1000023"]
    assert attack["label"] == 1 and attack["attack_share"] == pytest.approx(2 / 3)
    assert [t for t, bit in zip(attack["tokens"], attack["rationale_mask"], strict=True) if bit] == [
        "clueless",
        "vandal",
    ]
    assert rows["1000017"]["label"] == 0 and not any(rows["1000017"]["rationale_mask"])
    assert rows["1000058"]["text"] == "Only a fool would revert that.\tShame on you."


def test_samples_are_without_fault_and_the_card_is_whole(built: Path) -> None:
    from huggingface_hub import DatasetCard

    report = DATASET.check(built)
    assert [finding for split in report.splits for finding in split.findings] == []
    assert "<!--" not in (built / "README.md").read_text(encoding="utf-8")
    assert DatasetCard.load(built / "README.md").data.to_dict()["language"] == ["en"]


def test_the_folder_loads(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import load_dataset

    monkeypatch.chdir(built.parent)
    rows = load_dataset("human_rationales", cache_dir=str(tmp_path))
    assert {split: list(part) for split, part in rows.items()} == {
        split: open_built(built).rows("sst", split) for split in ("train", "validation", "test")
    }
    wiki = load_dataset("human_rationales", "wikiattack", split="test", cache_dir=str(tmp_path))
    assert wiki.features["label"].names == ["no-attack", "personal-attack"]


def test_wikiattack_without_comments_builds_and_says_what_is_missing_and_where_it_is(
    samples: Path, tmp_path: Path
) -> None:
    name = "wiki_attack_dev_rationale.csv"
    shutil.copy(samples / "human_rationales" / "wikiattack" / name, tmp_path / name)
    result = build(tmp_path, tmp_path / "hub")
    assert result.rows == {"wikiattack": {"validation": 5}}
    notes = "\n".join(result.notes)
    assert f"{tmp_path / 'attack_annotated_comments.tsv'}: " in notes and "figshare.com/files/7554634" in notes
    assert f"{tmp_path / 'attack_annotations.tsv'}: " in notes and "figshare.com/files/7554637" in notes
    assert " sst " in notes and "trainDevTestTrees_PTB.zip" in notes
    rows = open_built(result.folder).rows("wikiattack", "validation")
    assert all(row["text"] is None and row["label"] is None and row["rationale_mask"] for row in rows)
    report = DATASET.check(result.folder)
    assert {(f.check, f.level) for split in report.splits for f in split.findings} == {
        ("no text", "note"),
        ("no label", "note"),
    }


def test_missing_files_are_named(tmp_path: Path) -> None:
    for configs in (None, ["sst"], ["wikiattack"]):
        names = {"sst": "train.txt,dev.txt,test.txt", "wikiattack": "wiki_attack_dev_rationale.csv"}
        with refused(*(names[config] for config in configs or names), file=tmp_path):
            build(tmp_path, tmp_path / "hub", configs)
    with refused("`source`"):
        DATASET.build(None, out=tmp_path / "hub")


TREES = st.lists(
    st.sampled_from(["(2 meh)", "(3 (2 so) (3 good))", "(0 bad)", "(4  fine )", "(1 (2 -LRB-) (1 sad))", "", " "]),
    max_size=8,
)
MASKS = st.lists(st.lists(st.integers(0, 1), max_size=5), min_size=1, max_size=5)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(TREES, st.booleans(), st.booleans(), st.booleans(), MASKS, st.sampled_from(["plain", "tight", "crlf", "wide"]))
def test_whatever_was_built_is_exported_letter_by_letter(
    tmp_path_factory: pytest.TempPathFactory,
    trees: list[str],
    mark: bool,
    newline: bool,
    carriage: bool,
    masks: list[list[int]],
    style: str,
) -> None:
    place = tmp_path_factory.mktemp("round")
    source = place / "source"
    (source / "sst").mkdir(parents=True)
    (source / "wikiattack").mkdir()
    end = "\r\n" if carriage else "\n"
    text = end.join([*trees, "(4 last)"]) + (end if newline else "")
    (source / "sst" / "dev.txt").write_bytes((("\ufeff" if mark else "") + text).encode())
    lines = {
        "plain": [f'{n},"{mask}"\n' for n, mask in enumerate(masks)],
        "tight": [f'"{n}","{str(mask).replace(" ", "")}"\n' for n, mask in enumerate(masks)],
        "crlf": [f'{n},"{mask}"\r\n' for n, mask in enumerate(masks)],
        "wide": [f'{n},"{str(mask).replace("[", "[" + chr(10))}"\n' for n, mask in enumerate(masks)],
    }[style]
    header = '"platform_comment_id",rationale\r\n' if style == "crlf" else HEADER
    csv_text = header + "".join(lines)
    (source / "wikiattack" / "wiki_attack_dev_rationale.csv").write_bytes(
        (csv_text if newline else csv_text.removesuffix("\n")).encode()
    )
    folder = build(source, place / "hub").folder
    assert DATASET.check(folder).violations == 0
    files = DATASET.export(folder, None, out=place / "raw").files
    assert len(files) == 2
    for path in files:
        assert path.read_bytes() == (source / path.relative_to(place / "raw")).read_bytes()


def test_a_file_of_neutral_trees_alone_makes_no_split_and_is_exported(tmp_path: Path) -> None:
    source = tmp_path / "sst"
    source.mkdir()
    (source / "train.txt").write_text("(2 meh)\n(2 so)\n")
    (source / "dev.txt").write_text("(3 good)\n")
    result = build(tmp_path, tmp_path / "hub")
    assert result.rows == {"sst": {"validation": 1}}
    assert any(note.startswith(f"{source / 'train.txt'}: ") and note.endswith("train") for note in result.notes)
    DATASET.export(result.folder, None, out=tmp_path / "raw")
    for name in ("train.txt", "dev.txt"):
        assert (tmp_path / "raw" / "sst" / name).read_bytes() == (source / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "line", "mentioned"),
    [
        ("sst/dev.txt", b"(3 good)\n(3 (2 a)\n", 2, "column 9:"),
        ("sst/dev.txt", b"(3 good)\n(7 a)\n", 2, "column 2:"),
        ("sst/dev.txt", b"(3 good)\n(3 \xff)\n", 2, "0xff"),
        ("sst/dev.txt", b"", 1, ""),
        ("sst/dev.txt", b"\n\n", 1, ""),
        ("sst/dev.txt", b"(2 meh)\n", None, ""),
        ("wikiattack/wiki_attack_test_rationale.csv", HEADER.encode(), 1, ""),
        ("wikiattack/wiki_attack_test_rationale.csv", HEADER.encode() + b'1,"[3]"\n', 2, "'1': rationale"),
    ],
)
def test_a_hostile_file_ends_in_one_error_and_leaves_nothing(
    tmp_path: Path, name: str, content: bytes, line: int | None, mentioned: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(content)
    with refused(mentioned, file=path, line=line, total=1):
        build(tmp_path, tmp_path / "hub")
    assert not (tmp_path / "hub").exists()


def test_a_damaged_folder_is_refused_by_export(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "human_rationales"
    shutil.copytree(built, copy)
    (copy / "release.json").write_text('{"format": 2, "configs": {"sst": {"files": [{"file": 3}]}}}')
    with refused(" 3", file="release.json", field="sst.files[0].file"):
        DATASET.export(copy, ["sst"], out=tmp_path / "raw")
    (copy / "release.json").write_text("[]")
    with refused("list", file="release.json"):
        DATASET.export(copy, None, out=tmp_path / "raw")


def test_a_changed_row_is_found_by_check(built: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    copy = tmp_path / "human_rationales"
    shutil.copytree(built, copy)
    path = next((copy / "sst").glob("validation-*"))
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[0]["rationale_mask"] = rows[0]["rationale_mask"][1:]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    checks = {f.check for split in DATASET.check(copy).splits for f in split.findings if f.level == "violation"}
    assert {"mask and tokens differ in length", "mask and scores differ"} <= checks


def test_table_2_stands_beside_the_printed_figures(built: Path) -> None:
    tables = DATASET.stats(built).as_json()["tables"]
    table = tables["table_2"]
    rows = {(row["config"], row["split"]): row for row in table["rows"]}
    assert rows["sst", "all"]["text_length"]["printed"] == "19.3"
    assert rows["wikiattack", "all"]["rationale_percent"]["printed"] == "19.1"
    assert rows["sst", "train"]["text_length"]["printed"] is None
    classes = {(row["config"], row["label"]): row for row in tables["figure_1"]["rows"]}
    attacks = [
        row
        for split in ("validation", "test")
        for row in open_built(built).rows("wikiattack", split)
        if row["label"] == 1
    ]
    share = 100 * sum(sum(row["rationale_mask"]) / len(row["rationale_mask"]) for row in attacks) / len(attacks)
    attack = classes["wikiattack", "personal-attack"]
    assert attack["rows"]["value"] == len(attacks) and attack["rationale_percent"]["value"] == pytest.approx(share)
    assert attack["rationale_percent"]["printed"] == "35" and set(classes) >= {("sst", "negative"), ("sst", "positive")}


@pytest.mark.slow
def test_the_command_line_from_build_to_export(tmp_path: Path, samples: Path) -> None:
    def cli(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "eraser_hub", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    hub = tmp_path / "hub"
    run = cli("build", "human_rationales", "--source", samples / "human_rationales", "--out", hub)
    assert run.returncode == 0, run.stderr
    assert "wikiattack: validation 5, test 3" in run.stdout
    assert cli("check", "--dataset", hub / "human_rationales").returncode == 0
    assert cli("stats", "--dataset", hub / "human_rationales", "--format", "json").returncode == 0
    assert cli("export", "--dataset", hub / "human_rationales", "--out", tmp_path / "raw").returncode == 0
    run = cli("build", "human_rationales", "--source", tmp_path / "raw" / "sst" / "trees", "--out", hub)
    assert run.returncode == 0, run.stderr
    (tmp_path / "train.txt").write_text("(3 (2 a)\n")
    run = cli("build", "human_rationales", "--source", tmp_path, "--out", hub)
    assert run.returncode == 1
    assert run.stderr.startswith(f"{tmp_path / 'train.txt'}:1: ") and "Traceback" not in run.stderr


def test_the_real_files(corpora: Path, tmp_path: Path) -> None:
    if not (corpora / "sst").is_dir() or not (corpora / "wikiattack").is_dir():
        pytest.skip("skipped: no sst or wikiattack")
    result = build(corpora, tmp_path / "hub")
    assert result.rows == {"sst": {"validation": 872}, "wikiattack": {"validation": 549}}
    assert any(note.endswith("dev.txt: 229 neutral roots") for note in result.notes)
    assert DATASET.check(result.folder).violations == 0
    for path in DATASET.export(result.folder, None, out=tmp_path / "raw").files:
        assert path.read_bytes() == (corpora / path.relative_to(tmp_path / "raw")).read_bytes()
    rows = open_built(result.folder).rows("sst", "validation")
    assert [(rows[n]["id"], rows[n]["label"], sum(rows[n]["rationale_mask"])) for n in (0, 9, -1)] == SST_ROWS
    table = DATASET.stats(result.folder).as_json()["tables"]["table_2"]
    figures = {row["config"]: row for row in table["rows"] if row["split"] == "all"}
    assert figures["sst"]["text_length"]["value"] == pytest.approx(19.548, abs=1e-3)
    assert figures["sst"]["rationale_percent"]["value"] == pytest.approx(44.446, abs=1e-3)
    assert figures["sst"]["score_percent"]["value"] == pytest.approx(35.204, abs=1e-3)
    assert figures["wikiattack"]["rationale_percent"]["value"] == pytest.approx(19.894, abs=1e-3)


# id, label, tokens in the mask
SST_ROWS = [("dev_1", 1, 8), ("dev_12", 1, 12), ("dev_1101", 0, 5)]
