"""Downloads over a loopback server that cuts, refuses, lies and goes on."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import io
import logging
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from eraser_hub.conversion.download import fetch
from eraser_hub.conversion.download import http as downloading
from eraser_hub.records.errors import BusyError, DataError
from eraser_hub.records.files import hold_lock

from ...command_line import invoke
from ...refusals import refused

pytestmark = pytest.mark.unit

QUICK = downloading.Retries(attempts=3, wait=0.0, most_wait=0.0, timeout=5.0)


def archive_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


CORPUS = archive_of(
    {"movies/train.jsonl": b"{}\n", "movies/val.jsonl": b"{}\n", "movies/docs/a.txt": b"a day at sea .\n" * 9000}
)


@dataclass
class Behaviour:
    """What the server does, answer by answer; the last entry stays."""

    body: bytes = CORPUS
    script: list[str] = field(default_factory=lambda: ["whole"])
    etag: str | None = '"one"'
    ranges: bool = True
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    place: str = ""


@pytest.fixture
def server() -> Iterator[tuple[str, Behaviour]]:
    behaviour = Behaviour()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            behaviour.requests.append((self.path, asked))
            behaviour.authorizations.append(self.headers.get("Authorization"))
            step = behaviour.script.pop(0) if len(behaviour.script) > 1 else behaviour.script[0]
            if step == "redirect":
                self.send_response(302)
                self.send_header("Location", behaviour.place)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if step.isdigit():
                self.send_response(int(step))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = 0
            condition = self.headers.get("If-Range")
            if asked and behaviour.ranges and (condition is None or condition == behaviour.etag):
                start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= len(behaviour.body):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(behaviour.body)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                shown = start + 1 if step == "misplaced" else start
                self.send_header("Content-Range", f"bytes {shown}-{len(behaviour.body) - 1}/{len(behaviour.body)}")
            else:
                self.send_response(200)
            rest = behaviour.body[start:]
            self.send_header("Content-Length", str(len(rest)))
            if behaviour.etag:
                self.send_header("ETag", behaviour.etag)
            self.end_headers()
            if step == "drip":
                for at in range(40):
                    self.wfile.write(rest[at : at + 1])
                    time.sleep(0.05)
                return
            self.wfile.write(rest[: len(rest) // 2] if step == "cut" else rest)

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", behaviour
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join(timeout=10)


def fetched(url: str, cache: Path, sha256: str | None = None, size: int | None = None) -> tuple[Path, list[str]]:
    """The archive, and what was logged meanwhile."""
    source = fetch.Archive("movies", f"{url}/movies.tar.gz", size, sha256)
    with mock.patch.object(logging.getLogger("eraser_hub"), "warning") as warning:
        archive = fetch.fetch_archive(source, cache, retries=QUICK)
    return archive, [call.args[0] for call in warning.call_args_list]


def test_a_download_is_verified_and_not_repeated(server, tmp_path):
    url, behaviour = server
    sha = hashlib.sha256(CORPUS).hexdigest()
    archive, said = fetched(url, tmp_path, sha, len(CORPUS))
    assert archive.read_bytes() == CORPUS
    assert said == []
    assert fetched(url, tmp_path, sha)[0] == archive
    assert len(behaviour.requests) == 1
    assert sorted(path.name for path in archive.parent.iterdir()) == ["movies.tar.gz"]


def test_an_unknown_digest_is_pinned_and_said_and_then_held_to(server, tmp_path):
    url, behaviour = server
    archive, said = fetched(url, tmp_path)
    sha = hashlib.sha256(CORPUS).hexdigest()
    pin = archive.with_name("movies.tar.gz.sha256")
    assert pin.read_text() == f"{sha}  movies.tar.gz\n"
    assert len(said) == 1 and sha in said[0] and str(pin) in said[0]
    archive.unlink()
    behaviour.body = archive_of({"movies/train.jsonl": b"something else\n"})
    with refused(sha, pin, hashlib.sha256(behaviour.body).hexdigest()):
        fetched(url, tmp_path)
    assert not archive.exists() and not archive.with_name("movies.tar.gz.part").exists()


def test_a_cut_download_goes_on_where_it_was(server, tmp_path):
    url, behaviour = server
    behaviour.script = ["cut", "cut", "whole"]
    archive, said = fetched(url, tmp_path, hashlib.sha256(CORPUS).hexdigest())
    assert archive.read_bytes() == CORPUS
    half = len(CORPUS) // 2
    further = [f"bytes={start}-" for start in (half, half + (len(CORPUS) - half) // 2)]
    assert [asked for _, asked in behaviour.requests] == [None, *further]
    assert len(said) == 2 and f"{half} of {len(CORPUS)}" in said[0]


def test_a_later_run_goes_on_where_an_earlier_one_stopped(server, tmp_path):
    url, behaviour = server
    behaviour.script = ["cut", "503"]
    with refused("503", "3 tries", f"the {len(CORPUS) // 2} bytes"):
        fetched(url, tmp_path)
    behaviour.script = ["whole"]
    archive, _ = fetched(url, tmp_path)
    assert archive.read_bytes() == CORPUS
    assert behaviour.requests[-1][1] == f"bytes={len(CORPUS) // 2}-"


@pytest.mark.parametrize("etag", ['"one"', None, 'W/"weak"'])
def test_two_versions_of_a_file_are_never_joined(server, tmp_path, etag):
    url, behaviour = server
    behaviour.etag = etag
    behaviour.script = ["cut", "503"]
    with refused("503"):
        fetched(url, tmp_path)
    behaviour.body = archive_of(
        {"movies/train.jsonl": b"the second version\n" * 40000, "movies/x": bytes(range(256)) * 64}
    )
    behaviour.etag = '"two"' if etag else None
    behaviour.script = ["whole"]
    archive, _ = fetched(url, tmp_path)
    assert archive.read_bytes() == behaviour.body


def test_a_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    url, behaviour = server
    behaviour.ranges = False
    behaviour.script = ["cut", "whole"]
    assert fetched(url, tmp_path)[0].read_bytes() == CORPUS


def test_a_part_that_was_whole_already_is_taken(server, tmp_path):
    url, behaviour = server
    part = tmp_path / "archives" / "movies.tar.gz.part"
    downloading.download(f"{url}/movies.tar.gz", part, name="movies", retries=QUICK)
    archive, _ = fetched(url, tmp_path)  # killed between the last byte and the renaming
    assert archive.read_bytes() == CORPUS
    assert behaviour.requests[-1][1] == f"bytes={len(CORPUS)}-"


@pytest.mark.parametrize(
    ("code", "requests"),
    [
        (404, 1),
        (410, 1),
        (403, 1),
        (500, 3),
        (503, 3),
        (418, 1),
    ],
)
def test_what_the_server_says_is_said(server, tmp_path, code, requests):
    url, behaviour = server
    behaviour.script = [str(code)]
    with refused(f"{url}/movies.tar.gz: ", code, *[f"{requests} tries"] * (requests > 1)):
        fetched(url, tmp_path)
    assert len(behaviour.requests) == requests


def test_an_error_that_passes_is_outlived(server, tmp_path):
    url, behaviour = server
    behaviour.script = ["500", "503", "whole"]
    archive, said = fetched(url, tmp_path)
    assert archive.read_bytes() == CORPUS
    assert len(said) == 3 and "500" in said[0] and "503" in said[1]


def test_a_wrong_digest_names_both_and_leaves_nothing(server, tmp_path):
    url, _ = server
    wrong = "0" * 64
    with refused(wrong, "sources.json", hashlib.sha256(CORPUS).hexdigest()):
        fetched(url, tmp_path, wrong)
    assert not list((tmp_path / "archives").glob("movies*"))[1:]


def test_a_resumed_download_with_a_wrong_digest_starts_anew(server, tmp_path):
    url, behaviour = server
    behaviour.script = ["cut", "503"]
    with refused("503"):
        fetched(url, tmp_path)
    part = tmp_path / "archives" / "movies.tar.gz.part"
    part.write_bytes(b"?" * part.stat().st_size)
    behaviour.script = ["whole"]
    archive, said = fetched(url, tmp_path, hashlib.sha256(CORPUS).hexdigest())
    assert archive.read_bytes() == CORPUS
    assert len(said) == 1 and said[0].startswith("movies: ")


def test_a_size_that_is_not_the_expected_one_is_an_error(server, tmp_path):
    url, _ = server
    with refused(" 17 ", len(CORPUS)):
        fetched(url, tmp_path, size=17)


def test_bytes_from_another_place_than_asked_for_are_refused(server, tmp_path):
    url, behaviour = server
    behaviour.script = ["cut", "misplaced"]
    half, size = len(CORPUS) // 2, len(CORPUS)
    with refused(f" {half} ", f"'bytes {half + 1}-{size - 1}/{size}'"):
        fetched(url, tmp_path)


def test_nobody_there(tmp_path):
    with refused("http://127.0.0.1:9/", "refused", "3 tries", type=downloading.Unreachable):
        fetched("http://127.0.0.1:9", tmp_path)


def test_a_server_that_never_answers(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/movies.tar.gz"
        impatient = downloading.Retries(attempts=2, wait=0.0, timeout=0.1)
        with refused(url, "time", "2 tries"):
            downloading.download(url, tmp_path / "part", name="x", retries=impatient)


def test_a_server_that_hands_out_crumbs_is_given_up_on(server, tmp_path, monkeypatch):
    url, behaviour = server
    behaviour.script = ["cut"]  # each time half of what is left: something new, and never the end
    monkeypatch.setattr(downloading, "MAX_TRIES", 5)
    with refused(f" of {len(CORPUS)} ", "5 tries") as caught:
        fetched(url, tmp_path)
    came = (tmp_path / "archives" / "movies.tar.gz.part").stat().st_size
    assert len(behaviour.requests) == 5 and str(caught.error).count(f" {came} ") == 2


def test_a_server_that_sends_a_byte_at_a_time_is_given_up_on(server, tmp_path):
    url, behaviour = server
    behaviour.script = ["drip"]
    impatient = downloading.Retries(attempts=2, wait=0.0, timeout=0.3)
    with refused(url, "bytes in 0.3 s", "2 tries"):
        downloading.download(url, tmp_path / "part", name="x", retries=impatient)
    assert len(behaviour.requests) == 2


def test_a_redirect_away_from_https_is_refused():
    import urllib.request

    request = urllib.request.Request("https://www.eraserbenchmark.com/zipped/movies.tar.gz")
    follow = downloading._NoDowngrade().redirect_request
    with refused(request.full_url, "http://elsewhere.invalid/movies.tar.gz"):
        follow(request, None, 302, "Found", {}, "http://elsewhere.invalid/movies.tar.gz")
    assert follow(request, None, 302, "Found", {}, "https://elsewhere.invalid/m.tar.gz").full_url.startswith("https:")


def test_no_such_host(tmp_path, monkeypatch):
    import socket

    def nowhere(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    with refused("'no-such-host.invalid'", type=downloading.Unreachable):
        fetched("http://no-such-host.invalid", tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "movies.tar.gz"])
def test_other_addresses_are_refused(url, tmp_path):
    with refused(repr(url)):
        downloading.download(url, tmp_path / "part", name="x")


def test_a_full_disk_is_said(server, tmp_path, monkeypatch):
    url, _ = server

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(downloading, "_write", full)
    with refused(url, tmp_path / "archives"):
        fetched(url, tmp_path)


def test_one_at_a_time(server, tmp_path):
    url, _ = server
    lock = tmp_path / "archives" / ".movies.lock"
    with hold_lock(lock, ""), refused(lock, type=BusyError):
        fetched(url, tmp_path)


def test_a_changed_archive_in_the_cache_is_fetched_again(server, tmp_path):
    url, _ = server
    archive, _ = fetched(url, tmp_path)
    changed = gzip.compress(b"not it")
    archive.write_bytes(changed)
    again, said = fetched(url, tmp_path)
    assert again.read_bytes() == CORPUS
    assert any(hashlib.sha256(changed).hexdigest() in line for line in said)


PAGES = {
    "page": b"<!doctype html><title>log in</title>",
    "cut": CORPUS[: len(CORPUS) // 2],
    "no tar": gzip.compress(b"not it" * 2000),
}


@pytest.mark.parametrize("page", PAGES)
def test_what_is_no_archive_is_not_held_to(server, tmp_path, page):
    url, behaviour = server
    behaviour.body = PAGES[page]
    with refused("`source`", file="movies.tar.gz"):
        fetched(url, tmp_path)
    assert not list((tmp_path / "archives").iterdir())
    behaviour.body, behaviour.etag = CORPUS, '"two"'
    archive, said = fetched(url, tmp_path)
    assert archive.read_bytes() == CORPUS and hashlib.sha256(CORPUS).hexdigest() in said[0]


def test_a_corpus_that_cannot_be_read_is_not_held_to(server, tmp_path, monkeypatch):
    url, behaviour = server
    behaviour.body = archive_of({"multirc/val.jsonl": b"{}\n", "multirc/docs/a": b"a ."})
    monkeypatch.setenv("ERASER_HUB_ARCHIVES", url)

    def read(folder: Path) -> None:
        raise DataError("expected the key 'evidences'", file=folder / "val.jsonl", line=1)

    with refused("val.jsonl:1: ", "'evidences'", tmp_path / "archives" / "multirc.tar.gz"):
        fetch.fetch_corpus("multirc", tmp_path, read=read)
    assert not (tmp_path / "archives" / "multirc.tar.gz.sha256").exists()
    fetch.fetch_corpus("multirc", tmp_path, read=lambda folder: None)
    assert (tmp_path / "archives" / "multirc.tar.gz.sha256").exists()


def test_a_redirect_to_no_address_is_refused(server, tmp_path):
    url, behaviour = server
    for place in (
        "http://[::1",
        "ftp://127.0.0.1/movies.tar.gz",
        "http://user:secret@127.0.0.1/",
        "//[",
        "http://a..b/",
    ):
        behaviour.place = place
        behaviour.script = ["redirect"]
        with refused() as caught:
            fetched(url, tmp_path)
        assert str(caught.error).startswith(f"{url}/movies.tar.gz: ") and "secret" not in str(caught.error)


def test_a_mirrors_password_is_sent_and_never_shown(server, tmp_path):
    url, behaviour = server
    behaviour.script = ["cut", "503"]
    with refused(url) as caught:
        fetched(url.replace("//", "//me:s%20cret@"), tmp_path)
    assert "cret" not in str(caught.error)
    assert behaviour.authorizations[-1] == "Basic " + base64.b64encode(b"me:s cret").decode()
    assert not any(b"cret" in path.read_bytes() for path in (tmp_path / "archives").iterdir())


def test_a_broken_pin_is_an_error(server, tmp_path):
    url, _ = server
    archive, _ = fetched(url, tmp_path)
    archive.with_name("movies.tar.gz.sha256").write_text("hello\n")
    with refused(file="movies.tar.gz.sha256", line=1):
        fetched(url, tmp_path)


def test_a_corpus_is_downloaded_verified_and_unpacked(server, tmp_path, monkeypatch):
    url, behaviour = server
    behaviour.body = archive_of({"multirc/val.jsonl": b"{}\n", "multirc/docs/a": b"a ."})
    monkeypatch.setenv("ERASER_HUB_ARCHIVES", url + "/")
    folder = fetch.fetch_corpus("multirc", tmp_path)
    assert folder.name == "multirc" and (folder / "docs" / "a").read_bytes() == b"a ."
    assert behaviour.requests == [("/multirc.tar.gz", None)]
    assert fetch.fetch_corpus("multirc", tmp_path) == folder
    assert len(behaviour.requests) == 1


def test_a_form_of_a_corpus_is_looked_for_in_the_other_archive(server, tmp_path, monkeypatch):
    url, behaviour = server
    behaviour.script = ["404", "whole"]
    behaviour.body = archive_of({"cose/val.jsonl": b"{}\n", "cose_simplified/val.jsonl": b"{}\n"})
    monkeypatch.setenv("ERASER_HUB_ARCHIVES", url)
    folder = fetch.fetch_corpus("cose_simplified", tmp_path)
    assert folder.name == "cose_simplified"
    assert [path for path, _ in behaviour.requests] == ["/cose_simplified.tar.gz", "/cose.tar.gz"]


def test_a_corpus_that_is_nowhere_says_where_it_was_looked_for(server, tmp_path, monkeypatch):
    url, behaviour = server
    behaviour.script = ["404"]
    monkeypatch.setenv("ERASER_HUB_ARCHIVES", url)
    mentions = ("esnli_flat ", f"{url}/esnli_flat.tar.gz", f"{url}/esnli.tar.gz", "404", "`source`")
    with refused(*mentions, type=fetch.NotReleased):
        fetch.fetch_corpus("esnli_flat", tmp_path)


def test_an_unknown_config(tmp_path):
    with refused("'films'", " movies, "):
        fetch.fetch_corpus("films", tmp_path)


def test_each_config_has_an_archive_with_an_address():
    known = fetch.read_sources()
    assert set(known["configs"]) >= {"movies", "multirc", "fever", "boolq", "evidence_inference", "cose", "esnli"}
    for facts in known["configs"].values():
        for name in facts["archives"]:
            assert known["archives"][name]["url"] == f"https://www.eraserbenchmark.com/zipped/{name}.tar.gz"
    # published with the benchmark's movies archive; the others have no published digest
    assert known["archives"]["movies"]["sha256"] == "66e18d4e6c9df9e9f5544572b0bfe92a39673f74ecbfc3859b46cedb2f5b2dee"


def test_the_command_downloads_what_it_is_not_given(server, tmp_path, monkeypatch, samples):
    """From a mirror's archive to rows, in one command; the second time from the cache; a user's archive likewise."""
    url, behaviour = server
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(samples / "eraser" / "multirc", "multirc")
    behaviour.body = buffer.getvalue()
    behaviour.script = ["cut", "whole"]
    monkeypatch.setenv("ERASER_HUB_ARCHIVES", url)
    monkeypatch.setenv("ERASER_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    arguments = ["build", "eraser", "--config", "multirc", "--out"]
    result = invoke([*arguments, str(tmp_path / "hub")])
    assert result.exit_code == 0, result.output
    assert "train 9, validation 9, test 8" in result.output
    assert hashlib.sha256(behaviour.body).hexdigest() in result.output, "the digest that was not known is said"
    assert len(behaviour.requests) == 2 and behaviour.requests[1][1] is not None
    behaviour.script = ["404"]
    assert invoke([*arguments, str(tmp_path / "hub")]).exit_code == 0
    assert len(behaviour.requests) == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "multirc.tar.gz").write_bytes(behaviour.body)
    result = invoke([*arguments, str(tmp_path / "hub2"), "--source", str(tmp_path / "mine")])
    assert result.exit_code == 0, result.output
    one, two = (
        {p.name: p.read_bytes() for p in (tmp_path / hub / "eraser" / "multirc").iterdir()} for hub in ("hub", "hub2")
    )
    assert one == two
