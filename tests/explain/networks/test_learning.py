"""Each of the papers' networks learns what it must on planted corpora, and finds the token that decides."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
from eraser_hub.explain import explain_instances, open_model
from eraser_hub.explain.labels import align_labels
from eraser_hub.explain.settings import settings_for
from eraser_hub.explain.train.data import Data
from eraser_hub.explain.train.networks import train_network
from eraser_hub.explain.train.recipe import Recipe

LABELS = ("NEG", "POS")
SMALL = ("embedding_size=12", "hidden_size=12", "dropout=0", "patience=0", "monitor=loss")


def token_f1(instances, predictions):
    """Micro F1 of the hard rationales' tokens."""
    hits = predicted = gold = 0
    for one, prediction in zip(instances, predictions, strict=True):
        spans = prediction["rationales"][0]["hard_rationale_predictions"]
        tokens = {place for span in spans for place in range(span["start_token"], span["end_token"])}
        truth = {place for place, flag in enumerate(one.rationale[0]) if flag}
        hits, predicted, gold = hits + len(tokens & truth), predicted + len(tokens), gold + len(truth)
    return 2 * hits / (predicted + gold)


def trained(planted, folder, model, kind="word", query=False, **options):
    """The model after training, the predictions' instances, and what was said."""
    train, test = planted(kind, "train", 240, query), planted(kind, "test", 80, query)
    recipe = Recipe("planted", None, "train", None, model, hyper=(*SMALL, *options.pop("hyper", ())), **options)
    words: list[str] = []
    (folder / "work").mkdir(parents=True)
    train_network(recipe, Data(train, test, LABELS, query), {}, folder / "m", folder / "work", words.append)
    model = open_model(folder / "m", device="cpu")
    align_labels(model, LABELS)
    return model, test[0], words


def explained(model, instances, **options):
    settings = settings_for("", "", model.has_embeddings, model.selects, kd=0.02, bins=(), **options)
    return list(explain_instances(model, instances, settings.for_kind("eraser")))


def accuracy(instances, predictions):
    pairs = zip(instances, predictions, strict=True)
    return sum(one.label == prediction["classification"] for one, prediction in pairs) / len(instances)


@pytest.mark.parametrize(
    ("model", "hyper", "method"),
    [
        ("bilstm", ("learning_rate=0.02", "epochs=6"), "integrated-gradients"),
        ("glove-lstm", ("learning_rate=0.02", "epochs=4"), "attention"),
    ],
)
def test_a_classifier_learns_the_word_that_decides(planted, tmp_path, model, hyper, method):
    model, instances, _ = trained(planted, tmp_path, model, hyper=hyper)
    predictions = explained(model, instances, method=method, steps=20)
    assert accuracy(instances, predictions) > 0.95


@pytest.mark.parametrize(
    ("model", "hyper"),
    [
        ("lei", ("learning_rate=0.02", "epochs=5")),
    ],
)
def test_lei_selects_the_word_that_decides(planted, tmp_path, model, hyper):
    model, instances, _ = trained(planted, tmp_path, model, hyper=hyper)
    predictions = explained(model, instances)
    assert accuracy(instances, predictions) > 0.95
    assert token_f1(instances, predictions) > 0.95
    assert all("soft_rationale_predictions" not in one["rationales"][0] for one in predictions)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["hyper"]["supervision"] == (1.0 if config["system"] == "lei" else 0.0)
