"""A read-only Hub for a cluster without internet: it serves the folders of ``build`` over HTTP.

It uses the standard library alone: the read endpoints over plain files are few. (olah mirrors git repositories, so
built folders would have to be committed a second time. From a local mirror it reads a whole file into memory for each
request, and it serves no ranges, which streaming readers of Parquet need.)

Ids: ``NAME`` and ``ORG/NAME`` are the same folder. ``load_dataset("eraser", "movies")`` works with huggingface_hub
before 1.16; later versions refuse ids without a namespace before they ask any server, and need
``load_dataset("org/eraser", "movies")``. ``evaluate.load("eraser_faithfulness")`` works with all versions.

Only files below the folder are served, by construction: a request's path is never joined to a folder, but looked up in
the listing of its files. Hidden names and links that lead out are not listed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, quote, unquote, urlsplit

from eraser_hub.records.atomic import READ_FLAGS
from eraser_hub.records.errors import DataError

# of os.open: no link that was put in a file's place is followed; Windows has neither flag
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
LISTING_SECONDS = 1.0
IDLE_SECONDS = 60
# a request, from its first byte to its last: who drips one for longer does not keep a thread
REQUEST_SECONDS = 20
LARGEST_QUESTION = 1 << 20
# where `evaluate.load("NAME")` looks for a metric without a namespace
METRIC_NAMESPACE = "evaluate-metric"
_ID = r"(?P<id>(?:[^/]+/)?[^/]+?)"
_API = re.compile(
    rf"/api/(?P<kind>datasets|spaces|models)/{_ID}"
    r"(?:/(?P<verb>revision|tree|paths-info|refs)(?:/(?P<revision>[^/]+)(?:/(?P<path>.*))?)?)?"
)
_RESOLVE = re.compile(rf"/(?:(?P<kind>datasets|spaces)/)?{_ID}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository: its size, an id that changes with its content, and its LFS digest if it has one."""

    size: int
    oid: str
    lfs: str | None = None


class Folder:
    """A folder as a repository of one revision, ``main``; its commit changes when a file changes.

    Any class with the same four methods can be served.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self._lock = threading.Lock()
        self._listed_at = -LISTING_SECONDS
        self._listing: dict[str, tuple[HubFile, Path]] = {}
        self._commit = ""
        self._tags: list[str] = []

    def _list(self) -> None:
        with self._lock:
            if time.monotonic() - self._listed_at < LISTING_SECONDS:
                return
            listing = dict(self._walk())
            digest = hashlib.sha1(repr(sorted((name, entry) for name, (entry, _) in listing.items())).encode())
            commit = digest.hexdigest()
            self._tags = self._tags if commit == self._commit else _read_tags(self.folder)
            self._listing, self._commit, self._listed_at = listing, commit, time.monotonic()

    def _walk(self) -> Iterator[tuple[str, tuple[HubFile, Path]]]:
        # a folder that is replaced this very moment ends the walk in it: the next listing sees the new one
        for place, folders, names in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if _is_listed(name))
            for path in (Path(place, name) for name in sorted(names) if _is_listed(name)):
                try:
                    real = path.resolve(strict=True)
                    status = real.stat()
                except (OSError, RuntimeError):  # gone, or links in a circle
                    continue
                inside = stat.S_ISREG(status.st_mode) and real.is_relative_to(self.root)
                if inside and not any(part.startswith(".") for part in real.relative_to(self.root).parts):
                    file = HubFile(status.st_size, _compute_fingerprint(real, status))
                    yield path.relative_to(self.folder).as_posix(), (file, real)

    def commit(self, revision: str) -> str | None:
        """Return the commit of a branch, tag or commit; None for an unknown name."""
        self._list()
        known = ("main", "refs/heads/main", self._commit, *self._tags, *(f"refs/tags/{tag}" for tag in self._tags))
        return self._commit if revision in known else None

    def files(self, commit: str) -> Mapping[str, HubFile]:
        """Return path -> entry at a commit."""
        return {name: entry for name, (entry, _) in self._listing.items()}

    def open(self, commit: str, path: str) -> BinaryIO:
        """Open a listed file."""
        entry, real = self._listing[path]
        file = os.fdopen(os.open(real, READ_FLAGS | NO_LINK), "rb")
        if _compute_fingerprint(real, os.fstat(file.fileno())) != entry.oid:
            file.close()
            self._listed_at = -LISTING_SECONDS
            raise FileNotFoundError(path)
        return file

    def refs(self) -> dict[str, list[dict[str, str]]]:
        """Return branches and tags in the format of the Hub's API."""
        self._list()
        tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": self._commit} for tag in self._tags]
        return {"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": self._commit}], "tags": tags}


