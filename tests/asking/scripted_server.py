"""A server of the OpenAI kind on loopback, which answers as a script says."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What a server sends.

    Attributes:
        status: of HTTP.
        body: the whole of it.
        headers: besides those that belong to the body.
        sent: how many bytes are sent before the connection is closed; None for all.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    sent: int | None = None


Script = Callable[[dict[str, Any], int], Reply]


def completion(content: str | None, finish: str = "stop", refusal: str | None = None, usage: bool = True) -> Reply:
    """A chat completion of these words."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    answer: dict[str, Any] = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
    }
    if usage:
        answer["usage"] = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    return Reply(body=json.dumps(answer).encode())


def answer(label: str, *quotes: str) -> Reply:
    """A chat completion as it is asked for."""
    return completion(json.dumps({"label": label, "quotes": quotes}))


def error(status: int, words: str, *headers: tuple[str, str]) -> Reply:
    """A refusal of the protocol."""
    return Reply(status, json.dumps({"error": {"message": words, "type": "error", "code": None}}).encode(), headers)


class ScriptedServer:
    """Answers POST /v1/chat/completions by ``script(request, how many the same text was asked before)``.

    Attributes:
        requests: what was asked, in order.
        keys: the Authorization header of each.
    """

    def __init__(self, script: Script, latency: float = 0.0) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.times: list[float] = []
        outer, lock, counts = self, threading.Lock(), dict[str, int]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.requests.append(request)
                    outer.keys.append(self.headers.get("Authorization", ""))
                    outer.times.append(time.monotonic())
                    text = request["messages"][-1]["content"]
                    counts[text] = counts.get(text, 0) + 1
                    before = counts[text] - 1
                time.sleep(latency)
                reply = script(request, before)
                self.send_response(reply.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply.body)))
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body[: reply.sent])
                self.wfile.flush()
                if reply.sent is not None:
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        ThreadingHTTPServer.request_queue_size = 256
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda request, address: None  # a client that was killed
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def raw_server(chunks: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """Serve on loopback what ``chunks`` yields, HTTP or not, to whoever connects; yields the endpoint."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            with contextlib.suppress(OSError):  # a client that has gone
                for chunk in chunks():
                    self.request.sendall(chunk)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
