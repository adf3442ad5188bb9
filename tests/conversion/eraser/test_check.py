"""Each kind of damage, put into a folder without a fault, is found under its name, with the record that has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.checks import ALL, CheckResult
from eraser_hub.conversion.eraser.check import QUIRKS
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.conversion.eraser.schema import SCHEMA
from eraser_hub.metrics.tokens import split_tokens

from ...refusals import refused

ERASER = get_dataset("eraser")
TEXTS = {
    "t0": "the sea was calm .\nnobody swam .",
    "t1": "a dull film .\na long evening .",
    "t2": "bread and salt ,  with two blanks\n\nand an empty line .",
    "v0": "Penélope sang\u200b twice .",
    "s0": " a blank at either end ",
}
S0 = {"docid": "s0", "text": TEXTS["s0"]}
Row = dict[str, Any]


def make_span(docid: str, start: int, end: int, sentence: int = 0) -> Row:
    text = " ".join(split_tokens(TEXTS[docid])[start:end])
    span = {"docid": docid, "text": text, "start_token": start, "end_token": end}
    return span | {"start_sentence": sentence, "end_sentence": sentence + 1 if sentence >= 0 else -1}


def build(out: Path, config: str = "multirc", **splits: list[tuple[str, list[Row]]]) -> Path:
    """Build a corpus; a split is pairs of a document, whose id is the annotation's, and its spans."""
    splits = splits or {
        "train": [(name, [make_span(name, 0, 2), make_span(name, 3, 4)]) for name in ("t0", "t1", "t2")],
        "val": [("v0", [make_span("v0", 1, 3)])],
        "test": [("s0", [make_span("s0", 0, 5)])],
    }
    folder = out / "raw" / config
    (folder / "docs").mkdir(parents=True)
    for docid, text in TEXTS.items():
        (folder / "docs" / docid).write_text(text, encoding="utf-8")
    for split, records in splits.items():
        label = CONFIGS[config].label_names[-1]
        rows = [
            {"annotation_id": f"{split}-{name}", "query": "?", "classification": label, "docids": [name]}
            | {"evidences": [[span] for span in spans]}
            for name, spans in records
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return ERASER.build([config], source=out / "raw", out=out / "hub").folder


def spoil(folder: Path, change: Callable[[list[Row]], Any], split: str = "train") -> None:
    path = next(folder.glob(f"*/{split}-*.parquet"))
    rows = pq.read_table(path).to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)


def check(folder: Path) -> dict[tuple[str, str], tuple[int, str, str]]:
    """Split and kind -> count, example, and why it is no violation."""
    built = open_built(folder)
    result = CheckResult("eraser", folder, quirks=QUIRKS)
    ERASER.check_config(built, built.configs[0], result)
    return {(found.split, found.kind): (found.count, found.example, found.why) for found in result.findings}


def change_span(**values: Any) -> Callable[[list[Row]], None]:
    return lambda rows: rows[1]["evidences"][0][0].update(values)


def change_row(**values: Any) -> Callable[[list[Row]], None]:
    return lambda rows: rows[1].update(values)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("spans", change_span(end_token=10_000), "'train-t1': 't1' [0, 10000) of 8 tokens"),
        ("evidence documents", change_span(docid="t0"), "'train-t1': 't0' [0, 2)"),
        ("clipped text", change_span(text="a dul"), "text 'a dul', tokens 'a dull'"),
        ("evidence text", change_span(text="a Dull"), "text 'a Dull', tokens 'a dull'"),
        ("label", change_row(label="False"), "'train-t1'"),
        ("rationale", change_row(rationale="a dull"), "'train-t1'"),
        ("rationale_positions", change_row(rationale_positions=[[0, 1]]), "'train-t1'"),
        ("num_tokens", change_row(num_tokens=9), "'train-t1'"),
        ("num_sentences", change_row(num_sentences=1), "'train-t1'"),
        ("rationale_ratio", change_row(rationale_ratio=float("nan")), "'train-t1'"),
        ("position", change_row(position=1), "1 is negative or stands twice"),
        ("document texts", lambda rows: rows[1]["documents"][0].update(text="another ."), "'train-t1'"),
        ("document names", lambda rows: rows[1]["documents"].append(rows[1]["documents"][0]), "'train-t1'"),
        ("ids shared by train and validation", change_row(annotation_id="val-v0"), "'val-v0'"),
        ("documents shared by train and test", lambda rows: rows[1]["documents"].append(S0), "train and test: 's0'"),
    ],
)  # fmt: skip
def test_damage_is_found_and_named(tmp_path: Path, kind: str, change: Any, said: str) -> None:
    folder = build(tmp_path)
    assert check(folder) == {}
    spoil(folder, change)
    found = check(folder)
    ((count, example, why),) = (value for (split, name), value in found.items() if name == kind)
    assert count == 1 and said in example and not why
    assert kind not in ("spans", "evidence documents", "document texts", "label") or len(found) == 1