def _read_tags(folder: Path) -> list[str]:
    """Return the tags that `publish` gives a built dataset: of its content, and of the package that built it."""
    from eraser_hub.conversion.card import get_dataset_version
    from eraser_hub.conversion.dataset import read_build_version
    from eraser_hub.records.built import open_built

    try:
        versions = get_dataset_version(open_built(folder).card), read_build_version(folder)
    except (DataError, KeyError, TypeError):  # a Space, or a folder that no build wrote
        return []
    return list(dict.fromkeys(f"v{version}" for version in versions if version))


def _is_listed(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"


def _compute_fingerprint(path: Path, status: os.stat_result) -> str:
    return hashlib.sha1(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}".encode()).hexdigest()


class Shelf:
    """The repositories of a folder: ``NAME`` and ``ORG/NAME``; a folder with ``app.py`` is a Space."""

    def __init__(self, root: Path, namespaces: tuple[str, ...] = ()) -> None:
        self.root, self.namespaces = root.resolve(), namespaces
        self._folders: dict[str, Folder] = {}

    def names(self) -> dict[str, str]:
        """Return name -> ``datasets`` or ``spaces`` of everything that is served."""
        return {
            child.name: "spaces" if (child / "app.py").is_file() else "datasets"
            for child in sorted(self.root.iterdir())
            if not child.name.startswith(".") and not child.is_symlink() and (child / "README.md").is_file()
        }

    def find(self, kind: str, repository: str) -> Folder | None:
        """Return the repository of an id, or None."""
        namespace, _, name = repository.rpartition("/")
        if namespace and self.namespaces and namespace not in (*self.namespaces, METRIC_NAMESPACE):
            return None
        if self.names().get(name) != kind:
            return None
        return self._folders.setdefault(name, Folder(self.root, self.root / name))


class _Incoming(io.RawIOBase):
    """The stream of a connection: at most ``idle`` seconds between requests, and REQUEST_SECONDS for each one."""

    def __init__(self, connection: socket.socket, idle: float) -> None:
        self.connection, self.idle = connection, idle
        self.began: float | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, within the time limit."""
        left = self.idle if self.began is None else self.began + REQUEST_SECONDS - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        try:
            count = self.connection.recv_into(buffer)
        finally:
            self.connection.settimeout(self.idle)
        if self.began is None:
            self.began = time.monotonic()
        return count


class RefusedRequest(Exception):
    """A request that is answered by an error: the arguments of `HubHandler.refuse`."""


class HubHandler(BaseHTTPRequestHandler):
    """Handler of the Hub's read endpoints: repository, tree, paths-info, refs, and files by range."""

    protocol_version = "HTTP/1.1"
    server_version = "eraser-hub"
    sys_version = ""
    timeout = IDLE_SECONDS
    find: Callable[[str, str], Folder | None]

    def setup(self) -> None:
        """Prepare the connection."""
        super().setup()
        self.incoming = _Incoming(self.connection, self.timeout or IDLE_SECONDS)
        self.rfile = io.BufferedReader(self.incoming)

    # -- answers ------------------------------------------------------------------------------------------------------

    def answer(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        """Send a complete answer: JSON, or text if ``body`` is a string."""
        content = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
        kind = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
        self._head(status, {"Content-Type": kind, "Content-Length": str(len(content)), **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(content)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def refuse(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Send an error in the Hub's format: its code and message in headers."""
        self.answer(status, {"error": message}, {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})})

    # -- requests -----------------------------------------------------------------------------------------------------

    def do_GET(self) -> None:
        """Answer a read request."""
        self.body()  # it means nothing, and must not be taken for the next request
        url = urlsplit(self.path)
        if match := _RESOLVE.fullmatch(url.path):
            self._resolve(match)
        elif match := _API.fullmatch(url.path):
            self._describe(match, {name: values[-1] for name, values in parse_qs(url.query).items()})
        else:
            raise self.refuse_path()

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answer the paths-info request, the only one that reads by POST; all others would write."""
        match = _API.fullmatch(urlsplit(self.path).path)
        body = self.body()
        if match is None or match["verb"] != "paths-info":
            self._read_only()
            return
        repository, commit = self._find_commit(match)
        try:
            json_body = "json" in (self.headers.get("Content-Type") or "")
            question = json.loads(body) if json_body else parse_qs(body.decode())
            paths = question.get("paths") or []
            paths = [paths] if isinstance(paths, str) else [str(path) for path in paths]
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "BadRequest", "expected paths") from None
        files = repository.files(commit)
        answers = []
        for path in dict.fromkeys(path.strip("/") for path in paths):
            if path in files:
                answers.append(_make_file_row(path, files[path]))
            elif path == "" or any(name.startswith(f"{path}/") for name in files):
                answers.append(_make_folder_row(path))
        self.answer(HTTPStatus.OK, answers)

    def _read_only(self) -> None:
        self.close_connection = True  # its body is not read
        self.refuse(HTTPStatus.METHOD_NOT_ALLOWED, "ReadOnly", "this server is read-only", {"Allow": "GET, HEAD"})

    do_PUT = do_DELETE = do_PATCH = _read_only

    def body(self, largest: int = LARGEST_QUESTION) -> bytes:
        """Return the request's body; refuse it if its length is not a single number, or too large."""
        lengths = self.headers.get_all("Content-Length") or ["0"]
        length = _parse_number(lengths[0])
        if self.headers.get("Transfer-Encoding") or len(lengths) > 1 or length is None or length > largest:
            self.close_connection = True
            message = f"expected a length of at most {largest}"
            raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "BadRequest", message)
        return self.rfile.read(length)

    def refuse_path(self) -> RefusedRequest:
        """Return the error for unknown paths."""
        return RefusedRequest(HTTPStatus.NOT_FOUND, "RepoNotFound", "Repository not found")

    # -- what is asked for --------------------------------------------------------------------------------------------

    def _find_commit(self, match: re.Match[str]) -> tuple[Folder, str]:
        """Return the repository and commit that a path names."""
        repository = type(self).find(match["kind"] or "models", unquote(match["id"]))
        if repository is None:
            raise self.refuse_path()
        revision = unquote(match["revision"] or "main")
        commit = repository.commit(revision)
        if commit is None:
            raise RefusedRequest(HTTPStatus.NOT_FOUND, "RevisionNotFound", f"Invalid rev id: {quote(revision)}")
        return repository, commit

    def _describe(self, match: re.Match[str], query: Mapping[str, str]) -> None:
        repository, commit = self._find_commit(match)
        files, name = repository.files(commit), unquote(match["id"])
        if match["verb"] == "refs":
            self.answer(HTTPStatus.OK, {"converts": [], **repository.refs()})
        elif match["verb"] == "tree":
            self._tree(files, unquote(match["path"] or "").strip("/"), query)
        elif match["verb"] in (None, "revision"):
            facts = {"private": False, "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": []}
            facts |= {"_id": commit[:24], "id": name, "author": name.rpartition("/")[0] or None, "sha": commit}
            self.answer(HTTPStatus.OK, facts | {"siblings": [{"rfilename": path} for path in sorted(files)]})
        else:
            raise self.refuse_path()

    def _tree(self, files: Mapping[str, HubFile], folder: str, query: Mapping[str, str]) -> None:
        prefix = f"{folder}/" if folder else ""
        inside = {path: entry for path, entry in sorted(files.items()) if path.startswith(prefix)}
        if folder and not inside:
            raise RefusedRequest(HTTPStatus.NOT_FOUND, "EntryNotFound", "HubFile not found")
        whole = query.get("recursive", "false").lower() in ("1", "true")
        rows: dict[str, dict[str, Any]] = {}
        for path, entry in inside.items():
            parts = path.removeprefix(prefix).split("/")
            for depth in range(1, len(parts) if whole else min(len(parts), 2)):
                parent = prefix + "/".join(parts[:depth])
                rows.setdefault(parent, _make_folder_row(parent))
            if whole or len(parts) == 1:
                rows[path] = _make_file_row(path, entry)
        self.answer(HTTPStatus.OK, list(rows.values()))

    def _resolve(self, match: re.Match[str]) -> None:
        repository, commit = self._find_commit(match)
        path = unquote(match["path"])
        entry = repository.files(commit).get(path)
        try:
            if entry is None:
                raise FileNotFoundError(path)
            file = repository.open(commit, path)
        except OSError:  # also one that is gone or changed since it was listed
            headers = {"X-Repo-Commit": commit}
            raise RefusedRequest(HTTPStatus.NOT_FOUND, "EntryNotFound", "HubFile not found", headers) from None
        with file:
            self._send(file, entry, commit)

    def _send(self, file: BinaryIO, entry: HubFile, commit: str) -> None:
        etag = entry.lfs or entry.oid
        span = _parse_range(self.headers.get("Range"), entry.size)
        if self.headers.get("If-Range") not in (None, f'"{etag}"'):
            span = (0, entry.size, False)
        if span is None:
            headers = {"Content-Range": f"bytes */{entry.size}"}
            raise RefusedRequest(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "BadRange", "no such range", headers)
        start, end, partial = span
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(end - start)}
        headers |= {"Accept-Ranges": "bytes", "ETag": f'"{etag}"', "X-Repo-Commit": commit}
        if partial:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{entry.size}"
        if entry.lfs:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(entry.size)}
        self._head(HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK, headers)
        if self.command == "HEAD" or start == end:
            return
        if isinstance(file, io.BytesIO):
            self.wfile.write(file.getbuffer()[start:end])
        else:
            self.connection.sendfile(file, start, end - start)

    # -- the connection -----------------------------------------------------------------------------------------------

    def end_headers(self) -> None:
        """End the headers."""
        if self.close_connection:
            self.send_header("Connection", "close")
        super().end_headers()

    def handle_one_request(self) -> None:
        """Handle one request."""
        self.incoming.began = None
        try:
            try:
                super().handle_one_request()
            except RefusedRequest as refused:
                self.refuse(*refused.args)
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the reader went away

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a cluster's readers send many range requests."""


