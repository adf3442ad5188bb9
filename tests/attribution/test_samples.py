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

CONFIGS = {"eraser": ["esnli", "boolq", "cose"], "human_rationales": ["sst"], "bilingual_perturbation": ["senti_ch"]}


@pytest.fixture(scope="session")
def built(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """hub/ with some configs of every dataset."""
    out = tmp_path_factory.mktemp("samples_hub")
    for name, configs in CONFIGS.items():
        get_dataset(name).build(configs, source=samples / name, out=out)
    return out


def explained(
    built: Path, dataset: str, config: str, split: str, out: Path, train: str = "train", **more
) -> list[dict]:
    model = out.with_name(f"{config}-model")
    features = "characters" if config.endswith("_ch") else "words"
    recipe = TrainConfig(
        dataset=str(built / dataset),
        config=config,
        split=train,
        eval_split="",
        model="logistic-regression",
        features=features,
    )
    list(train_model(recipe, model, say=lambda words: None))
    job = ExplainConfig(str(built / dataset), config, split, str(model))
    explain(job, ExplainSettings(kd=find_kd(open_split(job.dataset, config, split)).kd, **more), out)
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("config", CONFIGS["eraser"])
def test_eraser_predictions_are_taken_as_they_are(built, config, tmp_path, spaces):
    import evaluate

    rows = explained(built, "eraser", config, "val", tmp_path / "p.jsonl", method="occlusion", tokens_to_flip=True)
    references = list(open_split(built / "eraser", config, "val").rows)
    names = list(open_split(built / "eraser", config, "val").label_names)
    agreement = evaluate.load(str(spaces / "eraser_agreement"), keep_in_memory=True)
    found = agreement.compute(predictions=rows, references=references)
    assert 0 <= found["auprc"] <= 1
    faithfulness = evaluate.load(str(spaces / "eraser_faithfulness"), keep_in_memory=True)
    found = faithfulness.compute(predictions=rows, references=references, label_names=names)
    assert -1 <= found["comprehensiveness"] <= 1 and found["tokens_to_flip_ratio"] > 0


def test_one_text_rows_are_explained(built, tmp_path):
    rows = explained(built, "human_rationales", "sst", "test", tmp_path / "p.jsonl", method="lime", lime_samples=50)
    assert all(len(row["rationales"]) == 1 for row in rows)


def test_results_of_pairs_have_no_place_for_some_settings(built, tmp_path):
    job = ExplainConfig(str(built / "bilingual_perturbation"), "senti_ch", "test", "unopened")
    for more, option in (
        ({"random_draws": 2}, "random_draws"),
        ({"fidelity_trials": 2}, "fidelity_trials"),
        ({"tokens_to_flip": True}, "measure"),
    ):
        with refused(option):
            explain(job, ExplainSettings(**more), tmp_path / "p.jsonl")
    explained(built, "bilingual_perturbation", "senti_ch", "test", tmp_path / "q.jsonl", train="test", method="random")
    assert "bins:" not in json.loads((tmp_path / "q.jsonl.run.json").read_text())["signature"]


def test_the_rationales_of_pairs_are_erased_as_they_are(built, tmp_path, spaces):
    import evaluate

    data, human, again = str(built / "bilingual_perturbation"), tmp_path / "human.jsonl", tmp_path / "again.jsonl"
    explained(built, "bilingual_perturbation", "senti_ch", "test", tmp_path / "p.jsonl", train="test", method="random")
    job = ExplainConfig(data, "senti_ch", "test", str(tmp_path / "senti_ch-model"), rationales="human")
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

    references = list(open_split(built / "bilingual_perturbation", "senti_ch", "test").rows)
    scores = {}
    for method in ("coefficients", "random"):
        rows = explained(
            built,
            "bilingual_perturbation",
            "senti_ch",
            "test",
            tmp_path / f"{method}.jsonl",
            train="test",
            method=method,
        )
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
