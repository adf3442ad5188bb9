"""Contributions of a prompt's parts: of a model whose log-odds are a sum over sub-words, and of random ones."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.api import explain_texts
from eraser_hub.attribution.config import Prompting
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import empty, full
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.measures.prompt_parts import LEAST, compute_log_odds
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings

from ...needs import needs
from ...refusals import refused
from ..conftest import CountingModel
from . import test_prompted
from .test_prompted import CHAT, LABELS, NO_SYSTEM, PAIR, compute_expected, make_model, make_tokenizer

pytestmark = needs("torch", "transformers")

# a digit is a sub-word of its own, whatever stands beside it
PROMPT = """{% if part == "system" %}
9 Give a label. 9
{% else %}
{% for document in documents %}
Text: {{ document.text }}
{% endfor %}
{% if query %}
Question: {{ query }}
{% endif %}
{% endif %}
"""
ONE = Instance("one", ("is", "7", "?"), ("a", "b"), (("the", "8", "film"), ("8", "bad", "8")))
SETTINGS = ExplainSettings(method="random", bins=(), prompt_parts=True)


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch
    import torch
    import transformers

    for name, module in (("torch", torch), ("transformers", transformers)):
        setattr(test_prompted, name, module)


def make_sum_network(weights: dict[int, float], good: int) -> Any:
    """A language model: the logit of sub-word ``good`` is the sum of the weights of all sub-words up to a place."""

    class SumNetwork(torch.nn.Module):
        config = SimpleNamespace(pad_token_id=1, model_type="sum", is_encoder_decoder=False)

        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(400, 1, dtype=torch.float64)
            self.embedding.weight.data[:] = 0
            for number, weight in weights.items():
                self.embedding.weight.data[number] = weight

        def get_input_embeddings(self) -> Any:
            return self.embedding

        def forward(self, inputs_embeds, attention_mask, **_):
            sums = (inputs_embeds * attention_mask[..., None]).cumsum(dim=1)
            return SimpleNamespace(logits=torch.nn.functional.one_hot(torch.tensor(good), 400) * sums)

    return SumNetwork().eval()


def make_sum_model(weights: dict[str, float], prompt: Any, chat: str | None = CHAT, **more: Any) -> Any:
    from eraser_hub.attribution.transformers.prompted import PromptedModel

    tokenizer = make_tokenizer(chat)
    before = "" if chat else " "
    good, *_ = tokenizer(before + "good", add_special_tokens=False)["input_ids"]
    ids = {tokenizer(digit, add_special_tokens=False)["input_ids"][0]: value for digit, value in weights.items()}
    prompting = Prompting(config="movies", prompt=prompt, label_words=("NEG=bad", "POS=good"), label_score="first")
    model = PromptedModel(make_sum_network(ids, good), tokenizer, prompting=prompting, uses_query=True, **more)
    align_labels(model, LABELS)
    return model


@pytest.fixture
def prompt(tmp_path):
    path = tmp_path / "parts.jinja"
    path.write_text(PROMPT, encoding="utf-8")
    return path


def explain(model: Any, *instances: Instance, **settings: Any) -> list[dict[str, Any]]:
    made = ExplainSettings(**{"method": "random", "bins": (), "prompt_parts": True, **settings})
    return list(explain_instances(model, instances, made))


@pytest.mark.parametrize("chat", [CHAT, NO_SYSTEM, None], ids=["chat", "no-system", "plain"])
@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"9": 0.5}, (1.0, 0.0, 0.0)),
        ({"7": 1.5}, (0.0, 1.5, 0.0)),
        ({"8": 0.25}, (0.0, 0.0, 0.75)),
        ({"9": 0.5, "7": -1.5, "8": 0.5}, (1.0, -1.5, 1.5)),
    ],
)
def test_each_part_has_the_log_odds_of_its_own_words(prompt, chat, weights, expected):
    (found,) = explain(make_sum_model(weights, prompt, chat), ONE, target="POS")
    assert [part["part"] for part in found["prompt_parts"]] == ["instructions", "query", "documents"]
    for key in ("occlusion", "shapley"):
        np.testing.assert_allclose([part[key] for part in found["prompt_parts"]], expected, rtol=0, atol=2.0**-20)


SHOWN = tuple(
    Instance(name, ("7", "?"), ("d",), ((digit, "film"),), label=label)
    for name, digit, label in (("x", "6", "NEG"), ("one", "5", "POS"), ("y", "5", "POS"))
)


@pytest.mark.parametrize("chat", [CHAT, NO_SYSTEM, None], ids=["chat", "no-system", "plain"])
def test_examples_are_a_part(prompt, chat):
    """One of them is the instance itself, which another one replaces."""
    model = make_sum_model({"9": 0.5, "6": -1.0, "5": 0.25, "7": 0.5, "8": 0.25}, prompt, chat)
    model.prompting = replace(model.prompting, shots=2, examples=SHOWN)
    model.encode(ONE)
    text, _ = model._write(ONE)
    assert (text.count("6 film"), text.count("5 film"), text.count("Give a label")) == (1, 1, 1)
    (found,) = explain(model, ONE, target="POS")
    assert [part["part"] for part in found["prompt_parts"]] == ["instructions", "examples", "query", "documents"]
    for key in ("occlusion", "shapley"):  # both examples have a query of their own
        values = [part[key] for part in found["prompt_parts"]]
        np.testing.assert_allclose(values, (1.0, -1.0 + 0.25 + 2 * 0.5, 0.5, 0.75), rtol=0, atol=2.0**-20)


def test_examples_come_from_train(hub):
    from eraser_hub.attribution.config import ExplainConfig
    from eraser_hub.attribution.work import add_examples

    config = ExplainConfig(str(hub), "movies", "test", "any", shots=2)
    prompting = add_examples(config)
    assert len(prompting.examples) == 3 and prompting.shots == 2
    assert [one.label for one in prompting.examples] == ["NEG", "POS", "NEG"]
    assert len({one.id for one in prompting.examples}) == 3
    with refused("option-value", "rows of train with a label", argument="shots"):
        add_examples(replace(config, shots=400))


def test_the_other_label_has_the_opposite_log_odds(prompt):
    (found,) = explain(make_sum_model({"7": 1.5}, prompt), ONE, target="NEG")
    assert [part["shapley"] for part in found["prompt_parts"]] == pytest.approx([0, -1.5, 0], abs=2.0**-20)


def test_parts_that_a_prompt_lacks_have_no_value(tmp_path):
    bare = tmp_path / "bare.jinja"
    bare.write_text("{% if part != 'system' %}{{ documents[0].text }} {{ query }}{% endif %}", encoding="utf-8")
    model = make_sum_model({"7": 1.5, "8": 0.5}, bare)
    several = [
        Instance("query", ("7",), ("d",), (("8", "film"),)),
        Instance("none", (), ("d",), (("8",),)),
        Instance("no words", ("7",), ("d",), ((),)),
        Instance("nothing", (), ("d",), ((),)),
    ]
    found = [
        {part["part"]: round(part["shapley"], 6) for part in row["prompt_parts"]}
        for row in explain(model, *several, target="POS")
    ]
    assert found == [{"query": 1.5, "documents": 0.5}, {"documents": 0.5}, {"query": 1.5}, {}]


@pytest.mark.parametrize("kind", ["gpt2", "mistral", "t5"])
@pytest.mark.parametrize("chat", [CHAT, None], ids=["chat", "plain"])
def test_shapley_values_sum_to_the_whole_prompt_less_the_empty_one(kind, chat):
    model = make_model(kind, chat)
    (found,) = explain(model, PAIR, target="POS")
    names, prompts = model.encode_parts(PAIR)
    assert names == ["instructions", "query"]
    rows = Runner(model, "remove", 4).run(prompts, [full(3), empty(0), full(2)])
    whole, nothing, without_instructions = compute_log_odds(rows, LABELS.index("POS"))
    parts = found["prompt_parts"]
    assert sum(part["shapley"] for part in parts) == pytest.approx(whole - nothing, abs=2.0**-10)
    assert parts[0]["occlusion"] == pytest.approx(whole - without_instructions, abs=2.0**-10)
    assert found["classification_scores"]["POS"] == pytest.approx(compute_expected(model, PAIR)[1], abs=2.0**-12)
    assert rows[0][1] == pytest.approx(found["classification_scores"]["POS"], abs=2.0**-12)
    assert max(abs(part["shapley"] - part["occlusion"]) for part in parts) > 1e-3  # parts interact


def test_a_part_that_goes_leaves_blanks_and_the_chat_template():
    model = make_model()
    _, prompts = model.encode_parts(PAIR)
    texts = [model.tokenizer.decode(one.whole()[0].ids.tolist()) for one in prompts]
    assert texts[0] == "<s>system\n</s>\n<s>user\n\nthe film\n\n\nbad and warm\n\n </s>\n<s>assistant\n"
    assert texts[2] == texts[0].replace("warm\n\n ", "warm\n\n is it ?")
    assert texts[3] == model._write(PAIR)[0] and "is it" not in texts[1]


def test_a_prompt_that_changes_the_query_is_refused(tmp_path):
    loud = tmp_path / "loud.jinja"
    loud.write_text("{% if part != 'system' %}{{ documents[0].text }} {{ query | upper }}{% endif %}", encoding="utf-8")
    with refused("option-value", "shows the query as it is"):
        explain(make_sum_model({}, loud), Instance("x", ("why",), ("d",), (("film",),)))


def test_a_chat_template_that_changes_messages_is_refused(prompt):
    with refused("unsupported", "shows each message as it is"):
        explain(make_sum_model({}, prompt, CHAT.replace("message.content", "message.content | upper")), ONE)


def test_a_model_without_prompt_is_refused():
    with refused("unsupported", "`prompt_parts`", "CountingModel"):
        explain_texts(CountingModel(), ["film"], prompt_parts=True)


def test_log_odds_stay_finite_and_exact():
    odds = compute_log_odds(np.asarray([[0.25, 0.75], [1e-30, 1.0], [0.0, 1.0]]), 1)
    assert odds.tolist() == pytest.approx([np.log(3), -np.log(1e-30), -np.log(LEAST)])
    assert compute_log_odds(np.asarray([[0.2, 0.3, 0.5]]), 0).tolist() == pytest.approx([np.log(0.25)])


def test_the_signature_has_the_parts():
    assert "|prompt-parts|" in SETTINGS.signature()
