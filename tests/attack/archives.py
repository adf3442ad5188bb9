"""Archives of a corpus that lie, are cut or are none: beside the user's folders, and over a loopback server."""

from __future__ import annotations

import gzip
import http.server
import io
import tarfile
import threading
from typing import Any

from .cases import Expect, World, mutates
from .material import CORPORA, json_lines

ARCHIVE = "archives/movies.tar.gz"
PLACES = ("http://[::1", "ftp://127.0.0.1/x", "file:///etc/passwd", "/x")
SPARSE = {"size": "9999999999999", "numblocks": "1", "map": "0,9999999999"}
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


def members(config: str) -> dict[str, bytes]:
    """The corpus's files, as they stand in its archive."""
    files = CORPORA[config].files()
    return {path: content if isinstance(content, bytes) else json_lines(content) for path, content in files.items()}


def packed(files: dict[str, bytes], *more: tuple[tarfile.TarInfo, bytes], first: bool = False) -> bytes:
    """A tar.gz of the files, and of further members as they are."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1, format=tarfile.PAX_FORMAT) as tar:
        entries = [(tarfile.TarInfo(name), content) for name, content in files.items()]
        for member, content in [*more, *entries] if first else [*entries, *more]:
            if content:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@mutates("archives")
def sound_archive(world: World) -> Expect:
    world.files[ARCHIVE] = packed(members("movies"))
    return Expect("same meaning")


@mutates("archives")
def no_archive(world: World) -> Expect:
    whole = packed(members("movies"))
    inner = gzip.decompress(whole)
    cut = (whole[: len(whole) // 2], whole[: len(whole) - 20], gzip.compress(PAGE), gzip.compress(b""), whole[10:])
    torn = (gzip.compress(inner[: len(inner) // 2]), b"PK\x03\x04" + whole, whole[:40] + b"\x00" * 40 + whole[80:])
    odd = (PAGE, b"", *cut, b"\x1f\x8b", *torn)
    world.files[ARCHIVE] = world.random.choice(odd)
    return Expect("damaged archive", words=("movies.tar.gz",))


@mutates("archives")
def hostile_member(world: World) -> Expect:
    plain = ["movies/docs/" + "n" * 300, "movies/\x1b[31m", "movies/\udcff", "movies/" + "d/" * 3000 + "x"]
    links = [("movies/link", "/etc/passwd"), ("movies/docs", ".."), ("movies/loop", "loop")]
    things = [("fifo", tarfile.FIFOTYPE), ("device", tarfile.CHRTYPE), ("val.jsonl", tarfile.DIRTYPE)]
    odd = (
        *((member(name), b"x") for name in ("../outside.txt", "/tmp/attack-outside.txt", "movies/val.jsonl/x", *plain)),
        *((member(name, tarfile.SYMTYPE, target), b"") for name, target in links),
        (member("movies/hard", tarfile.LNKTYPE, "../../etc/passwd"), b""),
        *((member(f"movies/{name}", kind), b"") for name, kind in things),
        *((member(name), b"{}\n") for name in ("other/val.jsonl", "MOVIES/val.jsonl")),
        (member("movies/docs/val0"), b"other words"),
    )
    world.files[ARCHIVE] = packed(members("movies"), world.random.choice(odd), first=world.random.random() < 0.5)
    return Expect("anything")


@mutates("archives")
def lying_size(world: World) -> Expect:
    """A header that announces more than there is: plain, by PAX, or as a GNU sparse file."""
    info = member("movies/docs/huge")
    way = world.random.randrange(4)
    if way == 0:
        info.pax_headers = {f"GNU.sparse.{key}": value for key, value in SPARSE.items()}
    elif way == 1:
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "99999999999"}
    elif way == 2:
        info.pax_headers = {"size": "x", "path": "movies/docs/\x00"}
    else:
        info.pax_headers = {"size": "99999999999999"}
    world.files[ARCHIVE] = packed(members("movies"), (info, b"12\n" * 200), first=world.random.random() < 0.5)
    return Expect("anything")


@mutates("archives")
def bytes_of_the_tar(world: World) -> Expect:
    inner = bytearray(gzip.decompress(packed(members("movies"))))
    for _ in range(world.random.choice((1, 4, 20))):
        place = world.random.randrange(len(inner) // 512) * 512 + world.random.randrange(300)
        inner[place] = world.random.randrange(256)
    world.files[ARCHIVE] = gzip.compress(bytes(inner), 1)
    world.partial = True  # what was unpacked and cannot be read stays, named for whoever looks into it
    return Expect("anything")


# ------------------------------------------------------------------------------------------------------------ downloads
class Answers:
    """A loopback server with one answer to every request; `good` changes it to the sound archive."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body
        answers = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                self.send_response(answers.status)
                length = {"Content-Length": str(len(answers.body)), **answers.headers}
                for name, value in length.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answers.body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def good(self) -> None:
        self.status, self.headers, self.body = 200, {}, packed(members("esnli"))


def served(world: World, status: int, headers: dict[str, str], body: bytes) -> Answers:
    """Start the server when the case runs, and lead the download there."""
    answers = Answers(status, headers, body)
    world.environment["ERASER_HUB_ARCHIVES"] = answers.url
    return answers


@mutates("downloads")
def sound_download(world: World) -> Expect:
    served(world, 200, {}, packed(members("esnli")))
    return Expect("same meaning")


@mutates("downloads")
def page_then_archive(world: World) -> Expect:
    """No archive the first time; the good one, the second time, is taken."""
    whole = packed(members("esnli"))
    odd = (PAGE, whole[: len(whole) // 2], b"", gzip.compress(PAGE), gzip.compress(gzip.decompress(whole)[:2000]))
    answers = served(world, 200, {}, world.random.choice(odd))
    world.then, world.between = list(world.argv), answers.good
    return Expect("good after bad")


@mutates("downloads")
def no_archive_served(world: World) -> Expect:
    whole = packed(members("esnli"))
    odd: tuple[tuple[int, dict[str, str], bytes], ...] = (
        *((200, headers, PAGE) for headers in ({}, {"Content-Type": "text/html"})),
        *((200, {}, whole[: len(whole) // 2]), (200, {"Content-Encoding": "gzip"}, whole), (403, {}, PAGE)),
        *((404, {}, b""), (302, {}, b""), (451, {"X": "\x1b[31m"}, b"")),
        *((302, {"Location": place}, b"") for place in PLACES),
    )
    status, headers, body = world.random.choice(odd)
    served(world, status, headers, body)
    world.notes.append(f"the server answers {status} {headers} and {len(body)} bytes, {body[:20]!r}")
    return Expect("anything" if "Content-Encoding" in headers else "damaged archive")


@mutates("archives")
def one_bad_corpus(world: World) -> Expect:
    """Two corpora, one of them bad: the other is built, exit status 1, the bad one named."""
    place = world.argv.index("--config")
    del world.argv[place : place + 2]
    for config in CORPORA:
        world.files.update({f"archives/{path}": content for path, content in CORPORA[config].files().items()})
    world.files["archives/esnli/val.jsonl"] = b'{"annotation_id": 3\n'
    world.partial = True
    return Expect("one bad corpus", words=("esnli", "out/eraser: movies"))
