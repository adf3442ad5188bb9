"""Fine-tuning a small transformer through the command's recipe, and explaining it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.run import explain
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model

from ..attribution.conftest import BAD, GOOD, write_hub
from ..needs import needs
from ..refusals import refused

pytestmark = needs("transformers")


@pytest.fixture
def base(network, tokenizer, tmp_path) -> Path:
    """A small encoder."""
    for part in (network("BertModel"), tokenizer):
        part.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


@pytest.mark.parametrize("train_on", ["full", "rationale"])
def test_a_finetuned_model_is_explained(hub, base, tmp_path, train_on):
    recipe = TrainConfig(
        dataset=str(hub),
        config="movies",
        split="train",
        eval_split=None,
        model=str(base),
        max_steps=3,
        batch_size=4,
        window=16,
        query=True,
        learning_rate=1e-3,
        train_on=train_on,
        paper="eraser" if train_on == "rationale" else "",
    )
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.json").write_text("{}")
    (tmp_path / "m" / "model.skops").write_text("an earlier baseline, which explain would open first")
    words: list[str] = []
    figures = list(train_model(recipe, tmp_path / "m", say=words.append))
    names = ["no-rationale", "eval-rationale"] if train_on == "full" else ["train-eval-rationale"]
    assert [line.split(":")[0] for line in figures[1:]] == names
    assert "windows of at most 16 sub-words" in words[0]
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert facts["steps"] == 3 and facts["uses_query"] is True
    assert open_model(tmp_path / "m").query_last == facts.get("query_last", False) == (train_on == "rationale")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["id2label"] == {"0": "NEG", "1": "POS"}
    assert not (tmp_path / "m" / ".training").exists()
    job = ExplainConfig(
        dataset=str(hub), config="movies", split="val", model=str(tmp_path / "m"), limit=4
    )  # the window of the training
    report = explain(job, ExplainSettings(method="attention", bins=()), tmp_path / "p.jsonl")
    assert report.instances == 4
    assert any("longer than the model's window" in line for line in report.lines())


def choice_hub(folder, answers=3):
    """A config in CoS-E's manner: the right answer is the word that the question holds as well."""
    rows = []
    for number in range(24):
        random = np.random.default_rng(number)
        offered = random.choice([*GOOD, *BAD], answers, replace=False).tolist()
        right = int(random.integers(answers))
        document = {"docid": f"d{number}", "text": f"the a {offered[right]} with"}
        evidence = {"docid": f"d{number}", "text": offered[right], "start_token": 2, "end_token": 3}
        columns = {"annotation_id": str(number), "classification": right, "query": " [sep] ".join(offered)}
        rows.append({**columns, "documents": [document], "evidences": [[evidence]]})
    return write_hub(folder, "cose", {"train": rows}, ["A", "B", "C"])


@pytest.mark.parametrize("train_on", ["full", "rationale"])
def test_multiple_choice_is_trained_and_explained(base, tmp_path, train_on):
    hub = choice_hub(tmp_path / "hub")
    recipe = TrainConfig(
        dataset=str(hub),
        config="cose",
        split="train",
        eval_split="train",
        model=str(base),
        max_steps=4,
        batch_size=4,
        learning_rate=1e-3,
        train_on=train_on,
    )
    words: list[str] = []
    figures = list(train_model(recipe, tmp_path / "m", say=words.append))
    assert words[0].startswith("24 questions of at most 32 sub-words from 24 instances")
    assert "(24 instances, " in figures[-1]
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert facts["task"] == "multiple-choice" and facts["label_names"] == ["A", "B", "C"]
    assert json.loads((tmp_path / "m" / "config.json").read_text())["architectures"] == ["BertForMultipleChoice"]
    job = ExplainConfig(dataset=str(hub), config="cose", split="train", model=str(tmp_path / "m"), limit=3)
    report = explain(job, ExplainSettings(method="integrated-gradients", bins=(), steps=20), tmp_path / "p.jsonl")
    assert report.instances == 3 and any("largest convergence delta" in line for line in report.lines())


def test_a_config_whose_queries_hold_no_answers_is_classified(base, tmp_path):
    hub = choice_hub(tmp_path / "hub", answers=2)  # two answers for three labels
    recipe = TrainConfig(
        dataset=str(hub), config="cose", split="train", eval_split="", model=str(base), max_steps=1, batch_size=2
    )
    list(train_model(recipe, tmp_path / "m", say=lambda words: None))
    assert json.loads((tmp_path / "m" / "model.json").read_text())["task"] == "classification"
    with refused("3", "[sep]", "2", instance="0", field="query"):
        list(train_model(replace(recipe, task="multiple-choice"), tmp_path / "n", say=lambda words: None))
    for name in ("bilstm", "logistic-regression"):
        with refused("task multiple-choice", name):
            list(train_model(replace(recipe, model=name, task="multiple-choice"), tmp_path / "n"))
    with refused("task", "auto", "'ner'"):
        list(train_model(replace(recipe, task="ner"), tmp_path / "n", say=lambda words: None))
