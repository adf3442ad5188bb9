"""Odd models and data that are in order all the same: numbers are right, and what is missing is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("sklearn")
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.adapters.scikit_learn import MASK, PAD
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.explain import explain_texts
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.run import compute_model_digest, explain
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.records.predictions import run_path

from ..needs import needs
from ..refusals import refused
from .conftest import instance, made_row, write_hub

SETTINGS = ExplainSettings(method="occlusion", chunk=4)
TEXTS = ["good warm film", "good plot good", "bad dull film", "grey bad plot a"]


def fit(estimator: Any, gold: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(CountVectorizer(token_pattern="[^ ]+"), estimator).fit([*TEXTS, f"{MASK} {PAD}"], gold)


def soft(prediction: dict[str, Any]) -> list[float]:
    return [score for one in prediction["rationales"] for score in one["soft_rationale_predictions"]]


def test_a_token_of_several_words_has_the_sum_of_their_weights() -> None:
    from sklearn.linear_model import LogisticRegression

    pipeline = fit(LogisticRegression(), ["POS", "POS", "NEG", "NEG", "NEG"])
    weights = dict(zip(pipeline[0].get_feature_names_out(), pipeline[-1].coef_[0], strict=True))
    (prediction,) = explain_texts(pipeline, [["good film", "warm"]], method="coefficients")
    assert prediction["classification"] == "POS"
    assert soft(prediction) == pytest.approx([weights["good"] + weights["film"], weights["warm"]], abs=1e-8)


@needs("torch", "transformers")
@pytest.mark.parametrize(
    ("head", "found"),
    [
        ({"problem_type": "multi_label_classification"}, "multi_label_classification"),
        ({"id2label": {0: "value"}, "label2id": {"value": 0}}, "one output"),
    ],
)
def test_a_head_that_is_no_softmax_over_labels_is_refused(
    network: Callable[..., Any], tokenizer: Any, tmp_path: Path, head: dict[str, Any], found: str
) -> None:
    network(**head).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with refused("one label per text", found):
        open_model(tmp_path)


@needs("torch", "transformers")
def test_perturbed_texts_do_not_count_as_long_ones(network: Callable[..., Any], tokenizer: Any, tmp_path: Path) -> None:
    network().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = open_model(tmp_path)
    align_labels(model, ("NEG", "POS"))
    settings = ExplainSettings(method="occlusion", sensitivity_draws=3, bins=())
    list(explain_instances(model, [instance("good film " * 30)], settings))
    assert model.notes.counts["texts longer than the window"] == 1


@needs("torch", "transformers")
def test_a_folder_without_the_weights_of_its_head_is_refused(
    network: Callable[..., Any], tokenizer: Any, tmp_path: Path
) -> None:
    network("BertModel").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with refused("classifier.bias", "--model", file=tmp_path):
        open_model(tmp_path, task="classification")


@needs("torch", "transformers")
@pytest.mark.parametrize("kind", ["Bert", "Roberta", "RobertaPreLayerNorm", "MarkupLM", "Luke"])
def test_the_longest_input_is_what_the_positions_allow(kind: str, tokenizer: Any) -> None:
    import torch
    import transformers

    from eraser_hub.attribution.models.words import find_longest_input

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = getattr(transformers, f"{kind}Config")(vocab_size=40, max_position_embeddings=24, **sizes)
    network = getattr(transformers, f"{kind}ForSequenceClassification")(config).eval()
    longest = find_longest_input(network, tokenizer)
    with torch.inference_mode():
        assert network(input_ids=torch.full((1, longest), 7)).logits.shape == (1, 2)
        with pytest.raises((IndexError, RuntimeError)):
            network(input_ids=torch.full((1, longest + 1), 7))


def test_parquet_holds_scores_though_the_first_row_has_no_documents(job: ExplainConfig, tmp_path: Path) -> None:
    rows = [{**made_row(0), "documents": [], "evidences": []}, made_row(1)]
    data = write_hub(tmp_path / "hub", "movies", {"validation": rows}, ["NEG", "POS"])
    for name in ("p.parquet", "p.jsonl"):
        explain(replace(job, dataset=str(data)), SETTINGS, tmp_path / name)
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
    assert not lines[0]["rationales"] and "soft_rationale_predictions" in lines[1]["rationales"][0]
    assert pq.read_table(tmp_path / "p.parquet").to_pylist() == lines


@pytest.mark.parametrize("method", ["given", "rationales"])
def test_a_sample_takes_its_rows_out_of_a_file_of_the_whole_split(
    job: ExplainConfig, tmp_path: Path, method: str
) -> None:
    path = tmp_path / "whole.jsonl"
    explain(job, SETTINGS, path)
    external = replace(job, scores=path) if method == "given" else replace(job, rationales=str(path))
    settings = replace(SETTINGS, method=method)
    assert explain(replace(external, sample=4), settings, tmp_path / "p.jsonl").instances == 4
    path.write_text("\n".join(path.read_text("utf-8").splitlines()[1:]), "utf-8")
    with refused(file=path):
        explain(replace(external, sample=21), settings, tmp_path / "q.jsonl")


def test_a_record_is_of_the_model_that_the_run_began_with(job: ExplainConfig, linear: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(linear, model)
    before = compute_model_digest(str(model))

    def change(done: int, passes: int) -> None:
        (model / "model.json").write_text("{}", "utf-8")

    explain(replace(job, model=str(model)), SETTINGS, tmp_path / "p.jsonl", on_progress=change)
    record = json.loads(run_path(tmp_path / "p.jsonl").read_text("utf-8"))
    assert record["model"]["digest"] == before != compute_model_digest(str(model))
