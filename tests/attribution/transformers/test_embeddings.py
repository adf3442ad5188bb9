"""DeepLIFT by captum (exact where every module has its rule, refused where it cannot follow); masked embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.attribution.transformers.sequence_model import SequenceModel

from ...needs import needs
from ...refusals import refused
from ..conftest import CLOSE, instance

pytestmark = needs("torch", "transformers", "captum")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch, transformers, Bag
    import torch
    import transformers

    from .bag import Bag


TEXT = "the good film with a bad scene"


@pytest.fixture
def bag(tokenizer):
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(tokenizer), id2label={0: "NEG", 1: "POS"}, num_hidden_layers=1)
    adapter = SequenceModel(Bag(config).double().eval(), tokenizer, window=32)
    align_labels(adapter, ("NEG", "POS"))
    return adapter


def test_scores_sum_to_the_difference_from_nothing(bag):
    (found,) = explain_instances(bag, [instance(TEXT)], ExplainSettings(method="deeplift"))
    scores = found["rationales"][0]["soft_rationale_predictions"]
    label = found["classification"]

    def centred(p):
        """The label's logit minus the labels' mean."""
        return np.log(p[label]) - np.mean(np.log(list(p.values())))

    # a text of special tokens alone is the baseline: their embeddings are zero
    difference = centred(found["classification_scores"]) - centred(found["null_classification_scores"])
    assert sum(scores) == pytest.approx(difference, abs=CLOSE)
    assert bag.notes.maxima["largest convergence delta"] < CLOSE


def test_names_against_those_of_the_networks_config_are_refused(bag):
    with refused("NEG, POS", "POS, NEG", argument="labels"):
        align_labels(bag, ("NEG", "POS"), ("POS", "NEG"))


def test_of_two_texts_each_is_explained_by_itself(bag):
    documents = [instance(TEXT, "a"), instance("dull", "b")]
    both = list(explain_instances(bag, documents, ExplainSettings(method="deeplift")))
    for one, found in zip(documents, both, strict=True):
        (alone,) = explain_instances(bag, [one], ExplainSettings(method="deeplift"))
        scores = (each["rationales"][0]["soft_rationale_predictions"] for each in (found, alone))
        assert np.allclose(*scores, rtol=0, atol=CLOSE)


def test_a_network_with_attention_says_its_delta(network, tokenizer):
    adapter = SequenceModel(network().double(), tokenizer)
    align_labels(adapter, ("NEG", "POS"))
    list(explain_instances(adapter, [instance(TEXT)], ExplainSettings(method="deeplift")))
    assert adapter.notes.maxima["largest convergence delta"] > 0


def test_a_module_that_is_used_twice_is_refused(bag):
    bag.network.again = True
    with refused("`method` deeplift", "Bag"):
        list(explain_instances(bag, [instance(TEXT)], ExplainSettings(method="deeplift")))


def test_numbers_of_embeddings_are_masked(bag, network, tokenizer):
    """All kept is the whole input, none kept the text of zeros; a draw at a half lies in the network's own values."""
    (one,) = [bag.encode(instance(TEXT))]
    whole, nothing = (
        bag.masked_elements(one, 1, np.full(7, share), 2, np.random.default_rng(0)) for share in (1.0, 0.0)
    )
    (found,) = explain_instances(
        bag, [instance(TEXT)], ExplainSettings(method="random", soft_draws=3, soft_masks="elements")
    )
    assert whole == pytest.approx([found["classification_scores"]["POS"]] * 2, abs=CLOSE)
    assert nothing == pytest.approx([found["null_classification_scores"]["POS"]] * 2, abs=CLOSE)
    assert found["soft_scores"]["draws"] == 3
    long = SequenceModel(network().double(), tokenizer)  # several windows
    align_labels(long, ("NEG", "POS"))
    settings = ExplainSettings(method="random", soft_draws=2, soft_masks="elements")
    (windows,) = explain_instances(long, [instance("good bad film " * 30)], settings)
    assert 0 <= windows["soft_scores"]["sufficiency"] <= 1


def test_models_without_embeddings_mask_none_of_their_numbers():
    from eraser_hub.attribution.explain import explain_texts

    from ..conftest import CountingModel

    with refused("soft(masks=elements)", "CountingModel"):
        explain_texts(CountingModel(), [TEXT], measure="soft(draws=2, masks=elements)")
