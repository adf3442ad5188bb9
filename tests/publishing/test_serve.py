"""serve: what is served, what is not, ranges, and many readers at once."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.publishing.serve import HubServer, _parse_range, serve_folder

from ..refusals import refused


@pytest.fixture
def served(toy_hub: Path) -> Iterator[HubServer]:
    server = serve_folder(toy_hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


def ask(server: HubServer, path: str, method: str = "GET", body: bytes | None = None, **headers: str):
    """One request with the path sent exactly as given."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


README = "/datasets/eraser/resolve/main/README.md"


def test_files_come_whole_and_by_range(served, toy_hub):
    content = (toy_hub / "eraser" / "README.md").read_bytes()
    answer, body = ask(served, README)
    assert (answer.status, body) == (200, content)
    assert len(answer.headers["X-Repo-Commit"]) == 40 and answer.headers["ETag"]
    for header, start, end in (
        ("bytes=2-5", 2, 6),
        ("bytes=10-", 10, len(content)),
        ("bytes=-7", len(content) - 7, len(content)),
    ):
        answer, body = ask(served, README, Range=header)
        assert (answer.status, body) == (206, content[start:end])
        assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(content)}"
    answer, body = ask(served, README, Range=f"bytes={len(content)}-")
    assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{len(content)}")
    for header in ("bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=x-", "bytes=-"):
        assert ask(served, README, Range=header)[1] == content, "what is no byte range is ignored"
    answer, body = ask(served, README, method="HEAD")
    assert (answer.status, answer.headers["Content-Length"], body) == (200, str(len(content)), b"")


@settings(derandomize=True, max_examples=200)
@given(st.integers(0, 50), st.integers(0, 60), st.integers(0, 60))
def test_a_range_is_the_slice_it_names(size, start, end):
    span = _parse_range(f"bytes={start}-{end}", size)
    whole = bytes(range(size))
    if end < start:
        assert span == (0, size, False)
    elif start >= size:
        assert span is None
    else:
        assert span is not None and whole[span[0] : span[1]] == whole[start : end + 1]


@pytest.mark.parametrize(
    "path",
    [
        "/datasets/eraser/resolve/main/../../secret.txt",
        "/datasets/eraser/resolve/main/..%2f..%2fsecret.txt",
        "/datasets/eraser/resolve/main/%2e%2e/%2e%2e/secret.txt",
        "/datasets/eraser/resolve/main//etc/passwd",
        "/datasets/eraser/resolve/main/%2fetc%2fpasswd",
        "/datasets/eraser/resolve/main/movies/../../../secret.txt",
        "/datasets/eraser/resolve/main/..%5c..%5csecret.txt",
        "/datasets/../resolve/main/secret.txt",
        "/datasets/..%2f/resolve/main/secret.txt",
        "/datasets/org/..%2f..%2f/resolve/main/secret.txt",
        "/datasets/eraser/resolve/..%2f..%2f/secret.txt",
        "/datasets/eraser/resolve/main/link.txt",
        "/datasets/eraser/resolve/main/linked/secret.txt",
        "/datasets/eraser/resolve/main/.env",
        "/datasets/eraser/resolve/main/hidden_link.txt",
        "/datasets/eraser/resolve/main/README.md%00.txt",
        "/datasets/eraser/resolve/main/movies",
        "/datasets/eraser/resolve/main/pipe",
        "/datasets/outside/resolve/main/secret.txt",
        "/api/datasets/eraser/tree/main/../..",
        "/../../../../etc/passwd",
        "//etc/passwd",
    ],
)
def test_nothing_outside_the_folder_is_served(served, toy_hub, path):
    (toy_hub.parent / "secret.txt").write_text("the secret")
    (toy_hub.parent / "outside").mkdir(exist_ok=True)
    (toy_hub.parent / "outside" / "README.md").write_text("---\n---\n")
    (toy_hub.parent / "outside" / "secret.txt").write_text("the secret")
    folder = toy_hub / "eraser"
    (folder / "link.txt").symlink_to(toy_hub.parent / "secret.txt")
    (folder / "linked").symlink_to(toy_hub.parent, target_is_directory=True)
    (folder / ".env").write_text("the secret")
    (folder / "hidden_link.txt").symlink_to(folder / ".env")
    os.mkfifo(folder / "pipe")
    (toy_hub / "outside").symlink_to(toy_hub.parent / "outside", target_is_directory=True)
    answer, body = ask(served, path)
    assert answer.status == 404 and b"secret" not in body.replace(path.encode(), b"")


