"""A Hub for the tests, in memory, on loopback: repositories, commits, LFS, tags, ranges, and errors on request.

Nothing of it is imported by the project itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_" + "loopbackLOOPBACKloopback12345678"
LFS_SUFFIXES = (".parquet", ".png", ".arrow")
_ID = r"(?P<id>(?:[^/]+/)?[^/]+?)"
_API = re.compile(
    rf"/api/(?P<kind>datasets|spaces|models)/{_ID}"
    r"(?:/(?P<verb>revision|tree|paths-info|refs)(?:/(?P<revision>[^/]+)(?:/(?P<path>.*))?)?)?"
)
_RESOLVE = re.compile(rf"/(?:(?P<kind>datasets|spaces)/)?{_ID}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True)
class HubFile:
    """A file of a repository: its content, git's id of it, and its LFS digest if it has one."""

    content: bytes
    oid: str
    lfs: str | None = None

    def row(self, path: str) -> dict[str, Any]:
        row: dict[str, Any] = {"type": "file", "oid": self.oid, "size": len(self.content), "path": path}
        lfs = {"oid": self.lfs, "size": len(self.content), "pointerSize": 134}
        return row | ({"lfs": lfs} if self.lfs else {})


def folder_row(path: str) -> dict[str, Any]:
    return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}


