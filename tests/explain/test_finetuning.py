"""Fine-tuning a small transformer through the command's recipe, and explaining it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("accelerate")
from eraser_hub.explain.engine import Settings
from eraser_hub.explain.recipes import Recipe, train_model
from eraser_hub.explain.running import Source, explain


@pytest.mark.parametrize("train_on", ["full", "rationale"])
def test_a_finetuned_model_is_explained(hub, network, tokenizer, tmp_path, train_on):
    base = tmp_path / "base"
    network("BertModel").save_pretrained(base)
    tokenizer.save_pretrained(base)
    recipe = Recipe(
        dataset=str(hub), config="movies", split="train", eval_split=None, model=str(base), max_steps=3, batch_size=4,
        window=16, query=True, learning_rate=1e-3,
    )  # fmt: skip
    words: list[str] = []
    figures = list(train_model(recipe, tmp_path / "m", train_on, False, say=words.append))
    names = ["no-rationale", "eval-rationale"] if train_on == "full" else ["train-eval-rationale"]
    assert [line.split(":")[0] for line in figures[1:]] == names
    assert "windows of at most 16 sub-words" in words[0]
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert facts["steps"] == 3 and facts["uses_query"] is True
    assert json.loads((tmp_path / "m" / "config.json").read_text())["id2label"] == {"0": "NEG", "1": "POS"}
    assert not (tmp_path / "m" / ".training").exists()
    source = Source(dataset=str(hub), config="movies", split="val", model=str(tmp_path / "m"), limit=4, window=16)
    report = explain(source, Settings(method="attention", bins=()), tmp_path / "p.jsonl")
    assert report.instances == 4
    assert any("longer than the model's window" in line for line in report.lines())
