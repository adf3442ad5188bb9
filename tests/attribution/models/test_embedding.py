"""What looks inside a network: windows, and masked embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution import build_settings, explain_instances, open_model

from ...needs import needs
from ...refusals import refused
from ..conftest import CLOSE, instance
from .networks import scores

pytestmark = needs("torch", "transformers", "captum")
TEXT = "the good film with a bad scene"


@pytest.fixture
def model(network, tokenizer):
    return open_model((network().double(), tokenizer), label_names=("NEG", "POS"))


def test_scores_of_a_long_text_are_its_windows_means(model):
    """A gradient is the windows' sum over their number, attention each sub-word's mean."""
    one = instance(" ".join(["good bad film the"] * 12))
    reading = model.read(one)
    windows = reading.windows()
    assert len(windows) > 1
    for method in ("input-x-gradient", "attention"):
        (found,) = scores(model, [one], method, target="POS")
        sums, times = np.zeros((2, 48))
        for places in windows:
            tokens = reading.source[places[1:-1]]
            words = " ".join(one.tokens[token] for token in tokens)
            sums[tokens] += scores(model, [instance(words)], method, target="POS")[0]
            times[tokens] += 1
        times = times if method == "attention" else np.full(48, len(windows))
        np.testing.assert_allclose(found, sums / times, rtol=0, atol=CLOSE)


def test_a_network_that_embeds_twice_has_no_gradients(model):
    inner = model.network.forward
    model.network.forward = lambda **inputs: inner(**inputs) if inner(**inputs) else None
    with refused("once, found 2", "BertForSequenceClassification"):
        scores(model, [instance(TEXT)], "gradient")


def test_numbers_of_embeddings_are_masked(model):
    """All kept is the whole input; windows share a sub-word's mask, and draws do not depend on how many go together."""
    short, random = model.read(instance(TEXT)), np.random.default_rng(0)
    (found,) = explain_instances(model, [instance(TEXT)], build_settings(measures=["soft(draws=3, masks=elements)"]))
    whole = model.mask_elements(short, 1, np.ones(7), 2, random)
    assert whole == pytest.approx([found["classification_scores"]["POS"]] * 2, abs=CLOSE)
    assert found["soft_scores"]["draws"] == 3
    long, keep = model.read(instance(" ".join(["good bad film"] * 30))), np.full(90, 0.5)
    together = model.mask_elements(long, 0, keep, 5, np.random.default_rng(1))
    model.rows_for = lambda size, rows: 2
    apart = model.mask_elements(long, 0, keep, 5, np.random.default_rng(1))
    np.testing.assert_allclose(together, apart, rtol=0, atol=CLOSE)
    assert len(set(together)) == 5
