"""Fine-tuning a small transformer, and explaining it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eraser_hub import explain, train
from eraser_hub.attribution import open_model

from ..attribution.conftest import BAD, GOOD, write_hub
from ..needs import needs
from ..refusals import refused

pytestmark = needs("transformers", "torch", "captum", "skops")


@pytest.fixture
def base(network, tokenizer, tmp_path):
    """A small encoder."""
    for part in (network("BertModel"), tokenizer):
        part.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


@pytest.mark.parametrize("train_on", ["full", "rationale"])
def test_a_finetuned_model_is_explained(hub, base, tmp_path, caplog, train_on):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.json").write_text("{}")
    (tmp_path / "m" / "model.skops").write_text("an earlier baseline, which explain would open first")
    call = f"{base}(max_steps=3, batch_size=4, window=16, query=True, learning_rate=1e-3)"
    paper = "eraser" if train_on == "rationale" else ""
    lines = train(hub, call, config="movies", train_on=train_on, paper=paper, out=tmp_path / "m").lines
    names = ["no-rationale", "eval-rationale"] if train_on == "full" else ["train-eval-rationale"]
    assert [line.split(":")[0] for line in lines[1:]] == names
    assert "windows of at most 16 sub-words" in caplog.messages[0]
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert facts["steps"] == 3 and facts["uses_query"] is True and facts["base"] == "base"
    assert open_model(tmp_path / "m").query_last == facts.get("query_last", False) == (train_on == "rationale")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["id2label"] == {"0": "NEG", "1": "POS"}
    where = {"config": "movies", "split": "val", "limit": 4}
    explain(tmp_path / "m", hub, **where, method="attention", out=tmp_path / "p.jsonl")
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 4
    assert open_model(tmp_path / "m").window == 16, "that of the training"


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


def test_multiple_choice_is_trained_and_explained(base, tmp_path, caplog):
    hub, where = choice_hub(tmp_path / "hub"), {"config": "cose", "split": "train"}
    call = f"{base}(max_steps=4, batch_size=4, learning_rate=1e-3)"
    lines = train(hub, call, **where, eval_split="train", out=tmp_path / "m").lines
    assert caplog.messages[0].startswith("24 questions of at most 32 sub-words from 24 instances")
    assert "(24 instances, " in lines[-1]
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert facts["task"] == "multiple-choice" and facts["label_names"] == ["A", "B", "C"]
    assert json.loads((tmp_path / "m" / "config.json").read_text())["architectures"] == ["BertForMultipleChoice"]
    out = tmp_path / "p.jsonl"
    explain(tmp_path / "m", hub, **where, limit=3, method="integrated-gradients(steps=20)", out=out)
    assert len(out.read_text().splitlines()) == 3


def test_a_config_whose_queries_hold_no_answers_is_classified(base, tmp_path):
    hub = choice_hub(tmp_path / "hub", answers=2)  # two answers for three labels
    options = {"config": "cose", "eval_split": "", "out": tmp_path / "m"}
    train(hub, f"{base}(max_steps=1, batch_size=2)", **options)
    assert json.loads((tmp_path / "m" / "model.json").read_text())["task"] == "classification"
    with refused("3", "[sep]", "2", instance="0", field="query"):
        train(hub, f"{base}(max_steps=1, task=multiple-choice)", **options)
    for call in ("bilstm(task=multiple-choice)", f"{base}(task=ner)"):
        with refused("task", argument="model"):
            train(hub, call, **options)


def test_an_encoder_below_an_lstm_is_trained_in_its_last_layers_and_within_its_positions(
    hub, base, planted, train_planted, tmp_path
):
    import torch
    import transformers

    model = train_planted(f"bert-lstm(encoder={base}, window=16, trained_layers=1, hidden_size=4, max_steps=2)", 24)
    assert model.network.embedder.window == 16
    weights, before = (
        model.network.embedder.encoder.state_dict(),
        transformers.AutoModel.from_pretrained(base).state_dict(),
    )
    changed = {
        name.split(".")[2] for name in before if not torch.equal(before[name], weights[name]) and "layer" in name
    }
    assert changed == {"1"}  # the last of two layers alone
    with refused("32", "512", argument="model"):
        train(hub, f"bert-lstm(encoder={base}, max_steps=1)", config="movies", out=tmp_path / "n")
