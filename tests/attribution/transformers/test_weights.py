"""Weights of prompted models in half precision, and layers that ``device_map`` places."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.config import Prompting
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import full
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.attribution.transformers.words import make_loading

from ...needs import needs
from ...refusals import refused
from .test_prompted import LABELS, ONE, WORDS, _late_imports, compute_expected, make_network, make_tokenizer

__all__ = ["_late_imports"]  # a fixture, for those functions
pytestmark = needs("torch", "transformers")


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    make_network("llama").float().save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def open_saved(folder: Path, **options: Any) -> Any:
    given = {name: options.pop(name) for name in ("device", "precision") if name in options}
    model = open_model(folder, prompting=Prompting(config="movies", label_words=WORDS, **options), **given)
    align_labels(model, LABELS)
    return model


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_in_half_precision(saved, dtype):
    """Passes are transformers' own in this type: their labels' probabilities are near those in float32."""
    import torch
    import transformers

    half, whole = open_saved(saved, dtype=dtype), open_saved(saved)
    assert {weights.dtype for weights in half.network.parameters()} == {getattr(torch, dtype)} and half.half is None
    (first,), (second,) = (Runner(one, "remove", 2).run([one.encode(ONE)], [full(0)]) for one in (half, whole))
    assert first == pytest.approx(second, abs=0.1) and abs(first - second).max() > 0
    lm = transformers.AutoModelForCausalLM.from_pretrained(saved).to(getattr(torch, dtype))
    assert first == pytest.approx(compute_expected(half, ONE, lm=lm), abs=0.05)
    settings = ExplainSettings(method="gradient", bins=())
    for method in ("gradient", "input-x-gradient", "integrated-gradients", "attention", "occlusion"):
        (found,) = explain_instances(half, [ONE], replace(settings, method=method))
        scores = found["rationales"][0]["soft_rationale_predictions"]
        assert np.isfinite(scores).all() and np.abs(scores).max() > 0


def test_a_device_map_places_the_layers(saved):
    pytest.importorskip("accelerate", reason="skipped: the extra devices is not installed")
    placed, moved = open_saved(saved, device_map="cpu"), open_saved(saved)
    first, second = (Runner(one, "remove", 2).run([one.encode(ONE)], [full(0)]) for one in (placed, moved))
    assert first.tolist() == second.tolist() and placed.device.type == "cpu"


def test_options_of_weights_that_cannot_be(saved, monkeypatch):
    with refused("`device` or `device_map`", argument="device_map"):
        open_saved(saved, device_map="auto", device="cpu")
    with refused("beside `dtype`", argument="precision"):
        open_saved(saved, dtype="bfloat16", precision="float16")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None)
    with refused("accelerate", "eraser-hub[devices]"):
        make_loading("float32", "auto", None)
