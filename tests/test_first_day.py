"""A new user's first day in one folder, by the values that the user sees; what the day takes may not get longer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import eraser_hub

from .needs import needs

ROOT = Path(__file__).resolve().parents[1]
METHODS = ("random", "occlusion", "lime")
METHOD = """
import numpy as np

from eraser_hub.attribution.method import Method


class Backwards(Method):
    def search(self, text):
        p = yield from text.ask(~np.eye(text.size, dtype=bool))
        return p - text.full
"""
ENTRY_POINT = "[eraser_hub.methods]\nbackwards = backwards:Backwards\n"
LOADED = """
import datasets, evaluate
movies = datasets.load_dataset("eraser", "movies")
assert {split: len(rows) for split, rows in movies.items()} == {"train": 27, "validation": 24, "test": 13}
assert movies["train"].features["classification"].names == ["NEG", "POS"]
erased = {"comprehensiveness_classification_scores": {"NEG": 0.5, "POS": 0.5}, "classification": "POS"}
erased |= {"sufficiency_classification_scores": {"NEG": 0.25, "POS": 0.75}, "annotation_id": "a"}
row = {"classification_scores": {"NEG": 0.125, "POS": 0.875}, **erased}
scores = evaluate.load("eraser_faithfulness").compute(predictions=[row])
assert (scores["comprehensiveness"], scores["sufficiency"]) == (0.375, 0.125), scores
print(datasets.__version__)
"""


@pytest.fixture(scope="module")
def day(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the day, with the movies and the modules built as the README says."""
    folder = tmp_path_factory.mktemp("day")
    eraser_hub.build("eraser", source=samples / "eraser", config="movies", out=folder)
    eraser_hub.build("metrics", out=folder)
    return folder


def command(folder: Path, *words: str) -> str:
    """What the command line prints in this folder; a plug-in in ``site`` is installed."""
    path = os.pathsep.join((str(folder / "site"), str(ROOT)))
    environ = {**os.environ, "PYTHONPATH": path, "COLUMNS": "160", "NO_COLOR": "1"}
    line = [sys.executable, "-m", "eraser_hub", *words]
    done = subprocess.run(line, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_masks_are_scored(day: Path) -> None:
    import evaluate

    agreement = evaluate.load(str(day / "eraser_agreement"))
    scores = agreement.compute(predictions=[[0, 1, 1, 0], [1, 0, 0, 0]], references=[[0, 1, 0, 0], [1, 1, 0, 1]])
    assert scores["token_macro_f1"] == pytest.approx(7 / 12)
    assert scores["iou_macro_f1"] == pytest.approx(6 / 7)


def test_quotes_are_found_and_scored(day: Path) -> None:
    import evaluate

    assert eraser_hub.locate_quotes("It is a warm film .", ["a WARM film", "a cold day"]) == [(2, 5), None]
    rows, texts = [{"id": "1", "quotes": ["a warm film", "dull"]}], [{"id": "1", "text": "It is a warm film ."}]
    scores = evaluate.load(str(day / "quote_faithfulness")).compute(predictions=rows, references=texts)
    assert (scores["in_text"], scores["invented"]) == (0.5, 0.5)


def pipeline(movies: Path) -> Any:
    """A pipeline of scikit-learn over strings, fitted on the training rows."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rows = eraser_hub.load(movies, "movies", "train")
    labels = rows.features["classification"].int2str(rows["classification"])
    texts = [documents[0]["text"] for documents in rows["documents"]]
    return make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)).fit(texts, labels)


@needs("sklearn", "captum", "torch")
def test_a_tensor_of_captum_becomes_a_rationale(day: Path) -> None:
    import torch
    from captum.attr import FeatureAblation

    text, weights = "a warm film with one dull scene", torch.tensor([0.0, 2.0, 0.5, 0.0, 0.0, -1.0, 0.0])
    attributions = FeatureAblation(lambda mask: mask @ weights).attribute(torch.ones(1, 7))
    scores = eraser_hub.token_scores(attributions[0], text)
    model = pipeline(day / "eraser")
    (row,) = eraser_hub.explain(model, [text], scores=[scores], kd=0.25)
    (rationale,) = row["rationales"]
    assert rationale["hard_rationale_predictions"] == [{"start_token": 1, "end_token": 3}]
    assert rationale["soft_rationale_predictions"] == pytest.approx(weights.tolist())
    assert set(row["comprehensiveness_classification_scores"]) == {"NEG", "POS"}


@needs("sklearn")
def test_a_pipeline_goes_through_three_methods_to_a_report_and_a_table(day: Path) -> None:
    of = {"dataset": day / "eraser", "config": "movies", "split": "validation"}
    model, files, found = pipeline(day / "eraser"), {name: day / f"{name}.jsonl" for name in METHODS}, {}
    for name, file in files.items():
        eraser_hub.explain(model, day / "eraser", config="movies", split="validation", method=name, out=file)
        found[name] = eraser_hub.score(file, **of)
    assert found["lime"].scores["accuracy"] == found["random"].scores["accuracy"] > 0.9
    assert found["lime"].scores["comprehensiveness"] > 0.1 > found["random"].scores["comprehensiveness"]
    compared = eraser_hub.compare(files, **of, primary="comprehensiveness", minimum_effect=0.05)
    rows = compared.to_frame().query("score == 'comprehensiveness'").set_index(["first", "second"])
    assert rows.loc[("random", "lime"), "verdict"] == "worse"
    table = compared.table().written("latex")
    assert r"\begin{tabular}" in table and "comprehensiveness" in table
    eraser_hub.report(predictions=files, out=day / "report", **of)
    page = (day / "report" / "index.html").read_text(encoding="utf-8")
    assert all(name in page for name in METHODS) and "http://" not in page.replace("http://www.w3.org", "")


@needs("sklearn")
def test_a_method_of_ones_own_is_two_files(day: Path) -> None:
    package = day / "site" / "backwards-0.1.dist-info"
    package.mkdir(parents=True)
    (package / "entry_points.txt").write_text(ENTRY_POINT, encoding="utf-8")
    (package.parent / "backwards.py").write_text(METHOD, encoding="utf-8")
    movies = ("--dataset", "eraser", "--config", "movies")
    command(day, "train", *movies, "--model", "logistic-regression", "--out", "model")
    given = ("--split", "validation", "--model", "model", "--method", "backwards", "--out", "backwards.jsonl")
    command(day, "explain", *movies, *given)
    printed = command(day, "score", *movies, "--split", "validation", "--predictions", "backwards.jsonl")
    (line,) = [line for line in printed.splitlines() if line.startswith("comprehensiveness_aopc ")]
    assert float(line.split()[1]) < 0


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.6.0", "5.2.0"])
def test_what_is_built_loads_with_datasets_and_evaluate_alone(day: Path, tmp_path: Path, version: str) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    wanted = [sys.executable, "-m", "pip", "--python", python, "install", "-q", f"datasets=={version}", "evaluate"]
    installed = subprocess.run(wanted, capture_output=True, text=True, check=False)
    if "Could not find a version" in installed.stderr:
        pytest.skip("skipped: no package index")
    assert installed.returncode == 0, installed.stderr
    environ = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    done = subprocess.run([python, "-c", LOADED], cwd=day, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith(version), done.stderr[-3000:]
