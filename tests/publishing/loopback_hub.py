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
_READ = re.compile(
    rf"/api/(?P<kind>datasets|spaces|models)/{_ID}"
    r"(?:/(?P<verb>revision|tree|refs)(?:/(?P<revision>[^/]+)(?:/(?P<path>.*))?)?)?"
)
_RESOLVE = re.compile(rf"/(?:(?P<kind>datasets|spaces)/)?{_ID}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
_WRITE = re.compile(
    r"/api/(?P<kind>datasets|spaces|models)/(?P<id>[^/]+/[^/]+)/(?P<verb>preupload|commit|tag|branch)/(?P<revision>.+)"
)
_LFS = re.compile(r"/(?:(?:datasets|spaces)/)?[^/]+/[^/]+\.git/info/lfs/objects/batch")
Tree = dict[str, tuple[bytes, bool]]  # path -> (content, whether in LFS)


def file_row(path: str, content: bytes, lfs: bool) -> dict[str, Any]:
    """A file as the Hub lists it: git's id of its content, and its LFS digest if it has one."""
    oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    row = {"type": "file", "oid": oid, "size": len(content), "path": path}
    stored = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return row | ({"lfs": stored} if lfs else {})


def folder_row(path: str) -> dict[str, Any]:
    return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}


@dataclass
class Repo:
    """One repository: commits hold whole trees."""

    private: bool = False
    commits: dict[str, Tree] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.record("main", {".gitattributes": (b"*.parquet filter=lfs\n", False)}, "initial commit")

    def record(self, branch: str, tree: Tree, message: str) -> str:
        commit = hashlib.sha1(f"{len(self.commits)} {message} {sorted(tree)} {time.time_ns()}".encode()).hexdigest()
        self.commits[commit], self.branches[branch] = tree, commit
        self.messages.append(message)
        return commit

    def commit(self, revision: str) -> str | None:
        found = self.branches.get(revision) or self.tags.get(revision)
        return found or (revision if revision in self.commits else None)

    @property
    def tree(self) -> Tree:
        """The files of the newest commit."""
        return self.commits[self.branches["main"]]


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

    def fail(self, method: str, path: str, status: int, **more: Any) -> None:
        self.faults.append(Fault(method, path, status, **more))

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
        self.server = HubServer(("127.0.0.1", 0), type("Handler", (HubHandler,), {"hub": self}))
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


