"""What every attribution method and every measure holds, whoever wrote it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from eraser_hub.attribution import Instance, build_settings, explain_instances, open_model
from eraser_hub.attribution.method import MEASURES, METHODS, Measure, Method
from eraser_hub.attribution.models.labels import align_labels
from eraser_hub.records import extras

from ..golden.record import linear_model
from ..refusals import refused
from .conftest import CountingModel, byte_tokenizer, instance

CALLS = {
    "lime": "lime(samples=20)", "shapley": "shapley(draws=2)", "kernel-shap": "kernel-shap(samples=40)",
    "integrated-gradients": "integrated-gradients(steps=8)",
}  # fmt: skip
TEXTS = [
    instance(text, name=str(number))
    for number, text in enumerate(
        ("the good film and a bad plot", "a warm scene with the film of the good plot and a grey scene", "good")
    )
]
# nothing, one token, blanks, Chinese, longer than a network's window, a pair
ODD = [
    instance(text, name=str(number))
    for number, text in enumerate(("", "good", "\u200b", "\u00a0 \u3000 \t", "好 电 影", "good bad film " * 11))
] + [Instance("pair", (), ("a", "b"), (("good", "坏"), ("film",)))]


def explain(model, texts, method="occlusion", **more):
    chosen = build_settings(**{"method": CALLS.get(method, method), "kd": 0.5, "bins": (), **more})
    return list(explain_instances(model, texts, chosen))


def scores_of(row):
    return [rationale["soft_rationale_predictions"] for rationale in row["rationales"]]


@pytest.fixture
def models(network, tokenizer):
    """A model of each kind that classifies, its labels in the dataset's order."""
    import transformers

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    language = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=300, **sizes)).double()
    models = [
        open_model(CountingModel()),
        open_model(linear_model()),
        open_model((network(hidden_act="relu").double(), tokenizer), device="cpu"),
        open_model((language, byte_tokenizer("llama", model_max_length=512)), device="cpu", label_names=("NEG", "POS")),
    ]
    for model in models:
        align_labels(model, ("NEG", "POS"))
    return models


def check_ends(row):
    """Comprehensiveness at 0 % and sufficiency at 100 % are 0; the other ends are those of an empty text."""
    full, null = row["classification_scores"], row["null_classification_scores"]
    none, everything = row["thresholded_scores"]
    assert none["comprehensiveness_classification_scores"] == everything["sufficiency_classification_scores"] == full
    assert none["sufficiency_classification_scores"] == everything["comprehensiveness_classification_scores"] == null
    assert abs(sum(full.values()) - 1) < 1e-9 and abs(sum(null.values()) - 1) < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_a_method(name, models, monkeypatch):
    """Finite scores, one a token, the same by seed and in any company; else an error."""
    part, tried = METHODS[name], []
    assert part.__doc__ and all(f"{field.name}:" in part.__doc__ for field in fields(part))
    for package in part.packages:
        pytest.importorskip(package)
    for model in models:
        if not model.supports(part):
            with refused(f"{name}", model.description, argument="method"):
                explain(model, TEXTS, name)
            continue
        tried.append(model)
        for erase in ("remove", "mask", "pad")[: 2 if model is models[0] else 3]:  # which has no padding
            for one, row in zip(ODD, explain(model, ODD, name, erase=erase, bins=(0.0, 1.0)), strict=True):
                check_ends(row)
                assert [len(values) for values in scores_of(row)] == [len(document) for document in one.documents]
                assert all(np.isfinite(values).all() for values in scores_of(row))
        first = explain(model, TEXTS, name)
        assert first == explain(model, TEXTS, name)
        for one, row in zip(TEXTS, first, strict=True):
            (alone,) = explain(model, [one], name)
            np.testing.assert_allclose(scores_of(row)[0], scores_of(alone)[0], rtol=0, atol=1e-4)
    assert tried, "no model allows it"
    found = extras.importlib.util.find_spec
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda one: None if one in part.packages else found(one))
    if part.packages:
        with refused("eraser-hub[explain]"):
            explain(tried[0], TEXTS, name)
    if part.needs:
        models[0].provides = frozenset()
        with refused(name, argument="method"):
            explain(models[0], TEXTS, name)


def test_a_part_without_a_hook_is_told():
    for settings in ({"method": Method()}, {"measures": [Measure()]}):
        with refused("`search`"):
            list(explain_instances(open_model(CountingModel()), TEXTS, build_settings(**settings)))


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure(name):
    """The same by seed, in its own fields alone; refused for rationales that rank nothing."""
    part, model = MEASURES[name], open_model(CountingModel())
    assert part.__doc__ and all(f"{field.name}:" in part.__doc__ for field in fields(part))
    first, again = (explain(model, TEXTS, measures=[name]) for _ in range(2))
    assert first == again
    alone = [row for one in TEXTS for row in explain(model, [one], measures=[name])]
    assert first == alone and len(explain(model, ODD, measures=[name])) == len(ODD)
    for row, without in zip(first, explain(model, TEXTS), strict=True):
        assert row.keys() - without.keys() == set(part.fields)
        assert {field: row[field] for field in without} == without
    chosen = build_settings(measures=[name])
    assert f"measures:{name}" in chosen.signature()
    with refused(argument="measure"):
        replace(chosen, method=None, rationales="human")
