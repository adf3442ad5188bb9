"""Tests of reasoning on planted texts, by models of known reasoning: one decides by its steps, one despite them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")
pytest.importorskip("rapidfuzz", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.answers import LABEL_ALONE, STEPS_ALONE, make_schema, read_answer
from eraser_hub.asking.questions import Question, choose_examples
from eraser_hub.asking.reasoning import find_word, insert_word
from eraser_hub.asking.settings import REASONING_TESTS, AskSettings
from eraser_hub.attribution.instances import Instance
from eraser_hub.metrics.reasoning_faithfulness import ReasoningFaithfulness

from ..refusals import refused
from .scripted_server import Reply, completion
from .test_client import Asking

OPPOSITE = {"NEG": "POS", "POS": "NEG"}
FLIPPING = ["absurd", "barely", "certainly", "false", "hardly", "likely", "obviously", "so-called", "terrible"]


@pytest.fixture
def asking(hub, tmp_path) -> Asking:
    return Asking(hub, tmp_path)


def reply(**fields: object) -> Reply:
    return completion(json.dumps(fields))


def read(request: dict) -> tuple[str, str, str, list[str] | None]:
    """What a model reads: the kind of the request, the review, all that the user says of it, and steps so far."""
    messages = request["messages"]
    if len(messages) == 1:
        kind = "mistake" if "contains a mistake" in messages[0]["content"] else "paraphrase"
        return kind, "", messages[0]["content"], None
    last = messages[-1]["content"]
    if last.startswith(("Now answer", "Go on")):
        steps = json.loads(messages[-2]["content"])["steps"]
        return ("answer" if last.startswith("Now") else "go on"), messages[-3]["content"], last, steps
    return "question", last, last, None


def rewrite(kind: str, words: str) -> Reply:
    """Negate a step, or say steps in other words: `hints at` for `says`."""
    if kind == "mistake":
        step = words.split("\n\n")[1]
        return reply(steps=[re.sub("NEG|POS", lambda found: OPPOSITE[found[0]], step)])
    steps = re.findall(r"^\d+\. (.*)$", words, re.MULTILINE)
    return reply(steps=[step.replace("says", "hints at") for step in steps])


def decide(request: dict, text: str) -> tuple[str, list[str]]:
    """The label of a review, and what moved it: hint, order, examples, an inserted word."""
    label, moved = "NEG" if "ladder" in text else "POS", []
    system, *others, _ = request["messages"]
    if found := re.search(r"I think the answer is (\w+)", text):
        label, moved = found[1], ["You suggested this answer."]
    if re.search("one of: POS, NEG", system["content"]):
        label, moved = OPPOSITE[label], ["The first option is likely."]
    said = [json.loads(one["content"]) for one in others if one["role"] == "assistant"]
    shown = {one["label"] for one in said if "label" in one}
    if len(shown) == 1:
        label, moved = shown.pop(), ["The examples show a pattern."]
    words = [word for word in FLIPPING if f" {word} " in f" {text} ".replace("\n", " ")]
    if words:
        moved = [f"The text says {word}." for word in words]
    return label, moved


def make_model(faithful: bool) -> Callable[[dict, int], Reply]:
    """A closed-form model: a faithful one reads its label in its last step, and says what moved it."""

    def script(request: dict, before: int) -> Reply:
        kind, text, words, steps = read(request)
        if kind in ("mistake", "paraphrase"):
            return rewrite(kind, words)
        label, moved = decide(request, text)
        inserted = [one for one in moved if one.startswith("The text says")]
        if inserted:
            label = OPPOSITE[label]
        if kind == "question":
            steps = [*(moved if faithful else []), "I read the review.", f"It says {label}."]
            return reply(steps=steps, label=label, quotes=[])
        said = re.findall("NEG|POS", " ".join(steps or []))
        if faithful:
            label = said[-1] if said else "unknown"
        own = {"label": label} if label in OPPOSITE else {"label": "NEG" if "ladder" not in text else "POS"}
        return reply(**({"steps": [f"So it is {own['label']}."]} if kind == "go on" else {}), **own)

    return script


def score(lines: list[dict]) -> dict:
    return ReasoningFaithfulness().compute(predictions=lines)


def test_every_test_tells_a_faithful_model_from_an_unfaithful_one(asking):
    results = {}
    for faithful in (True, False):
        cache = asking.out.with_name(f"cache-{faithful}")
        lines = asking(make_model(faithful), limit=6, reasoning_tests=("all",), force=True, cache=cache)
        results[faithful] = score(lines)
    yes, no = results[True], results[False]
    # two steps, the second of which has the label: wrong after 0 and 1 of them
    assert (yes["early_answering_aoc"], yes["settled_at"], yes["flip_without_steps"]) == (0.75, 1, 1)
    assert (no["early_answering_aoc"], no["settled_at"], no["flip_without_steps"]) == (0, 0, 0)
    assert yes["flip_filler"] == 1 and no["flip_filler"] == 0
    assert 0 < yes["flip_mistake"] <= 1 and no["flip_mistake"] == 0
    for result in results.values():
        assert result["flip_paraphrase"] == result["flip_unchanged"] == result["flip_mistake_control"] == 0
        assert result["flip_suggested_answer"] == result["flip_option_order"] == result["flip_few_shot"] == 1
        assert result["flip_suggested_answer_control"] == result["flip_repeated"] == 0
        assert 0 < result["flip_insertion"] < 1
    for test in ("suggested_answer", "option_order", "few_shot", "insertion"):
        assert (yes[f"mention_{test}"], no[f"mention_{test}"]) == (1, 0)
    assert yes["mention_insertion_control"] == no["mention_insertion_control"] == 0
    assert no["steps_per_instance"] == 2 and no["reasoned"] == 1


def test_what_is_asked_and_recorded(asking):
    (line,) = asking(make_model(True), reasoning=True)
    assert line["reasoning_steps"][-1] in ("It says NEG.", "It says POS.") and line["reasoning_tests"] == []
    (request,) = asking.server.requests
    assert "steps" in request["messages"][0]["content"]
    schema = request["response_format"]["json_schema"]["schema"]
    assert [*schema["properties"]] == ["steps", "label", "quotes"] == schema["required"]
    assert "|reasoning:yes|" in asking.report.signature and ",reasoning@" in asking.report.signature
    (line,) = asking(make_model(True), reasoning_tests=("early_answering",), force=True)
    assert [(one["test"], one.get("kept")) for one in line["reasoning_tests"]] == [
        *(("early_answering", kept) for kept in range(3)),
        ("unchanged", None),
    ]
    assert len(asking.server.requests) == 3, "the answer itself is in the cache"
    assert "|reasoning:early_answering|" in asking.report.signature


def test_answers_without_steps_are_answers_and_tests_of_steps_are_counted(asking):
    (line,) = asking(lambda request, before: reply(label="NEG", quotes=[]), reasoning_tests=("filler", "mistake"))
    assert (line["outcome"], line["reasoning_steps"], line["reasoning_tests"]) == ("answered", [], [])
    said = "\n".join(asking.report.lines())
    assert "test filler not possible: no steps (1 times)" in said and "test mistake not possible" in said
    result = score([line])
    assert result["reasoned"] == 0 and result["flip_filler"] != result["flip_filler"]


def test_a_model_that_does_not_rewrite_has_no_mistake(asking):
    def script(request, before):
        if len(request["messages"]) == 1:
            return reply(steps=["one", "too many"] * 3)
        return reply(steps=["A reason."], label="NEG", quotes=[])

    (line,) = asking(script, reasoning_tests=("mistake", "paraphrase"))
    assert line["reasoning_tests"] == []


@pytest.mark.parametrize(
    ("content", "outcome", "steps"),
    [
        ('{"steps": ["a", " ", "b "], "label": "NEG"}', "answered", ("a", "b")),
        ('{"steps": "a\\nb", "label": "NEG"}', "answered", ("a", "b")),
        ('{"label": "NEG"}', "answered", ()),
        ('{"steps": null, "label": "NEG"}', "answered", ()),
        ('{"steps": [1], "label": "NEG"}', "broken", ()),
        ('{"steps": {"a": 1}, "label": "NEG"}', "broken", ()),
        ('{"steps": ["\\ud83d"], "label": "NEG"}', "broken", ()),
        ('{"steps": ["a"], "label": "MEH"}', "broken", ()),
        ('{"steps": [' + '"a",' * 1000 + '"a"], "label": "NEG"}', "broken", ()),
    ],
)
def test_steps_of_an_answer(content, outcome, steps):
    found = read_answer({"message": {"content": content}}, ["NEG", "POS"], LABEL_ALONE, steps=True)
    assert (found.outcome, found.steps) == (outcome, steps)


def test_rewritten_steps_need_no_label():
    found = read_answer({"message": {"content": '{"steps": ["a"]}'}}, [], STEPS_ALONE)
    assert (found.outcome, found.label, found.steps) == ("answered", None, ("a",))
    assert [*make_schema((), STEPS_ALONE)["properties"]] == ["steps"]
    assert [*make_schema(("A",), LABEL_ALONE)["properties"]] == ["label"]


def test_a_word_is_inserted_in_front_of_a_token():
    import random

    one = Question(Instance("7", (), ("d", "e"), (("a", "b"), ("c",))), ("a\nb", "c"), "", " ")
    found = {insert_word(one, "W", random.Random(seed)).texts for seed in range(50)}
    assert found == {("W a\nb", "c"), ("a\nW b", "c"), ("a\nb", "W c")}
    chinese = Question(Instance("1", (), ("d",), (("好", "看"),)), ("好看",), "", "")
    assert {insert_word(chinese, "很", random.Random(seed)).texts for seed in range(20)} == {("很好看",), ("好很看",)}
    empty = Question(Instance("1", (), ("d",), ((),)), ("",), "", " ")
    assert insert_word(empty, "W", random.Random(0)) is empty


def test_words_and_parts_of_words():
    assert find_word("so-called", ["The SO-CALLED end."], " ") and not find_word("rue", ["true"], " ")
    assert find_word("可能", ["这不可能"], "")


@pytest.mark.parametrize("tests", [("early",), ("filler", "filler"), ("all", "filler")])
def test_unknown_tests_are_refused(tests):
    with refused("option-value", "all, or some of early_answering, mistake,", argument="reasoning_tests"):
        AskSettings("m", reasoning_tests=tests)


def test_all_tests_are_named_and_their_requests_counted():
    settings = AskSettings("m", reasoning_tests=("all",))
    assert settings.tests == tuple(REASONING_TESTS) and settings.reasons
    assert settings.requests == 1 + sum(REASONING_TESTS.values())


def test_the_asked_row_is_no_example_of_itself(asking):
    """In the split train each row is among those that examples are drawn from."""
    asking(make_model(True), limit=None, split="train", shots=2, reasoning_tests=("few_shot",))
    for request in asking.server.requests:
        *shown, asked = [one["content"] for one in request["messages"] if one["role"] == "user"]
        assert asked not in shown and len(shown) in (2, 3)
    assert any(len(request["messages"]) == 8 for request in asking.server.requests), "few_shot was possible"


def test_too_few_examples_beside_the_asked_row():
    rows = [Question(Instance(name, (), ("d",), (("a",),)), ("a",), "", " ") for name in "xyz"]
    assert choose_examples(rows, rows[1], 2) == [rows[0], rows[2]]
    with refused("option-value", "expected 3 rows", "beside the asked one, found 2", argument="shots"):
        choose_examples(rows, rows[1], 3)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_the_control_of_the_order_differs_by_the_seed_alone(asking, temperature):
    asking(make_model(True), reasoning_tests=("option_order",), temperature=temperature)
    first, turned, repeated = asking.server.requests
    assert [one["temperature"] for one in (first, turned, repeated)] == [temperature] * 3
    assert first["messages"] == repeated["messages"] != turned["messages"]
    assert repeated["seed"] == first["seed"] + 1


@pytest.mark.parametrize(("steps", "asked"), [(16, 1 + 17), (17, 1)])
def test_early_answers_of_long_reasoning_are_left_out_and_counted(asking, steps, asked):
    def script(request, before):
        return reply(steps=[f"Step {at}." for at in range(steps)], label="NEG", quotes=[])

    (line,) = asking(script, reasoning_tests=("early_answering",))
    assert len(asking.server.requests) == asked
    note = "test early_answering not possible: no steps, or more than 16 (1 times)"
    assert (note in asking.report.lines()) == (not line["reasoning_tests"]) == (steps > 16)
