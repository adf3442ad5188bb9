"""What rankings are asked besides, through the engine and the metric: golden values, files, units, refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.costs import count_inputs
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.explain import explain_texts
from eraser_hub.attribution.outputs import write_predictions
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.records.files import OutputWriter
from eraser_hub.records.predictions import read_instances

from ...refusals import refused
from ..closed_form import EXACT, cases, worth_of
from ..conftest import CountingModel, instance

EVERYTHING = {
    "aopc_bounds": True,
    "soft_draws": 4,
    "infidelity_draws": 3,
    "sensitivity_draws": 2,
}
MEASURES = ["aopc-bounds", "soft(draws=4)", "infidelity(draws=3)", "sensitivity(draws=2)"]
TEXT = "the good film\nwith a bad scene and a fine plot"


class ClosedForm:
    """A golden case as a model of tokens t0, t1, ..: which of them stand decides."""

    label_names = ("0", "1")

    def __init__(self, case):
        self.case = case

    def predict_proba(self, token_lists):
        coalitions = np.zeros((len(token_lists), self.case["tokens"]))
        for row, tokens in zip(coalitions, token_lists, strict=True):
            row[[int(token[1:]) for token in tokens]] = 1
        p = worth_of(self.case)(coalitions)
        return np.stack([1 - p, p] if self.case["target"] == 1 else [p, 1 - p], axis=1)


def explained(case, **more):
    text = " ".join(f"t{number}" for number in range(case["tokens"]))
    (prediction,) = explain_texts(ClosedForm(case), [text], target=str(case["target"]), **more)
    return prediction


@pytest.mark.parametrize("case", cases("naopc"))
def test_golden_naopc_from_text_to_metric(case):
    """Expected values: golden/beyond/naopc.json; above ten tokens its beam's bounds are enclosed."""
    prediction = explained(case, scores=[case["scores"]], measure="aopc-bounds(beam=5)")
    bounds, expected = prediction["aopc_bounds"], case["expected"]
    assert bounds["comprehensiveness"] == pytest.approx(expected["comprehensiveness"], abs=EXACT)
    assert bounds["sufficiency"] == pytest.approx(expected["sufficiency"], abs=EXACT)
    result = EraserFaithfulness().compute(predictions=[prediction])
    if case["tokens"] > 10:
        assert (bounds["method"], bounds["beam"]) == ("beam", 5)
        theirs = expected["beam"]["5"]
        assert bounds["lower"] <= theirs["lower"] + EXACT and bounds["upper"] >= theirs["upper"] - EXACT
        return
    assert (bounds["method"], bounds["beam"]) == ("exact", 0)
    assert (bounds["lower"], bounds["upper"]) == pytest.approx((expected["lower"], expected["upper"]), abs=EXACT)
    for side in ("comprehensiveness", "sufficiency"):
        assert result[f"naopc_{side}"] == pytest.approx(expected[f"normalized_{side}"], abs=EXACT)


@pytest.mark.parametrize("case", [case for case in cases("soft") if case["mask"] == "token"])
def test_golden_soft_scores_from_text_to_metric(case):
    """Expected values: golden/beyond/soft.json."""
    result = EraserFaithfulness().compute(
        predictions=[explained(case, scores=[case["scores"]], measure="soft(draws=2)")]
    )
    for side in ("comprehensiveness", "sufficiency"):
        assert result[f"soft_{side}"] == pytest.approx(case["expected"][side]["expected_normalized"], abs=EXACT)


@pytest.mark.parametrize("method", ["shapley", "kernel-shap"])
@pytest.mark.parametrize("case", cases("shapley")[:7])
def test_golden_shapley_from_text(case, method):
    """Expected values: golden/beyond/shapley.json; written scores have nine digits."""
    expected = case["expected"]
    prediction = explained(case, method=method)
    assert prediction["rationales"][0]["soft_rationale_predictions"] == pytest.approx(expected["shapley"], rel=1e-8)


