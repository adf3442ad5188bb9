"""Servers that `ask` meets: no API, no HTTP, lying lengths, broken answers, a byte now and then."""

from __future__ import annotations

import gzip
import json
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .cases import Expect, World, mutates, plans
from .values import GONE, VALUES, any_place, nested, replace

SECONDS = 1.5  # of --timeout
PAGE = b"<!DOCTYPE html><html><body>Sign in</body></html>"


def completion(content: Any, **more: Any) -> dict[str, Any]:
    """A chat completion as a server of the API sends it."""
    message = {"role": "assistant", "content": content, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None, **more}
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def http(body: bytes, status: str = "200 OK", *headers: str, length: int | str | None = None) -> bytes:
    """An answer in HTTP/1.1."""
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {size}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1", "replace") + body


GOOD = completion(json.dumps({"label": "POS", "quotes": ["film"]}))
SOUND = http(json.dumps(GOOD).encode())


class Server:
    """Answers each connection by what `world.reply` yields, whatever was asked."""

    def __init__(self, world: World) -> None:
        self.world, self.socket = world, socket.create_server(("127.0.0.1", 0), backlog=64)
        self.endpoint = f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        assert self.world.reply is not None
        with suppress(OSError), connection:
            connection.settimeout(20)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(1 << 16)
                if not piece:
                    return
                head += piece
            start = head.index(b"\r\n\r\n") + 4
            length = next((int(line[15:]) for line in head.lower().splitlines() if line[:15] == b"content-length:"), 0)
            while len(head) < start + length and (piece := connection.recv(1 << 16)):
                head += piece
            for piece in self.world.reply():
                connection.sendall(piece)


def sends(world: World, *pieces: bytes) -> None:
    """The server sends these bytes."""
    world.reply = lambda: iter(pieces)
    world.notes.append(f"the server sends {b''.join(pieces)[:300]!r}")


@plans("ask", "endpoints")
def ask_a_server(draw: random.Random, stock: Path) -> World:
    world = World(draw, links={"hub": stock / "hub"}, outputs=("a.jsonl", "cache"), partial=True)
    words = "ask --dataset hub/eraser --config movies --split val --model m --out a.jsonl --cache cache --limit 2"
    world.argv = [*words.split(), "--attempts", "1", "--timeout", str(SECONDS), "--quiet", "--endpoint", "x"]
    sends(world, SOUND)

    def act(folder: Path) -> None:
        world.argv[world.argv.index("--endpoint") + 1] = Server(world).endpoint

    world.acts.append(act)
    return world


def judged(world: World, row: str = "anything", *words: str) -> Expect:
    """What is expected; in a third of the cases the server mends, and a second run must succeed."""
    if world.random.random() < 0.3:
        world.then = world.argv  # the same list: the server's address is put into it

        def mend() -> None:
            world.argv.append("--force")
            world.reply = lambda: iter([SOUND])

        world.between = mend
        return Expect("good after bad")
    return Expect(row, words=words)


NO_API = (PAGE, b"", b"{}", b"[]", b"null", b'"x"', b"3", b"\xff\xfe", b'{"choices": []}', b'{"detail": "no"}')


@mutates("endpoints")
def no_api(world: World) -> Expect:
    sends(world, http(world.random.choice(NO_API), "200 OK"))
    return judged(world, "endpoint", "OpenAI-compatible")


BANNERS = (b"SSH-2.0-OpenSSH_9.6\r\n", b"220 smtp\r\n", b"\x16\x03\x01" * 99, b"\x00" * 400, b"HTTP/9.9 200\r\n\r\n")