def test_a_link_within_the_folder_is_served(toy_hub):
    (toy_hub / "eraser" / "COPY.md").symlink_to(toy_hub / "eraser" / "README.md")
    server = serve_folder(toy_hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        assert ask(server, "/datasets/eraser/resolve/main/COPY.md")[0].status == 200
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", [README, "/api/repos/create", "/api/datasets/eraser/commit/main"])
def test_it_is_read_only(served, toy_hub, method, path):
    before = (toy_hub / "eraser" / "README.md").read_bytes()
    answer, _ = ask(served, path, method, body=b"{}")
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD"
    assert (toy_hub / "eraser" / "README.md").read_bytes() == before


def test_what_there_is_not_is_refused_as_the_hub_does(served):
    for path, code in (
        ("/datasets/eraser/resolve/main/nothing.md", "EntryNotFound"),
        ("/datasets/eraser/resolve/v0.4.6/README.md", "RevisionNotFound"),
        ("/datasets/nothing/resolve/main/README.md", "RepoNotFound"),
        ("/spaces/eraser/resolve/main/README.md", "RepoNotFound"),
        ("/api/models/eraser", "RepoNotFound"),
        ("/api/datasets/eraser/tree/main/nothing", "EntryNotFound"),
        ("/favicon.ico", "RepoNotFound"),
    ):
        answer, _ = ask(served, path)
        assert (answer.status, answer.headers["X-Error-Code"]) == (404, code), path


def test_the_api_names_files_folders_and_the_commit(served):
    facts = json.loads(ask(served, "/api/datasets/org/eraser")[1])
    assert facts["id"] == "org/eraser" and {"rfilename": "README.md"} in facts["siblings"]
    again = json.loads(ask(served, f"/api/datasets/eraser/revision/{facts['sha']}")[1])
    assert again["sha"] == facts["sha"]
    top = json.loads(ask(served, "/api/datasets/eraser/tree/main")[1])
    assert {row["path"]: row["type"] for row in top}["movies"] == "directory"
    deep = json.loads(ask(served, "/api/datasets/eraser/tree/main?recursive=true")[1])
    assert "movies/train-00000-of-00001.parquet" in {row["path"] for row in deep}
    asked = json.dumps({"paths": ["README.md", "movies", "nothing"]}).encode()
    rows = json.loads(
        ask(served, "/api/datasets/eraser/paths-info/main", "POST", asked, Content_Type="application/json")[1]
    )
    assert [row["type"] for row in rows] == ["file", "directory"]


def test_namespaces_can_be_limited(toy_hub):
    server = serve_folder(toy_hub, namespaces=("org",))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        found = {
            name: ask(server, f"/api/datasets/{name}")[0].status for name in ("eraser", "org/eraser", "other/eraser")
        }
    finally:
        server.shutdown()
        server.server_close()
    assert found == {"eraser": 200, "org/eraser": 200, "other/eraser": 404}


def test_a_changed_file_is_a_new_commit(served, toy_hub, monkeypatch):
    import eraser_hub.publishing.serve as module

    monkeypatch.setattr(module, "LISTING_SECONDS", 0.0)
    first = ask(served, README, "HEAD")[0].headers
    (toy_hub / "eraser" / "README.md").write_text("---\n---\nother")
    second = ask(served, README, "HEAD")[0].headers
    assert first["X-Repo-Commit"] != second["X-Repo-Commit"] and first["ETag"] != second["ETag"]
    assert ask(served, f"/datasets/eraser/resolve/{first['X-Repo-Commit']}/README.md")[0].status == 404


@pytest.mark.parametrize("noise", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70_000])
def test_noise_does_not_stop_it(served, noise):
    address = urlsplit(served.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(noise)
    assert ask(served, README)[0].status == 200


@pytest.mark.parametrize("length", ["-1", "x", str(1 << 40)])
def test_a_question_without_a_sound_length_is_refused(served, length):
    answer, _ = ask(served, "/api/datasets/eraser/paths-info/main", "POST", Content_Length=length)
    assert answer.status == 413


def test_folders_and_addresses_that_cannot_be_served(tmp_path, toy_hub):
    with refused("file-missing", file=tmp_path / "nothing"):
        serve_folder(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with refused("file-missing", "NAME/", "README.md", file=tmp_path / "empty"):
        serve_folder(tmp_path / "empty")
    taken = serve_folder(toy_hub)
    try:
        with refused("network", f"127.0.0.1:{taken.server_address[1]}"):
            serve_folder(toy_hub, port=taken.server_address[1])
    finally:
        taken.server_close()


def test_fifty_readers_stream_at_once(served):
    """Each reader opens the Parquet by HTTP ranges, as a streaming dataset does, and reads every row."""
    import pyarrow.parquet as pq

    url = f"{served.url}/datasets/eraser/resolve/main/movies/train-00000-of-00001.parquet"

    class Ranges:
        """A file over HTTP: one connection, one range a read."""

        closed = False

        def __init__(self) -> None:
            address = urlsplit(url)
            self.path, self.at = address.path, 0
            self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
            self.connection.request("HEAD", self.path)
            answer = self.connection.getresponse()
            answer.read()
            self.size = int(answer.headers["Content-Length"])

        def seek(self, offset: int, whence: int = 0) -> int:
            self.at = offset + (0, self.at, self.size)[whence]
            return self.at

        def tell(self) -> int:
            return self.at

        def read(self, size: int = -1) -> bytes:
            end = self.size if size < 0 else min(self.at + size, self.size)
            if end <= self.at:
                return b""
            self.connection.request("GET", self.path, headers={"Range": f"bytes={self.at}-{end - 1}"})
            answer = self.connection.getresponse()
            body = answer.read()
            assert answer.status == 206 and len(body) == end - self.at
            self.at = end
            return body

        def seekable(self) -> bool:
            return True

        readable = seekable

        def writable(self) -> bool:
            return False

        def flush(self) -> None:
            """Nothing is written."""

        def close(self) -> None:
            self.connection.close()
            self.closed = True

    start = threading.Barrier(50)

    def reader(_: int) -> list[str]:
        start.wait(timeout=60)
        file = Ranges()
        try:
            return pq.read_table(file, columns=["annotation_id"])["annotation_id"].to_pylist()
        finally:
            file.close()

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(reader, range(50)))
    assert answers == [[f"movies_train_{at}" for at in range(40)]] * 50


LOAD = """
import json, datasets, evaluate
data = datasets.load_dataset("org/eraser", "movies")
rows = list(datasets.load_dataset("org/eraser", "boolq", split="test", streaming=True))
default = datasets.load_dataset("org/eraser", split="test", revision="main")
metric = evaluate.load("toy_overlap")
score = metric.compute(predictions=[{"id": "a", "rationale": [1, 2]}], references=[{"id": "a", "rationale": [2]}])
train = data["train"]
labels = train.features["classification"].names
print(json.dumps([train.num_rows, labels, rows[0]["documents"], default[0]["annotation_id"], score]))
"""


def test_the_command_serves_datasets_and_metrics_to_other_processes(toy_hub, child):
    command = [sys.executable, "-m", "eraser_hub", "serve", "--dir", str(toy_hub), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert "read-only" in line, line + process.stderr.read()
        endpoint = process.stdout.readline().strip().rpartition("=")[2]
        assert endpoint.startswith("http://127.0.0.1:"), "loopback by default"
        loaded = child.run(LOAD, endpoint)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
    document = [{"docid": "d0", "text": "a plain film .\nwell made , too ."}]
    assert loaded == [40, ["NEG", "POS"], document, "movies_test_0", {"share": 0.5}]
    assert process.returncode == 0


def test_the_bare_name_loads_where_the_client_asks_for_it(served, child):
    import huggingface_hub

    code = 'import json, datasets\nprint(json.dumps(datasets.load_dataset("eraser", "movies")["train"].num_rows))'
    if tuple(int(part) for part in huggingface_hub.__version__.split(".")[:2]) >= (1, 16):
        done = child.call([sys.executable, "-c", code], served.url)
        assert "Repository id must be 'namespace/name', got 'eraser'" in done.stderr, "the client's own refusal"
    else:
        assert child.run(code, served.url) == 40


# -- hostile requests -------------------------------------------------------------------------------------------------
def raw(server: HubServer, request: bytes, seconds: float = 10) -> bytes:
    """All that comes back for these bytes; the sending side is closed after them."""
    address, answer = urlsplit(server.url), b""
    with socket.create_connection((address.hostname, address.port), timeout=seconds) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(1 << 16):
            answer += piece
    return answer


@pytest.mark.parametrize(
    "header", ["bytes=" + " " * 60_000 + "x", "bytes=" + "9" * 60_000 + "-", "bytes=0-" + "-" * 60_000]
)
def test_a_hostile_range_costs_no_time(served, header):
    """A pattern with two runs of blanks took quadratic time, and with it the lock that all other threads wait for."""
    start = time.monotonic()
    assert _parse_range(header, 10) == (0, 10, False)
    assert time.monotonic() - start < 1
    assert ask(served, README, Range=header)[0].status == 200


SECOND = b"GET /api/datasets/org/nowhere HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([f"Content-Length: {len(SECOND)}"], SECOND, 200),
        (["Transfer-Encoding: chunked"], b"%x\r\n%s\r\n0\r\n\r\n" % (len(SECOND), SECOND), 413),
        ([f"Content-Length: {len(SECOND)}", "Content-Length: 0"], SECOND, 413),
        ([f"Content-Length: {'9' * 5000}"], SECOND, 413),
    ],
)
def test_the_body_of_a_get_is_no_request(served, headers, body, status):
    answer = raw(served, "\r\n".join([f"GET {README} HTTP/1.1", "Host: x", *headers, "", ""]).encode() + body)
    assert answer.startswith(b"HTTP/1.1 %d " % status) and answer.count(b"HTTP/1.1 ") == 1