@pytest.mark.parametrize("units", ["tokens", "sentences"])
@pytest.mark.parametrize("method", ["occlusion", "shapley", "kernel-shap", "lime"])
def test_every_score_goes_to_files_and_back(method, units, tmp_path):
    texts = [TEXT, "dull\n\nand cold", "good", ""]
    call = {"lime": "lime(samples=20)", "shapley": "shapley(draws=2)"}.get(method, method)
    settings = {"method": call, "units": units, "measure": MEASURES}
    predictions = explain_texts(CountingModel(), texts, **settings)
    assert predictions == explain_texts(CountingModel(), texts, chunk=1, batch_size=1, **settings)
    metric = EraserFaithfulness()
    result = metric.compute(predictions=predictions)
    keys = {"naopc_comprehensiveness", "naopc_sufficiency", "soft_comprehensiveness", "soft_sufficiency"}
    assert keys | {"sensitivity_max", "infidelity", "infidelity_normalized"} <= result.keys()
    # one unit or none, or two that weigh alike ("dull", "and cold"): nothing to normalise by
    assert f"|naopc_comprehensiveness:{2 if units == 'tokens' else 1}/4|" in result["signature"]
    lines = [json.dumps(one) for one in predictions]
    for name in ("p.jsonl", "p.parquet"):
        write_predictions(tmp_path / name, lines, ("NEG", "POS"), "eraser", OutputWriter())
        for (_, back), one in zip(read_instances(tmp_path / name), predictions, strict=True):
            assert all(back[name] == one[name] for name in ("infidelity", "sensitivity_max"))
            for owner, name in (("aopc_bounds", "upper"), ("aopc_bounds", "method"), ("soft_scores", "sufficiency")):
                assert back[owner][name] == one[owner][name]
    import datasets

    again = metric.compute(predictions=datasets.Dataset.from_list(predictions))
    numbers = {key: value for key, value in result.items() if isinstance(value, float)}
    assert {key: again[key] for key in numbers} == pytest.approx(numbers, nan_ok=True)


def test_texts_without_sentences_are_refused():
    with refused("`units` sentences", instance="0"):
        explain_texts(CountingModel(), [["good", "film"]], measure="aopc-bounds", units="sentences")
    with refused(argument="measure"):
        explain_texts(CountingModel(), ["good film"], scores=[[1, 0]], measure="sensitivity")


@pytest.mark.parametrize(
    ("settings", "kind", "mentions", "argument"),
    [
        ({"method": "rationales", "units": "sentences"}, "eraser", ("`units` sentences",), None),
        ({"units": "words"}, "eraser", ("'words'",), "units"),
        ({"soft_draws": 1}, "eraser", ("2", "1"), "soft_draws"),
        ({"method": "given", "sensitivity_draws": 2}, "eraser", (), "measure"),
        ({"method": "rationales", "aopc_bounds": True}, "eraser", (), "measure"),
        ({"method": "rationales", "infidelity_draws": 2}, "eraser", (), "measure"),
        ({"method": "rationales", "tokens_to_flip": True}, "eraser", (), "measure"),
        ({"aopc_bounds": True}, "perturbation", (), "measure"),
        ({"infidelity_draws": 2}, "perturbation", (), "measure"),
        ({"tokens_to_flip": True}, "perturbation", (), "measure"),
        ({"random_draws": 2}, "perturbation", (), "random_draws"),
        ({"fidelity_trials": 2}, "perturbation", (), "fidelity_trials"),
    ],
)
def test_settings_that_have_no_place_are_refused(settings, kind, mentions, argument):
    with refused(*mentions, argument=argument):
        ExplainSettings(**settings).for_kind(kind)
    assert "bins:" not in ExplainSettings().for_kind("perturbation").signature()


def test_sensitivity_of_an_additive_model_is_what_its_sigmoid_bends():
    """Random scores move far, those of a linear explanation of a linear model not at all."""

    class Linear:
        label_names = ("NEG", "POS")

        def predict_proba(self, token_lists):
            p = np.array([0.5 + 0.01 * sum(token == "good" for token in tokens) for tokens in token_lists])
            return np.stack([1 - p, p], axis=1)

    text = " ".join(["good", "film"] * 10)
    still, moved = (
        explain_texts(Linear(), [text], method=method, measure="sensitivity(draws=3)")[0]["sensitivity_max"]
        for method in ("occlusion", "random")
    )
    assert still < EXACT and moved > 0.1


@pytest.mark.parametrize("method", ["occlusion", "shapley", "kernel-shap"])
@pytest.mark.parametrize("words", [4, 14])
def test_costs_bound_what_is_asked(method, words):
    """The stated cost is an upper bound of the inputs that go through the model, and not far above it."""
    text = " ".join(f"good film{number}" for number in range(words // 2))
    settings = ExplainSettings(method=method, shapley_draws=3, shap_samples=50, bins=(0.5,), **EVERYTHING)
    model = CountingModel()
    adapter = PlainModel(model)
    align_labels(adapter, ("NEG", "POS"))
    list(explain_instances(adapter, [instance(text)], settings))
    cost = count_inputs(instance(text), settings, "eraser")
    assert len(model.asked) <= cost.total()
    assert cost["`measure` aopc-bounds"] == (2**4 + 8 if words == 4 else 2 * (14 + 5 * 14 * 13 // 2) + 28)
    assert replace(settings, units="tokens").signature().count("aopc-bounds:beam5") == 1
