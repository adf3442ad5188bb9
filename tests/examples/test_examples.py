"""The scripts in examples/ run as a user would run them, on the samples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from eraser_hub.conversion import get_dataset
from eraser_hub.publishing.spaces import build_metrics

from ..attribution.conftest import word_tokenizer

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def hub(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "hub"
    get_dataset("eraser").build(["movies"], out=folder, source=samples / "eraser")
    build_metrics(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(hub: Path) -> Path:
    """A small random BERT whose words are those of the training reviews."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    from eraser_hub.conversion.built import open_built

    rows = open_built(hub / "eraser").rows("movies", "train", ["documents"])
    words = {word for row in rows for document in row["documents"] for word in document["text"].split()}
    folder = hub.parent / "encoder"
    tokenizer = word_tokenizer(sorted(words), window=256)
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def run(script: str, *options: str | Path, folder: Path) -> str:
    """What a script prints, run in a folder."""
    command = [sys.executable, str(EXAMPLES / script), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_script_is_run_here() -> None:
    tested = set(re.findall(r'run\("(\w+\.py)"', Path(__file__).read_text("utf-8")))
    assert tested == {path.name for path in EXAMPLES.glob("*.py")}


def test_a_pipeline_is_explained(hub: Path) -> None:
    printed = run("explain_classifier.py", folder=hub.parent)
    assert re.search(r"^(NEG|POS): \[\{'start_token': \d+", printed)
    comprehensiveness, sufficiency = map(float, re.findall(r": (-?\d\.\d{3})", printed))
    assert comprehensiveness > sufficiency  # what occlusion takes away changes more than what it keeps


def test_a_model_is_retrained_without_tokens(hub: Path) -> None:
    printed = run("roar.py", "--shares", "0", "0.5", folder=hub.parent)
    whole, same, by_method, by_chance = map(float, re.findall(r"accuracy (\d\.\d{3})", printed))
    assert whole == same == 1 >= by_method > 0 and by_chance < 1
    assert "50% removed, occlusion" in printed and "50% removed, random" in printed


def test_two_systems_are_compared(hub: Path, samples: Path) -> None:
    files = samples / "predictions" / "eraser"
    systems = [f"ours={files / 'movies.val.jsonl'}", f"theirs={files / 'movies.val.baseline.jsonl'}"]
    printed = run("compare_systems.py", *systems, folder=hub.parent)
    assert printed.startswith("ours - theirs, 24 annotations, 24 documents")
    assert re.search(r"^token_macro_f1: [+-]\d\.\d{3} \[.*\], p = \d\.\d{4}, \w+$", printed, re.MULTILINE)


@pytest.mark.slow
def test_a_rationale_loss_trains(hub: Path, encoder: Path) -> None:
    options = ["--model", encoder, "--out", "two-heads", "--steps", "2"]
    printed = run("train_with_rationales.py", *options, folder=hub.parent)
    assert re.search(r"label accuracy \d\.\d{3}, rationale F1 over sub-words \d\.\d{3}", printed)
    assert any((hub.parent / "two-heads").iterdir())


@pytest.mark.slow
def test_a_trainer_says_the_agreement_after_each_epoch(hub: Path, encoder: Path) -> None:
    pytest.importorskip("accelerate")
    options = ["--model", encoder, "--out", "marker", "--epochs", "2", "--max-length", "64"]
    printed = run("trainer_compute_metrics.py", *options, folder=hub.parent)
    assert len(re.findall(r"'eval_token_macro_f1': '?\d", printed)) == 3, "two epochs, and at the end"
    assert re.search(r"^token_macro_f1 \d\.\d{3}, iou_macro_f1 \d\.\d{3}, auprc 0\.\d{3}$", printed, re.MULTILINE)


@pytest.mark.slow
def test_the_metrics_of_a_trainer_are_the_modules(hub: Path) -> None:
    """Logits that are sure of the human rationale score 1, whatever the windows cut."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import importlib.util

    import datasets
    import numpy as np

    import eraser_hub

    spec = importlib.util.spec_from_file_location("trainer_example", EXAMPLES / "trainer_compute_metrics.py")
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    rows = datasets.load_dataset(str(hub / "eraser"), "movies", split="validation").select(range(3))
    words = sorted({word for row in rows for document in row["documents"] for word in document["text"].split()})
    tokenizer = word_tokenizer(words, window=256)
    aligned = [eraser_hub.align(row, tokenizer, max_length=48, stride=8) for row in rows]
    labels = [window.labels for each in aligned for window in each.windows]
    assert len(labels) > len(rows), "documents of several windows"
    logits = np.full((len(labels), 60, 2), -100.0)  # as the Trainer pads what it gathers
    for at, marks in enumerate(labels):
        for place, mark in enumerate(marks):
            logits[at, place] = (-9.0, 9.0) if mark == 1 else (9.0, -9.0)
    metrics = example.RationaleMetrics(rows, aligned, str(hub / "eraser_agreement"))
    scores = metrics(transformers.EvalPrediction(predictions=logits, label_ids=None))
    assert scores["token_macro_f1"] == scores["auprc"] == 1.0 and "signature" not in scores
    assert example.spans_of([True, False, True, True]) == [
        {"start_token": 0, "end_token": 1},
        {"start_token": 2, "end_token": 4},
    ]
