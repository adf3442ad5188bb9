"""Language models that are prompted for a label, small and random: numbers are those of transformers' own passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.config import Prompting
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import empty, full, only, without
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings

from ...needs import needs
from ...refusals import refused
from ..conftest import CountingModel, byte_tokenizer

pytestmark = needs("torch", "transformers")

CHAT = (
    "{% for message in messages %}<s>{{ message.role }}\n{{ message.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHAT
LABELS = ("NEG", "POS")
WORDS = ("NEG=very bad indeed", "POS=good")
# norms and rotations in float32, whatever the weights' type: half of its 23 binary digits
TOLERANCES = {"gpt2": 2.0**-26}
ONE = Instance("one", (), ("d",), (("the", "good", "film", ",", "dull", "at", "its", "end", "— naïve"),))
PAIR = Instance("pair", ("is", "it", "?"), ("a", "b"), (("the", "film"), ("bad", "and", "warm")))


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch, transformers
    import torch
    import transformers


def make_tokenizer(chat: str | None = CHAT) -> Any:
    """Byte-level sub-words, set for a chat or for plain text."""
    return byte_tokenizer("llama", 400, prefix=False, model_max_length=1000, chat_template=chat)


def make_network(kind: str) -> Any:
    torch.manual_seed(3)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    shared = {"vocab_size": 400, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    llama = {**shared, **sizes, "initializer_range": 0.5, "max_position_embeddings": 600}
    if kind == "gpt2":
        config = transformers.GPT2Config(
            **shared, n_embd=16, n_layer=2, n_head=2, n_positions=600, initializer_range=0.5
        )
        return transformers.GPT2LMHeadModel(config).double().eval()
    if kind == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama)).double().eval()
    if kind == "mistral":  # it looks back some places alone
        config = transformers.MistralConfig(**llama, sliding_window=24, num_key_value_heads=2)
        return transformers.MistralForCausalLM(config).double().eval()
    config = transformers.MambaConfig(**shared, hidden_size=16, num_hidden_layers=2, state_size=4)
    return transformers.MambaForCausalLM(config).double().eval()


def make_model(kind: str = "gpt2", chat: str | None = CHAT, labels: tuple[str, ...] = LABELS, **more: Any) -> Any:
    from eraser_hub.attribution.transformers.prompted import PromptedModel

    options = {"label_words": WORDS, "config": "movies", **more.pop("prompting", {})}
    network = make_network(kind)
    adapter = PromptedModel(
        network.to(more.pop("dtype", torch.float64)),
        make_tokenizer(chat),
        prompting=Prompting(**options),
        uses_query=True,
        **more,
    )
    align_labels(adapter, labels)
    return adapter


def compute_expected(model: Any, instance: Instance, score: str = "sum", words: Any = None, lm: Any = None) -> Any:
    """The labels' probabilities by transformers' own passes over the text of the prompt and each label's words."""
    text, _ = model._write(instance)
    tokenizer = model.tokenizer
    special = tokenizer.chat_template is None
    prompt = tokenizer(text, add_special_tokens=special)["input_ids"]
    rows = []
    for word in words or ("very bad indeed", "good"):
        own = tokenizer((" " if special else "") + word, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            out = (lm or model.network.lm)(torch.tensor([[*prompt, *own]])).logits[0, len(prompt) - 1 : -1]
        values = out.double().log_softmax(-1)[range(len(own)), own].numpy()
        rows.append({"sum": values.sum(), "mean": values.mean(), "first": values[0]}[score])
    odds = np.exp(np.asarray(rows) - max(rows))
    return odds / odds.sum()


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "mamba"])
@pytest.mark.parametrize("chat", [CHAT, None], ids=["chat", "plain"])
@pytest.mark.parametrize("score", ["sum", "mean", "first"])
def test_probabilities_are_transformers_own(kind, chat, score):
    model = make_model(kind, chat, prompting={"label_score": score})
    for instance in (ONE, PAIR):
        found = Runner(model, "remove", 4).run([model.encode(instance)], [full(0)])
        expected = compute_expected(model, instance, score)
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=TOLERANCES.get(kind, 2.0**-12))


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "mamba"])
@pytest.mark.parametrize("operator", ["remove", "pad"])
def test_erased_inputs_in_batches_are_those_alone(kind, operator):
    model = make_model(kind)
    encoded = [model.encode(ONE), model.encode(PAIR)]
    erased = [full(0), full(1), empty(0), only(1, [2]), *(without(0, [at]) for at in range(9)), without(1, [0, 3])]
    together = Runner(model, operator, 16).run(encoded, erased)
    for row, one in zip(together, erased, strict=True):
        fresh = make_model(kind)
        alone = Runner(fresh, operator, 16).run([fresh.encode(ONE), fresh.encode(PAIR)], [one])[0]
        np.testing.assert_allclose(row, alone, rtol=0, atol=TOLERANCES.get(kind, 2.0**-12))


