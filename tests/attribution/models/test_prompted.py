"""Language models that are prompted for a label, small and random: numbers are those of transformers' own passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution import Instance, open_model

from ...needs import late, needs
from ...refusals import refused
from ..conftest import CLOSE, byte_tokenizer
from .networks import ask, only, scores, without

pytestmark = needs("torch", "transformers", "captum")
torch, transformers = late("torch"), late("transformers")

CHAT = (
    "{% for message in messages %}<s>{{ message.role }}\n{{ message.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHAT
LABELS, ANSWERS = ("NEG", "POS"), ("NEG=very bad indeed", "POS=good")
WORDS = ("very bad indeed", "good")
# norms and rotations in float32, whatever the weights' type: half of its 23 binary digits
TOLERANCES = {"gpt2": CLOSE}
ONE = Instance("one", (), ("d",), (("the", "good", "film", ",", "dull", "at", "its", "end", "— naïve"),))
PAIR = Instance("pair", ("is", "it", "?"), ("a", "b"), (("the", "film"), ("bad", "and", "warm")))


def make_tokenizer(chat: str | None = CHAT) -> Any:
    """Byte-level sub-words, set for a chat or for plain text."""
    return byte_tokenizer("llama", 400, prefix=False, model_max_length=1000, chat_template=chat)


def make_network(kind: str) -> Any:
    torch.manual_seed(3)
    shared = {"vocab_size": 400, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "num_hidden_layers": 2}
    sizes = {
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "initializer_range": 0.5,
        "max_position_embeddings": 600,
    }
    name, more = {
        "gpt2": ("GPT2LMHead", {"n_embd": 16, "n_head": 2, "n_positions": 600, "initializer_range": 0.5}),
        "llama": ("LlamaForCausalLM", {"hidden_size": 16, **sizes}),
        # it looks back some places alone
        "mistral": ("MistralForCausalLM", {"hidden_size": 16, **sizes, "sliding_window": 24, "num_key_value_heads": 2}),
        "mamba": ("MambaForCausalLM", {"hidden_size": 16, "state_size": 4}),
    }[kind]
    config = getattr(transformers, name.removesuffix("LMHead").removesuffix("ForCausalLM") + "Config")(**shared, **more)
    return getattr(transformers, name.replace("LMHead", "LMHeadModel"))(config).double().eval()


def make_model(kind: str = "gpt2", chat: str | None = CHAT, labels: tuple[str, ...] = LABELS, **more: Any) -> Any:
    options = {"label_words": ANSWERS, "config": "movies", "query": True, **more}
    if not labels:
        options["labels"] = ()
    network = make_network(kind).to(options.pop("weights", torch.float64))
    return open_model((network, make_tokenizer(chat)), label_names=labels, **options)


def expected(model: Any, instance: Instance, score: str = "sum", words: Any = WORDS, lm: Any = None) -> Any:
    """The labels' probabilities by transformers' own passes over the text of the prompt and each label's words."""
    text, _ = model.write(instance)
    tokenizer, rows = model.tokenizer, []
    special = tokenizer.chat_template is None
    prompt = tokenizer(text, add_special_tokens=special)["input_ids"]
    for word in words:
        own = tokenizer((" " if special else "") + word, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            out = (lm or model.network.lm)(torch.tensor([[*prompt, *own]])).logits[0, len(prompt) - 1 : -1]
        values = out.double().log_softmax(-1)[range(len(own)), own].numpy()
        rows.append({"sum": values.sum(), "mean": values.mean(), "first": values[0]}[score])
    odds = np.exp(np.asarray(rows) - max(rows))
    return odds / odds.sum()


@pytest.mark.parametrize(
    ("kind", "chat", "score"),
    [
        *((kind, CHAT, "sum") for kind in ("gpt2", "llama", "mistral", "mamba")),
        ("gpt2", None, "mean"),
        ("llama", None, "first"),
    ],
)
def test_probabilities_are_transformers_own(kind, chat, score):
    close = {"rtol": 0, "atol": TOLERANCES.get(kind, 2.0**-12)}
    model = make_model(kind, chat, label_score=score)
    flags = [np.stack([without(9), without(9, 4), only(9), only(9, 1, 2)]), np.stack([without(5), without(5, 0, 3)])]
    found = ask(model, [ONE, PAIR], flags)
    np.testing.assert_allclose(found[0][0], expected(model, ONE, score), **close)
    np.testing.assert_allclose(found[1][0], expected(model, PAIR, score), **close)
    # a removed word is the prompt without it
    words = ONE.documents[0]
    left = Instance("x", (), ("d",), (words[:4] + words[5:],))
    np.testing.assert_allclose(found[0][1], expected(model, left, score), **close)
    # batches are each input's own
    for erase in ("remove", "pad"):
        together = ask(model, [ONE, PAIR], flags, erase)
        for number, rows in enumerate(flags):
            for kept, row in zip(rows, together[number], strict=True):
                (alone,) = ask(model, [(ONE, PAIR)[number]], [[kept]], erase, batch_size=1)
                np.testing.assert_allclose(row, alone[0], **close)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral"])
def test_gradients_are_autograds(kind):
    model = make_model(kind)
    (found,) = scores(model, [ONE], "input-x-gradient", target="POS")
    reading, lm = model.read(ONE), model.network.lm
    ids = torch.from_numpy(reading.code >> 16)[None]
    table = lm.get_input_embeddings().weight
    embedded = table[ids].detach().requires_grad_()
    rows = []
    for own in model.network.answers:
        words = torch.cat([embedded, table[torch.tensor([own])]], dim=1)
        out = lm(inputs_embeds=words).logits[0, ids.shape[1] - 1 : -1]
        rows.append(out.log_softmax(-1)[range(len(own)), own].sum())
    torch.stack(rows).softmax(0)[1].backward()
    products = (embedded.grad * embedded).sum(-1)[0].detach().numpy()
    sums = np.bincount(reading.source, weights=products, minlength=10)[:9]
    np.testing.assert_allclose(found, sums, rtol=0, atol=max(1e-5, abs(sums).max() * 1e-4))


@pytest.mark.parametrize(
    ("chat", "one", "config"),
    [
        (CHAT, PAIR, "movies"),
        # no blanks between: "the" is one sub-word
        (CHAT, Instance("zh", (), ("d",), (("th", "e", "film"),)), "mrc_ch"),
        (None, Instance("zh", (), ("d",), (("th", "e", "film"),)), "mrc_ch"),
    ],
)
def test_each_sub_word_belongs_to_the_word_that_it_spells(chat, one, config):
    model = make_model("gpt2", chat, config=config)
    reading, decode = model.read(one), model.tokenizer.decode
    ids = reading.code >> 16
    for number, token in enumerate(one.tokens):
        assert decode(ids[reading.source == number].tolist()).strip() == token
    assert decode(ids.tolist(), skip_special_tokens=chat is None) == model.write(one)[0]


def test_a_long_text_goes_in_as_windows_with_the_whole_prompt():
    model = make_model(window=150)
    reading = model.read(Instance("long", (), ("d",), (tuple(["the", "good", "film", "was", "bad"] * 60),)))
    windows = reading.windows()
    assert len(windows) > 1 and max(map(len, windows)) <= model.window
    for places in windows:
        text = model.tokenizer.decode((reading.code[places] >> 16).tolist())
        assert text.startswith("<s>system") and text.endswith("<s>assistant\n")
    assert len(np.unique(np.concatenate(windows))) == len(reading.code)
    assert model.notes.counts["texts longer than the window"] == 1
    with refused(argument="prompt", instance="one"):
        make_model(window=80).read(ONE)


def test_a_chat_without_system_message_shows_it_before_the_question():
    model = make_model(chat=NO_SYSTEM)
    text, _ = model.write(ONE)
    assert text.startswith("<s>user\nYou read a review") and text.count("<s>") == 2
    assert any("system message" in words for words in model.notes.messages)


def test_a_prompt_of_ones_own(tmp_path):
    file = tmp_path / "own.jinja"
    file.write_text("{% if part == 'user' %}Q {{ query }} D {{ documents[0].text }} L {{ labels }}{% endif %}")
    model = make_model(chat=None, prompt=str(file))
    model.read(ONE)
    assert model.write(Instance("x", ("why",), ("d",), (("a", "b"),)))[0].startswith("Q why D a b L [")
    assert model.details.startswith("prompt:own.jinja-") and "label-words:NEG=very bad indeed,POS=good" in model.details
    with refused("2 documents", argument="prompt"):
        model.read(PAIR)


@pytest.mark.parametrize(
    ("words", "more", "argument"),
    [
        (("NEG",), {}, "label_words"),
        (("NEG=same", "POS=same"), {}, "label_words"),
        (("NEG=very bad", "POS=very good"), {"label_score": "first"}, "label_score"),
        (ANSWERS, {"labels": ()}, "labels"),
    ],
)
def test_label_words_that_do_not_tell_labels_apart(words, more, argument):
    with refused(argument=argument):
        make_model(label_words=words, **more).read(ONE)


# --- weights -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    make_network("llama").float().save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def open_saved(folder: Path, **options: Any) -> Any:
    return open_model(folder, label_names=LABELS, config="movies", label_words=ANSWERS, **options)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_in_half_precision(saved, dtype):
    """Passes are transformers' own in this type: their labels' probabilities are near those in float32."""
    half, whole = open_saved(saved, dtype=dtype), open_saved(saved)
    assert half.prompted and {weights.dtype for weights in half.network.parameters()} == {getattr(torch, dtype)}
    (first,), (second,) = (ask(model, [ONE], [[without(9)]])[0] for model in (half, whole))
    assert first == pytest.approx(second, abs=0.1) and abs(first - second).max() > 0
    lm = transformers.AutoModelForCausalLM.from_pretrained(saved).to(getattr(torch, dtype))
    assert first == pytest.approx(expected(half, ONE, lm=lm), abs=0.05)
    for method in ("gradient", "attention"):
        (row,) = scores(half, [ONE], method)
        assert np.isfinite(row).all() and np.abs(row).max() > 0
    with refused("`device` or `device_map`", argument="device_map"):
        open_saved(saved, device_map="auto", device="cpu")
    with refused("beside `dtype`", argument="precision"):
        open_saved(saved, dtype="bfloat16", precision="float16")
