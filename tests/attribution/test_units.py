"""Whole sentences as rationales, by every method."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from eraser_hub import explain_texts
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import select_top_units
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.method import METHODS, supports
from eraser_hub.attribution.settings import build_settings

from ..needs import needs
from .conftest import CountingModel

SIZES = ((4, 2, 3), (), (5, 1))  # of the sentences of three documents, the second of which is empty
WORDS = ("good", "film", "the", "bad", "plot", "scene", "warm", "a", "of")


def text(number: int) -> Instance:
    """Three documents of sentences, drawn by number."""
    random = np.random.default_rng(number)
    documents = tuple(tuple(map(str, random.choice(WORDS, sum(sizes)))) for sizes in SIZES)
    return Instance(f"t{number}", (), ("a", "b", "c"), documents, "POS", sentences=SIZES)


def take_tokens(rationale: dict[str, Any]) -> set[int]:
    spans = rationale["hard_rationale_predictions"]
    return {at for span in spans for at in range(span["start_token"], span["end_token"])}


def check_units(prediction: dict[str, Any], kd: float, shared: bool) -> None:
    """The rationale is the top sentences, as few as hold the share of tokens; a sentence has the sum or mean."""
    sentences: list[tuple[float, int, bool]] = []
    for rationale, sizes in zip(prediction["rationales"], SIZES, strict=True):
        bounds, taken = np.cumsum([0, *sizes]).tolist(), take_tokens(rationale)
        scores = np.asarray(rationale["soft_rationale_predictions"])
        assert len(rationale["soft_sentence_predictions"]) == len(sizes)
        for (start, end), value in zip(pairwise(bounds), rationale["soft_sentence_predictions"], strict=True):
            inside = {*range(start, end)} & taken
            assert inside in (set(), {*range(start, end)}), "whole sentences alone"
            expected = scores[start:end].sum() if shared else scores[start:end].mean()
            assert value == pytest.approx(expected, rel=1e-6, abs=1e-9)
            if shared:
                assert np.ptp(scores[start:end]) <= 1e-9
            sentences.append((value, end - start, bool(inside)))
    chosen, others = ([one for one in sentences if one[2] is flag] for flag in (True, False))
    assert min(value for value, _, _ in chosen) >= max((value for value, _, _ in others), default=-np.inf)
    least = int(np.ceil(kd * sum(map(sum, SIZES))))
    taken = sum(size for _, size, _ in chosen)
    last = min(chosen)[1]
    assert taken >= least > taken - max(last, 1) or len({value for value, _, _ in sentences}) < len(sentences)


@pytest.mark.parametrize("method", [name for name in METHODS if "probabilities" in METHODS[name].needs])
@pytest.mark.parametrize("kd", [0.05, 0.4])
def test_black_box_methods_select_whole_sentences(method: str, kd: float) -> None:
    settings = build_settings("", "", False, method=method, units="sentences", kd=kd, lime_samples=50, seed=3)
    from eraser_hub.attribution.open import open_model

    for prediction in explain_instances(open_model(CountingModel()), [text(1), text(2)], settings):
        check_units(prediction, kd, METHODS[method].scores_units)
        assert [one["threshold"] for one in prediction["thresholded_scores"]] == [0.01, 0.05, 0.1, 0.2, 0.5]


@needs("torch", "transformers")
@pytest.mark.parametrize("method", [name for name in METHODS if "probabilities" not in METHODS[name].needs])
def test_methods_that_look_inside_select_whole_sentences(
    method: str, network: Any, tokenizer: Any, linear: Any
) -> None:
    from eraser_hub.attribution.open import open_model
    from eraser_hub.attribution.transformers.sequence_model import SequenceModel

    model = SequenceModel(network(), tokenizer, device="cpu", precision="float32")
    adapter = model if supports(model, method) else open_model(linear)
    settings = build_settings("", "", True, method=method, units="sentences", kd=0.3, steps=20)
    (prediction,) = explain_instances(adapter, [text(5)], settings)
    check_units(prediction, 0.3, shared=False)


def test_a_sentence_is_erased_whole_by_occlusion_and_in_each_bin() -> None:
    one = "a warm\ngood good good\nbad the"
    (prediction,) = explain_texts(CountingModel(), [one], units="sentences", kd=0.1, bins=(0.5,))
    (rationale,) = prediction["rationales"]
    assert rationale["hard_rationale_predictions"] == [{"start_token": 2, "end_token": 5}]
    model, sizes = CountingModel(), (2, 3, 2)
    texts = (one, "good good good bad the", "a warm bad the", "a warm good good good")
    full, *kept = model.predict_proba([text.split() for text in texts])[:, 1]
    effects = np.repeat([(full - p) / size for p, size in zip(kept, sizes, strict=True)], sizes)
    assert rationale["soft_rationale_predictions"] == pytest.approx(effects, abs=1e-8)
    ((bin_scores),) = prediction["thresholded_scores"]
    whole = {name: bin_scores[name] for name in bin_scores if name != "threshold"}
    # four of seven tokens: the best sentence has three, so the next one goes too
    assert whole["sufficiency_classification_scores"] != prediction["sufficiency_classification_scores"]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(0.0, []), (0.01, [2, 3, 4]), (0.5, [2, 3, 4]), (0.51, [0, 1, 2, 3, 4]), (1.0, [0, 1, 2, 3, 4, 5])],
)
def test_as_few_units_as_hold_the_share(rate: float, expected: list[int]) -> None:
    found = select_top_units(np.array([0.2, 0.9, 0.2]), np.array([0, 2, 5, 6]), rate)
    assert found.tolist() == expected