def test_a_removed_word_is_the_prompt_without_it():
    model = make_model()
    words = ONE.documents[0]
    without_dull = Instance("x", (), ("d",), (words[:4] + words[5:],))
    found = Runner(model, "remove", 4).run([model.encode(ONE)], [without(0, [4])])
    np.testing.assert_allclose(found[0], compute_expected(model, without_dull), rtol=0, atol=2.0**-26)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_gradients_are_autograds(kind):
    model = make_model(kind)
    (found,) = explain_instances(model, [ONE], ExplainSettings(method="input-x-gradient"))
    target = LABELS.index(found["classification"])
    encoded = model.encode(ONE)
    (window,) = encoded.whole()
    ids = torch.from_numpy(window.ids)[None]
    lm = model.network.lm
    table = lm.get_input_embeddings().weight
    embedded = table[ids].detach().requires_grad_()
    scores = []
    for own in model.network.label_ids:
        words = torch.cat([embedded, table[torch.tensor([own])]], dim=1)
        out = lm(inputs_embeds=words).logits[0, ids.shape[1] - 1 : -1]
        scores.append(out.log_softmax(-1)[range(len(own)), own].sum())
    torch.stack(scores).softmax(0)[target].backward()
    products = (embedded.grad * embedded).sum(-1)[0].detach().numpy()
    expected = np.zeros(len(ONE.tokens))
    for place, piece in enumerate(window.piece):
        if piece >= 0:
            expected[encoded.owner[piece]] += products[place]
    values = found["rationales"][0]["soft_rationale_predictions"]
    np.testing.assert_allclose(values, expected, rtol=0, atol=max(1e-5, abs(expected).max() * 1e-4))


@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_half_precision_is_near_single(kind, stored):
    """Passes in bfloat16 differ, by its eight binary digits; a stored half is exact in float32."""
    whole, half = (
        make_model(kind, dtype=getattr(torch, stored), precision=precision) for precision in ("float32", "bfloat16")
    )
    assert {weights.dtype for weights in half.network.parameters()} == {torch.float32}
    assert half.half == torch.bfloat16 and whole.half is None
    asked = [full(0)]
    rows = [Runner(one, "remove", 4).run([one.encode(ONE)], asked)[0] for one in (whole, half)]
    assert rows[1].sum() == pytest.approx(1) and not np.array_equal(*rows)
    single, low = (np.log(row[1] / row[0]) for row in rows)
    assert low == pytest.approx(single, rel=2.0**-5)
    (found,) = explain_instances(half, [ONE], ExplainSettings(method="input-x-gradient"))
    assert np.isfinite(found["rationales"][0]["soft_rationale_predictions"]).all()


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
    model = make_model("gpt2", chat, prompting={"config": config})
    encoded = model.encode(one)
    tokenizer, owner = model.tokenizer, encoded.owner
    for number, token in enumerate(one.tokens):
        assert tokenizer.decode(encoded.ids[owner == number].tolist()).strip() == token
    (window,) = encoded.whole()
    assert tokenizer.decode(window.ids.tolist(), skip_special_tokens=chat is None) == model._write(one)[0]