@dataclass
class Repo:
    """One repository: commits hold whole trees, path -> (content, whether in LFS)."""

    private: bool = False
    commits: dict[str, dict[str, tuple[bytes, bool]]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.record("main", {".gitattributes": (b"*.parquet filter=lfs\n", False)}, "initial commit")

    def record(self, branch: str, tree: dict[str, tuple[bytes, bool]], message: str) -> str:
        commit = hashlib.sha1(f"{len(self.commits)} {message} {sorted(tree)} {time.time_ns()}".encode()).hexdigest()
        self.commits[commit], self.branches[branch] = tree, commit
        self.messages.append(message)
        return commit

    def commit(self, revision: str) -> str | None:
        found = self.branches.get(revision) or self.tags.get(revision)
        return found or (revision if revision in self.commits else None)

    def files(self, commit: str) -> dict[str, HubFile]:
        return {
            path: HubFile(
                content,
                hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
                hashlib.sha256(content).hexdigest() if lfs else None,
            )
            for path, (content, lfs) in self.commits[commit].items()
        }

    def refs(self) -> dict[str, list[dict[str, str]]]:
        return {
            "branches": [_ref("heads", name, target) for name, target in self.branches.items()],
            "tags": [_ref("tags", name, target) for name, target in self.tags.items()],
        }


def _ref(kind: str, name: str, target: str) -> dict[str, str]:
    return {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": target}


@dataclass
class Fault:
    """An answer to give in place of the right one, a number of times.

    ``status`` 0 cuts the connection without an answer; ``after`` lets the request take effect first.
    """

    method: str
    path: str
    status: int
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False


class LoopbackHub:
    """The Hub: its repositories, the faults to come, and the requests that were made."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.token, self.may_write = TOKEN, True
        self.lock = threading.RLock()
        self.server: ThreadingHTTPServer | None = None

    def find(self, kind: str, repository: str) -> Repo | None:
        return self.repos.get((kind, repository))

    def fail(self, method: str, path: str, status: int, **more: Any) -> Fault:
        self.faults.append(Fault(method, path, status, **more))
        return self.faults[-1]

    def due(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and fault.method == method and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None

    def count(self, method: str, path: str) -> int:
        return sum(1 for made, asked in self.requests if made == method and re.search(path, asked))

    @property
    def url(self) -> str:
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[LoopbackHub]:
        self.server = HubServer(("127.0.0.1", 0), type("Handler", (WritingHandler,), {"hub": self}))
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join(timeout=10)


class HubServer(ThreadingHTTPServer):
    """One thread per connection; the threads end with the process."""

    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of broken connections."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class RefusedRequest(Exception):
    """A request that is answered by an error: the arguments of `HubHandler.refuse`."""


NOT_FOUND = (404, "RepoNotFound", "Repository not found")


class HubHandler(BaseHTTPRequestHandler):
    """The Hub's endpoints that read: repository, tree, paths-info, refs, and files by range."""

    hub: LoopbackHub
    protocol_version = "HTTP/1.1"
    timeout = 30

    def answer(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        """Send a complete answer: JSON."""
        content = b"" if body is None else json.dumps(body).encode()
        self._send(status, content, {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        """Send an error in the Hub's format: its code and message in headers."""
        self.answer(status, {"error": message}, {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})})

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if match := _RESOLVE.fullmatch(url.path):
            self._resolve(match)
        elif match := _API.fullmatch(url.path):
            self._describe(match, parse_qs(url.query))
        else:
            raise RefusedRequest(*NOT_FOUND)

    def do_POST(self) -> None:
        """Answer the paths-info request, the only one that reads by POST."""
        match = _API.fullmatch(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if match is None:
            raise RefusedRequest(*NOT_FOUND)
        repository, commit = self._find_commit(match)
        json_body = "json" in (self.headers.get("Content-Type") or "")
        paths = (json.loads(body) if json_body else parse_qs(body.decode())).get("paths") or []
        files, answers = repository.files(commit), []
        for path in dict.fromkeys(path.strip("/") for path in ([paths] if isinstance(paths, str) else paths)):
            if path in files:
                answers.append(files[path].row(path))
            elif path == "" or any(name.startswith(f"{path}/") for name in files):
                answers.append(folder_row(path))
        self.answer(200, answers)

    def _find_commit(self, match: re.Match[str]) -> tuple[Repo, str]:
        """Return the repository and commit that a path names; private ones are found by their owner alone."""
        repository = self.hub.find(match["kind"] or "models", unquote(match["id"]))
        if repository is None:
            raise RefusedRequest(*NOT_FOUND)
        if repository.private and self._token() != self.hub.token:
            raise RefusedRequest(401, "RepoNotFound", "Repository not found")
        commit = repository.commit(unquote(match["revision"] or "main"))
        if commit is None:
            raise RefusedRequest(404, "RevisionNotFound", "Invalid rev id")
        return repository, commit

    def _token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def _describe(self, match: re.Match[str], query: dict[str, list[str]]) -> None:
        repository, commit = self._find_commit(match)
        files, name = repository.files(commit), unquote(match["id"])
        if match["verb"] == "refs":
            self.answer(200, {"converts": [], **repository.refs()})
        elif match["verb"] == "tree":
            whole = query.get("recursive", ["false"])[-1].lower() in ("1", "true")
            self.answer(200, self._tree(files, unquote(match["path"] or "").strip("/"), whole))
        elif match["verb"] in (None, "revision"):
            facts = {"private": False, "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": []}
            facts |= {"_id": commit[:24], "id": name, "author": name.rpartition("/")[0] or None, "sha": commit}
            self.answer(200, facts | {"siblings": [{"rfilename": path} for path in sorted(files)]})
        else:
            raise RefusedRequest(*NOT_FOUND)

    def _tree(self, files: dict[str, HubFile], folder: str, whole: bool) -> list[dict[str, Any]]:
        prefix = f"{folder}/" if folder else ""
        inside = {path: entry for path, entry in sorted(files.items()) if path.startswith(prefix)}
        if folder and not inside:
            raise RefusedRequest(404, "EntryNotFound", "File not found")
        rows: dict[str, dict[str, Any]] = {}
        for path, entry in inside.items():
            parts = path.removeprefix(prefix).split("/")
            for depth in range(1, len(parts) if whole else min(len(parts), 2)):
                parent = prefix + "/".join(parts[:depth])
                rows.setdefault(parent, folder_row(parent))
            if whole or len(parts) == 1:
                rows[path] = entry.row(path)
        return list(rows.values())

    def _resolve(self, match: re.Match[str]) -> None:
        repository, commit = self._find_commit(match)
        entry = repository.files(commit).get(unquote(match["path"]))
        if entry is None:
            raise RefusedRequest(404, "EntryNotFound", "File not found", {"X-Repo-Commit": commit})
        etag, size, status, content = entry.lfs or entry.oid, len(entry.content), 200, entry.content
        headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
        headers |= {"ETag": f'"{etag}"', "X-Repo-Commit": commit}
        if entry.lfs:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(size)}
        if span := re.fullmatch(r"bytes=(\d+)-(\d*)|bytes=-(\d+)", self.headers.get("Range") or ""):
            start = max(0, size - int(span[3])) if span[3] else int(span[1])
            end = min(size, int(span[2]) + 1) if span[2] else size
            if start >= end:
                raise RefusedRequest(416, "BadRange", "no such range", {"Content-Range": f"bytes */{size}"})
            status, content = 206, content[start:end]
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self._send(status, content, headers)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except RefusedRequest as refused:
            self.refuse(*refused.args)
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the reader went away

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class WritingHandler(HubHandler):
    """The Hub's endpoints that write."""

    def _run(self, act: Any) -> None:
        path = unquote(self.path)
        self.hub.requests.append((self.command, path))
        fault = self.hub.due(self.command, path)
        if fault is not None and not fault.after:
            self._fault(fault)
            return
        if fault is not None:
            answer, self.answer = self.answer, lambda *_args, **_more: None  # type: ignore[method-assign]
            act()
            self.answer = answer  # type: ignore[method-assign]
            self._fault(fault)
            return
        act()

    def _fault(self, fault: Fault) -> None:
        self.close_connection = True
        if fault.status:
            message = fault.headers.get("X-Error-Message", f"fault {fault.status}")
            self.answer(fault.status, {"error": message}, {"Connection": "close", **fault.headers})
        elif not fault.after:
            self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 100))  # some of it arrives

    def do_GET(self) -> None:
        self._run(super().do_GET)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if "/paths-info/" in self.path:
            self._run(super().do_POST)
        else:
            self._run(self._post)

    def do_PUT(self) -> None:
        self._run(self._put)

    def do_DELETE(self) -> None:
        self._run(self._delete)

    def _allowed(self) -> bool:
        token = self._token()
        if token != self.hub.token:
            self.refuse(401, "Unauthorized", "Invalid credentials in Authorization header")
        elif not self.hub.may_write:
            self.refuse(403, "Forbidden", "You don't have the rights to write here")
        else:
            return True
        return False

    def _read(self) -> bytes:
        if (self.headers.get("Transfer-Encoding") or "").lower() == "chunked":
            pieces = []
            for _ in range(1 << 20):
                size = int(self.rfile.readline().split(b";")[0], 16)
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
                if not size:
                    break
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _repo(self, kind: str, name: str) -> Repo | None:
        repo = self.hub.find(kind, name)
        if repo is None:
            self.refuse(404, "RepoNotFound", "Repository not found")
        return repo

    def _post(self) -> None:
        body, path = self._read(), urlsplit(self.path).path
        if path == "/api/validate-yaml":
            self.answer(200, {"errors": [], "warnings": []})
        elif not self._allowed():
            return
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif match := re.fullmatch(r"/(?:(datasets|spaces)/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            self._batch(match, json.loads(body))
        elif match := re.fullmatch(
            r"/api/(datasets|spaces|models)/([^/]+/[^/]+)/(preupload|commit|tag|branch)/(.+)", path
        ):
            with self.hub.lock:
                repo = self._repo(match[1], match[2])
                if repo is not None:
                    getattr(self, f"_{match[3]}")(repo, unquote(match[4]), body, f"{match[1]}/{match[2]}")
        else:
            raise RefusedRequest(*NOT_FOUND)

    def _create(self, asked: dict[str, Any]) -> None:
        kind, name = f"{asked['type']}s", f"{asked['organization']}/{asked['name']}"
        if (kind, name) in self.hub.repos:
            self.answer(409, {"error": "You already created this repo", "url": f"{self.hub.url}/{kind}/{name}"})
            return
        if kind == "spaces" and asked.get("sdk") != "gradio":
            self.refuse(400, "BadRequest", "expected an sdk")
            return
        private = asked.get("private") is True or asked.get("visibility") == "private"
        self.hub.repos[kind, name] = Repo(private=private)
        self.answer(200, {"url": f"{self.hub.url}/{kind}/{name}", "name": name, "id": "1"})

    def _batch(self, match: re.Match[str], asked: dict[str, Any]) -> None:
        objects = []
        for row in asked["objects"]:
            row = {"oid": row["oid"], "size": row["size"]}
            if row["oid"] not in self.hub.objects:
                row["actions"] = {"upload": {"href": f"{self.hub.url}/objects/{row['oid']}", "header": {}}}
            objects.append(row)
        self.answer(200, {"transfer": "basic", "objects": objects})

    def _put(self) -> None:
        body, oid = self._read(), self.path.rpartition("/")[2]
        if hashlib.sha256(body).hexdigest() != oid:
            self.refuse(400, "BadRequest", "the content is not what was announced")
            return
        self.hub.objects[oid] = body
        self.answer(200, {})

    def _preupload(self, repo: Repo, revision: str, body: bytes, address: str) -> None:
        tree = repo.commits.get(repo.commit(revision) or "", {})
        rows = []
        for row in json.loads(body)["files"]:
            mode = "lfs" if row["path"].endswith(LFS_SUFFIXES) else "regular"
            known = tree.get(row["path"])
            oid = None if known is None else hashlib.sha1(b"blob %d\0" % len(known[0]) + known[0]).hexdigest()
            rows.append({"path": row["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.answer(200, {"files": rows})

    def _commit(self, repo: Repo, revision: str, body: bytes, address: str) -> None:
        rows = [json.loads(line) for line in body.splitlines() if line.strip()]
        if revision not in repo.branches:
            self.refuse(404, "RevisionNotFound", "Invalid rev id")
            return
        tree = dict(repo.commits[repo.branches[revision]])
        for row in rows[1:]:
            value = row["value"]
            if row["key"] == "file":
                tree[value["path"]] = (base64.b64decode(value["content"]), False)
            elif row["key"] == "lfsFile":
                if value["oid"] not in self.hub.objects:
                    self.refuse(400, "BadRequest", f"the LFS object of {value['path']} is missing")
                    return
                tree[value["path"]] = (self.hub.objects[value["oid"]], True)
            elif row["key"] == "deletedFile":
                tree.pop(value["path"])
            elif row["key"] == "deletedFolder":
                tree = {path: file for path, file in tree.items() if not path.startswith(value["path"])}
        commit = repo.record(revision, tree, rows[0]["value"]["summary"])
        url = f"{self.hub.url}/{address}/commit/{commit}"
        self.answer(200, {"success": True, "commitUrl": url, "commitOid": commit, "hookOutput": ""})

    def _tag(self, repo: Repo, revision: str, body: bytes, address: str) -> None:
        tag, commit = json.loads(body)["tag"], repo.commit(revision)
        if commit is None:
            self.refuse(404, "RevisionNotFound", "Invalid rev id")
        elif tag in repo.tags:
            self.refuse(409, "Conflict", "the tag exists")
        else:
            repo.tags[tag] = commit
            self.answer(200, {})

    def _branch(self, repo: Repo, branch: str, body: bytes, address: str) -> None:
        if branch in repo.branches:
            self.refuse(409, "Conflict", "the branch exists")
            return
        repo.branches[branch] = repo.branches["main"]
        self.answer(200, {})

    def _delete(self) -> None:
        self._read()
        match = re.fullmatch(r"/api/(datasets|spaces)/([^/]+/[^/]+)/tag/(.+)", urlsplit(self.path).path)
        if match is None:
            raise RefusedRequest(*NOT_FOUND)
        elif self._allowed():
            repo = self._repo(match[1], match[2])
            if repo is not None:
                repo.tags.pop(unquote(match[3]), None)
                self.answer(200, {})
