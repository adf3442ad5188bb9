"""Texts that are shown, answers that are read, and the probabilities of their labels."""

from __future__ import annotations

import json
import math

import pytest

from eraser_hub.asking.prompts import compute_label_probabilities, make_messages, make_texts, read_answer
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.prompts import open_prompt

LABELS = ["NEG", "POS"]
GOOD = '{"label": "NEG", "quotes": ["flat"]}'
FILM = Instance(
    "7", (), ("d",), (("the", "film", "is", "fine", ".", "the", "end", "is", "not", "."),), sentences=((5, 5),)
)
CHINESE = Instance("1", (), ("d",), (("很", "好", "看"),))


@pytest.mark.parametrize(
    ("instance", "blank", "change", "marked", "text"),
    [
        (FILM, " ", "", [], "the film is fine .\nthe end is not ."),
        (FILM, " ", "redacted", [1, 2], "the [REDACTED] [REDACTED] fine .\nthe end is not ."),
        (FILM, " ", "removed", [*range(5), 9], "the end is not"),
        (FILM, " ", "alone", [1, 5, 6], "film\nthe end"),
        (CHINESE, "", "redacted", [1], "很█看"),
    ],
)
def test_texts_and_changed_texts(instance, blank, change, marked, text):
    flags = [at in marked for at in range(len(instance.tokens))]
    assert make_texts(instance, blank, change, flags) == [text]


def test_examples_are_answered_by_label_and_human_rationale():
    mask = (*(False,) * 3, True, *(False,) * 3, True, True, False)
    shot = Instance("8", (), ("e",), FILM.documents, "NEG", (mask,), sentences=FILM.sentences)
    messages = make_messages(open_prompt("movies"), FILM, ["a text"], LABELS, " ", [shot])
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert json.loads(messages[2]["content"]) == {"label": "NEG", "quotes": ["fine", "is not"]}
    assert "the film is fine .\nthe end" in messages[1]["content"] and "a text" in messages[3]["content"]


@pytest.mark.parametrize(
    ("name", "message", "finish", "outcome"),
    [
        ("as asked", GOOD, "stop", "answered"),
        ("fenced", f"Sure!\n```json\n{GOOD}\n```", "stop", "answered"),
        ("after thoughts", f'<think>{{"label": "POS"}}</think>{GOOD}', "stop", "answered"),
        ("another case, one string", '{"label": " neg", "quotes": "flat"}', "stop", "answered"),
        ("half an emoji outside", f"{GOOD} \ud83d", "stop", "answered"),
        ("many braces", "{" * 200_000 + GOOD, "stop", "answered"),
        ("many marks", json.dumps({"label": "NEG", "quotes": ["'" * 100_000]}), "stop", "answered"),
        ("refusal field", {"content": None, "refusal": "I will not"}, "stop", "refusal"),
        ("refusal", "I'm sorry, but I can't help with that.", "stop", "refusal"),
        ("filtered", "", "content_filter", "refusal"),
        ("at the most tokens", GOOD[:20], "length", "cut"),
        ("thoughts without end", f"<think> {GOOD}", "length", "cut"),
        ("no words", None, "stop", "broken"),
        ("no object", "negative", "stop", "broken"),
        ("wrong label", '{"label": "MEH", "quotes": []}', "stop", "broken"),
        ("a list as label", '{"label": ["NEG"], "quotes": []}', "stop", "broken"),
        ("no quotes", '{"label": "NEG"}', "stop", "broken"),
        ("quotes of numbers", '{"label": "NEG", "quotes": [1]}', "stop", "broken"),
        ("a thousand and one quotes", json.dumps({"label": "NEG", "quotes": ["a"] * 1001}), "stop", "broken"),
        ("half an emoji in a quote", '{"label": "NEG", "quotes": ["\\ud83d"]}', "stop", "broken"),
        ("half an emoji in the label", '{"label": "\\udc00", "quotes": []}', "stop", "broken"),
        ("nested without end", '{"label":' * 20_000, "stop", "broken"),
        ("objects without end", '{"a":' * 100_000, "stop", "broken"),
        ("ten megabytes", "x" * 10_000_000, "stop", "broken"),
    ],
)
def test_whatever_is_answered_has_an_outcome(name, message, finish, outcome):
    message = message if isinstance(message, dict) else {"content": message}
    answer = read_answer({"message": message, "finish_reason": finish}, LABELS)
    assert answer.outcome == outcome
    assert (answer.label, bool(answer.reason)) == (("NEG", False) if outcome == "answered" else (None, True))
    assert answer.quotes if outcome == "answered" else not answer.quotes


@pytest.mark.parametrize("choice", [None, 7, {}, {"message": "NEG"}, [[]]])
def test_a_choice_of_no_form_is_broken(choice):
    assert read_answer(choice, LABELS).outcome == "broken"


@pytest.mark.parametrize(("said", "labels"), [("true", ["False", "True"]), ("1", ["0", "1"])])
def test_labels_without_quotation_marks(said, labels):
    assert read_answer({"message": {"content": f'{{"label": {said}, "quotes": []}}'}}, labels).label == labels[1]


# -- probabilities ----------------------------------------------------------------------------------------------------


def step(token, **others):
    top = [{"token": name, "logprob": math.log(p)} for name, p in others.items()]
    own = next((one["logprob"] for one in top if one["token"] == token), -1.0)
    return {"token": token, "logprob": own, "top_logprobs": top}


def logprobs(*steps):
    return {"logprobs": {"content": list(steps)}}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (  # one token tells them apart
            [step('{"label": '), step('"'), step("N", N=0.6, P=0.2, X=0.2), step("EG", EG=1.0), step('"}')],
            {"NEG": 0.75, "POS": 0.25},
        ),
        (  # labels that begin alike: .8 x .5 stays with SUPP, and what goes to SUIT is nobody's
            [
                step('{"label":"SU', **{'{"label":"SU': 0.8, '{"label":"RE': 0.1, "x": 0.1}),
                step("PP", PP=0.5, IT=0.5),
                step("O", O=0.75, R=0.25),
                step('RTS"'),
            ],
            {"SUPPORTS": 0.6, "SUPPRESSES": 0.2, "REFUTES": 0.2},
        ),
        (  # a label that begins another
            [step('{"label": "'), step("not", **{"not": 0.9, "yes": 0.1}), step('"', **{'"': 0.5, " sure": 0.5})],
            {"not": 0.45, "not sure": 0.45, "yes": 0.1},
        ),
    ],
)
def test_probabilities_of_labels(steps, expected):
    assert compute_label_probabilities(logprobs(*steps), list(expected)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "choice",
    [
        *({}, {"logprobs": None}, {"logprobs": {"content": None}}, {"logprobs": {"content": [3]}}),
        *(logprobs(step("no label")), logprobs(step('{"label": "'), step("Q", Q=1.0))),
        logprobs(step('{"label": "'), {"token": "NEG", "logprob": "x"}),
    ],
)
def test_no_probabilities(choice):
    assert compute_label_probabilities(choice, LABELS) is None
