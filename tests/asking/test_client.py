"""What becomes of what a server may answer: an outcome, a repetition, an error; never a crash, never a second bill."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import time
from contextlib import closing

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")

from eraser_hub import ask
from eraser_hub.asking.cache import NAME

from ..refusals import refused
from .scripted_server import Reply, ScriptedServer, answer, completion, error, raw_server

GOOD = answer("NEG", "the dialogue is painfully flat")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("name", "reply", "outcome"),
    [
        ("as asked", GOOD, "answered"),
        ("fenced", completion('Sure!\n```json\n{"label": "NEG", "quotes": []}\n```'), "answered"),
        (
            "after thoughts",
            completion('<think>{"label": "POS"}</think>{"label": "neg", "quotes": ["flat"]}'),
            "answered",
        ),
        ("one string", completion('{"label": "NEG", "quotes": "flat"}'), "answered"),
        ("refusal field", completion(None, refusal="I will not"), "refusal"),
        ("refusal words", completion("I'm sorry, but I can't help with that."), "refusal"),
        ("filtered", completion("", "content_filter"), "refusal"),
        ("at the most tokens", completion('{"label": "NEG", "quo', "length"), "cut"),
        ("no words", completion(None), "broken"),
        ("no object", completion("negative"), "broken"),
        ("wrong label", completion('{"label": "MEH", "quotes": []}'), "broken"),
        ("another language", completion('{"label": "negativ", "quotes": ["der Film ist schlecht"]}'), "broken"),
        ("no quotes", completion('{"label": "NEG"}'), "broken"),
        ("quotes of numbers", completion('{"label": "NEG", "quotes": [1]}'), "broken"),
        ("nested without end", completion('{"label":' * 20_000), "broken"),
        ("ten megabytes", completion("x" * 10_000_000), "broken"),
        ("half an emoji in a quote", completion('{"label": "NEG", "quotes": ["\\ud83d"]}'), "broken"),
        ("half an emoji in the label", completion('{"label": "\\udc00", "quotes": []}'), "broken"),
        ("half an emoji outside", completion('{"label": "NEG", "quotes": []} \ud83d'), "broken"),
        ("an immense number", Reply(body=GOOD.body.replace(b'"index": 0', b'"index": 1' + b"0" * 30)), "answered"),
        (
            "a deep choice",
            Reply(body=GOOD.body.replace(b'"index": 0', b'"index": ' + b"[" * 300 + b"]" * 300)),
            "answered",
        ),
        ("many braces", completion("{" * 200_000 + '{"label": "NEG", "quotes": []}'), "answered"),
        ("many objects without end", completion('{"a":' * 100_000), "broken"),
        ("many marks", completion(json.dumps({"label": "NEG", "quotes": ["'" * 100_000]})), "answered"),
        ("a charset that is none", GOOD._replace(headers=(("Content-Type", "text/plain; charset=zlib"),)), "answered"),
        ("packed", Reply(body=gzip.compress(GOOD.body), headers=(("Content-Encoding", "gzip"),)), "answered"),
        ("context too long", error(400, "maximum context length exceeded"), "broken"),
    ],
)
def test_whatever_is_answered_is_a_line(asking, name, reply, outcome):
    (line,) = asking(lambda request, before: reply)
    assert line["outcome"] == outcome
    if outcome == "answered":
        assert line["classification"] == "NEG"
    else:
        assert (line["classification"], line["rationales"], line["quotes"]) == (None, [], [])
    assert asking(lambda request, before: reply, force=True) == [line], "what is stored is read again"


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b"", b'{"detail": "ok"}', b'{"choices": []}', b"[1, 2", b"[1]", b'"x"']
)
def test_answers_of_no_api_are_an_error_of_the_endpoint(asking, body):
    found = repr(body.decode())
    with refused("not an OpenAI-compatible", "http://127.0.0.1", found, argument="endpoint"):
        asking(lambda request, before: Reply(body=body), limit=None)
    assert len(asking.server.requests) < 40, "it stops after some"
    lines = asking(lambda request, before: GOOD, limit=None)
    assert {line["outcome"] for line in lines} == {"answered"}, "nothing of it is kept"


def test_an_answer_of_no_api_among_others_is_broken(asking):
    def script(request, before):
        return Reply(body=b"<html>") if "ladder" in request["messages"][-1]["content"] else GOOD

    outcomes = {line["outcome"] for line in asking(script, limit=None, concurrency=1)}
    assert outcomes == {"answered", "broken"}


def test_a_server_without_http_is_one_line(asking):
    with raw_server(lambda: iter([b"SSH-2.0-OpenSSH_9.6\r\n"])) as endpoint:
        with refused(endpoint, "SSH-2.0", argument="endpoint") as caught:
            asking(lambda request, before: GOOD, endpoint=endpoint)
    assert "\n" not in str(caught.error)


def test_the_timeout_bounds_the_whole_answer(asking):
    def drip():
        yield HEAD + b"\r\n"
        for _ in range(50):
            time.sleep(0.1)
            yield b" "

    started = time.monotonic()
    with raw_server(drip) as endpoint, refused("`timeout`"):
        asking(lambda request, before: GOOD, endpoint=endpoint, timeout=0.5, attempts=6)
    assert time.monotonic() - started < 4


def test_a_body_without_end_is_cut(asking, monkeypatch):
    monkeypatch.setattr("eraser_hub.asking.client.MAX_BYTES", 1 << 16)
    sent = []

    def flood():
        yield HEAD + b"\r\n"
        for _ in range(4096):
            sent.append(1)
            yield b" " * (1 << 14)

    with raw_server(flood) as endpoint, refused("not an OpenAI-compatible"):
        asking(lambda request, before: GOOD, endpoint=endpoint, timeout=60)
    assert len(sent) < 4096


def test_a_packed_body_without_end_is_cut(asking, monkeypatch):
    monkeypatch.setattr("eraser_hub.asking.client.MAX_BYTES", 1 << 20)
    body = gzip.compress(b" " * (64 << 20))
    with refused("not an OpenAI-compatible"):
        asking(lambda request, before: Reply(body=body, headers=(("Content-Encoding", "gzip"),)))


def test_what_an_earlier_version_stored_kills_no_run(asking):
    asking(lambda request, before: GOOD)
    for stored, outcome in [
        (completion('{"label": "NEG", "quotes": ["\\ud83d"]}').body, "broken"),
        (b'{"choices": {}}', "answered"),
        (b'{"choices": [7]}', "broken"),
        (b"[" * 5000, "answered"),
        (GOOD.body[:20], "answered"),  # damaged, and so asked for again
    ]:
        with closing(sqlite3.connect(asking.cache / NAME)) as database, database as kept:
            kept.execute("UPDATE answers SET answer = ?", (stored,))
        (line,) = asking(lambda request, before: GOOD, force=True)
        assert line["outcome"] == outcome
    assert len(asking.server.requests) == 1
    asking(lambda request, before: GOOD, force=True)
    assert not asking.server.requests, "the answer that came was not kept"


@pytest.mark.parametrize(
    "first",
    [
        error(429, "slow down", ("Retry-After", "0.05")),
        error(500, "oh"),
        error(503, "loading", ("retry-after-ms", "20")),
        Reply(body=GOOD.body, sent=40),  # a cut stream
    ],
)
def test_a_server_that_fails_once_is_asked_again(asking, first):
    (line,) = asking(lambda request, before: first if before == 0 else GOOD)
    assert line["outcome"] == "answered"
    assert len(asking.server.requests) == 2


def test_retry_after_is_waited_for(asking):
    asking(lambda request, before: error(429, "slow down", ("Retry-After", "1")) if before == 0 else GOOD)
    first, second = asking.server.times
    assert second - first >= 1


def test_a_server_that_goes_on_failing_is_an_error_and_answers_are_kept(asking):
    def script(request, before):
        return error(500, "oh") if "ladder" in request["messages"][-1]["content"] else GOOD

    with refused(asking.out, "`resume`", "instance '", "(and 1 more)") as caught:
        asking(script, limit=None, concurrency=1)
    assert not asking.out.exists()
    lines = asking(lambda request, before: GOOD, limit=None, resume=True)
    assert {line["outcome"] for line in lines} == {"answered"}
    assert f"{len(lines) - len(asking.server.requests)} answers are kept" in str(caught.error)
    assert len(asking.server.requests) < len(lines)


def test_a_wrong_key_stops_at_once_and_is_not_told(asking, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
    with refused("endpoint", "401") as caught:
        asking(lambda request, before: error(401, "wrong key sk-secret-123"), limit=None, concurrency=1)
    assert "sk-secret" not in str(caught.error)
    assert len(asking.server.requests) == 1


ECHO = answer("NEG", "your key is sk-secret-123")


@pytest.mark.parametrize(
    "reply",
    [
        ECHO,
        Reply(body=ECHO.body.replace(b"sk-secret", rb"\u0073k\u002Dsecret")),
        Reply(body=ECHO.body.replace(b"sk-secret", rb"\\u0073k\\u002Dsecret")),
    ],
    ids=["plain", "escaped", "escaped twice"],
)
def test_the_key_is_sent_and_stored_nowhere(asking, monkeypatch, tmp_path, reply):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
    (line,) = asking(lambda request, before: reply)
    assert asking.server.keys == ["Bearer sk-secret-123"]
    assert line["quotes"][0]["text"] == "your key is [key]"
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) == 3
    assert not any(b"sk-secret" in content for content in stored)


def test_a_rerun_costs_nothing_whatever_the_endpoint(asking):
    first = asking(lambda request, before: GOOD, limit=None)
    again = asking(lambda request, before: error(500, "never asked"), limit=None)
    assert again == first
    assert asking.server.requests == []
    assert any(re.findall(r"\d+", line) == ["0", "0", str(len(first))] for line in asking.notes)


def test_other_settings_are_asked_anew(asking):
    asking(lambda request, before: GOOD)
    asking(lambda request, before: GOOD, temperature=0.5, force=True)
    assert len(asking.server.requests) == 1
    assert asking.server.requests[0]["temperature"] == 0.5


def test_a_cache_that_is_no_database_is_left_alone_and_named(asking):
    asking.cache.mkdir()
    thesis = asking.cache / NAME
    thesis.write_text("chapter one " * 1000)
    with refused("not a database", "`cache`", file=thesis):
        asking(lambda request, before: GOOD)
    assert thesis.read_text() == "chapter one " * 1000
    assert not asking.out.exists()


def test_the_budget_is_never_exceeded(asking):
    with refused(asking.out, "the budget"):
        asking(lambda request, before: GOOD, limit=None, budget=1200, concurrency=4)
    assert 100 <= 100 * len(asking.server.requests) <= 1200


def test_where_a_schema_is_refused_the_words_are_read(asking):
    def script(request, before):
        return error(400, "response_format is not supported") if "response_format" in request else GOOD

    lines = asking(script, limit=None, concurrency=1)
    assert {line["outcome"] for line in lines} == {"answered"}
    assert len(asking.server.requests) == len(lines) + 1
    assert any("JSON schema" in line for line in asking.notes)


def test_the_documents_stand_in_the_prompt_word_for_word(asking, hub):
    from eraser_hub.conversion.built import open_built

    asking(lambda request, before: GOOD, limit=None, concurrency=1)
    texts = [row["documents"][0]["text"] for row in open_built(hub).rows("movies", "test")]
    asked = [request["messages"][-1]["content"] for request in asking.server.requests]
    assert len(asked) == len(texts)
    kind = asking.server.requests[0]["response_format"]["json_schema"]["schema"]
    assert kind["properties"]["label"]["enum"] == ["NEG", "POS"]
    assert all(text.strip("\n") in words for text, words in zip(texts, asked, strict=True))


def test_a_dry_run_shows_two_prompts_with_examples_of_train_drawn_by_the_seed(hub):
    def dry(**more: object) -> list[str]:
        how = {"config": "movies", "endpoint": "http://h", "out": "p.jsonl", "dry_run": True}
        return [*ask("scripted", hub, **how, **more)]

    *prompts, counted, _ = dry()
    assert sum(part.startswith("===") for part in prompts) == 2
    assert "nothing was asked" in counted
    shots = "".join(dry(limit=1, shots=2, seed=1))
    assert shots == "".join(dry(limit=1, shots=2, seed=1)) and shots.count("--- assistant") == 2


@pytest.mark.parametrize("endpoint", ["http://user:secret@127.0.0.1:9/v1", "https://secret@host/v1", "u:secret@host"])
def test_an_address_with_a_password_is_refused_and_not_repeated(asking, endpoint):
    with refused("without user name and password", "OPENAI_API_KEY", argument="endpoint") as caught:
        asking(lambda request, before: GOOD, endpoint=endpoint)
    assert "secret" not in str(caught.error) and "\n" not in str(caught.error)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_carries_nothing_to_another_server(asking, status):
    with ScriptedServer(lambda request, before: GOOD) as other:
        reply = Reply(status, b"", (("Location", f"{other.endpoint}/chat/completions"),))
        with refused(str(status), "redirect", argument="endpoint"):
            asking(lambda request, before: reply)
    assert not other.requests


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("limit", 0), ("budget", 0), ("shots", -1), ("seed", 2**63), ("temperature", 2.5), ("threshold", 0.4)],
        *[
            ("max_tokens", 0),
            ("attempts", 0),
            ("concurrency", True),
            ("timeout", 0),
            ("structured", ""),
            ("several", ""),
        ],
    ],
)
def test_values_out_of_range_are_refused(asking, argument, value):
    with refused(argument=argument):
        asking(lambda request, before: GOOD, **{argument: value})
