"""Files in chunks, raw, built and Parquet: the same numbers; and what is wrong in them, with file and line."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest

from eraser_hub.records import predictions as reader
from eraser_hub.scoring.score import ScoreSettings, score
from eraser_hub.scoring.scored_split import ScoredSplit

from ..metrics.eraser_rows import ERASED, LABELS, random_case
from ..refusals import refused
from .small_corpora import Inputs, compare, nested, written

Rows = list[dict[str, Any]]
CARD = """---
configs:
- {config_name: built, data_files: [{split: validation, path: built/validation-*.parquet}]}
dataset_info:
- {config_name: built, features: [{name: classification, dtype: {class_label: {names: NAMES}}}]}
---
"""


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it makes a few instances a chunk, so that small files have many."""

    def set_sizes() -> None:
        for name, value in {"CHUNK_BYTES": 2000, "MIN_ROWS": 1, "MAX_ROWS": 3}.items():
            monkeypatch.setattr(reader, name, value)

    return set_sizes


def drop(fields: tuple[str, ...], of_rationales: tuple[str, ...]) -> Callable[[Rows, Rows], None]:
    """Predictions without these fields."""

    def change(predictions: Rows, references: Rows) -> None:
        for row in predictions:
            for target, keys in ((row, fields), *((rationale, of_rationales) for rationale in row["rationales"])):
                for key in keys:
                    del target[key]

    return change


HARD, SOFT, SENTENCES = (f"{kind}_predictions" for kind in ("hard_rationale", "soft_rationale", "soft_sentence"))
LABEL = ("classification", "classification_scores", "tokens_to_flip", "thresholded_scores")


def sentences_late(predictions: Rows, references: Rows) -> None:
    """The first annotations do not say their sentences."""
    drop((), (SENTENCES,))(predictions, references)
    for group in (group for row in references[:15] for group in row["evidences"]):
        group[0] |= {"start_sentence": -1, "end_sentence": -1}


def some_without_evidence(predictions: Rows, references: Rows) -> None:
    for row in references[::3]:
        row["evidences"] = []
    references[1]["evidences"] = [[], references[1]["evidences"][0] * 2]
    for row in predictions[::4]:
        row["rationales"][0][HARD] = []


def no_rationale_at_first(predictions: Rows, references: Rows) -> None:
    """Only later instances tell which fields rationales have."""
    for row, reference in zip(predictions[:20], references[:20], strict=True):
        row["rationales"], reference["evidences"] = [], []
    references[2]["evidences"] = [[]]


def numbers_and_one_without_answer(predictions: Rows, references: Rows) -> None:
    for row in (*predictions, *references):
        row["annotation_id"] = int(row["annotation_id"][1:])
    for row in predictions:
        row["outcome"] = "answered"
    predictions[0] |= {"classification": None, "rationales": [], "outcome": "refused"}
    for key in (*ERASED, *LABEL[1:]):
        del predictions[0][key]


def labels_of_their_own(predictions: Rows, references: Rows) -> None:
    """Nobody says which labels there are: those of the annotations, and one that every instance scores."""
    for part in (part for row in predictions for part in (row, *row["thresholded_scores"])):
        for key in (key for key in part if key.endswith("classification_scores")):
            part[key]["NEITHER"] = 0.0
    predictions[3]["classification"] = "NEITHER"


CHANGES: dict[str, Callable[[Rows, Rows], None]] = {
    "no hard": drop((), (HARD,)),
    "spans alone": drop((*ERASED, *LABEL), (SOFT, SENTENCES)),
    "no rationale": lambda predictions, _: [row.update(rationales=[]) for row in predictions],
    "sentences late": sentences_late,
    "some without evidence": some_without_evidence,
    "no rationale at first": no_rationale_at_first,
    "numbers, one without answer": numbers_and_one_without_answer,
    "labels of their own": labels_of_their_own,
}