def _make_file_row(path: str, entry: HubFile) -> dict[str, Any]:
    row: dict[str, Any] = {"type": "file", "oid": entry.oid, "size": entry.size, "path": path}
    if entry.lfs:
        row["lfs"] = {"oid": entry.lfs, "size": entry.size, "pointerSize": 134}
    return row


def _make_folder_row(path: str) -> dict[str, Any]:
    return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}


def _parse_range(header: str | None, size: int) -> tuple[int, int, bool] | None:
    """Parse a Range header to (start, end, partial); None if no byte of the range exists.

    Other headers than single byte ranges are ignored, as HTTP allows, and the whole file is sent.
    """
    unit, _, spans = (header or "").partition("=")
    first, dash, last = (part.strip() for part in spans.partition("-"))
    start, final = _parse_number(first), _parse_number(last)
    known = unit.strip() == "bytes" and dash and (start is not None or not first) and (final is not None or not last)
    if not known or (start is None and final is None) or (start is not None and final is not None and final < start):
        return 0, size, False
    if start is None:
        length = min(final or 0, size)
        return (size - length, size, True) if length else None
    return (start, size if final is None else min(final + 1, size), True) if start < size else None


def _parse_number(text: str) -> int | None:
    """Parse a header's whole number of at most 18 digits; None for others. Its time does not depend on a pattern."""
    text = text.strip()
    return int(text) if len(text) <= 18 and text.isascii() and text.isdecimal() else None