def test_links_in_a_circle_and_pipes_are_not_served(toy_hub):
    folder = toy_hub / "eraser"
    (folder / "loop").symlink_to("loop")
    (folder / "circle").symlink_to(".")
    os.mkfifo(folder / "fifo")
    server = serve_folder(toy_hub)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        assert ask(server, README)[0].status == 200
        for name in ("loop", "circle", "circle/README.md", "fifo"):
            assert ask(server, f"/datasets/eraser/resolve/main/{name}")[0].status == 404
    finally:
        server.shutdown()
        server.server_close()


def test_a_request_that_drips_in_is_given_up(served, monkeypatch):
    """Bytes that come in time each, but never make a request, do not keep a thread for ever."""
    import eraser_hub.publishing.serve as module

    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.3)
    address = urlsplit(served.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nA: ")
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() - began < 10:
                time.sleep(0.05)
                connection.sendall(b"x")
        assert time.monotonic() - began < 5
    assert ask(served, README)[0].status == 200


# ------------------------------------------------------------------------------------------------- files by address
FETCH = """
import json, sys
from eraser_hub.conversion.download.addresses import fetch_file
found = fetch_file(sys.argv[-1] if len(sys.argv) > 1 else "hf://datasets/org/eraser/p.jsonl")
print(json.dumps([found.name, found.read_text(), found.with_name(found.name + ".run.json").read_text()]))
"""


def test_predictions_come_from_the_web_with_what_their_run_says(toy_hub, served, monkeypatch, tmp_path):
    from eraser_hub.conversion.download.addresses import fetch_file

    (toy_hub / "eraser" / "p.jsonl").write_text("{}\n")
    (toy_hub / "eraser" / "p.jsonl.run.json").write_text('{"signature": "lime"}')
    (toy_hub / "eraser" / "q.jsonl").write_text("[]\n")
    address = f"{served.url}/datasets/eraser/resolve/main"
    path = fetch_file(f"{address}/p.jsonl")
    assert (path.name, path.read_text()) == ("p.jsonl", "{}\n")
    assert json.loads(path.with_name("p.jsonl.run.json").read_text()) == {"signature": "lime"}
    alone = fetch_file(f"{address}/q.jsonl")
    assert alone.read_text() == "[]\n" and not alone.with_name("q.jsonl.run.json").exists()
    assert fetch_file("here/p.jsonl") == Path("here/p.jsonl")
    with refused("file-missing", f"{address}/nothing.jsonl", "404"):
        fetch_file(f"{address}/nothing.jsonl")


def test_predictions_come_from_the_hub(toy_hub, served, child):
    (toy_hub / "eraser" / "p.jsonl").write_text("{}\n")
    (toy_hub / "eraser" / "p.jsonl.run.json").write_text('{"signature": "lime"}')
    assert child.run(FETCH, served.url) == ["p.jsonl", "{}\n", '{"signature": "lime"}']
    lost = child.call([sys.executable, "-c", FETCH, "hf://datasets/org/eraser/nothing.jsonl"], served.url)
    assert lost.returncode == 1 and "hf://datasets/org/eraser/nothing.jsonl: " in lost.stderr
