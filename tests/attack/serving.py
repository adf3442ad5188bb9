"""Hostile requests to `serve` on loopback: after each, and during the slow ones, a plain one is answered at once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .runs import Outcome
from .workers import Verdict

CARD = "/datasets/org/eraser/resolve/main/README.md"
SECOND = b"GET /api/datasets/org/nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
LONGEST_SECONDS, HEALTH_SECONDS = 8.0, 3.0


def get(path: str = CARD, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    """A request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


RANGES = (
    *("bytes=-", "bytes=5-3", "bytes=99999999999999999999-", "bytes=0-0,-1", "bites=0-1", "bytes=--1", "bytes=\u00b2-"),
    *("bytes=" + piece * count for piece, count in (("0-1,", 12_000), ("1-", 30_000), (",", 60_000))),
    *(f"bytes={' ' * 60_000}x", f"bytes=0-{'-' * 60_000}", f"bytes={'9' * 60_000}-", "bytes=0-99999999999999999999999"),
)
FOLDER, API = "/datasets/org/eraser/resolve/main", "/api/datasets/org/eraser"
PATHS = (
    *("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/%00", "//", "/\\..\\", "/%ff%fe", "*", "x"),
    *(f"{FOLDER}/{name}" for name in ("", "loop", "fifo", "../../../../etc/passwd", "%2e%2e%2fREADME.md")),
    *(f"{API}/tree/main?recursive={'x' * 5000}", f"{API}/paths-info/main", f"/api/datasets/{'x' * 60_000}"),
    *("/" + "a/" * 5000, "/?" * 9000, "http://127.0.0.1/x"),
)
LENGTHS = ("-1", "abc", "99999999999999", "1e3", "+5", "0x10", "", " 5 5")
_PATH = b'{"paths": ["' + b"x" * 90_000 + b'"]}'
BODIES = (b"{", b"[" * 100_000, b"\xff", b'{"paths": 3}', _PATH, b"paths=" + b"a&paths=" * 9000)
METHODS = ("DELETE", "PUT", "TRACE", "OPTIONS", "CONNECT", "x" * 50_000, "get", "HEAD", "G\x00T")
_GET = b"GET / HTTP/1.1\r\n"
HEADS = (
    *(b"\x16\x03\x01\x02\x00" + bytes(range(256)), b"GET\r\n\r\n", b"\r\n" * 9000, b"\x00" * 9000),
    *(b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/x\r\n\r\n", b"GET " + b"/" * 90_000 + b" HTTP/1.1\r\n\r\n"),
    *(_GET + b"A: b\r\n" * 2000 + b"\r\n", _GET + b"A" + b"b" * 90_000 + b"\r\n\r\n"),
    *(_GET + line + b"\r\n\r\n" for line in (b"no colon", b": x")),
)


def question(length: str, body: bytes) -> bytes:
    """The one POST that `serve` answers, of a length that may lie."""
    return get(f"{API}/paths-info/main", f"Content-Length: {length}", method="POST", body=body)


def hostile(draw: random.Random) -> tuple[str, bytes, int]:
    """(a name, the bytes to send, the most answers that they deserve)."""
    way = draw.randrange(7)
    if way == 0:
        return "range", get(CARD, f"Range: {draw.choice(RANGES)}"), 1
    if way == 1:
        return "path", get(draw.choice(PATHS)), 1
    if way == 2:
        lengths = [f"Content-Length: {len(SECOND)}", "Transfer-Encoding: chunked"]
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SECOND), SECOND)
        ways = ((lengths[:1], SECOND), (lengths[1:], chunk), (lengths, chunk), ([lengths[0]] * 2, SECOND))
        header, body = draw.choice(ways)
        keep = get(CARD, *header).replace(b"Connection: close\r\n", b"")
        return "body of a GET", keep + body, 1
    if way == 3:
        return "content length", question(draw.choice(LENGTHS), b"{}"), 2
    if way == 4:
        body = draw.choice(BODIES)
        return "question", question(str(len(body)), body), 2
    if way == 5:
        return "method", get(method=draw.choice(METHODS)), 1
    return "head", draw.choice(HEADS), 1