def test_a_long_text_goes_in_as_windows_with_the_whole_prompt():
    model = make_model(window=150)
    one = Instance("long", (), ("d",), (tuple(["the", "good", "film", "was", "bad"] * 60),))
    encoded = model.encode(one)
    windows = encoded.whole()
    assert len(windows) > 1 and max(len(window.code) for window in windows) <= model.window
    for window in windows:
        text = model.tokenizer.decode(window.ids.tolist())
        assert text.startswith("<s>system") and text.endswith("<s>assistant\n")
    covered = np.unique(np.concatenate([window.piece[window.piece >= 0] for window in windows]))
    assert len(covered) == len(encoded.ids)
    assert model.notes.counts["texts longer than the window"] == 1


def test_a_chat_without_system_message_shows_it_before_the_question():
    model = make_model(chat=NO_SYSTEM)
    text, _ = model._write(ONE)
    assert text.startswith("<s>user\nYou read a review") and text.count("<s>") == 2
    assert any("system message" in words for words in model.notes.messages)


def test_a_prompt_of_ones_own(tmp_path):
    file = tmp_path / "own.jinja"
    file.write_text("{% if part == 'user' %}Q {{ query }} D {{ documents[0].text }} L {{ labels }}{% endif %}")
    model = make_model(chat=None, prompting={"prompt": file})
    assert model.encode(ONE) is not None
    assert model._write(Instance("x", ("why",), ("d",), (("a", "b"),)))[0].startswith("Q why D a b L [")
    with refused("2 documents", argument="prompt"):
        model.encode(PAIR)


@pytest.mark.parametrize(
    ("words", "more", "argument"),
    [
        (("NEG",), {}, "label_words"),
        (("MAYBE=x",), {}, "label_words"),
        (("NEG=a", "NEG=b"), {}, "label_words"),
        (("NEG= ",), {}, "label_words"),
        (("NEG=same", "POS=same"), {}, "label_words"),
        (("NEG=very bad", "POS=very good"), {"label_score": "first"}, "label_score"),
        (WORDS, None, "labels"),
    ],
)
def test_label_words_that_do_not_tell_labels_apart(words, more, argument):
    labels = LABELS if more is not None else ()
    model = make_model(labels=labels, prompting={"label_words": words, **(more or {})})
    with refused(argument=argument):
        model.encode(ONE)


def test_a_folder_opens_by_its_architecture(tmp_path):
    make_network("gpt2").float().save_pretrained(tmp_path)
    make_tokenizer(CHAT).save_pretrained(tmp_path)
    model = open_model(tmp_path, prompting=Prompting("movies"))
    assert model.prompted
    align_labels(model, LABELS)
    assert Runner(model, "remove", 2).run([model.encode(ONE)], [full(0)]).shape == (1, 2)


def test_prompt_options_are_for_prompted_models():
    with refused(argument="label_words"):
        open_model(CountingModel(), prompting=Prompting(label_words=("NEG=bad",)))


def test_the_prompt_stands_in_signature_and_record(hub, tmp_path):
    from eraser_hub.attribution.config import ExplainConfig
    from eraser_hub.attribution.run import explain
    from eraser_hub.records.predictions import read_run

    folder = tmp_path / "lm"
    make_network("gpt2").float().save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    out = tmp_path / "p.jsonl"
    config = ExplainConfig(hub, "movies", "validation", str(folder), limit=2, label_words=WORDS)
    report = explain(config, ExplainSettings(method="gradient", bins=()), out)
    record = read_run(out)
    for text in (report.signature, record["signature"]):
        assert "|prompt:en/sentiment-" in text and "|label-words:NEG=very bad indeed,POS=good|label-score:sum" in text
    assert record["model"]["prompt"].startswith("prompt:en/sentiment-")
    other = tmp_path / "own.jinja"
    other.write_text("{% for one in documents %}{{ one.text }}{% endfor %}")
    changed = ExplainConfig(hub, "movies", "validation", str(folder), limit=2, label_words=WORDS, prompt=other)
    with refused():
        explain(changed, ExplainSettings(method="gradient", bins=()), out)
