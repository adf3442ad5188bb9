"""Each of the papers' networks learns what it must on planted corpora, and finds the token that decides."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.open import find_opener, make_opening
from eraser_hub.attribution.run import explain
from eraser_hub.attribution.settings import build_settings
from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model

from ...needs import needs
from ...refusals import refused
from ..learned import explained, measure_learning, planted_data, train_planted

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch
    import torch


SMALL = ("embedding_size=12", "hidden_size=12", "dropout=0", "patience=0", "monitor=loss")

# labels alone: an encoder that learns by blind selections, and a generator that begins after it and goes on trying
UNSUPERVISED = (
    "learning_rate=0.01",
    "epochs=30",
    "batch_size=8",
    "sparsity=1",
    "contiguity=0",
    "draws=4",
    "free_epochs=5",
    "entropy=0.01",
    "random_selections=true",
)


def trained(planted, folder, model, query=False, **options):
    """The model after training, and other planted texts."""
    hyper = (*SMALL, *options.pop("hyper", ()))
    model, _ = train_planted(folder, model, planted_data(planted, (240, 80), query), hyper=hyper, **options)
    return model, planted("test", 80, query)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hyper", "method"),
    [
        ("lstm", ("learning_rate=0.02", "epochs=14", "batch_size=8"), "attention"),
        ("bilstm", ("learning_rate=0.02", "epochs=6"), "integrated-gradients"),
        ("glove-lstm", ("learning_rate=0.02", "epochs=4"), "attention"),
        ("match-lstm", ("learning_rate=0.02", "epochs=10", "batch_size=8"), "attention"),
        ("lei", ("learning_rate=0.02", "epochs=5"), None),
        # an encoder that has seen blind selections knows nothing by an empty one: both labels' words must be marked
        ("lei-unsupervised", UNSUPERVISED, None),
    ],
)
def test_it_learns_the_word_that_decides_and_a_selector_selects_it(planted, tmp_path, name, hyper, method):
    model, instances = trained(planted, tmp_path, name, query=name == "match-lstm", hyper=hyper)
    predictions = explained(model, instances, **({"method": method, "steps": 20} if method else {}))
    accuracy, f1 = measure_learning(instances, predictions, sentences=False)
    assert accuracy > 0.95
    if not method:
        assert f1 > 0.95
        assert all("soft_rationale_predictions" not in one["rationales"][0] for one in predictions)


def test_an_lstm_over_an_encoder_is_trained_and_explained(planted, network, tokenizer, tmp_path):
    network("BertModel", initializer_range=0.02).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    model, instances = trained(
        planted,
        tmp_path,
        "bert-lstm",
        encoder=str(tmp_path / "base"),
        window=16,
        hyper=("trained_layers=1",),
        max_steps=2,
    )
    assert model.network.embedder.window == 16
    weights = model.network.embedder.encoder.state_dict()
    import transformers

    before = transformers.AutoModel.from_pretrained(tmp_path / "base").state_dict()
    changed = {
        name.split(".")[2] for name in before if not torch.equal(before[name], weights[name]) and "layer" in name
    }
    assert changed == {"1"}  # the last of two layers alone
    for method in ("attention", "simple-gradient", "integrated-gradients", "occlusion"):
        (one,) = explained(model, instances[:1], method=method, steps=5)
        scores = one["rationales"][0]["soft_rationale_predictions"]
        assert len(scores) == len(instances[0].documents[0]) > 16 and any(scores)


def test_lei_has_no_scores_but_a_rationale_of_its_own(planted, tmp_path):
    model, instances = trained(planted, tmp_path, "lei-unsupervised", hyper=("epochs=1",))
    with refused("`method` attention", "lei-unsupervised m", "random"):
        explained(model, instances, method="attention")
    assert build_settings("carton2020", "", False, True).scores == "human"
    (own,) = model.selections([model.encode(instances[0])])
    (one,) = explained(model, instances[:1])
    spans = one["rationales"][0]["hard_rationale_predictions"]
    assert [
        place for span in spans for place in range(span["start_token"], span["end_token"])
    ] == own.positions.tolist()
    other, instances = trained(planted, tmp_path / "other", "glove-lstm", hyper=("epochs=1",))
    with refused("`rationales` model", "glove-lstm m"):
        other.selections([other.encode(instances[0])])


def test_explain_erases_a_selector_s_own_rationale_unless_told_otherwise(hub, tmp_path):
    job = TrainConfig(
        dataset=str(hub),
        config="movies",
        split="train",
        eval_split="",
        model="lei",
        hyper=("embedding_size=4", "hidden_size=4"),
        max_steps=1,
    )
    list(train_model(job, tmp_path / "m", say=lambda words: None))
    opening = make_opening(tmp_path / "m")
    assert find_opener(opening).selects(opening) and not find_opener(make_opening(tmp_path)).selects(
        make_opening(tmp_path)
    )
    job = ExplainConfig(str(hub), "movies", "val", str(tmp_path / "m"), limit=2)
    for number, (more, options, whose) in enumerate(
        (
            ({}, {}, "rationales:model"),
            ({"rationales": "model"}, {"method": "rationales"}, "rationales:model"),
            ({"rationales": "human"}, {"method": "rationales"}, "rationales:human"),
            ({}, {"method": "occlusion"}, "method:occlusion"),
        )
    ):
        settings = build_settings("", "movies", False, True, **options)
        report = explain(replace(job, **more), settings, tmp_path / f"{number}.jsonl")
        assert report.signature.startswith(whose)
    human = json.loads((tmp_path / "2.jsonl").read_text().splitlines()[0])
    assert sum(s["end_token"] - s["start_token"] for s in human["rationales"][0]["hard_rationale_predictions"]) == 4
