"""What looks inside a network: windows, attention, DeepLIFT through its modules, masked embeddings."""

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
def torch():
    import torch

    return torch


@pytest.fixture
def model(network, tokenizer):
    return open_model((network().double(), tokenizer), label_names=("NEG", "POS"))


@pytest.fixture
def bag(torch, tokenizer):
    """A classifier of the mean embedding through one rectified layer, of a class of one's own."""
    import transformers

    class Bag(transformers.PreTrainedModel):
        config_class = transformers.BertConfig

        def __init__(self, config):
            super().__init__(config)
            self.embedding = torch.nn.Embedding(config.vocab_size, 8)
            self.hidden, self.bend, self.out = torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)
            self.embedding.weight.data[:4] = 0  # padding and special tokens say nothing

        def get_input_embeddings(self):
            return self.embedding

        def forward(self, input_ids=None, attention_mask=None, **more):
            mean = (self.embedding(input_ids) * attention_mask[..., None]).sum(dim=1)
            logits = self.out(self.bend(self.hidden(mean)))
            return transformers.modeling_outputs.SequenceClassifierOutput(logits=logits)

    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(tokenizer), id2label={0: "NEG", 1: "POS"}, num_hidden_layers=1)
    return open_model((Bag(config).double().eval(), tokenizer), window=32)


def test_attention_is_the_last_layers_from_cls(model, torch):
    one = instance("good plays film")
    (found,) = scores(model, [one], "attention")
    inputs = model.tokenizer(one.tokens, is_split_into_words=True, return_tensors="pt")
    model.network.set_attn_implementation("eager")
    with torch.inference_mode():
        heads = model.network(**inputs, output_attentions=True).attentions[-1][0].mean(0)[0].numpy()
    expected = [sum(v for v, w in zip(heads, inputs.word_ids(), strict=True) if w == place) for place in range(3)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE)


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


def test_deeplift_sums_to_the_difference_from_nothing(bag):
    documents = [instance(TEXT, "a"), instance("dull", "b")]
    rows = list(explain_instances(bag, documents, build_settings(method="deeplift", bins=())))
    for one, row in zip(documents, rows, strict=True):
        label = row["classification"]

        def centred(p, label=label):
            """The label's logit minus the labels' mean."""
            return np.log(p[label]) - np.mean(np.log(list(p.values())))

        # a text of special tokens alone is the baseline: their embeddings are zero
        difference = centred(row["classification_scores"]) - centred(row["null_classification_scores"])
        (found,) = scores(bag, [one], "deeplift")
        assert found.sum() == pytest.approx(difference, abs=CLOSE)
        assert row["rationales"][0]["soft_rationale_predictions"] == pytest.approx(found.tolist(), abs=CLOSE)
    assert bag.notes.maxima["largest convergence delta"] < CLOSE


def test_a_network_that_embeds_twice_has_no_gradients(model):
    inner = model.network.forward
    model.network.forward = lambda **inputs: inner(**inputs) if inner(**inputs) else None
    with refused("once, found 2", "BertForSequenceClassification"):
        scores(model, [instance(TEXT)], "gradient")


def test_numbers_of_embeddings_are_masked(bag, model):
    """All kept is the whole input, none kept the text of zeros; a draw at a half lies between networks' own values."""
    reading, random = bag.read(instance(TEXT)), np.random.default_rng(0)
    whole, nothing = (bag.mask_elements(reading, 1, np.full(7, share), 2, random) for share in (1.0, 0.0))
    settings = build_settings(measures=["soft(draws=3, masks=elements)"], bins=())
    (found,) = explain_instances(bag, [instance(TEXT)], settings)
    assert whole == pytest.approx([found["classification_scores"]["POS"]] * 2, abs=CLOSE)
    assert nothing == pytest.approx([found["null_classification_scores"]["POS"]] * 2, abs=CLOSE)
    assert found["soft_scores"]["draws"] == 3
    # windows share a sub-word's mask, and draws do not depend on how many go through together
    long, keep = model.read(instance(" ".join(["good bad film"] * 30))), np.full(90, 0.5)
    together = model.mask_elements(long, 0, keep, 5, np.random.default_rng(1))
    model.rows_for = lambda size, rows: 2
    apart = model.mask_elements(long, 0, keep, 5, np.random.default_rng(1))
    np.testing.assert_allclose(together, apart, rtol=0, atol=CLOSE)
    assert len(set(together)) == 5