def ask(port: int, request: bytes, seconds: float) -> tuple[bytes, float]:
    """(all that comes back, how long it took); the sending side is closed after the request."""
    start, answer = time.monotonic(), b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        with suppress(OSError):
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        while time.monotonic() - start < seconds:
            piece = connection.recv(1 << 16)
            if not piece:
                break
            answer += piece
    return answer, time.monotonic() - start


@contextmanager
def server(home: Path, links: bool) -> Iterator[tuple[int, Path]]:
    """(port, file of stderr) of a server in a child, over a copy of the stock; with links in a circle and a FIFO."""
    place = Path(tempfile.mkdtemp(prefix="attack-serve-"))
    shutil.copytree(home / "hub", place / "hub")
    if links:
        (place / "hub/eraser/loop").symlink_to("loop")
        (place / "hub/eraser/circle").symlink_to(".")
        os.mkfifo(place / "hub/eraser/fifo")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            from eraser_hub.publishing.serve import serve_folder

            os.close(reader)
            os.dup2(os.open(place / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
            serving = serve_folder(place / "hub")
            os.write(writer, str(serving.server_address[1]).encode())
            os.close(writer)
            serving.serve_forever(poll_interval=0.05)
        finally:
            os._exit(0)
    os.close(writer)
    try:
        yield int(os.read(reader, 100)), place / "stderr"
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shutil.rmtree(place, ignore_errors=True)


def judge(answer: bytes, seconds: float, deserved: int, health: tuple[bytes, float]) -> tuple[str, str]:
    """(the column, what was wrong)."""
    answers = answer.count(b"HTTP/1.1 ") + answer.count(b"HTTP/1.0 ")
    if not health[0].startswith(b"HTTP/1.1 200") or health[1] > HEALTH_SECONDS:
        return "hang", f"a plain request beside it took {health[1]:.1f} s: {health[0][:60]!r}"
    if seconds >= LONGEST_SECONDS:
        return "hang", f"no end after {seconds:.0f} s"
    if answers > deserved:
        return "wrong acceptance", f"{answers} answers to {deserved} requests"
    if b"root:" in answer:
        return "wrong acceptance", "a file outside of the folder was sent"
    if b"HTTP/1.1 500" in answer or b"Traceback" in answer:
        return "traceback", answer[:200].decode("latin-1")
    return ("success" if b" 200 " in answer[:40] or b" 206 " in answer[:40] else "clean error"), ""


def requests(home: Path, count: int, seed: int) -> Iterator[Verdict]:
    """So many hostile requests, the last tenth of them to a folder with links in a circle and a FIFO."""
    tenth = count // 10
    for links, numbers in ((False, range(count - tenth)), (True, range(count - tenth, count))):
        if not numbers:
            continue
        with server(home, links) as (port, errors):
            for number in numbers:
                yield dripping(port, number) if number % 50 == 49 else request(port, errors, seed, number, links)


def request(port: int, errors: Path, seed: int, number: int, links: bool) -> Verdict:
    """One hostile request, and a plain one after it."""
    name, content, deserved = hostile(random.Random(f"{seed} serve {number}"))
    answer, seconds = ask(port, content, LONGEST_SECONDS)
    kind, fault = judge(answer, seconds, deserved, ask(port, get(), LONGEST_SECONDS))
    said = errors.read_text("utf-8", "replace")
    if ("Traceback" in said or "Error: " in said) and not fault:
        kind, fault = "traceback", said.strip().splitlines()[-1]
    errors.write_text("")
    outcome = Outcome(rc=0, out=answer[:300].decode("latin-1"), err=said[-500:])
    name += " (links in a circle, a FIFO)" * links
    return Verdict("serve", number, f"serve/{name}", "anything", kind, fault, outcome, repr(content[:200]))


def dripping(port: int, number: int) -> Verdict:
    """Forty connections that send a byte now and then: others are answered meanwhile."""
    connections = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(40)]
    try:
        slowest, health = 0.0, b""
        for letter in b"GET /x HTTP/1.1":
            for connection in connections:
                with suppress(OSError):
                    connection.send(bytes([letter]))
            health, seconds = ask(port, get(), LONGEST_SECONDS)
            slowest = max(slowest, seconds)
            time.sleep(0.05)
        kind, fault = judge(b"", 0, 1, (health, slowest))
        return Verdict("serve", number, "serve/drip", "anything", kind, fault)
    finally:
        for connection in connections:
            connection.close()
