"""Downloads from a loopback server that cuts, refuses and lies, and archives that mean harm: nothing is left behind."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eraser_hub.conversion import download as downloading
from eraser_hub.conversion.download import NotReleased, Unreachable, download, fetch_corpus, unpack_archive
from eraser_hub.records.errors import BusyError, DataError, UsageError
from eraser_hub.records.files import hold_lock

from ..command_line import invoke
from ..refusals import refused

pytestmark = pytest.mark.unit

Member = tuple[str, bytes, dict[str, Any]]
GOOD: tuple[Member, ...] = (("multirc/val.jsonl", b"{}\n", {}), ("multirc/docs/a", b"a .", {}))


def pack(*members: Member) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, content, attributes in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in attributes.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return buffer.getvalue()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A mirror that answers by ``script``: whole, cut, long, a status or a place to go; the last answer stays."""
    state = SimpleNamespace(body=pack(*GOOD), script=["whole"], paths=[], authorizations=[], headers={})

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            state.paths.append(self.path)
            state.authorizations.append(self.headers.get("Authorization"))
            step = state.script.pop(0) if len(state.script) > 1 else state.script[0]
            known, body = step in ("whole", "cut", "long"), state.body
            self.send_response(200 if known else int(step) if step.isdigit() else 302)
            headers = {**state.headers, **({} if known or step.isdigit() else {"Location": step})}
            if step != "long":
                headers["Content-Length"] = str(len(body) if known else 0)
            for item in headers.items():
                self.send_header(*item)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if step == "cut" else body if known else b"")

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{httpd.server_port}"
    monkeypatch.setenv("ERASER_HUB_ARCHIVES", state.url + "/")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    yield state
    httpd.shutdown()
    httpd.server_close()
    thread.join(timeout=10)


def test_a_corpus_is_downloaded_and_its_digest_recorded_and_then_held_to(server, tmp_path, caplog):
    archive = tmp_path / "archives" / "multirc.tar.gz"
    pin, first, read = archive.with_name("multirc.tar.gz.sha256"), server.body, []
    folder = fetch_corpus("multirc", tmp_path, read.append)
    assert folder.name == "multirc" and (folder / "docs" / "a").read_bytes() == b"a ." and read == [folder]
    assert archive.read_bytes() == first and pin.read_text() == f"{digest(first)}  multirc.tar.gz\n"
    assert [digest(first) in line and str(pin) in line for line in caplog.messages] == [True]
    assert fetch_corpus("multirc", tmp_path) == folder and server.paths == ["/multirc.tar.gz"]
    archive.write_bytes(b"damaged")
    assert fetch_corpus("multirc", tmp_path) == folder and archive.read_bytes() == first
    archive.unlink()
    server.body = pack(("multirc/val.jsonl", b"[]\n", {}))
    with refused(digest(first), digest(server.body), pin, "`source`"):
        fetch_corpus("multirc", tmp_path)
    assert list(archive.parent.iterdir()) == [pin]


@pytest.mark.parametrize(
    "page",
    [b"", b"<!doctype html>", gzip.compress(b"no tar" * 200), pack(*GOOD)[:-30], pack(("multirc/x", b"", {}))],
    ids=["empty", "a page", "no tar", "cut", "no splits"],
)
def test_what_is_no_corpus_is_not_recorded(server, tmp_path, page):
    server.body = page
    with refused("multirc.tar.gz", "`source`"):
        fetch_corpus("multirc", tmp_path)
    assert not list((tmp_path / "archives").glob("*.sha256"))


def test_a_corpus_that_cannot_be_read_is_not_kept_and_one_run_holds_it(server, tmp_path):
    def read(folder: Path) -> None:
        raise DataError("expected a key", file=folder / "val.jsonl", line=1)

    with refused("`source`", file="val.jsonl", line=1):
        fetch_corpus("multirc", tmp_path, read)
    assert not list((tmp_path / "archives").iterdir())
    for lock in (tmp_path / "archives" / ".multirc.lock", tmp_path / "unpacked" / f".{digest(server.body)[:16]}.lock"):
        with hold_lock(lock, ""), refused(lock, type=BusyError):
            fetch_corpus("multirc", tmp_path)


