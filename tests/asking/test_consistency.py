"""Asking again without the quotes, with them alone, and without random spans."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.answers import Answer, compute_label_probabilities
from eraser_hub.asking.consistency import (
    change_question,
    draw_random_flags,
    find_erased_probabilities,
    flag_quotes,
)
from eraser_hub.asking.questions import Question
from eraser_hub.attribution.instances import Instance
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.quotes import Quote

from ..refusals import refused
from .scripted_server import Reply, answer, completion, error

TEXT = "the film is fine .\nthe end is not ."
ONE = Question(Instance("7", (), ("d",), (tuple(TEXT.split()),)), (TEXT,), "", " ")
QUOTES = [Quote("film is FINE", "normalised", "d", 1, 4, 1.0), Quote("a masterpiece", "not_found")]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("redacted", "the [REDACTED] [REDACTED] [REDACTED] .\nthe end is not ."),
        ("removed", "the .\nthe end is not ."),
        ("alone", "film is fine"),
    ],
)
def test_what_a_changed_question_says(kind, text):
    assert change_question(ONE, flag_quotes(ONE, QUOTES), kind).texts == (text,)


def test_random_spans_are_as_long_and_elsewhere():
    flags = flag_quotes(ONE, QUOTES)
    seen = Counter[int]()
    for seed in range(200):
        (marked,) = draw_random_flags(ONE, flags, seed)
        assert sum(marked) == 3 and [marked] != flags
        seen.update(at for at, flag in enumerate(marked) if flag)
    assert set(seen) == set(range(10))
    assert draw_random_flags(ONE, flags, 5) == draw_random_flags(ONE, flags, 5)


def test_chinese_is_redacted_without_blanks():
    one = Question(Instance("1", (), ("d",), (("很", "好", "看"),)), ("很好看",), "", "")
    assert change_question(one, [[False, True, False]], "redacted").texts == ("很█看",)


# --- probabilities -----------------------------------------------------------------------------------------------


def step(token: str, **others: float) -> dict:
    top = [{"token": name, "logprob": math.log(p)} for name, p in others.items()]
    return {
        "token": token,
        "logprob": next((one["logprob"] for one in top if one["token"] == token), -1.0),
        "top_logprobs": top,
    }


def logprobs(*steps: dict) -> dict:
    return {"logprobs": {"content": list(steps)}}


def test_probabilities_of_labels_that_one_token_tells_apart():
    choice = logprobs(step('{"label": '), step('"'), step("N", N=0.6, P=0.2, X=0.2), step("EG", EG=1.0), step('"}'))
    assert compute_label_probabilities(choice, ["NEG", "POS"]) == pytest.approx({"NEG": 0.75, "POS": 0.25})


def test_labels_that_begin_alike_are_told_apart_further_on():
    labels = ["SUPPORTS", "SUPPRESSES", "REFUTES"]
    choice = logprobs(
        step('{"label":"SU', **{'{"label":"SU': 0.8, '{"label":"RE': 0.1, "x": 0.1}),
        step("PP", PP=0.5, IT=0.5),
        step("O", O=0.75, R=0.25),
        step('RTS"'),
    )
    # .8 x .5 stays with SUPP; what goes to SUIT is nobody's
    expected = {"SUPPORTS": 0.3, "SUPPRESSES": 0.1, "REFUTES": 0.1}
    assert compute_label_probabilities(choice, labels) == pytest.approx(
        {label: p / 0.5 for label, p in expected.items()}
    )


def test_a_label_that_begins_another():
    choice = logprobs(
        step('{"label": "'), step("not", **{"not": 0.9, "yes": 0.1}), step('"', **{'"': 0.5, " sure": 0.5})
    )
    assert compute_label_probabilities(choice, ["not", "not sure", "yes"]) == pytest.approx(
        {"not": 0.45, "not sure": 0.45, "yes": 0.1}
    )


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"logprobs": None},
        {"logprobs": {"content": None}},
        {"logprobs": {"content": [3]}},
        logprobs(step("no label")),
        logprobs(step('{"label": "'), step("Q", Q=1.0)),
        logprobs(step('{"label": "'), {"token": "NEG", "logprob": "x"}),
    ],
)
def test_no_probabilities(choice):
    assert compute_label_probabilities(choice, ["NEG", "POS"]) is None


# --- whole runs --------------------------------------------------------------------------------------------------

QUOTED = "the dialogue is painfully flat"


def with_probabilities(reply: Reply, label: str, p: float) -> Reply:
    body = json.loads(reply.body)
    other = {"NEG": "POS", "POS": "NEG"}[label]
    body["choices"][0]["logprobs"] = logprobs(step('{"label": "'), step(label, **{label: p, other: 1 - p}))["logprobs"]
    return reply._replace(body=json.dumps(body).encode())


def reader(request: dict, before: int) -> Reply:
    """Says NEG as long as it reads of a ladder, and quotes that."""
    text = request["messages"][-1]["content"].casefold()
    label, p = ("NEG", 0.9) if "ladder" in text else ("POS", 0.6)
    reply = answer(label, *(["a ladder"] if "a ladder" in text else []))
    return with_probabilities(reply, label, p) if request.get("logprobs") else reply


def test_flips_and_probabilities_of_a_model_that_reads_its_quotes(asking):
    lines = asking(reader, limit=None, consistency=("redacted", "removed", "alone", "random"))
    marked = [line for line in lines if line["classification"] == "NEG"]
    for line in marked:
        again = {one["kind"]: one["classification"] for one in line["asked_again"]}
        assert again == {"redacted": "POS", "removed": "POS", "alone": "NEG", "random": "NEG"}
        assert line["classification_scores"] == pytest.approx({"NEG": 0.9, "POS": 0.1})
        assert line["comprehensiveness_classification_scores"]["NEG"] == pytest.approx(0.4)
        assert line["sufficiency_classification_scores"]["NEG"] == pytest.approx(0.9)
    share = len(marked) / len(lines)  # the others quote nothing, so nothing is taken from them
    scores = EraserFaithfulness().compute(predictions=lines)
    assert 0 < share < 1 and scores["comprehensiveness"] == pytest.approx(0.5 * share)
    assert "|again:redacted,removed,alone,random|" in asking.report.signature


def test_everything_that_was_asked_again_is_in_the_cache(asking):
    asking(reader, limit=3, consistency=("redacted", "alone"))
    asked = len(asking.server.requests)
    assert 3 < asked <= 9
    lines = asking(lambda request, before: error(500, "no"), limit=3, consistency=("redacted", "alone"))
    assert len(lines) == 3 and not asking.server.requests


def test_samples_where_there_are_no_log_probabilities(asking):
    seeds = set()

    def script(request, before):
        seeds.add((request["seed"], request["temperature"]))
        return answer("NEG" if request["seed"] % 4 else "POS", QUOTED)

    (line,) = asking(script, consistency=("removed",), samples=4)
    assert seeds == {(1, 0.0), *((seed, 1.0) for seed in range(2, 6))}
    assert line["classification_scores"] == {"NEG": 0.75, "POS": 0.25}
    assert "comprehensiveness_classification_scores" in line and "sufficiency_classification_scores" not in line
    assert any("4 answers" in line and "0.250" in line for line in asking.notes)


def test_without_either_labels_alone_are_compared_and_that_is_said(asking):
    def script(request, before):
        if "logprobs" in request:
            return error(400, "logprobs are not supported")
        return answer("NEG", QUOTED) if before == 0 else answer("NEG")

    lines = asking(script, limit=2, consistency=("redacted",))
    assert all("classification_scores" not in line and line["asked_again"][0]["kind"] == "redacted" for line in lines)
    said = "\n".join(asking.notes)
    assert "log-probabilities (" in said and "label flips" in said
    assert "JSON schema" not in said  # it was not the reason


def test_no_answer_to_what_is_asked_again_is_said(asking):
    def script(request, before):
        text = request["messages"][-1]["content"]
        return answer("NEG", text.split()[20]) if "[REDACTED]" not in text and len(text) > 100 else Reply(body=b"{}")

    (line,) = asking(script, consistency=("redacted", "alone"))
    assert [(one["classification"], one["outcome"]) for one in line["asked_again"]] == [(None, "broken")] * 2


def test_an_instance_without_answer_is_not_asked_again(asking):
    (line,) = asking(lambda request, before: completion("no object"), consistency=("redacted",))
    assert line["asked_again"] == [] and len(asking.server.requests) == 1


@pytest.mark.parametrize(
    ("options", "mentions"),
    [
        ({"consistency": ("erased",)}, ("consistency: ", "redacted, removed, alone, random,", "'erased'")),
        ({"consistency": ("alone", "alone")}, ("consistency: ", "'alone,alone'")),
        ({"samples": 3}, ("samples: ", "`consistency`", "found 3")),
        ({"consistency": ("alone",), "sample_temperature": 0.0}, ("sample_temperature: ", "found 0.0")),
    ],
)
def test_bad_options(asking, options, mentions):
    with refused(*mentions):
        asking(reader, **options)


def test_removed_goes_before_redacted_for_comprehensiveness():
    p = {"A": 1.0}
    again = {
        "redacted": Answer("answered", "A", probabilities={"A": 0.0}),
        "removed": Answer("answered", "A", probabilities=p),
    }
    assert find_erased_probabilities(again) == {"comprehensiveness": p}
