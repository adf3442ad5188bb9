"""What every attribution method and every measure holds, whoever wrote it."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution import explain_instances, open_model
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.costs import count_inputs
from eraser_hub.attribution.measure import MEASURES
from eraser_hub.attribution.method import METHODS, supports
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings

from ..refusals import refused
from .conftest import CountingModel, instance

SMALL = {"steps": 8, "lime_samples": 20, "shapley_draws": 3, "shap_samples": 40, "bins": (), "kd": 0.5}
TEXTS = ("the good film and a bad plot", "a warm scene with the film of the good plot and a grey scene", "good")


class Deaf(PlainModel):
    """A model that gives nothing that a method could ask for."""

    provides = frozenset()


def texts():
    return [instance(text, name=str(number)) for number, text in enumerate(TEXTS)]


def adapters(linear, network, tokenizer):
    from eraser_hub.attribution.transformers.sequence_model import SequenceModel

    models = [PlainModel(CountingModel()), open_model(linear)]
    models.append(SequenceModel(network(hidden_act="relu"), tokenizer, device="cpu"))
    for model in models:
        align_labels(model, ("NEG", "POS"))
    return models


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
            with refused(name, model.description):
                list(explain_instances(model, texts(), settings))
            continue
        tried += 1
        first, again = (list(explain_instances(model, texts(), settings)) for _ in range(2))
        assert first == again
        alone = [row for one in texts() for row in explain_instances(model, [one], settings)]
        for one, row, other in zip(texts(), first, alone, strict=True):
            scores, others = (each["rationales"][0]["soft_rationale_predictions"] for each in (row, other))
            assert len(scores) == len(one.tokens) and np.isfinite(scores).all()
            np.testing.assert_allclose(scores, others, rtol=0, atol=1e-4)
        runner = Runner(model, "remove", 32)
        list(explain_with(runner, settings))
        assert runner.counts.inputs <= sum(count_inputs(one, settings, "eraser").total() for one in texts())
    assert tried, "no model allows it"
    if part.needs:
        with refused(name):
            deaf = Deaf(CountingModel())
            align_labels(deaf, ("NEG", "POS"))
            list(explain_instances(deaf, texts(), settings))


def explain_with(runner, settings):
    from eraser_hub.attribution.engine import explain_chunk

    return explain_chunk(runner, texts(), settings)


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
    list(explain_with(runner, settings))
    assert runner.counts.inputs <= sum(count_inputs(one, settings, "eraser").total() for one in texts())
    if part.ranks:
        with refused(argument="measure"):
            ExplainSettings(**settings_of(part, method="rationales", **asked)).for_kind("eraser")
