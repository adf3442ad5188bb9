"""Answers of a model in this process: a small random one, whose answers have the form that is asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")
pytest.importorskip("rapidfuzz", reason="skipped: the extra llm is not installed")

from eraser_hub.asking import local
from eraser_hub.asking.answers import LABEL_ALONE, compute_label_probabilities, read_answer
from eraser_hub.asking.local import MOST_ITEMS, LocalClient, LocalModel
from eraser_hub.asking.run import ask
from eraser_hub.asking.settings import AskArguments
from eraser_hub.records.errors import DataError

from ..refusals import refused

LABELS = ["NEG", "POS"]
REQUEST: dict[str, Any] = {"seed": 1, "temperature": 0.0, "max_tokens": 120, "structured": "auto", "labels": LABELS}
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A GPT-2 of two layers with a byte-level tokenizer, whose weights are random."""
    torch = pytest.importorskip("torch", reason="skipped: the extra explain is not installed")
    transformers = pytest.importorskip("transformers", reason="skipped: the extra explain is not installed")
    from tokenizers import ByteLevelBPETokenizer

    folder = tmp_path_factory.mktemp("model")
    words = ['{"steps": ["a", "b"], "label": "NEG", "quotes": ["a film"]}', "the film is dull or great", "POS NEG"] * 5
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(words, vocab_size=320, special_tokens=["<|end|>"])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, eos_token="<|end|>", pad_token="<|end|>", chat_template=TEMPLATE
    )
    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=2048, n_embd=32, n_layer=2, n_head=2, initializer_range=0.6
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(folder) -> LocalModel:
    return LocalModel(str(folder))


def messages(text: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": "Answer."}, {"role": "user", "content": text}]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    ("form", "steps", "keys"),
    [
        ("quotes", False, ["label", "quotes"]),
        ("quotes", True, ["steps", "label", "quotes"]),
        ("highlighted", False, ["label", "texts"]),
        ("label", False, ["label"]),
        ("steps", True, ["steps"]),
    ],
)
def test_answers_have_their_form(model, form, steps, keys, temperature):
    request = {**REQUEST, "answer": form, "temperature": temperature, **({"steps": True} if steps else {})}
    (writing,) = model.write([(request, model.lay_out(messages("the film is dull")))])
    answer = json.loads(writing.words)
    assert [*answer] == keys and answer.get("label", "NEG") in LABELS
    assert all(len(value) <= MOST_ITEMS for key, value in answer.items() if key != "label")
    assert len(writing.chosen) <= REQUEST["max_tokens"]


def test_a_batch_writes_what_each_prompt_alone_gets(model):
    texts = ["the film is dull", "a", "great " * 30]
    requests = [({**REQUEST, "steps": True}, model.lay_out(messages(text))) for text in texts]
    together = [writing.words for writing in model.write(requests)]
    assert together == [model.write([one])[0].words for one in requests]


def test_probabilities_of_labels_are_those_of_the_model(model):
    import torch

    ids = model.lay_out(messages("the film is dull"))
    request = {**REQUEST, "answer": LABEL_ALONE, "top_logprobs": 20}
    (writing,) = model.write([(request, ids)])
    lead, total = ids + model.cut('{"label": "'), {}
    for label in LABELS:
        own = model.cut(f'{label}"')
        with torch.no_grad():
            logprobs = model.network(torch.tensor([lead + own])).logits[0].log_softmax(-1)
        total[label] = [float(logprobs[len(lead) + at - 1, token]) for at, token in enumerate(own)]
    first = {label: torch.tensor(values[0]).exp().item() for label, values in total.items()}
    found = compute_label_probabilities({"logprobs": {"content": writing.steps}}, LABELS)
    assert found == pytest.approx({label: p / sum(first.values()) for label, p in first.items()}, abs=1e-5)
    answer = read_answer({"message": {"content": writing.words}}, LABELS, LABEL_ALONE)
    assert answer.label == max(first, key=first.__getitem__)


def test_without_a_form_it_writes_freely(model):
    (writing,) = model.write([({**REQUEST, "structured": "none", "max_tokens": 9}, model.lay_out(messages("a")))])
    assert len(writing.chosen) <= 9 and writing.finish in ("stop", "length")


@pytest.mark.parametrize("listed", [False, True])
def test_the_ends_of_the_networks_settings_end_an_answer(model, monkeypatch, listed):
    ids, request = model.lay_out(messages("a")), {**REQUEST, "structured": "none", "max_tokens": 9}
    (whole,) = model.write([(request, ids)])
    end = whole.chosen[2]
    monkeypatch.setattr(model.network.generation_config, "eos_token_id", [end, 0] if listed else end)
    monkeypatch.delitem(vars(model), "ends", raising=False)
    (writing,) = model.write([(request, ids)])
    del model.ends
    before = whole.chosen[: whole.chosen.index(end)]
    assert writing.chosen == [*before, end] and writing.finish == "stop"
    assert writing.words == model.tokenizer.decode(before, skip_special_tokens=True)


