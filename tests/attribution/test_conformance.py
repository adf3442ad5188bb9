"""What every attribution method and every measure holds, whoever wrote it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eraser_hub.attribution import explain_instances, open_model
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.costs import count_inputs
from eraser_hub.attribution.engine import explain_chunk
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.measure import MEASURES
from eraser_hub.attribution.method import METHODS, supports
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings

from ..refusals import refused
from .conftest import CountingModel, instance
from .transformers.test_prompted import _late_imports, make_model

__all__ = ["_late_imports"]  # a fixture, for make_model

SMALL = {"steps": 8, "lime_samples": 20, "shapley_draws": 2, "shap_samples": 40, "bins": (), "kd": 0.5}
TEXTS = ("the good film and a bad plot", "a warm scene with the film of the good plot and a grey scene", "good")


class Deaf(PlainModel):
    """A model that gives nothing that a method could ask for."""

    provides = frozenset()


def texts():
    return [instance(text, name=str(number)) for number, text in enumerate(TEXTS)]


def odd_texts():
    """Of nothing, of one token, of blanks, of Chinese, longer than a network's window, and a pair."""
    odd = ("", "good", "\u200b", "\u00a0 \u3000 \t", "好 电 影", "good bad film " * 11)
    pair = Instance("pair", (), ("a", "b"), (("good", "坏"), ("film",)))
    return [*(instance(text, name=str(number)) for number, text in enumerate(odd)), pair]


def adapters(linear, network, tokenizer):
    from eraser_hub.attribution.transformers.sequence_model import SequenceModel

    models = [PlainModel(CountingModel()), open_model(linear)]
    models.append(SequenceModel(network(hidden_act="relu").double(), tokenizer, device="cpu"))
    for model in models:
        align_labels(model, ("NEG", "POS"))
    return [*models, make_model("llama")]


def check_ends(found):
    """Comprehensiveness at 0 % and sufficiency at 100 % are 0; the other ends are those of an empty text."""
    full, null = found["classification_scores"], found["null_classification_scores"]
    none, everything = found["thresholded_scores"]
    assert none["comprehensiveness_classification_scores"] == everything["sufficiency_classification_scores"] == full
    assert none["sufficiency_classification_scores"] == everything["comprehensiveness_classification_scores"] == null
    assert abs(sum(full.values()) - 1) < 1e-9 and abs(sum(null.values()) - 1) < 1e-9


def settings_of(part, **more):
    """Settings with a value for each setting that the part declares."""
    own = {name: setting.default for name, setting in part.settings.items() if not setting.field}
    return {**SMALL, **({"more": own} if own else {}), **more}


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if one.packages])
def test_a_method_without_its_package_names_the_extra(name, linear, network, tokenizer, monkeypatch):
    from eraser_hub.records import extras

    model = next(model for model in adapters(linear, network, tokenizer) if supports(model, name))
    missing = METHODS[name].packages
    found = extras.importlib.util.find_spec
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda each: None if each in missing else found(each))
    words = ["scikit-learn" if package == "sklearn" else package for package in missing]
    with refused(*words, "eraser-hub[explain]"):
        list(explain_instances(model, texts(), ExplainSettings(**settings_of(METHODS[name], method=name))))


@pytest.mark.parametrize("name", METHODS)
def test_a_method(name, linear, network, tokenizer):
    """Finite scores, one a token, the same by seed and in any company, at the stated cost; else an error."""
    part, tried = METHODS[name], 0
    assert part.summary() and part.most_inputs.__doc__ and all(one.help for one in part.settings.values())
    settings = ExplainSettings(**settings_of(part, method=name))
    for package in part.packages:
        pytest.importorskip(package)
    for model in adapters(linear, network, tokenizer):
        if not supports(model, name):
            with refused(f"`method` {name}", model.description):
                list(explain_instances(model, texts(), settings))
            continue
        tried += 1
        for erase in ("remove", "mask", "pad")[: 2 if type(model) is PlainModel else 3]:  # which has no padding
            found = list(explain_instances(model, odd_texts(), replace(settings, erase=erase, bins=(0.0, 1.0))))
            for one, row in zip(odd_texts(), found, strict=True):
                check_ends(row)
                scores = [rationale["soft_rationale_predictions"] for rationale in row["rationales"]]
                assert [len(values) for values in scores] == [len(document) for document in one.documents]
                assert all(np.isfinite(values).all() for values in scores)
        first, again = (list(explain_instances(model, texts(), settings)) for _ in range(2))
        assert first == again
        alone = [row for one in texts() for row in explain_instances(model, [one], settings)]
        for one, row, other in zip(texts(), first, alone, strict=True):
            scores, others = (each["rationales"][0]["soft_rationale_predictions"] for each in (row, other))
            assert len(scores) == len(one.tokens) and np.isfinite(scores).all()
            np.testing.assert_allclose(scores, others, rtol=0, atol=1e-4)
        runner = Runner(model, "remove", 32)
        list(explain_chunk(runner, texts(), settings))
        assert runner.counts.inputs <= sum(count_inputs(one, settings, "eraser").total() for one in texts())
    assert tried, "no model allows it"
    if part.needs:
        with refused(f"`method` {name}"):
            deaf = Deaf(CountingModel())
            align_labels(deaf, ("NEG", "POS"))
            list(explain_instances(deaf, texts(), settings))


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure(name):
    """The same by seed, in its own fields, at the stated cost; refused for rationales that rank nothing."""
    part = MEASURES[name]
    assert part.summary() and part.fields and all(one.help for one in part.settings.values())
    flag = isinstance(getattr(ExplainSettings(), part.enabled_by, None), bool)
    asked = {part.enabled_by: True if flag else 3}
    if part.enabled_by in part.settings:
        asked = {"more": {part.enabled_by: type(part.settings[part.enabled_by].default)(3)}}
    settings = ExplainSettings(**settings_of(part, method="occlusion", **asked))
    assert settings.measures == [part] and part.describe_settings(settings)[0] in settings.signature()
    model = PlainModel(CountingModel())
    align_labels(model, ("NEG", "POS"))
    first, again = (list(explain_instances(model, texts(), settings)) for _ in range(2))
    plain = list(explain_instances(model, texts(), ExplainSettings(**SMALL)))
    assert first == again
    for row, without in zip(first, plain, strict=True):
        more = row.keys() - without.keys()
        assert more and more <= set(part.fields)
        assert {field: row[field] for field in without} == without
    runner = Runner(model, "remove", 32)
    list(explain_chunk(runner, texts(), settings))
    assert runner.counts.inputs <= sum(count_inputs(one, settings, "eraser").total() for one in texts())
    if part.ranks:
        with refused(argument="measure"):
            ExplainSettings(**settings_of(part, method="rationales", **asked)).for_kind("eraser")
