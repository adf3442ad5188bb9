"""Pairs of the bundled samples end to end: built, trained on, explained, and scored by the metric modules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
import eraser_hub
from eraser_hub.attribution.dataset import open_split
from eraser_hub.conversion import get_dataset

from ..refusals import refused


def test_the_rationales_of_pairs_are_erased_as_they_are(samples, tmp_path, spaces):
    import evaluate

    name = "bilingual_perturbation"
    hub = get_dataset(name).build(["senti_ch"], source=samples / name, out=tmp_path).folder
    of = {"config": "senti_ch", "split": "test"}
    eraser_hub.train(hub, "logistic-regression(features=characters)", out=tmp_path / "model", eval_split="", **of)

    def explained(out: Path, **more) -> list[dict]:
        eraser_hub.explain(tmp_path / "model", hub, out=out, paper="carton2020", **of, **more)
        return [json.loads(line) for line in out.read_text("utf-8").splitlines()]

    human, again = tmp_path / "human.jsonl", tmp_path / "again.jsonl"
    rows, references = explained(human), list(open_split(hub, "senti_ch", "test").rows)
    for row, gold in zip(rows, references, strict=True):
        assert row["rationale"] == [sorted({at for one in sets for at in one}) for sets in gold["rationale_ids"]]
        assert "rationale_tokens" not in row and "kd" not in row
    sets = evaluate.load(str(spaces / "rationale_set_agreement"))
    scores = sets.compute(predictions=rows, references=references)
    assert scores["token_f1"] == 1.0 and {"accuracy_rationale", "accuracy_no_rationale"} <= set(scores)  # Acc_r, Acc_nr
    assert explained(again, rationales=human) == rows
    human.write_text(json.dumps({**rows[0], "rationale": [[99]]}) + "\n")
    with refused("14", "99", file="human.jsonl", line=1, instance="1"):
        explained(again, rationales=human, limit=1, force=True)