class HubServer(ThreadingHTTPServer):
    """A server with one thread per connection; the threads end with the process."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], handler: type[HubHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    @property
    def url(self) -> str:
        """The address for HF_ENDPOINT."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of broken connections."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            print(f"{type(error).__name__}: {error}", file=sys.stderr)


def serve_folder(
    folder: str | os.PathLike[str], host: str = "127.0.0.1", port: int = 0, namespaces: tuple[str, ...] = ()
) -> HubServer:
    """Return a bound server of built folders, not yet started (call ``serve_forever``).

    Args:
        folder: The folder of folders, e.g. ``hub``.
        host: The address to bind; loopback by default.
        port: The port; 0 for any free one.
        namespaces: The organisations ORG whose ids ORG/NAME are answered; empty for all.

    Raises:
        DataError: The folder is missing or holds nothing to serve, or the address cannot be bound.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError("no such folder; `eraser-hub build` writes it", rule="file-missing", file=root)
    shelf = Shelf(root, namespaces)
    if not shelf.names():
        message = "expected folders NAME/ with a README.md, as `eraser-hub build` writes them, found none"
        raise DataError(message, rule="file-missing", file=root)
    handler = type("Handler", (HubHandler,), {"find": staticmethod(shelf.find)})
    try:
        return HubServer((host, port), handler)
    except (OSError, OverflowError) as error:
        message = f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}"
        raise DataError(message, rule="network") from None
