"""A Hub for the tests, in memory, on loopback: repositories, commits, LFS, tags, and refusals on request."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_" + "loopbackLOOPBACKloopback12345678"
ID = r"(?P<id>(?:[^/]+/)?[^/]+?)"
READ = re.compile(
    rf"/api/(?P<kind>datasets|spaces|models)/{ID}(?:/(?P<verb>revision|tree)/(?P<revision>[^/]+)/?(?P<path>.*))?"
)
RESOLVE = re.compile(rf"/(?:(?P<kind>datasets|spaces)/)?{ID}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
WRITE = re.compile(
    r"/api/(?P<kind>datasets|spaces|models)/(?P<id>[^/]+/[^/]+)/(?P<verb>preupload|commit|tag|branch)/(?P<revision>.+)"
)
Tree = dict[str, bytes]
NOT_FOUND = (404, "RepoNotFound", "Repository not found")


def is_lfs(path: str) -> bool:
    return path.endswith((".parquet", ".png", ".arrow"))


def file_row(path: str, content: bytes) -> dict[str, Any]:
    """A file as the Hub lists it: git's id of its content, and its LFS digest if it has one."""
    row = {"type": "file", "oid": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(), "path": path}
    stored = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return {**row, "size": len(content), **({"lfs": stored} if is_lfs(path) else {})}


@dataclass
class Repo:
    """One repository: commits hold whole trees."""

    private: bool = False
    commits: dict[str, Tree] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.record({".gitattributes": b"*.parquet filter=lfs\n"})

    def record(self, tree: Tree, branch: str = "main") -> str:
        commit = hashlib.sha1(f"{len(self.commits)} {sorted(tree)}".encode()).hexdigest()
        self.commits[commit], self.branches[branch] = tree, commit
        return commit

    def find(self, revision: str) -> str:
        found = self.branches.get(revision) or self.tags.get(revision) or revision
        if found not in self.commits:
            raise Refusal(404, "RevisionNotFound", "Invalid rev id")
        return found

    @property
    def tree(self) -> Tree:
        """The files of the newest commit."""
        return self.commits[self.branches["main"]]


class Refusal(Exception):
    """A request that is answered by an error: its status, code and message."""


class LoopbackHub:
    """The Hub: its repositories, the requests that were made, and (method, pattern of a path) -> status to answer."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.refused: dict[tuple[str, str], int] = {}
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[LoopbackHub]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (HubHandler,), {"hub": self}))
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join(timeout=10)


class HubHandler(BaseHTTPRequestHandler):
    """The Hub's endpoints that `publish`, `datasets` and `evaluate` use."""

    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        path, status, headers = unquote(urlsplit(self.path).path), 200, dict[str, str]()
        self.hub.requests.append((self.command, path))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            for (method, pattern), code in self.hub.refused.items():
                if method == self.command and re.search(pattern, path):
                    raise Refusal(code, "Refused", f"refused with {self.headers.get('Authorization')}")
            answer, headers = self._act(path, body)
        except Refusal as refused:
            status, code, message = refused.args
            answer, headers = {"error": message}, {"X-Error-Code": code, "X-Error-Message": message}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _act(self, path: str, body: bytes) -> tuple[Any, dict[str, str]]:
        if match := RESOLVE.fullmatch(path):
            return self._resolve(match)
        if self.command == "GET" and (match := READ.fullmatch(path)):
            return self._describe(match), {}
        if path.startswith("/objects/"):
            self.hub.objects[hashlib.sha256(body).hexdigest()] = body
            return {}, {}
        if path == "/api/validate-yaml":
            return {"errors": [], "warnings": []}, {}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "Unauthorized", "Invalid credentials in Authorization header")
        if path == "/api/repos/create":
            return self._create(json.loads(body)), {}
        if path.endswith("/info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            for row in objects:
                row["actions"] = {"upload": {"href": f"{self.hub.url}/objects/{row['oid']}", "header": {}}}
            return {"transfer": "basic", "objects": objects}, {}
        match = WRITE.fullmatch(path)
        if match is None or (match["kind"], match["id"]) not in self.hub.repos:
            raise Refusal(*NOT_FOUND)
        repo = self.hub.repos[match["kind"], match["id"]]
        return getattr(self, f"_{match['verb']}")(repo, match["revision"], body), {}

    def _find(self, match: re.Match[str]) -> tuple[Repo, str]:
        repo = self.hub.repos.get((match["kind"] or "models", match["id"]))
        if repo is None:
            raise Refusal(*NOT_FOUND)
        return repo, repo.find(match["revision"] or "main")

    def _resolve(self, match: re.Match[str]) -> tuple[bytes, dict[str, str]]:
        repo, commit = self._find(match)
        path = match["path"]
        if path not in repo.commits[commit]:
            raise Refusal(404, "EntryNotFound", "File not found")
        content = repo.commits[commit][path]
        etag = f'"{file_row(path, content)["oid"]}"'
        return content, {"ETag": etag, "X-Repo-Commit": commit}

    def _describe(self, match: re.Match[str]) -> Any:
        repo, commit = self._find(match)
        files = sorted(repo.commits[commit].items())
        if match["verb"] == "tree":
            folder, whole = match["path"] and match["path"] + "/", "recursive=true" in self.path.lower()
            rows = {}
            for path, content in files:
                name, below, _ = path.removeprefix(folder).partition("/")
                if path.startswith(folder) and (whole or not below):
                    rows[path] = file_row(path, content)
                elif path.startswith(folder):
                    rows[folder + name] = {"type": "directory", "oid": name, "size": 0, "path": folder + name}
            return [*rows.values()]
        facts = {"private": repo.private, "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": []}
        siblings = [{"rfilename": path} for path, _ in files]
        return {**facts, "_id": commit[:24], "id": match["id"], "author": "org", "sha": commit, "siblings": siblings}

    def _create(self, asked: dict[str, Any]) -> Any:
        kind, name = f"{asked['type']}s", f"{asked['organization']}/{asked['name']}"
        private = asked.get("private") is True or asked.get("visibility") == "private"
        self.hub.repos.setdefault((kind, name), Repo(private=private))
        return {"url": f"{self.hub.url}/{kind}/{name}", "name": name, "id": "1"}

    def _preupload(self, repo: Repo, revision: str, body: bytes) -> Any:
        tree, rows = repo.commits[repo.find(revision)], []
        for path in (row["path"] for row in json.loads(body)["files"]):
            oid = file_row(path, tree[path])["oid"] if path in tree else None
            mode = "lfs" if is_lfs(path) else "regular"
            rows.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return {"files": rows}

    def _commit(self, repo: Repo, revision: str, body: bytes) -> Any:
        tree = dict(repo.commits[repo.find(revision)])
        for row in map(json.loads, body.splitlines()[1:]):
            value = row["value"]
            if row["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"])
            elif row["key"] == "lfsFile":
                tree[value["path"]] = self.hub.objects[value["oid"]]
            else:
                del tree[value["path"]]
        commit = repo.record(tree, revision)
        address = self.path.removeprefix("/api").rpartition("/")[0]
        return {"commitUrl": f"{self.hub.url}{address}/{commit}", "commitOid": commit}

    def _tag(self, repo: Repo, revision: str, body: bytes) -> Any:
        if (tag := json.loads(body)["tag"]) in repo.tags:
            raise Refusal(409, "Conflict", "the tag exists")
        repo.tags[tag] = repo.find(revision)
        return {}

    def _branch(self, repo: Repo, branch: str, body: bytes) -> Any:
        repo.branches.setdefault(branch, repo.branches["main"])
        return {}
