"""Networks of many kinds, small and random: asked in batches, they say what they say of each input alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution import Instance, open_model

from ...needs import late, needs
from ...refusals import refused
from ..conftest import CLOSE, WORDS, byte_tokenizer, word_tokenizer
from .networks import ask, only, scores, without

pytestmark = needs("torch", "transformers", "captum")
torch, transformers = late("torch"), late("transformers")

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
WIDE = {"initializer_range": 0.5}
BERT = {**SIZES, **WIDE, "vocab_size": 60, "max_position_embeddings": 40}
ROBERTA = {**SIZES, **WIDE, "vocab_size": 300, "max_position_embeddings": 44, "pad_token_id": 1}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 40, "bos_token_id": 0, "eos_token_id": 2}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "initializer_factor": 5.0}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # class, the tokenizer's manner and the network's settings
    "Bert": ("bert", BERT),
    "DistilBert": ("bert", {"vocab_size": 60, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, **WIDE}),
    "DebertaV2": ("bert", {**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 2}),
    "FNet": ("bert", {name: value for name, value in BERT.items() if name != "num_attention_heads"}),
    "ConvBert": ("bert", {**BERT, "embedding_size": 16}),
    "Roberta": ("roberta", ROBERTA),
    "ModernBert": ("roberta", {**ROBERTA, "max_position_embeddings": 40}),
    "Longformer": ("roberta", {**ROBERTA, "attention_window": 8}),
    "GPT2": ("gpt2", {"vocab_size": 300, **GPT2, **WIDE}),
    "Llama": ("llama", {**ROBERTA, "max_position_embeddings": 40}),
    "XLNet": ("xlnet", {"vocab_size": 300, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, **WIDE}),
    "T5": ("t5", {"vocab_size": 300, **T5, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}),
}
TEXTS = (("the", "good", "film", "was", "bad", "and", "warm", "play"), ("good",), ("the", "film") + ("and",) * 12)
# norms, rotations or attention weights in float32, whatever the weights' type: half of its 23 binary digits
IN_FLOAT32, CLOSE_IN_FLOAT32 = {"Llama", "Longformer", "ModernBert", "T5"}, 2.0**-12
SEES_PADDING, NO_GRADIENTS, NO_ATTENTION = {"FNet", "ConvBert"}, {"T5"}, {"T5", "FNet", "Longformer"}


@pytest.fixture(params=KINDS)
def opened(request):
    """A network's name, the model, and how near two ways of computing the same in another order come."""
    manner, settings = KINDS[request.param]
    torch.manual_seed(0)
    config = getattr(transformers, f"{request.param}Config")(**settings)
    network = getattr(transformers, f"{request.param}ForSequenceClassification")(config).eval().double()
    more = {"padding_side": "left"} if manner in ("xlnet", "llama") else {}
    if manner == "xlnet":
        more["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    tokenizer = word_tokenizer(WORDS, 40) if manner == "bert" else byte_tokenizer(manner, model_max_length=40, **more)
    model = open_model((network, tokenizer), labels=("NEG", "POS"))
    return request.param, model, CLOSE_IN_FLOAT32 if request.param in IN_FLOAT32 else CLOSE


def test_batches_of_erased_inputs_are_each_inputs_own(opened):
    name, model, close = opened
    assert model.pads == (name not in SEES_PADDING)
    documents = [(text,) for text in TEXTS]
    if name != "T5":  # which takes no batch of single texts and pairs: their numbers of end tokens differ
        documents.append((TEXTS[0][:3], TEXTS[0][3:]))
    instances = [Instance(str(n), (), tuple(map(str, range(len(d)))), d) for n, d in enumerate(documents)]
    flags = [[without(len(one.tokens))] for one in instances]
    flags[0].append(only(8, 1, 3))
    flags[-1].append(without(len(instances[-1].tokens), 0, 4))
    for texts, asked, rows in zip(documents, flags, ask(model, instances, flags), strict=True):
        for kept, row in zip(asked, rows, strict=True):
            stays = iter(kept)
            left = [[word for word in text if next(stays)] for text in texts]
            inputs = model.tokenizer(*left, is_split_into_words=True, return_tensors="pt")
            with torch.inference_mode():
                expected = torch.softmax(model.network(**inputs).logits, -1)[0].numpy()
            np.testing.assert_allclose(row, expected, rtol=0, atol=close)


@pytest.mark.parametrize("method", ["gradient", "input-x-gradient", "integrated-gradients", "attention"])
def test_scores_of_a_batch_are_each_texts_own(opened, method):
    name, model, close = opened
    # also as many inputs as places, all the same: nothing but the network's kind tells rows from columns
    texts = (*TEXTS, (), *[("the",) * 4] * 4)
    instances = [Instance(str(n), (), ("d",), (text,)) for n, text in enumerate(texts)]
    if name in (NO_ATTENTION if method == "attention" else NO_GRADIENTS):
        with refused(model.description):
            scores(model, instances, method)
        return
    together = scores(model, instances, method)
    assert list(map(len, together)) == [len(one.tokens) for one in instances]
    alone = [scores(model, [one], method)[0] for one in instances[:5]]
    alone += alone[-1:] * 3
    size = max(1.0, *(np.abs(row).max(initial=0) for row in alone))
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=close * size)


def test_input_times_gradient_is_the_networks_own(opened):
    """Against embeddings given to the network in the documented way, one input at a time."""
    name, model, close = opened
    if name in (*NO_GRADIENTS, "FNet", "Longformer"):
        pytest.skip("the network takes no embeddings, or no attention mask")
    for text in TEXTS:
        (found,) = scores(model, [Instance("x", (), ("d",), (text,))], "input-x-gradient", target="POS")
        encoded = model.tokenizer(list(text), is_split_into_words=True, return_tensors="pt")
        inputs, words = dict(encoded), encoded.word_ids()
        embedded = model.network.get_input_embeddings()(inputs.pop("input_ids")).detach().requires_grad_()
        torch.softmax(model.network(inputs_embeds=embedded, **inputs).logits, -1)[0, 1].backward()
        product = (embedded * embedded.grad).sum(-1)[0].detach().numpy()
        expected = [sum(v for v, w in zip(product, words, strict=True) if w == n) for n in range(len(text))]
        np.testing.assert_allclose(found, expected, rtol=0, atol=close)