@pytest.mark.parametrize("name", CHANGES)
def test_chunks_parquet_and_the_built_dataset_have_the_scores_of_the_corpus(
    name: str, tmp_path: Path, small_chunks: Callable[[], None]
) -> None:
    predictions, references = random_case(5, n=40)
    CHANGES[name](predictions, references)
    if "at first" not in name:
        random.Random(1).shuffle(predictions)
    inputs = written(tmp_path, predictions, references, "docs" if name == "no hard" else "docs.jsonl")
    sums = ScoreSettings(iou_thresholds=(0.2, 0.5))
    rows = replace(sums, per_instance=True, by="classification")
    expected = nested(score(*inputs, rows))
    expected_sums = {key: value for key, value in expected.items() if key not in ("by", "per_instance", "signature")}
    small_chunks()
    assert nested(score(*inputs, rows)) == expected
    found = nested(score(*inputs, sums))
    compare(found, expected_sums)
    assert found.keys() == {*expected_sums, "signature"}
    datasets.Dataset.from_list(predictions).to_parquet(str(tmp_path / "p.parquet"))
    parquet = nested(score(inputs.source, tmp_path / "p.parquet", sums))
    compare(parquet, expected_sums | {"predictions_sha256": parquet["predictions_sha256"]})
    (tmp_path / "built").mkdir()
    built = datasets.Dataset.from_list([{**row, "annotation_id": str(row["annotation_id"])} for row in references])
    built = built.cast_column("classification", datasets.ClassLabel(names=LABELS))
    built.to_parquet(str(tmp_path / "built" / "validation-00000-of-00001.parquet"))
    names = [*LABELS, "NEITHER"] if name == "labels of their own" else LABELS
    (tmp_path / "README.md").write_text(CARD.replace("NAMES", json.dumps(names)), "utf-8")
    of_dataset = Inputs(ScoredSplit(split="val", dataset=tmp_path, config="built"), inputs.results)
    of_built = nested(score(*of_dataset, replace(rows, unmarked="skip")))
    compare(of_built, {key: value for key, value in expected.items() if key not in ("config", "signature")})


def test_annotations_encoded_twice(tmp_path: Path) -> None:
    inputs = written(tmp_path, *random_case(3, n=9))
    expected = nested(score(*inputs))
    path = tmp_path / "val.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in path.read_text("utf-8").splitlines()), "utf-8")
    assert nested(score(*inputs)) == expected


BROKEN = {
    "blank": b" \n{}\n",
    "not JSON": b"{'annotation_id': 'a2'}\n",
    "cut line": b'{"annotation_id": "a2", "rationales": [',
    "not an object": b'["a2"]\n',
    "broken UTF-8": b'{"annotation_id": "a\xff2", "rationales": []}\n',
    "broken UTF-8 in an unknown key": b'{"annotation_id": "a2", "note": "\xff", "rationales": []}\n',
    "NaN": b'{"annotation_id": "a2", "rationales": [], "tokens_to_flip": NaN}\n',
    "id of another kind": b'{"annotation_id": 1.5, "rationales": []}\n',
}


@pytest.mark.parametrize("name", ["p.jsonl", "val.jsonl", "docs.jsonl"])
@pytest.mark.parametrize("way", BROKEN)
def test_one_policy_for_the_lines_of_all_files(way: str, name: str, tmp_path: Path) -> None:
    inputs = written(tmp_path, *random_case(3, n=2))
    path = tmp_path / name
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + BROKEN[way])
    with refused(file=path, line=2):
        score(*inputs)


def test_raw_documents_are_checked_as_build_checks_them(tmp_path: Path) -> None:
    predictions, references = random_case(3, n=9)
    inputs = written(tmp_path, predictions, references, "docs")
    name = references[0]["documents"][0]["docid"]
    path = tmp_path / "docs" / name
    text = path.read_bytes()
    path.write_bytes(text + b"\xff")
    with refused("0xff", file=path, line=text.count(b"\n") + 1):
        score(*inputs)
    path.unlink()
    os.mkfifo(path)
    with refused("docs,", repr(name), file="val.jsonl", line=1) as caught:
        score(*inputs)
    assert caught.first.field.endswith("docid")
    shutil.rmtree(tmp_path / "docs")
    for row in predictions[::2]:
        row["rationales"][0][HARD][0]["end_token"] = 999
    inputs = written(tmp_path, predictions, references)
    with refused("found 999", file="p.jsonl", line=1, total=5):
        score(*inputs)
    documents = tmp_path / "docs.jsonl"
    documents.write_text(documents.read_text("utf-8") * 2, "utf-8")
    with refused(file="docs.jsonl", line=19):
        score(*inputs)