def test_a_corpus_is_looked_for_in_each_of_its_archives(server, tmp_path):
    server.body = pack(("cose/val.jsonl", b"", {}), ("cose_simplified/val.jsonl", b"", {}))
    server.script = ["404", "whole", "404"]
    assert fetch_corpus("cose_simplified", tmp_path).name == "cose_simplified"
    assert server.paths == ["/cose_simplified.tar.gz", "/cose.tar.gz"]
    names = [f"{server.url}/esnli_flat.tar.gz", f"{server.url}/esnli.tar.gz"]
    with refused("404", "`source`", *names, type=NotReleased):
        fetch_corpus("esnli_flat", tmp_path)
    with refused("'films'", " movies, ", argument="config", type=UsageError):
        fetch_corpus("films", tmp_path)
    server.script = ["whole"]
    with refused(downloading.SOURCES["sha256"]["movies"], digest(server.body), server.url):
        fetch_corpus("movies", tmp_path)
    assert not list((tmp_path / "archives").glob("movies*"))


def test_members_and_padding_are_bounded(tmp_path, monkeypatch):
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(pack(*GOOD) + gzip.compress(bytes(80 << 20)))
    with refused(file=archive):
        unpack_archive(archive, tmp_path)
    archive.write_bytes(pack(*GOOD))
    monkeypatch.setattr(downloading, "MAX_MEMBERS", 1)
    with refused("1 members", file=archive):
        unpack_archive(archive, tmp_path)


def test_an_archive_is_unpacked_once_and_names_are_data(tmp_path):
    names = ["Penélope", "O'Hara", "a b", "-rf", "~", "$HOME", "..hidden", "a\nb", "nul\u200b", "._real"]
    files = [(f"multirc/docs/{name}", b"x", {"mode": 0o4777}) for name in names]
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(pack(*GOOD, *files, ("multirc/docs/._a", downloading.APPLE_DOUBLE, {})))
    (tmp_path / "unpacked" / f".{digest(archive.read_bytes())[:16]}.unpacking" / "left").mkdir(parents=True)
    folder = unpack_archive(archive, tmp_path)
    assert {path.name for path in (folder / "multirc" / "docs").iterdir()} == {*names, "a"}
    assert not (folder / "multirc" / "docs" / "~").stat().st_mode & 0o7111
    (folder / "mark").touch()
    assert unpack_archive(archive, tmp_path) == folder and (folder / "mark").exists()
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize(
    ("script", "requests", "mention"),
    [
        (["404"], 1, "404"),
        (["429", "cut", "whole"], 3, None),
        (["long"], 1, None),
        (["ftp://127.0.0.1/x"], 3, "ftp://"),
        (["http://[::1"], 3, ""),
        (["/again"], 93, ""),
    ],
)
def test_what_a_server_answers(server, tmp_path, script, requests, mention):
    server.script, path = script, tmp_path / "file"
    server.headers["Content-Encoding"] = "gzip"  # an archive stays one
    if mention is None:
        download(f"{server.url}/file", path)
        assert path.read_bytes() == server.body
    else:
        with refused(mention, file=f"{server.url}/file", type=NotReleased if mention == "404" else DataError):
            download(f"{server.url}/file", path)
        assert not list(tmp_path.iterdir())
    assert len(server.paths) == requests


def test_no_more_is_taken_than_the_limit(server, tmp_path, monkeypatch):
    server.script = ["long"]
    for name, limit in {"MAX_DOWNLOAD_BYTES": 100, "MAX_SECONDS": -1}.items():
        with monkeypatch.context() as patch, refused(limit, file=f"{server.url}/x"):
            patch.setattr(downloading, name, limit)
            download(f"{server.url}/x", tmp_path / "x")
    assert not list(tmp_path.iterdir()) and len(server.paths) == 2


def test_https_is_not_left(server, tmp_path, monkeypatch):
    import requests

    def send(self: object, request: requests.PreparedRequest, **options: object) -> requests.Response:
        response = requests.Response()
        response.status_code, response.url, response.raw = 302, request.url or "", io.BytesIO()
        response.headers["Location"] = f"{server.url}/x"
        return response

    with monkeypatch.context() as patch, refused(server.url, file="https://example.invalid/x"):
        patch.setattr(requests.adapters.HTTPAdapter, "send", send)
        download("https://example.invalid/x", tmp_path / "x")
    assert not server.paths
    with refused("127.0.0.1", file="http://127.0.0.1:9/x", type=Unreachable):
        download("http://127.0.0.1:9/x", tmp_path / "x")
    for url in ("file:///etc/passwd", "ftp://127.0.0.1/x", "movies.tar.gz"):
        with refused(repr(url), type=UsageError):
            download(url, tmp_path / "x")


