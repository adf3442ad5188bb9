"""Answers in other formats than quotes: places by characters and tokens, copies with marks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")
pytest.importorskip("rapidfuzz", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.answers import ANSWERED, FORMATS, Answer, make_schema, read_answer
from eraser_hub.asking.formats import locate_quotes, make_gold_answer
from eraser_hub.asking.prompts import make_messages
from eraser_hub.asking.questions import Question, draw_examples
from eraser_hub.asking.run import AskConfig, dry_run
from eraser_hub.asking.settings import AskSettings
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.prompts import open_prompt
from eraser_hub.metrics.quote_alignment import Quote

from ..refusals import refused
from .scripted_server import completion
from .test_client import Asking

TEXTS = ("the film is fine .\nthe end is not .", "short one")
ONE = Question(Instance("7", (), ("d", "e"), tuple(tuple(text.split()) for text in TEXTS)), TEXTS, "", " ")


@pytest.fixture
def asking(hub, tmp_path) -> Asking:
    return Asking(hub, tmp_path)


def placed(form: str, *places: tuple[int, int, int]) -> list[Quote]:
    return locate_quotes(Answer(ANSWERED, "A", places=places), ONE, AskSettings("m", answer=form))


@pytest.mark.parametrize(
    ("place", "status", "span"),
    [
        ((1, 4, 16), "exact", ("d", 1, 4)),
        ((1, 3, 17), "exact", ("d", 1, 4)),  # blanks around it
        ((1, 5, 14), "normalised", ("d", 1, 4)),  # from inside a token to inside another
        ((1, 17, 22), "exact", ("d", 4, 6)),  # over the line's end
        ((2, 0, 9), "exact", ("e", 0, 2)),
        ((1, 3, 4), "empty", (None, None, None)),
        ((3, 0, 1), "not_found", (None, None, None)),
        ((0, 0, 1), "not_found", (None, None, None)),
        ((1, 4, 4), "not_found", (None, None, None)),
        ((1, -3, 4), "not_found", (None, None, None)),
        ((2, 0, 10), "not_found", (None, None, None)),
    ],
)
def test_characters(place, status, span):
    (quote,) = placed("offsets", place)
    assert (quote.status, (quote.docid, quote.start_token, quote.end_token)) == (status, span)


@given(st.integers(0, 9), st.integers(1, 10))
def test_any_span_of_characters_of_tokens_comes_back(start, length):
    tokens = TEXTS[0].split()
    end = min(start + length, len(tokens))
    at, bounds = 0, []
    for token in tokens:
        at = TEXTS[0].index(token, at)
        bounds.append((at, at + len(token)))
        at += len(token)
    (quote,) = placed("offsets", (1, bounds[start][0], bounds[end - 1][1]))
    assert (quote.status, quote.start_token, quote.end_token) == ("exact", start, end)


def test_tokens():
    one, two, three = placed("tokens", (1, 1, 4), (2, 0, 2), (2, 0, 3))
    assert one == Quote("film is fine", "exact", "d", 1, 4, 1.0)
    assert (two.docid, three.status, three.docid) == ("e", "not_found", None)


def highlighted(*copies: str) -> list[tuple]:
    quotes = locate_quotes(Answer(ANSWERED, "A", copies), ONE, AskSettings("m", answer="highlighted"))
    return [(quote.status, quote.docid, quote.start_token, quote.end_token) for quote in quotes]


def test_copies_are_read_by_their_place():
    # "is" stands twice: the copy says which
    assert highlighted("the film is fine .\nthe end <r>is</r> not .", "short one") == [("exact", "d", 7, 8)]
    assert highlighted("The film <r>IS</r>  fine. The end is not.", "<r>short one</r>") == [
        ("normalised", "d", 2, 3),
        ("exact", "e", 0, 2),
    ]


def test_copies_that_differ_from_the_text_are_read_as_quotes():
    assert highlighted("the movie <r>is fine .</r> really") == [("exact", "d", 2, 5)]
    assert highlighted("<r>a wonderful masterpiece</r>") == [("not_found", None, None, None)]
    assert highlighted("the film", "short one") == []
    assert highlighted("x", "y", "<r>film is fine</r>") == [("exact", "d", 1, 4)]  # a copy too many


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("offsets", {"spans": [{"text": 1, "start": 0}]}, "{text, start, end}"),
        ("tokens", {"spans": [{"text": 1, "start": 0, "end": True}]}, "{text, start, end}"),
        ("tokens", {"spans": "1-2"}, "{text, start, end}"),
        ("tokens", {"quotes": ["film"]}, "{text, start, end}"),
        ("highlighted", {"texts": [1]}, "strings"),
    ],
)
def test_what_is_no_answer_of_the_format(form, value, expected):
    answer = read_answer({"message": {"content": json.dumps({"label": "A", **value})}}, ["A"], form)
    assert answer.outcome == "broken" and expected in answer.reason
    assert answer.reason.startswith("texts: " if form == "highlighted" else "spans: ")


def test_what_is_asked_for():
    for form, words in (
        ("quotes", '"quotes"'),
        ("offsets", "first\ncharacter"),
        ("tokens", "first\ntoken"),
        ("highlighted", "<r>"),
    ):
        for config in ("movies", "senti_ch"):
            system, user = make_messages(open_prompt(config), ONE, ["A", "B"], (), form)
            assert config == "senti_ch" or words in system["content"]
            assert ("[1]film" in user["content"]) == (form == "tokens")
            assert form == "tokens" or TEXTS[0] in user["content"]
    assert make_schema(["A"], "tokens")["properties"]["spans"]["items"]["required"] == ["text", "start", "end"]


@pytest.mark.parametrize("config", ["movies", "esnli", "fever"])
@pytest.mark.parametrize("form", FORMATS)
def test_the_gold_answer_of_each_format_is_read_back(hub, config, form):
    split = open_split(str(hub), config, "train")
    for question in draw_examples(split, 2, seed=3):
        choice = {"message": {"content": json.dumps(make_gold_answer(question, form))}, "finish_reason": "stop"}
        answer = read_answer(choice, split.label_names, form)
        assert (answer.outcome, answer.label) == ("answered", question.instance.label)
        places = [(question.instance.names[at], start, end) for at, start, end in question.gold_runs()]
        quotes = locate_quotes(answer, question, AskSettings("m", answer=form))
        if form != "quotes":  # a quote does not say which of several places it means
            assert [(quote.docid, quote.start_token, quote.end_token) for quote in quotes] == places
            assert {quote.status for quote in quotes} == {"exact"}
        assert len(quotes) == len(places) > 0


@given(st.lists(st.booleans(), min_size=8, max_size=8), st.sampled_from(FORMATS[1:]), st.sampled_from(["", " "]))
def test_any_marks_are_read_back(flags, form, blank):
    tokens = ("a", "b\u3000c", "d\xa0e", ".", "f", "g", "h", "i")  # blanks that part no tokens
    instance = Instance("7", (), ("d",), (tokens,), "A", (tuple(flags),))
    question = Question(instance, (blank.join(tokens),), "", blank)
    choice = {"message": {"content": json.dumps(make_gold_answer(question, form))}, "finish_reason": "stop"}
    quotes = locate_quotes(read_answer(choice, ["A"], form), question, AskSettings("m", answer=form))
    covered = [any(quote.start_token <= at < quote.end_token for quote in quotes) for at in range(len(tokens))]
    assert covered == flags


def test_examples_answer_in_the_format_that_is_asked_for(hub):
    for form, words in (("offsets", '"spans":[{'), ("tokens", '"spans":[{'), ("highlighted", "<r>")):
        settings = AskSettings("scripted", shots=2, seed=1, answer=form)
        whole = "".join(dry_run(AskConfig(str(hub), "movies", "test", 1), settings))
        replies = [part.split("--- user")[0] for part in whole.split("--- assistant")[1:]]
        assert len(replies) == 2 and all(words in reply for reply in replies)


def test_tokens_are_numbered_as_they_are_read():
    texts = ("the\xa0film is\nfine .",)
    question = Question(Instance("7", (), ("d",), (("the\xa0film", "is", "fine", "."),)), texts, "", " ")
    user = make_messages(open_prompt("movies"), question, ["A"], (), "tokens")[1]["content"]
    assert "[0]the\xa0film [1]is [2]fine [3]." in user


def test_a_run_with_token_indices(asking):
    span = {"text": 1, "start": 2, "end": 5}
    (line,) = asking(lambda request, before: completion(json.dumps({"label": "NEG", "spans": [span]})), answer="tokens")
    assert line["rationales"][0]["hard_rationale_predictions"] == [{"start_token": 2, "end_token": 5}]
    assert "|answer:tokens|" in asking.report.signature
    with refused("option-value", "answer", "quotes, offsets, tokens, highlighted,", "'xml'"):
        AskSettings("m", answer="xml")
