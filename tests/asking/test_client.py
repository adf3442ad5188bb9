"""What a server may do: whatever it answers, nothing is paid twice, nothing told on, and nothing is without a bound."""

from __future__ import annotations

import gzip
import sqlite3
import time
from contextlib import closing

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.client import CACHE_FILE

from ..refusals import refused
from .scripted_server import Reply, ScriptedServer, answer, completion, error, raw_server

GOOD = answer("NEG", "the dialogue is painfully flat")
KEY = "sk-secret-123"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (GOOD, "answered"),
        (completion("no object"), "broken"),
        (error(400, "maximum context length exceeded"), "broken"),
        (Reply(body=b'{"choices": [null]}'), "broken"),
        (Reply(body=GOOD.body.replace(b'"index": 0', b'"index": 1' + b"0" * 30)), "answered"),
        (Reply(body=GOOD.body.replace(b'"index": 0', b'"index": ' + b"[" * 300 + b"]" * 300)), "answered"),
        (GOOD._replace(headers=(("Content-Type", "text/plain; charset=zlib"),)), "answered"),
        (Reply(body=gzip.compress(GOOD.body), headers=(("Content-Encoding", "gzip"),)), "answered"),
    ],
)
def test_whatever_is_answered_is_a_line(asking, reply, outcome):
    (line,) = asking(lambda request, before: reply)
    assert line["outcome"] == outcome
    if outcome != "answered":
        assert (line["classification"], line["rationales"], line["quotes"]) == (None, [], [])
    assert asking(lambda request, before: reply, force=True) == [line], "what is stored is read again"


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b"", b'{"detail": "ok"}', b'{"choices": []}', b"[1, 2", b"[" * 5000, b'"x"']
)
def test_answers_of_no_api_are_an_error_that_shows_them(asking, body):
    with refused("http://127.0.0.1", repr(body.decode())[:60], file=asking.out):
        asking(lambda request, before: Reply(body=body), limit=None)
    assert len(asking.server.requests) < 20, "it stops after some"
    lines = asking(lambda request, before: GOOD, limit=None)
    assert {line["outcome"] for line in lines} == {"answered"}, "nothing of it is kept"


def test_the_timeout_bounds_the_whole_answer(asking):
    def drip():
        yield HEAD
        for _ in range(50):
            time.sleep(0.1)
            yield b" "

    started = time.monotonic()
    with raw_server(drip) as endpoint, refused("timeout="):
        asking(lambda request, before: GOOD, endpoint=endpoint, timeout=0.5, attempts=6)
    assert time.monotonic() - started < 4


@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request", b"503 Busy"])
def test_a_body_without_end_is_cut(asking, monkeypatch, status):
    monkeypatch.setattr("eraser_hub.asking.client.MAX_BYTES", 1 << 16)
    sent = []

    def flood():
        yield HEAD.replace(b"200 OK", status)
        for _ in range(4096):
            sent.append(1)
            yield b" " * (1 << 14)

    with raw_server(flood) as endpoint:
        if b"400" in status:
            assert asking(lambda request, before: GOOD, endpoint=endpoint)[0]["outcome"] == "broken"
        else:
            with refused(file=asking.out):
                asking(lambda request, before: GOOD, endpoint=endpoint, timeout=60)
    assert len(sent) < 2048


def test_a_packed_body_without_end_is_cut(asking, monkeypatch):
    monkeypatch.setattr("eraser_hub.asking.client.MAX_BYTES", 1 << 20)
    body = gzip.compress(b" " * (64 << 20))
    with refused("at most 1 MiB"):
        asking(lambda request, before: Reply(body=body, headers=(("Content-Encoding", "gzip"),)))


def test_a_server_without_http_is_one_line(asking):
    with raw_server(lambda: iter([b"SSH-2.0-OpenSSH_9.6\r\n"])) as endpoint:
        with refused(endpoint, file=asking.out) as caught:
            asking(lambda request, before: GOOD, endpoint=endpoint, attempts=1)
    assert "\n" not in str(caught.error)


# -- asked again ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "seconds"),
    [
        (error(429, "slow down", ("Retry-After", "1")), 1.0),
        (error(500, "oh"), 0.0),
        (error(503, "loading", ("retry-after-ms", "20")), 0.0),
        (Reply(body=GOOD.body, sent=40), 0.0),  # a cut stream
    ],
)
def test_a_server_that_fails_once_is_asked_again(asking, first, seconds):
    (line,) = asking(lambda request, before: first if before == 0 else GOOD)
    assert line["outcome"] == "answered"
    one, two = asking.server.times
    assert two - one >= seconds