def test_a_password_is_sent_and_never_shown(server, tmp_path, monkeypatch, capfd, caplog):
    address = server.url.replace("//", "//me:s%20cret@")
    for script, place in ((["503"], address), (["http://me:s%20cret@127.0.0.1:9/"], server.url)):
        server.script = script
        monkeypatch.setenv("ERASER_HUB_ARCHIVES", place)
        with refused("multirc") as caught:
            fetch_corpus("multirc", tmp_path)
        assert "cret" not in "".join([str(caught.error), *capfd.readouterr(), *caplog.messages])
        assert caught.error.__suppress_context__
    assert server.authorizations[0] == "Basic " + base64.b64encode(b"me:s cret").decode()


HOSTILE: list[tuple[Member, str]] = [
    (("../outside", b"", {}), "'../outside'"),
    (("/outside", b"", {}), "'/outside'"),
    (("C:\\outside", b"", {}), repr("C:\\outside")),
    (("multirc/b", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}), "'multirc/b'"),
    (("multirc/b", b"", {"type": tarfile.LNKTYPE, "linkname": "multirc/docs/a"}), "'multirc/b'"),
    (("multirc/b", b"", {"type": tarfile.FIFOTYPE}), "'multirc/b'"),
    (("./multirc//val.jsonl", b"", {}), "'./multirc//val.jsonl'"),
    (("multirc/val.jsonl/below", b"", {}), ""),
    (("multirc/" + "a/" * 3000 + "b", b"", {}), ""),
    (("multirc/" + "a/" * 40, b"", {"type": tarfile.DIRTYPE}), ""),
    (("multirc/b", b"x", {"pax_headers": {"GNU.sparse.size": "9", "GNU.sparse.map": "0,1"}}), "'multirc/b'"),
    (("multirc/b", b"x", {"pax_headers": {"GNU.sparse.size": str(10**12), "GNU.sparse.map": "0,1"}}), "bytes"),
    (("multirc/b", b"x" * 600, {"pax_headers": {"size": "-1"}}), ""),
    (("multirc/b", b"", {"pax_headers": {"comment": "x" * (2 << 20)}}), "at once"),
    (("multirc/b", bytes(80 << 20), {}), "bytes"),
]


@pytest.mark.parametrize(("bad", "mention"), HOSTILE)
def test_hostile_members_are_refused_and_nothing_is_left(tmp_path, bad, mention):
    archive = tmp_path / "room" / "a.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(pack(*GOOD, bad))
    with refused(mention, file=archive):
        unpack_archive(archive, tmp_path / "cache")
    assert not list((tmp_path / "cache" / "unpacked").iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"room", "cache"} and len(list(archive.parent.iterdir())) == 1


def test_an_archive_cut_anywhere_is_an_error(tmp_path):
    archive = tmp_path / "a.tar.gz"
    content = pack(*((f"multirc/docs/{n}", os.urandom(700), {}) for n in range(9)), *GOOD)
    tar = gzip.decompress(content)
    cut = [content[:length] for length in range(0, len(content) - 1, 97)]
    cut += [gzip.compress(tar[:length]) for length in (512, 1025, 1536, len(tar.rstrip(b"\0")) + 1)]
    cut += [content[:-8] + bytes(4) + content[-4:]]  # a wrong checksum
    for data in cut:
        archive.write_bytes(data)
        with refused(file=archive):
            unpack_archive(archive, tmp_path)


def test_build_downloads_what_it_is_not_given(server, tmp_path, monkeypatch, samples):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(samples / "eraser" / "multirc", "multirc")
    server.body, server.script = buffer.getvalue(), ["cut", "whole", "404"]
    monkeypatch.setenv("ERASER_HUB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "multirc.tar.gz").write_bytes(server.body)
    for source in ([], [], ["--source", str(tmp_path / "own")]):
        result = invoke(["build", "eraser", "--config", "multirc", "--out", str(tmp_path / "hub"), *source])
        assert result.exit_code == 0 and "train 9, validation 9, test 8" in result.output, result.output
    assert len(server.paths) == 2