@dataclass
class Answer:
    """What is sent: bytes as they are, anything else as JSON."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class RefusedRequest(Exception):
    """A request that is answered by an error: its status, code and message."""


NOT_FOUND = (404, "RepoNotFound", "Repository not found")


class HubHandler(BaseHTTPRequestHandler):
    """The Hub's endpoints that `publish`, `datasets` and `evaluate` use."""

    hub: LoopbackHub
    protocol_version = "HTTP/1.1"
    timeout = 30

    def _serve(self) -> None:
        path = unquote(self.path)
        self.hub.requests.append((self.command, path))
        fault, answer = self.hub.due(self.command, path), Answer()
        if fault is None or fault.after:
            try:
                answer = self._act()
            except RefusedRequest as refused:
                status, code, message = refused.args
                answer = Answer({"error": message}, status, {"X-Error-Code": code, "X-Error-Message": message})
        if fault is not None:
            self.close_connection = True
            if not fault.status:
                if not fault.after:  # some of it arrives
                    self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 100))
                return
            answer = Answer({"error": f"fault {fault.status}"}, fault.status, {"Connection": "close", **fault.headers})
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        kind = "application/octet-stream" if content is answer.body else "application/json"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the reader went away

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _act(self) -> Answer:
        path, body = urlsplit(self.path).path, self._read()
        if match := _RESOLVE.fullmatch(path):
            return self._resolve(match)
        if match := _READ.fullmatch(path):
            return self._describe(match)
        if path.startswith("/objects/"):
            return self._put(path, body)
        if path == "/api/validate-yaml":
            return Answer({"errors": [], "warnings": []})
        if self._token() != self.hub.token:
            raise RefusedRequest(401, "Unauthorized", "Invalid credentials in Authorization header")
        if not self.hub.may_write:
            raise RefusedRequest(403, "Forbidden", "You don't have the rights to write here")
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if _LFS.fullmatch(path):
            objects = [{"oid": row["oid"], "size": row["size"]} for row in json.loads(body)["objects"]]
            for row in objects:
                if row["oid"] not in self.hub.objects:
                    row["actions"] = {"upload": {"href": f"{self.hub.url}/objects/{row['oid']}", "header": {}}}
            return Answer({"transfer": "basic", "objects": objects})
        match = _WRITE.fullmatch(path)
        if match is None or (match["kind"], match["id"]) not in self.hub.repos:
            raise RefusedRequest(*NOT_FOUND)
        with self.hub.lock:
            repo = self.hub.repos[match["kind"], match["id"]]
            return getattr(self, f"_{match['verb']}")(repo, unquote(match["revision"]), body)

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    # -- reading -------------------------------------------------------------------------------------------------------

    def _find_commit(self, match: re.Match[str]) -> tuple[Repo, str]:
        """Return the repository and commit that a path names; private ones are found by their owner alone."""
        repo = self.hub.repos.get((match["kind"] or "models", unquote(match["id"])))
        if repo is None:
            raise RefusedRequest(*NOT_FOUND)
        if repo.private and self._token() != self.hub.token:
            raise RefusedRequest(401, "RepoNotFound", "Repository not found")
        commit = repo.commit(unquote(match["revision"] or "main"))
        if commit is None:
            raise RefusedRequest(404, "RevisionNotFound", "Invalid rev id")
        return repo, commit

    def _resolve(self, match: re.Match[str]) -> Answer:
        repo, commit = self._find_commit(match)
        path = unquote(match["path"])
        if path not in repo.commits[commit]:
            raise RefusedRequest(404, "EntryNotFound", "File not found")
        content, lfs = repo.commits[commit][path]
        row, size, status = file_row(path, content, lfs), len(content), 200
        etag = f'"{row["lfs"]["oid"] if lfs else row["oid"]}"'
        headers = {"Accept-Ranges": "bytes", "ETag": etag, "X-Repo-Commit": commit}
        if lfs:
            headers |= {"X-Linked-Etag": etag, "X-Linked-Size": str(size)}
        if span := re.fullmatch(r"bytes=(\d+)-(\d*)|bytes=-(\d+)", self.headers.get("Range") or ""):
            start = max(0, size - int(span[3])) if span[3] else int(span[1])
            end = min(size, int(span[2]) + 1) if span[2] else size
            if start >= end:
                raise RefusedRequest(416, "BadRange", "no such range")
            status, content = 206, content[start:end]
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        return Answer(content, status, headers)

    def _describe(self, match: re.Match[str]) -> Answer:
        repo, commit = self._find_commit(match)
        tree, name, verb = repo.commits[commit], unquote(match["id"]), match["verb"]
        rows = {path: file_row(path, *file) for path, file in sorted(tree.items())}
        for path in tree:
            parts = path.split("/")
            for depth in range(1, len(parts)):
                rows.setdefault("/".join(parts[:depth]), folder_row("/".join(parts[:depth])))
        if verb == "refs":
            found = {
                kind: [{"name": ref, "ref": f"refs/{kind}/{ref}", "targetCommit": target} for ref, target in refs]
                for kind, refs in (("branches", repo.branches.items()), ("tags", repo.tags.items()))
            }
            return Answer({"converts": [], **found})
        if verb == "tree":
            folder = unquote(match["path"] or "").strip("/")
            if folder and folder not in rows:
                raise RefusedRequest(404, "EntryNotFound", "File not found")
            prefix = f"{folder}/" if folder else ""
            whole = parse_qs(urlsplit(self.path).query).get("recursive", [""])[-1].lower() in ("1", "true")
            inside = (path for path in rows if path.startswith(prefix))
            return Answer([rows[path] for path in inside if whole or "/" not in path.removeprefix(prefix)])
        facts = {"private": False, "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": []}
        facts |= {"_id": commit[:24], "id": name, "author": name.rpartition("/")[0] or None, "sha": commit}
        return Answer(facts | {"siblings": [{"rfilename": path} for path in sorted(tree)]})

    # -- writing -------------------------------------------------------------------------------------------------------

    def _create(self, asked: dict[str, Any]) -> Answer:
        kind, name = f"{asked['type']}s", f"{asked['organization']}/{asked['name']}"
        url = f"{self.hub.url}/{kind}/{name}"
        if (kind, name) in self.hub.repos:
            return Answer({"error": "You already created this repo", "url": url}, 409)
        if kind == "spaces" and asked.get("sdk") != "gradio":
            raise RefusedRequest(400, "BadRequest", "expected an sdk")
        private = asked.get("private") is True or asked.get("visibility") == "private"
        self.hub.repos[kind, name] = Repo(private=private)
        return Answer({"url": url, "name": name, "id": "1"})

    def _put(self, path: str, body: bytes) -> Answer:
        oid = hashlib.sha256(body).hexdigest()
        if not path.endswith(oid):
            raise RefusedRequest(400, "BadRequest", "the content is not what was announced")
        self.hub.objects[oid] = body
        return Answer({})

    def _preupload(self, repo: Repo, revision: str, body: bytes) -> Answer:
        tree, rows = repo.commits.get(repo.commit(revision) or "", {}), []
        for path in (row["path"] for row in json.loads(body)["files"]):
            mode = "lfs" if path.endswith(LFS_SUFFIXES) else "regular"
            oid = file_row(path, *tree[path])["oid"] if path in tree else None
            rows.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return Answer({"files": rows})

    def _commit(self, repo: Repo, revision: str, body: bytes) -> Answer:
        if revision not in repo.branches:
            raise RefusedRequest(404, "RevisionNotFound", "Invalid rev id")
        head, *rows = (json.loads(line) for line in body.splitlines() if line.strip())
        tree = dict(repo.commits[repo.branches[revision]])
        for kind, value in ((row["key"], row["value"]) for row in rows):
            if kind == "file":
                tree[value["path"]] = (base64.b64decode(value["content"]), False)
            elif kind == "lfsFile" and value["oid"] not in self.hub.objects:
                raise RefusedRequest(400, "BadRequest", f"the LFS object of {value['path']} is missing")
            elif kind == "lfsFile":
                tree[value["path"]] = (self.hub.objects[value["oid"]], True)
            elif kind == "deletedFile":
                tree.pop(value["path"])
        commit = repo.record(revision, tree, head["value"]["summary"])
        url = f"{self.hub.url}{self.path.removeprefix('/api').rpartition('/')[0]}/{commit}"
        return Answer({"success": True, "commitUrl": url, "commitOid": commit, "hookOutput": ""})

    def _tag(self, repo: Repo, revision: str, body: bytes) -> Answer:
        if self.command == "DELETE":
            repo.tags.pop(revision, None)
            return Answer({})
        tag, commit = json.loads(body)["tag"], repo.commit(revision)
        if commit is None:
            raise RefusedRequest(404, "RevisionNotFound", "Invalid rev id")
        if tag in repo.tags:
            raise RefusedRequest(409, "Conflict", "the tag exists")
        repo.tags[tag] = commit
        return Answer({})

    def _branch(self, repo: Repo, branch: str, body: bytes) -> Answer:
        if branch in repo.branches:
            raise RefusedRequest(409, "Conflict", "the branch exists")
        repo.branches[branch] = repo.branches["main"]
        return Answer({})
