"""The bundled samples end to end: built, trained on, explained, and scored by the metric modules."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.dataset import find_kd, open_split
from eraser_hub.attribution.run import explain
from eraser_hub.attribution.settings import ExplainSettings, build_settings
from eraser_hub.conversion import get_dataset
from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model

from ..refusals import refused


@pytest.fixture(scope="session")
def built(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """hub/ with pairs."""
    out = tmp_path_factory.mktemp("samples_hub")
    name = "bilingual_perturbation"
    get_dataset(name).build(["senti_ch"], source=samples / name, out=out)
    return out / name


def explained(built: Path, out: Path, method: str) -> list[dict]:
    """The predictions of a model that is trained on the pairs."""
    model = out.with_name("model")
    where = {"dataset": str(built), "config": "senti_ch", "split": "test", "eval_split": ""}
    recipe = TrainConfig(**where, model="logistic-regression", features="characters")
    list(train_model(recipe, model, say=lambda words: None))
    kd = find_kd(open_split(built, "senti_ch", "test")).kd
    explain(ExplainConfig(str(built), "senti_ch", "test", str(model)), ExplainSettings(method=method, kd=kd), out)
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_the_rationales_of_pairs_are_erased_as_they_are(built, tmp_path, spaces):
    import evaluate

    data, human, again = str(built), tmp_path / "human.jsonl", tmp_path / "again.jsonl"
    explained(built, tmp_path / "p.jsonl", "random")
    job = ExplainConfig(data, "senti_ch", "test", str(tmp_path / "model"), rationales="human")
    settings = build_settings("carton2020", "senti_ch", False)
    assert explain(job, settings, human).signature.startswith(
        "paper:carton2020|rationales:human|erase:remove|seed:1|model:"
    )
    rows = [json.loads(line) for line in human.read_text("utf-8").splitlines()]
    references = list(open_split(data, "senti_ch", "test").rows)
    for row, gold in zip(rows, references, strict=True):
        assert row["rationale"] == [sorted({at for one in sets for at in one}) for sets in gold["rationale_ids"]]
        assert "rationale_tokens" not in row and "kd" not in row
    sets = evaluate.load(str(spaces / "rationale_set_agreement"))
    scores = sets.compute(predictions=rows, references=references)
    assert scores["token_f1"] == 1.0 and {"accuracy_rationale", "accuracy_no_rationale"} <= set(scores)  # Acc_r, Acc_nr
    explain(replace(job, rationales=str(human)), settings, again)
    assert again.read_bytes() == human.read_bytes()
    human.write_text(json.dumps({**rows[0], "rationale": [[99]]}) + "\n")
    with refused("14", "99", file="human.jsonl", line=1, instance="1", field="rationale[0][0]"):
        explain(replace(job, rationales=str(human), limit=1), settings, again, force=True)


def test_chinese_pairs_give_a_map_above_chance(built, tmp_path, spaces):
    import evaluate

    references = list(open_split(built, "senti_ch", "test").rows)
    scores = {}
    for method in ("coefficients", "random"):
        rows = explained(built, tmp_path / f"{method}.jsonl", method)
        sets = evaluate.load(str(spaces / "rationale_set_agreement"), keep_in_memory=True)
        agreement = sets.compute(predictions=rows, references=references)
        assert {"token_f1", "iou_f1", "sufficiency", "comprehensiveness", "new_p"} <= set(agreement)
        assert [len(row["ranked_tokens"][0]) for row in rows] == [len(one["tokens"][0]) for one in references]
        assert [row["rationale_tokens"][0] for row in rows] == [
            row["ranked_tokens"][0][: math.ceil(0.276 * len(row["ranked_tokens"][0]))] for row in rows
        ]
        assert all(row["kd"] == [0.276] for row in rows)
        metric = evaluate.load(str(spaces / "perturbation_map"), keep_in_memory=True)
        scores[method] = metric.compute(predictions=rows, references=references)["map"]
    assert scores["coefficients"] > scores["random"] + 0.1
