"""Gold of several annotators in three forms, and human performance."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from eraser_hub import board, build, import_corpus, report
from eraser_hub import score as score_by_api
from eraser_hub.conversion.eraser.annotators import read_annotators
from eraser_hub.metrics.plain import spans_from_mask
from eraser_hub.scoring.score import ScoreSettings, score
from eraser_hub.scoring.scored_split import ScoredSplit

from ..refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore")
PEOPLE = ("ann", "bob", "cid")
TEXTS = 14
COLUMNS: dict[str, Any] = {
    "tokens": ["one", "two"],
    "mask": ["one mask", "two mask"],
    "label": "label",
    "id": "id",
    "annotator": "who",
}


def draw(seed: int = 0) -> list[dict[str, Any]]:
    """Rows of three people with two documents each; nobody marks the last text, one person alone the first."""
    random, rows = np.random.default_rng(seed), []
    for at in range(TEXTS):
        sizes = random.integers(3, 9, size=2)
        row: dict[str, Any] = {"id": f"t{at}", "who": list(PEOPLE), "label": random.choice(["good", "bad"], 3).tolist()}
        for side, size in zip(("one", "two"), sizes, strict=True):
            row[side] = [f"{side}{number}" for number in range(size)]
            common = random.random(size) < 0.4
            marks = [(common ^ (random.random(size) < 0.2)).astype(int).tolist() for _ in PEOPLE]
            row[f"{side} mask"] = [[0] * size] * 3 if at == TEXTS - 1 else marks
        rows.append(row)
    return rows


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return import_corpus({"test": draw()}, "posts", out=tmp_path, **COLUMNS).folder


@pytest.fixture
def predictions(tmp_path: Path, corpus: Path) -> Path:
    random, path = np.random.default_rng(1), tmp_path / "system.jsonl"
    lines = []
    for name, text in read_annotators(corpus / "annotators/posts.parquet").items():
        rationales = []
        for docid, marks in zip(text.row["docids"], text.documents(), strict=True):
            scores = np.clip(marks.mean(axis=0) * 0.6 + random.random(marks.shape[1]) * 0.4, 0, 1)
            spans = [
                {"start_token": a, "end_token": b} for a, b in spans_from_mask((scores > 0.5).astype(int).tolist())
            ]
            hard = {"hard_rationale_predictions": spans, "soft_rationale_predictions": scores.tolist()}
            rationales.append({"docid": docid, **hard})
        lines.append(json.dumps({"annotation_id": name, "rationales": rationales}))
    path.write_text("\n".join(lines) + "\n")
    return path


def texts_of(corpus: Path) -> dict[str, Any]:
    return dict(read_annotators(corpus / "annotators/posts.parquet"))


def read_scores(predictions: Path) -> dict[str, list[np.ndarray]]:
    rows = [json.loads(line) for line in predictions.read_text().splitlines()]
    return {
        row["annotation_id"]: [np.array(one["soft_rationale_predictions"]) for one in row["rationales"]] for row in rows
    }


def f1(gold: np.ndarray, found: np.ndarray) -> float:
    hits = int((gold & found).sum())
    return 2 * hits / (gold.sum() + found.sum()) if hits else 0.0


FORMS = {"majority": lambda marks: marks.sum(axis=0) * 2 > len(marks), "union": lambda marks: marks.any(axis=0)}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_scored_as_gold(corpus: Path, predictions: Path, form: str) -> None:
    settings = ScoreSettings(gold=form, unmarked="score", auprc_policy="skip")
    found = score(ScoredSplit(corpus, "test"), predictions, settings)
    given, micro = read_scores(predictions), np.zeros(3)
    for name, text in texts_of(corpus).items():
        for marks, scores in zip(text.documents(), given[name], strict=True):
            gold, hard = FORMS[form](marks), scores > 0.5
            micro += (gold & hard).sum(), hard.sum(), gold.sum()
    assert found["token_micro_p"] == pytest.approx(micro[0] / micro[1])
    assert found["token_micro_r"] == pytest.approx(micro[0] / micro[2])
    assert f"|gold:{form}|" in found.signature
    assert "|gold:" not in score(ScoredSplit(corpus, "test"), predictions, replace(settings, gold="evidence")).signature
    assert not [note for note in found.notes if note.startswith("gold ")]


def test_built_and_raw_corpora_have_the_same_gold(corpus: Path, predictions: Path, tmp_path: Path) -> None:
    built = build("own", corpus, out=tmp_path / "hub").folder
    for form in ("majority", "union"):
        raw = score(ScoredSplit(corpus, "test"), predictions, ScoreSettings(gold=form))
        other = score(ScoredSplit(split="test", dataset=built, config="posts"), predictions, ScoreSettings(gold=form))
        assert raw.scores == pytest.approx(other.scores, nan_ok=True) and raw.signatures == other.signatures


def test_people_are_scored_against_the_majority_of_the_others(corpus: Path, predictions: Path) -> None:
    people = score(ScoredSplit(corpus, "test"), predictions, ScoreSettings(unmarked="score")).people
    assert people is not None and people.annotators == 3
    micro, accuracy = [], []
    for at in range(3):
        sums, hits = np.zeros(3), []
        for text in texts_of(corpus).values():
            own, others = text.marks[at], np.delete(text.marks, at, axis=0).all(axis=0)
            sums += (own & others).sum(), own.sum(), others.sum()
            labels = [text.labels[name] for name in PEOPLE]
            rest = labels[:at] + labels[at + 1 :]
            hits += [labels[at] == rest[0]] if rest[0] == rest[1] else []
        micro.append(2 * sums[0] / (sums[1] + sums[2]))
        accuracy.append(fmean(hits))
    assert people.scores["token_micro_f1"] == pytest.approx(fmean(micro))
    assert people.spread["token_micro_f1"] == pytest.approx(np.std(micro, ddof=1))
    assert people.scores["accuracy"] == pytest.approx(fmean(accuracy))


def test_people_stand_in_score_file_table_and_frame(corpus: Path, predictions: Path, tmp_path: Path) -> None:
    found = score_by_api(str(predictions), dataset=corpus, split="test")
    block = found.as_json()["people"]
    assert block["annotators"] == 3 and block["gold"] == "majority of the others"
    assert block["scores"]["token_macro_f1"] == found.to_frame().loc["token_macro_f1", "people"]
    assert "people" not in score_by_api(str(predictions), dataset=corpus, split="test", people=False).as_json()


def test_a_corpus_without_annotators_has_evidence_alone(corpus: Path, predictions: Path) -> None:
    (corpus / "annotators/posts.parquet").unlink()
    source_split = ScoredSplit(corpus, "test")
    found = score(source_split, predictions, ScoreSettings())
    assert found.people is None and "token_macro_f1" in found
    with refused("majority", argument="gold"):
        score(source_split, predictions, ScoreSettings(gold="majority"))


def test_texts_without_annotators_keep_their_evidence(tmp_path: Path) -> None:
    rows = draw()
    single = [{**row, "who": None} for row in rows[:1]]
    for row in single:
        row.update({"who": [None], "label": "good", "one mask": row["one mask"][:1], "two mask": row["two mask"][:1]})
    corpus = import_corpus({"test": [*rows[1:], *single]}, "posts", out=tmp_path, **COLUMNS).folder
    path, lines = tmp_path / "system.jsonl", []
    for row in (json.loads(line) for line in (corpus / "test.jsonl").read_text().splitlines()):
        hard = [
            {"docid": docid, "hard_rationale_predictions": [{"start_token": 0, "end_token": 2}]}
            for docid in row["docids"]
        ]
        lines.append(json.dumps({"annotation_id": row["annotation_id"], "rationales": hard}))
    path.write_text("\n".join(lines) + "\n")
    found = score(ScoredSplit(corpus, "test"), path, ScoreSettings(gold="union", per_instance=True))
    note = f"gold union: 1 of {TEXTS} annotations have no annotators' marks; their evidence counts"
    assert note in found.notes
    evidence = score(ScoredSplit(corpus, "test"), path, ScoreSettings(per_instance=True))
    place = found.ids.index("t0")
    assert found.per_instance["token_macro_f1"][place] == evidence.per_instance["token_macro_f1"][place]


def test_marks_that_do_not_fit_the_documents(corpus: Path, predictions: Path) -> None:
    documents = (corpus / "docs.jsonl").read_text()
    (corpus / "docs.jsonl").write_text(documents.replace("one0 ", "one0 more ", 1))
    with refused(file="posts.parquet", instance="t0", field="num_tokens"):
        score(ScoredSplit(corpus, "test"), predictions, ScoreSettings(gold="union"))


def test_reports_and_boards_have_a_row_of_people(corpus: Path, predictions: Path, tmp_path: Path) -> None:
    built = build("own", corpus, out=tmp_path / "hub").folder
    files = report(built, f"sys={predictions}", config="posts", split="test", out=tmp_path / "report", gold="majority")
    page = files.page.read_text("utf-8")
    assert ">people<" in page and "people: 3 annotators, each against the majority of the others" in page
    content = json.loads(files.score_files[0].read_text())
    assert any("|gold:majority|" in line for line in content["signature"])
    people = content["people"]["scores"]
    made = board(str(files.score_files[0]), out=tmp_path / "board", published=False)
    rows = json.loads(made.files[1].read_text())["rows"]
    assert [(row["system"], row["source"]) for row in rows] == [("people", "a score file"), ("sys", "a score file")]
    assert rows[0]["scores"]["token_macro_f1"] == people["token_macro_f1"]