@pytest.mark.parametrize("refusing", ["response_format", "logprobs"])
def test_a_server_is_asked_without_what_it_does_not_take(asking, refusing):
    def script(request, before):
        return error(400, f"{refusing} is not supported") if refusing in request else GOOD

    lines = asking(script, limit=None, concurrency=1, consistency="alone")
    assert {line["outcome"] for line in lines} == {"answered"}
    assert sum(refusing in request for request in asking.server.requests) < 3
    said = [note for note in asking.notes if "the server takes no" in note]
    assert len(said) == 1 and ("JSON schema" in said[0]) == (refusing == "response_format")
    (line,) = asking(script, structured="schema", force=True)
    assert line["outcome"] == ("broken" if refusing == "response_format" else "answered")


# -- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_no_request_mends_stops_at_once_and_tells_no_key(asking, monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with refused(str(status), argument="endpoint") as caught:
        asking(lambda request, before: error(status, f"wrong key {KEY}"), limit=None, concurrency=1)
    assert KEY not in str(caught.error) and len(asking.server.requests) == 1


ECHO = answer("NEG", f"your key is {KEY}").body


@pytest.mark.parametrize("said", [KEY.encode(), rb"\u0073k\u002Dsecret-123", rb"\\u0073k\\u002Dsecret-123"])
def test_the_key_is_sent_and_stored_nowhere(asking, monkeypatch, tmp_path, said):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (line,) = asking(lambda request, before: Reply(body=ECHO.replace(KEY.encode(), said)))
    assert asking.server.keys == [f"Bearer {KEY}"]
    assert line["quotes"][0]["text"] == "your key is [key]"
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) == 3
    assert not any(b"sk-secret" in content for content in stored)


@pytest.mark.parametrize("endpoint", ["http://user:secret@127.0.0.1:9/v1", "https://secret@host/v1", "u:secret@host"])
def test_an_address_with_a_password_is_refused_and_not_repeated(asking, endpoint):
    with refused("without user name and password", "OPENAI_API_KEY", argument="endpoint") as caught:
        asking(lambda request, before: GOOD, endpoint=endpoint)
    assert "secret" not in str(caught.error) and "\n" not in str(caught.error)


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_carries_nothing_to_another_server(asking, status):
    with ScriptedServer(lambda request, before: GOOD) as other:
        reply = Reply(status, b"", (("Location", f"{other.endpoint}/chat/completions"),))
        with refused(str(status), "redirect", argument="endpoint"):
            asking(lambda request, before: reply)
    assert not other.requests


# -- the cache and the budget -----------------------------------------------------------------------------------------


def test_a_rerun_costs_nothing_whatever_the_endpoint(asking):
    first = asking(lambda request, before: GOOD, limit=None)
    assert asking(lambda request, before: error(500, "never asked"), limit=None) == first
    assert asking.server.requests == []
    assert f"0 tokens paid for 0 answers, {len(first)} answers from the cache" in asking.notes
    asking(lambda request, before: GOOD, temperature=0.5, force=True)
    assert [request["temperature"] for request in asking.server.requests] == [0.5], "other settings are asked anew"


def test_what_is_damaged_in_the_cache_is_asked_for_again(asking):
    asking(lambda request, before: GOOD)
    for stored in (b"[" * 5000, b'{"message": ', None, b"\xff"):
        with closing(sqlite3.connect(asking.cache / CACHE_FILE)) as database, database:
            database.execute("UPDATE answers SET answer = ?", (stored,))
        (line,) = asking(lambda request, before: GOOD, force=True)
        assert line["outcome"] == "answered" and len(asking.server.requests) == 1


def test_a_cache_that_is_no_database_is_left_alone_and_named(asking):
    asking.cache.mkdir()
    thesis = asking.cache / CACHE_FILE
    thesis.write_text("chapter one " * 1000)
    with refused("not a database", "cache=", file=thesis):
        asking(lambda request, before: GOOD)
    assert thesis.read_text() == "chapter one " * 1000
    assert not asking.out.exists()


def test_the_budget_is_never_exceeded(asking):
    with refused("the budget", file=asking.out):
        asking(lambda request, before: GOOD, limit=None, budget=1200, concurrency=4)
    assert 100 <= 100 * len(asking.server.requests) <= 1200
