"""Networks of many kinds, small and random: asked in batches, they say what they say of each input alone."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import empty, full, only, without
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.attribution.transformers.sequence_model import SequenceModel

from ..needs import needs
from ..refusals import refused
from .conftest import CLOSE, WORDS, byte_tokenizer, word_tokenizer

pytestmark = needs("torch", "transformers")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch, transformers
    import torch
    import transformers


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
WIDE = {"initializer_range": 0.5}
BERT = {**SIZES, **WIDE, "vocab_size": 60, "max_position_embeddings": 40}
ROBERTA = {**SIZES, **WIDE, "vocab_size": 300, "max_position_embeddings": 44, "pad_token_id": 1}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # class, the tokenizer's manner and the network's settings
    "Bert": ("bert", BERT),
    "DistilBert": ("bert", {"vocab_size": 60, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, **WIDE}),
    "Albert": ("bert", {**BERT, "embedding_size": 8}),
    "Electra": ("bert", {**BERT, "embedding_size": 8}),
    "DebertaV2": ("bert", {**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 2}),
    "FNet": ("bert", {k: v for k, v in BERT.items() if k != "num_attention_heads"}),
    "ConvBert": ("bert", {**BERT, "embedding_size": 16}),
    "Roberta": ("roberta", ROBERTA),
    "MPNet": ("roberta", ROBERTA),
    "ModernBert": ("roberta", {**ROBERTA, "max_position_embeddings": 40}),
    "Longformer": ("roberta", {**ROBERTA, "attention_window": 8}),
    "GPT2": (
        "gpt2",
        {
            "vocab_size": 300,
            "n_embd": 16,
            "n_layer": 2,
            "n_head": 2,
            "n_positions": 40,
            "bos_token_id": 0,
            "eos_token_id": 2,
            **WIDE,
        },
    ),
    "Llama": ("llama", {**ROBERTA, "max_position_embeddings": 40}),
    "XLNet": ("xlnet", {"vocab_size": 300, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, **WIDE}),
    "T5": (
        "t5",
        {
            "vocab_size": 300,
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 32,
            "num_layers": 2,
            "num_heads": 2,
            "pad_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
            "initializer_factor": 5.0,
        },
    ),
}
TEXTS = (("the", "good", "film", "was", "bad", "and", "warm", "play"), ("good",), ("the", "film") + ("and",) * 12)
# norms, rotations or attention weights in float32, whatever the weights' type: half of its 23 binary digits
IN_FLOAT32, CLOSE_IN_FLOAT32 = {"Llama", "Longformer", "ModernBert", "T5"}, 2.0**-12
SEES_PADDING, NO_GRADIENTS, NO_ATTENTION = {"FNet", "ConvBert"}, {"T5"}, {"T5", "FNet", "Longformer"}


def close(name: str) -> float:
    """How near two ways of computing the same in another order come to each other, for values up to 1."""
    return CLOSE_IN_FLOAT32 if name in IN_FLOAT32 else CLOSE


@pytest.fixture(params=KINDS)
def opened(request):
    manner, settings = KINDS[request.param]
    torch.manual_seed(0)
    config = getattr(transformers, f"{request.param}Config")(**settings)
    network = getattr(transformers, f"{request.param}ForSequenceClassification")(config).eval().double()
    more = {"padding_side": "left"} if manner in ("xlnet", "llama") else {}
    if manner == "xlnet":
        more["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    tokenizer = word_tokenizer(WORDS, 40) if manner == "bert" else byte_tokenizer(manner, model_max_length=40, **more)
    model = SequenceModel(network, tokenizer)
    align_labels(model, ("NEG", "POS"))
    return request.param, model


def test_batches_of_erased_inputs_are_each_inputs_own(opened):
    name, model = opened
    assert model.pads == (name not in SEES_PADDING)
    documents = [(text,) for text in TEXTS]
    if name != "T5":  # which takes no batch of single texts and pairs: their numbers of end tokens differ
        documents.append((TEXTS[0][:3], TEXTS[0][3:]))
    instances = [Instance(str(n), (), tuple(map(str, range(len(d)))), d) for n, d in enumerate(documents)]
    asked = [full(n) for n in range(len(documents))] + [only(0, [1, 3]), without(2, [0, 1])]
    asked += [without(3, [0, 4])] if len(documents) > 3 else []
    found = Runner(model, "remove", 8).run([model.encode(one) for one in instances], asked)
    for erased, row in zip(asked, found, strict=True):
        stays = iter(erased.kept(len(instances[erased.instance].tokens)))
        texts = [[word for word in text if next(stays)] for text in documents[erased.instance]]
        inputs = model.tokenizer(*texts, is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            expected = torch.softmax(model.network(**inputs).logits, -1)[0].numpy()
        np.testing.assert_allclose(row, expected, rtol=0, atol=close(name))


def test_a_text_of_which_nothing_is_left_has_probabilities(opened):
    name, model = opened
    encoded = [model.encode(Instance("x", (), ("d",), (text,))) for text in ((), TEXTS[0])]
    nothing, other = Runner(model, "remove", 1).run(encoded, [full(0), empty(1)])
    beside = Runner(model, "remove", 8).run(encoded, [empty(0), full(1)])[0]
    np.testing.assert_array_equal(nothing, other)
    np.testing.assert_allclose(nothing, beside, rtol=0, atol=close(name))
    assert np.isfinite(nothing).all() and nothing.sum() == pytest.approx(1)


@pytest.mark.parametrize("method", ["gradient", "input-x-gradient", "integrated-gradients", "attention"])
def test_scores_of_a_batch_are_each_texts_own(opened, method):
    name, model = opened
    # also as many inputs as places, all the same: nothing but the network's kind tells rows from columns
    texts = (*TEXTS, (), *[("the",) * 4] * 4)
    instances = [Instance(str(n), (), ("d",), (text,)) for n, text in enumerate(texts)]
    settings = ExplainSettings(method=method, steps=4, bins=())
    if name in (NO_ATTENTION if method.startswith("attention") else NO_GRADIENTS):
        with refused(model.description):
            list(explain_instances(model, instances, settings))
        return

    def scores(some):
        return [one["rationales"][0]["soft_rationale_predictions"] for one in explain_instances(model, some, settings)]

    together = scores(instances)
    assert list(map(len, together)) == [len(one.tokens) for one in instances]
    alone = [scores([one])[0] for one in instances[:5]]
    alone += alone[-1:] * 3
    size = max(abs(value) for row in alone for value in row)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=close(name) * max(size, 1))


def test_input_times_gradient_is_the_networks_own(opened):
    """Against embeddings given to the network in the documented way, one input at a time."""
    name, model = opened
    if name in (*NO_GRADIENTS, "FNet", "Longformer"):
        pytest.skip("the network takes no embeddings, or no attention mask")
    settings = ExplainSettings(method="input-x-gradient", bins=())
    for text in TEXTS:
        (found,) = explain_instances(model, [Instance("x", (), ("d",), (text,))], settings)
        inputs = dict(model.tokenizer(list(text), is_split_into_words=True, return_tensors="pt"))
        words = model.tokenizer(list(text), is_split_into_words=True).word_ids()
        embedded = model.network.get_input_embeddings()(inputs.pop("input_ids")).detach().requires_grad_()
        label = ["NEG", "POS"].index(found["classification"])
        torch.softmax(model.network(inputs_embeds=embedded, **inputs).logits, -1)[0, label].backward()
        product = (embedded * embedded.grad).sum(-1)[0].detach().numpy()
        expected = [sum(v for v, w in zip(product, words, strict=True) if w == n) for n in range(len(text))]
        np.testing.assert_allclose(
            found["rationales"][0]["soft_rationale_predictions"], expected, rtol=0, atol=close(name)
        )


def test_a_model_s_own_code_runs_only_when_it_is_trusted(tmp_path, monkeypatch):
    import io

    from transformers import dynamic_module_utils

    folder, ran = tmp_path / "own", tmp_path / "it ran"
    folder.mkdir()
    (folder / "config.json").write_text(
        '{"model_type": "own", "architectures": ["OwnForSequenceClassification"],'
        ' "auto_map": {"AutoConfig": "own.Own"}}'
    )
    (folder / "own.py").write_text(
        f"from transformers import PretrainedConfig\nopen({str(ran)!r}, 'w')\n"
        "class Own(PretrainedConfig):\n    model_type = 'own'\n"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    # transformers puts the folder of such code on the path, for good: evaluate's own would be looked for behind it
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.path", [*sys.path])
    with refused("trust_remote_code", file="own"):
        open_model(folder)
    assert not ran.exists()
    with refused("tokenizer", file="own"):  # it has no tokenizer; but its code was run
        open_model(folder, trust_remote_code=True)
    assert ran.exists()