@pytest.mark.parametrize("form", ["quotes", "highlighted", "label", "steps"])
def test_an_answer_takes_no_more_than_the_most_tokens(model, form):
    request = {**REQUEST, "answer": form, "labels": ["A", "a longer label"]}
    if form == "quotes":
        request["steps"] = True
    ids = model.lay_out(messages("the film is dull"))
    with refused("option-value", "expected at least ", ", found 1", argument="max_tokens") as caught:
        model.write([({**request, "max_tokens": 1}, ids)])
    least = int(str(caught.error).split("expected at least ")[1].split(",")[0])
    sizes = range(least, least + 40)
    requests = [({**request, "max_tokens": most, "temperature": 2.0, "seed": most}, ids) for most in sizes]
    for most, writing in zip(sizes, model.write(requests), strict=True):
        assert len(writing.chosen) <= most and json.loads(writing.words)


def run(hub: Path, folder: Path, out: Path, **how: Any) -> tuple[list[dict], Any]:
    place = {"dataset": hub, "config": "movies", "limit": 3, "out": out, "cache": out.with_name("cache")}
    report = ask(AskArguments(str(folder), max_tokens=100, **{**place, **how}))
    return [json.loads(line) for line in out.read_text().splitlines()], report


def test_a_run_without_a_server(hub, folder, tmp_path):
    out = tmp_path / "quotes.jsonl"
    options: dict[str, Any] = {"again": ("alone",), "reasoning_tests": ("early_answering",), "price": 2.0}
    lines, report = run(hub, folder, out, **options)
    assert {line["outcome"] for line in lines} == {"answered"}
    assert all(sum(line["classification_scores"].values()) == pytest.approx(1) for line in lines)
    assert all(line["reasoning_steps"] is not None for line in lines)
    text = "\n".join(report.lines())
    assert "cost: " in text and "at 2 for a million tokens" in text and "tokens a second" in text
    assert f"model:{folder.name}@" in report.signature
    again, report = run(hub, folder, out, force=True, **options)
    assert again == lines and "0 tokens paid for 0 answers" in "\n".join(report.lines())


def test_a_simulator_here_is_named_by_its_digest(hub, folder, tmp_path, monkeypatch):
    """Another model in the same folder is another simulator; its seconds count beside its tokens."""
    bills = []

    class Noted(LocalClient):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            bills.append(self)

    monkeypatch.setattr(local, "LocalClient", Noted)
    other, out = tmp_path / "other", tmp_path / "quotes.jsonl"
    shutil.copytree(folder, other)
    _, report = run(hub, folder, out, simulate_with=str(other))
    assert f"|simulated:{local.name_model(str(other))}|" in report.signature
    main, simulator = bills
    assert main.bill is simulator.bill and main.bill.seconds > 0 and not hasattr(main, "seconds")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"layer_norm_epsilon": 0.1}))
    with pytest.raises(DataError):
        run(hub, folder, out, simulate_with=str(other))


def test_a_budget_holds_here_too(hub, folder, tmp_path):
    with refused("server", "the budget is used up", "resume"):
        run(hub, folder, tmp_path / "quotes.jsonl", budget=100)


def test_prompts_longer_than_the_model_are_broken(hub, folder, tmp_path):
    place = {"dataset": hub, "config": "movies", "limit": 1, "cache": tmp_path / "cache"}
    out = tmp_path / "quotes.jsonl"
    report = ask(AskArguments(str(folder), max_tokens=5000, out=out, **place))
    assert json.loads(out.read_text())["outcome"] == "broken"
    assert "expected a prompt for 2048 sub-words" in "\n".join(report.lines())


def test_neither_server_nor_model(hub, tmp_path):
    with refused("option-missing", "`endpoint`", "folder or GGUF file", argument="endpoint"):
        run(hub, tmp_path / "nowhere", tmp_path / "quotes.jsonl")


def test_a_chat_template_without_system_messages(model, monkeypatch):
    words = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    monkeypatch.setattr(model.tokenizer, "chat_template", words + TEMPLATE)
    assert model.tokenizer.decode(model.lay_out(messages("a"))) == "[user]Answer.\n\na\n[assistant]"
    monkeypatch.setattr(model.tokenizer, "chat_template", "{{ raise_exception('never') }}")
    with refused("model", "chat template", "never"):
        model.lay_out(messages("a"))


def test_weights_in_half_precision(hub, folder, tmp_path):
    """They write in the same form, and their answers are kept apart from those of float32."""
    import torch

    run(hub, folder, tmp_path / "quotes.jsonl")
    lines, report = run(hub, folder, tmp_path / "half.jsonl", dtype="bfloat16", cache=tmp_path / "cache")
    assert {line["outcome"] for line in lines} == {"answered"}
    name = local.name_model(str(folder), "bfloat16")
    assert f"model:{name}|" in report.signature and name.endswith(",bfloat16")
    assert "0 answers from the cache" in "\n".join(report.lines())
    assert next(LocalModel(str(folder), dtype="bfloat16").network.parameters()).dtype == torch.bfloat16
    with refused("option-conflict", argument="device_map"):
        run(hub, folder, tmp_path / "other.jsonl", device="cpu", device_map="auto")
