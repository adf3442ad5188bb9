"""Gold of several annotators in three forms, and human performance."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from eraser_hub import build, import_corpus
from eraser_hub import score as score_by_api
from eraser_hub.conversion.eraser.human_agreement import read_annotators
from eraser_hub.scoring.score import ScoreSettings, score
from eraser_hub.scoring.scored_split import ScoredSplit

from ..refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore")
PEOPLE = ("ann", "bob", "cid")
TEXTS = 14
COLUMNS: dict[str, Any] = {"tokens": ["one", "two"], "mask": ["one mask", "two mask"], "label": "label"}
COLUMNS |= {"id": "id", "annotator": "who"}
FORMS = {"majority": lambda marks: marks.sum(axis=0) * 2 > len(marks), "union": lambda marks: marks.any(axis=0)}


def draw(seed: int = 0) -> list[dict[str, Any]]:
    """Rows of three people with two documents each; nobody marks the last text."""
    random, rows = np.random.default_rng(seed), []
    for at in range(TEXTS):
        row: dict[str, Any] = {"id": f"t{at}", "who": list(PEOPLE), "label": random.choice(["good", "bad"], 3).tolist()}
        for side, size in zip(("one", "two"), random.integers(3, 9, size=2), strict=True):
            row[side] = [f"{side}{number}" for number in range(size)]
            common = random.random(size) < 0.4
            marks = [(common ^ (random.random(size) < 0.2)).astype(int).tolist() for _ in PEOPLE]
            row[f"{side} mask"] = [[0] * size] * 3 if at == TEXTS - 1 else marks
        rows.append(row)
    return rows


def make(folder: Path, rows: list[dict[str, Any]]) -> tuple[Path, Path]:
    """A corpus, and predictions of the first two tokens of every document."""
    corpus, path = import_corpus({"test": rows}, "posts", out=folder, **COLUMNS).folder, folder / "system.jsonl"
    hard = {"hard_rationale_predictions": [{"start_token": 0, "end_token": 2}]}
    with path.open("w") as file:
        for row in map(json.loads, (corpus / "test.jsonl").read_text().splitlines()):
            rationales = [{"docid": docid, **hard} for docid in row["docids"]]
            file.write(json.dumps({"annotation_id": row["annotation_id"], "rationales": rationales}) + "\n")
    return corpus, path


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    return make(tmp_path, draw())


def texts_of(corpus: Path) -> list[Any]:
    return list(dict(read_annotators(corpus / "annotators/posts.parquet")).values())


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_scored_as_gold_of_built_and_raw_corpora(made: tuple[Path, Path], form: str, tmp_path: Path) -> None:
    (corpus, predictions), settings = made, ScoreSettings(gold=form, unmarked="score")
    found = score(ScoredSplit(corpus, "test"), predictions, settings)
    golds = [FORMS[form](marks) for text in texts_of(corpus) for marks in text.documents()]
    hits, marked = sum(gold[:2].sum() for gold in golds), sum(gold.sum() for gold in golds)
    assert found["token_micro_p"] == pytest.approx(hits / (2 * len(golds)))
    assert found["token_micro_r"] == pytest.approx(hits / marked) and f"|gold:{form}|" in found.signature
    built = build("own", corpus, out=tmp_path / "hub").folder
    other = score(ScoredSplit(split="test", dataset=built, config="posts"), predictions, settings)
    assert found.scores == pytest.approx(other.scores, nan_ok=True) and found.signatures == other.signatures
    evidence = score(ScoredSplit(corpus, "test"), predictions, ScoreSettings(gold="evidence", unmarked="score"))
    assert "|gold:" not in evidence.signature and not [note for note in found.notes if note.startswith("gold ")]


def test_people_are_scored_against_the_majority_of_the_others(made: tuple[Path, Path]) -> None:
    corpus, predictions = made
    people = score(ScoredSplit(corpus, "test"), predictions, ScoreSettings(unmarked="score")).people
    assert people is not None and people["annotators"] == 3
    micro, accuracy = [], []
    for at in range(3):
        sums, hits = np.zeros(3), []
        for text in texts_of(corpus):
            own, others = text.marks[at], np.delete(text.marks, at, axis=0).all(axis=0)
            sums += (own & others).sum(), own.sum(), others.sum()
            labels = [text.labels[name] for name in PEOPLE]
            rest = labels[:at] + labels[at + 1 :]
            hits += [labels[at] == rest[0]] if rest[0] == rest[1] else []
        micro.append(2 * sums[0] / (sums[1] + sums[2]))
        accuracy.append(fmean(hits))
    assert people["scores"]["token_micro_f1"] == pytest.approx(fmean(micro))
    assert people["spread"]["token_micro_f1"] == pytest.approx(np.std(micro, ddof=1))
    assert people["scores"]["accuracy"] == pytest.approx(fmean(accuracy))
    found = score_by_api(str(predictions), dataset=corpus, split="test")
    block = found.as_json()["people"]
    assert block["annotators"] == 3 and block["gold"] == "majority of the others"
    assert block["scores"]["token_macro_f1"] == found.to_frame().loc["token_macro_f1", "people"]
    assert "people" not in score_by_api(str(predictions), dataset=corpus, split="test", people=False).as_json()


def test_without_annotators_evidence_counts_and_what_does_not_fit_is_refused(made: tuple[Path, Path]) -> None:
    corpus, predictions = made
    source, documents = ScoredSplit(corpus, "test"), corpus / "docs.jsonl"
    text = documents.read_text()
    documents.write_text(text.replace("one0 ", "one0 more ", 1))
    with refused(file="posts.parquet", instance="t0", field="num_tokens"):
        score(source, predictions, ScoreSettings(gold="union"))
    documents.write_text(text)
    (corpus / "annotators/posts.parquet").unlink()
    found = score(source, predictions, ScoreSettings())
    assert found.people is None and "token_macro_f1" in found
    with refused("majority", argument="gold"):
        score(source, predictions, ScoreSettings(gold="majority"))


def test_texts_without_annotators_keep_their_evidence(tmp_path: Path) -> None:
    first, *rows = draw()
    alone = {"who": [None], "label": "good", "one mask": first["one mask"][:1], "two mask": first["two mask"][:1]}
    corpus, path = make(tmp_path, [*rows, first | alone])
    union, evidence = (
        score(ScoredSplit(corpus, "test"), path, ScoreSettings(gold=gold, per_instance=True))
        for gold in ("union", "evidence")
    )
    assert f"gold union: 1 of {TEXTS} annotations have no annotators' marks; their evidence counts" in union.notes
    at = union.ids.index("t0")
    assert union.per_instance["token_macro_f1"][at] == evidence.per_instance["token_macro_f1"][at]