def test_known_kinds_are_no_violation_up_to_their_number(tmp_path: Path) -> None:
    odd = [make_span("t0", 0, 1), make_span("t0", 1, 1, -1), make_span("t0", 0, 1)]
    folder = build(tmp_path / "known", "movies", train=[("t0", odd), ("t1", [])])
    found = check(folder)
    assert found.keys() == {("train", kind) for kind in ("empty spans", "repeated spans", "no evidence")}
    assert all(count == 1 and why for count, _, why in found.values())
    folder = build(tmp_path / "beyond", "movies", train=[("t0", []), ("t1", [])])
    assert check(folder)["train", "no evidence"][::2] == (2, "")


@pytest.mark.parametrize("config", ["boolq", "fever"])
def test_documents_that_splits_share(tmp_path: Path, config: str) -> None:
    shared = [("t0", [make_span("t0", 0, 1)])]
    folder = build(tmp_path, config, val=shared, test=shared, dev=shared)
    found = {kind: (count, bool(why)) for (_, kind), (count, _, why) in check(folder).items() if "shared" in kind}
    both = (1, config == "boolq")
    assert found == {"documents shared by validation and test": both, "shared with an extra split": (2, True)}


@pytest.mark.parametrize("sentences", [(0, 3), (1, 0), (-1, 1), (500, 501)])
def test_sentence_offsets_are_a_guess_that_is_right_for_most_spans(tmp_path: Path, sentences: tuple[int, int]) -> None:
    folder, values = build(tmp_path), dict(zip(("start_sentence", "end_sentence"), sentences, strict=True))
    spoil(folder, change_span(**values))
    ((key, (count, example, why)),) = check(folder).items()
    assert key == ("train", "sentence offsets") and count == 1 and why
    assert f"[{sentences[0]}, {sentences[1]}), tokens lie in [0, 1)" in example
    spoil(folder, lambda rows: [group[0].update(values) for row in rows for group in row["evidences"]])
    assert check(folder)["train", "sentence offsets of most spans"] == (6, "6 of 6", "")


def test_the_file_of_documents(tmp_path: Path) -> None:
    folder = build(tmp_path)
    path = folder / "documents" / "multirc.parquet"
    documents = pq.read_table(path)
    counts = pa.array([1] * len(documents), pa.int32())
    pq.write_table(documents.set_column(2, "num_tokens", counts), path)
    assert check(folder).keys() == {(ALL, "documents")}
    pq.write_table(pa.concat_tables([documents, documents.slice(0, 1)]), path)
    with refused("'s0' twice", file=path):
        check(folder)
    path.unlink()
    with refused(file=path):
        check(folder)


def test_the_samples_have_every_listed_quirk_and_no_violation(samples: Path, tmp_path: Path) -> None:
    result = ERASER.check(ERASER.build(None, source=samples / "eraser", out=tmp_path).folder)
    assert not result.failed
    found = {(one.config, one.split, one.kind) for one in result.findings}
    for config, split, kind in QUIRKS.keys() - {("*", "*", "sentence offsets")}:
        assert any(kind == k and config in ("*", c) and split in ("*", s) for c, s, k in found), (config, split, kind)


def test_the_real_corpora(corpora: Path) -> None:
    result = ERASER.check(corpora)
    assert not result.failed
    assert {(one.config, one.split, one.kind): one.count for one in result.findings} == {
        ("movies", "train", "no evidence"): 1,
        ("fever", "validation", "repeated spans"): 9,
        ("cose", "validation", "clipped text"): 19,
    }
