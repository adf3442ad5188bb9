"""Pipelines are trained stage by stage, learn what planted corpora hide, and go on where they were stopped."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from eraser_hub.attribution import open_model
from eraser_hub.attribution.open import find_opener, make_opening
from tests.attribution.conftest import told, word_tokenizer

from ...needs import needs
from ...planted import CUES, FILLER
from ...refusals import refused
from ..learned import explained, measure_learning, planted_data, train_planted

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global pipelines
    from eraser_hub.systems.pipelines import training as pipelines


SMALL = ("embedding_size=12", "hidden_size=12", "patience=0", "dropout=0", "learning_rate=0.02")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A small random BERT over the planted words."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("encoder")
    tokenizer = word_tokenizer([".", *FILLER, *CUES["NEG"], *CUES["POS"]], window=64)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def train(planted, folder, model, **options):
    """The pipeline after training, what was said, and other planted texts."""
    data = planted_data(planted, (options.pop("size", 160), 40))
    return *train_planted(folder, model, data, **options), planted("test", 40)[0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lehman", {"epochs": 5.0, "hyper": (*SMALL, "cell=gru")}),
        pytest.param("lehman", {"epochs": 5.0, "hyper": (*SMALL, "cell=lstm")}, marks=pytest.mark.slow),
        pytest.param(
            "bert-to-bert",
            {"epochs": 12.0, "learning_rate": 3e-3, "batch_size": 16, "window": 32, "hyper": ("warmup_steps=10",)},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_pipeline_finds_the_sentence_and_reads_it(planted, tmp_path, encoder, name, options):
    more = {"encoder": encoder} if name == "bert-to-bert" else {}
    model, words, test = train(planted, tmp_path, name, **options, **more)
    assert min(measure_learning(test, explained(model, test), sentences=True)) > 0.95
    assert any(line.startswith("identifier: ") for line in words)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["stages"] == ["identifier", "classifier"]
    assert more or f"cell={config['hyper']['cell']}" in options["hyper"]
    opening = make_opening(tmp_path / "m")
    assert find_opener(opening).selects(opening) and model.selects and not model.has_embeddings


def test_a_stopped_training_goes_on_after_the_stage_that_was_done(planted, tmp_path, monkeypatch):
    options = {"epochs": 1.0, "hyper": SMALL, "size": 24}
    whole, _, test = train(planted, tmp_path / "whole", "lehman", **options)
    real = pipelines.train_network

    def stopped(system, training):
        if training.facts["stage"] == "classifier":
            raise KeyboardInterrupt
        real(system, training)

    monkeypatch.setattr(pipelines, "train_network", stopped)
    with pytest.raises(KeyboardInterrupt):
        train(planted, tmp_path / "again", "lehman", **options)
    assert not (tmp_path / "again" / "m").exists()
    monkeypatch.setattr(pipelines, "train_network", real)
    again, words, _ = train(planted, tmp_path / "again", "lehman", resume=True, **options)
    assert told(words, "identifier", "before the stop")
    assert explained(again, test) == explained(whole, test)


@pytest.mark.parametrize("moved", [1, 2])
def test_a_training_stopped_while_its_stages_move_into_the_model_goes_on(planted, tmp_path, moved):
    options = {"epochs": 1.0, "hyper": SMALL, "size": 8}
    train(planted, tmp_path, "lehman", **options)
    whole = {path: path.read_bytes() for path in (tmp_path / "m").rglob("*") if path.is_file()}
    for name in ("identifier", "classifier")[moved:]:
        (tmp_path / "m" / name).rename(tmp_path / "work" / name)
    _, words, _ = train(planted, tmp_path, "lehman", resume=True, **options)
    assert told(words, "classifier", "before the stop") == (moved == 1)
    assert {path: path.read_bytes() for path in (tmp_path / "m").rglob("*") if path.is_file()} == whole
    (tmp_path / "work" / "checkpoint.pt").write_text("3")
    with refused(file="checkpoint.pt", argument="resume"):
        train(planted, tmp_path, "lehman", resume=True, **options)


def test_the_best_of_a_grid_is_kept_by_the_whole_pipeline(planted, tmp_path):
    """Judged as it is used, by its own sentences."""
    options = {"epochs": 5.0, "hyper": SMALL, "size": 80, "grid": ("learning_rate=1e-6,0.02",)}
    _, words, _ = train(planted, tmp_path, "lehman", **options)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert config["hyper"]["learning_rate"] == 0.02
    assert [one["settings"] for one in facts["grid"]] == [["learning_rate=1e-6"], ["learning_rate=0.02"]]
    worst, best = (one["accuracy"] for one in facts["grid"])
    assert worst < best and told(words, "search", "learning_rate=0.02", "best", f"accuracy: {best:.4f}")


def test_with_a_query_the_reader_asks(planted, tmp_path):
    """The query stands apart, and masks keep it: another query is another input. What is damaged is said."""
    data = planted_data(planted, (16, 0), query=True)
    asked = data.train[0][0]
    model, _ = train_planted(tmp_path, "lehman", data, epochs=1.0, hyper=SMALL)
    assert model.uses_query
    one, other = (explained(model, [replace(asked, query=query)])[0] for query in (asked.query, ("it", "?")))
    assert one["classification_scores"] != other["classification_scores"]
    (tmp_path / "m" / "config.json").write_text("{}")
    with refused("'hyper'", file="config.json"):
        open_model(tmp_path / "m")