@mutates("endpoints")
def no_http(world: World) -> Expect:
    sends(world, world.random.choice((*BANNERS, b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 99999999999 OK\r\n\r\n")))
    return judged(world, "endpoint")


@mutates("endpoints")
def nobody_there(world: World) -> Expect:
    sends(world, *world.random.choice(((), (b"",), (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",))))
    return judged(world, "endpoint")


STATUSES = (
    *("204 No Content", "206 Partial", "400 Bad", "401 No", "402 Pay", "403 No", "404 No", "418 Teapot", "422 No"),
    *("429 Slow", "500 Broken", "502 Bad", "503 Busy", "504 Late", "599 x", "301 Moved", "302 Found", "307 There"),
)
HEADERS = (
    *("Retry-After: 0", "Retry-After: 99999999999", "Retry-After: x", "Location: /v1", "X: \x1b[31m"),
    *("Location: file:///etc/passwd", "Location: http://[::1", "Location:", "Set-Cookie: a=b", "Content-Encoding: br"),
    *("Transfer-Encoding: chunked", "A: " + "b" * 20_000, "Content-Type: text/html; charset=zlib", "no colon"),
)


@mutates("endpoints")
def status_and_headers(world: World) -> Expect:
    draw = world.random
    error = {"error": {"message": draw.choice(("no", "\x1b[31m", "x" * 9000, None, 3)), "type": "x", "code": None}}
    body = draw.choice((json.dumps(error).encode(), PAGE, b"", b"[" * 5000, json.dumps(GOOD).encode()))
    sends(world, http(body, draw.choice(STATUSES), *draw.sample(HEADERS, draw.randrange(3))))
    return judged(world)


CONTENTS: Sequence[Any] = (
    *(None, "", 3, [], {}, "\ud83d", "x\x00y", "\x1b[31m", "POS", "{" * 100_000, '{"label":' * 20_000, "}" * 9000),
    *('{"a":' * 100_000, "```json\n" * 20_000, "'" * 100_000, "x" * 3_000_000, "<think>" * 20_000),
    *(
        json.dumps(one)
        for one in (
            {"label": "MEH", "quotes": []},
            {"label": ["POS"], "quotes": []},
            {"label": "POS", "quotes": [1, None]},
            {"label": "POS", "quotes": ["\ud83d"]},
            {"label": "\udc00", "quotes": []},
            {"label": "POS", "quotes": [""] * 5000},
            {"label": "POS", "quotes": ["film " * 20_000]},
            {"label": "POS", "quotes": {"a": "film"}},
            {"label": "POS", "quotes": nested(80)},
            {"label": 10**400, "quotes": []},
        )
    ),
)


@mutates("endpoints")
def content(world: World) -> Expect:
    sends(world, http(json.dumps(completion(world.random.choice(CONTENTS))).encode()))
    return judged(world)


@mutates("endpoints")
def any_value_in_the_answer(world: World) -> Expect:
    answer = json.loads(json.dumps(GOOD))
    replace(world.random, *any_place(world.random, answer), [*VALUES, GONE])
    sends(world, http(json.dumps(answer).encode()))
    return judged(world)


@mutates("endpoints")
def bytes_of_the_answer(world: World) -> Expect:
    draw, text = world.random, bytearray(SOUND)
    for _ in range(draw.choice((1, 3, 20))):
        text[draw.randrange(len(text))] = draw.randrange(256)
    cut = draw.choice((len(text), draw.randrange(len(text))))
    sends(world, bytes(text[:cut]))
    return judged(world)


@mutates("endpoints")
def lying_length(world: World) -> Expect:
    length = world.random.choice((-1, 0, 3, 10**12, 10**30, "abc", "5, 5", "0x10", ""))
    sends(world, http(json.dumps(GOOD).encode(), length=length))
    return judged(world)


@mutates("endpoints")
def packed(world: World) -> Expect:
    whole = gzip.compress(json.dumps(GOOD).encode())
    bomb = gzip.compress(b" " * (40 << 20), 1)
    body = world.random.choice((whole, whole[:30], whole[:-4], PAGE, bomb))
    sends(world, http(body, "200 OK", f"Content-Encoding: {world.random.choice(('gzip', 'deflate', 'zstd'))}"))
    return judged(world)


@mutates("endpoints")
def a_byte_now_and_then(world: World) -> Expect:
    start = world.random.choice((b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"))

    def drip() -> Iterator[bytes]:
        yield start
        for _ in range(40):
            time.sleep(0.1)
            yield b" "

    world.reply = drip
    world.notes.append(f"the server sends {start!r} and a byte in each tenth of a second")
    return judged(world, "endpoint", f"{SECONDS:g} s|--timeout|HTTP")
