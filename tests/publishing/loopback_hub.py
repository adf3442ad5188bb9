"""A Hub for the tests, in memory, on loopback: repositories, commits, LFS, tags, ranges, and errors on request.

The read endpoints are those of ``serve``; what writes is here. Nothing of it is imported by the project itself.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from eraser_hub.publishing.serve import HubFile, HubHandler, HubServer, RefusedRequest

TOKEN = "hf_" + "loopbackLOOPBACKloopback12345678"
LFS_SUFFIXES = (".parquet", ".png", ".arrow")
DATE = "2026-01-01T00:00:00.000Z"
LARGEST_BODY = 1 << 28


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

    def merge(self, request: str) -> None:
        """Merge a pull request (``refs/pr/1``), as its owner does."""
        self.record("main", dict(self.commits[self.branches["main"]] | self.commits[self.branches[request]]), "merge")

    def commit(self, revision: str) -> str | None:
        found = self.branches.get(revision) or self.tags.get(revision)
        return found or (revision if revision in self.commits else None)

    def files(self, commit: str) -> dict[str, HubFile]:
        return {
            path: HubFile(
                len(content),
                hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
                hashlib.sha256(content).hexdigest() if lfs else None,
            )
            for path, (content, lfs) in self.commits[commit].items()
        }

    def open(self, commit: str, path: str) -> io.BytesIO:
        return io.BytesIO(self.commits[commit][path][0])

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
        self.collections: dict[str, list[dict[str, str]]] = {}
        self.objects: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.token, self.may_write = TOKEN, True
        self.visitors: set[str] = set()  # tokens of other accounts: they may open requests and comment
        self.comments: dict[tuple[str, int], list[str]] = {}
        self.dates: dict[str, str] = {}  # of files' last commits
        self.lock = threading.RLock()
        self.server: HubServer | None = None

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
        return self.server.url

    @contextmanager
    def running(self) -> Iterator[LoopbackHub]:
        handler = type("Handler", (WritingHandler,), {"hub": self, "find": staticmethod(self.find)})
        self.server = HubServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join(timeout=10)


class WritingHandler(HubHandler):
    """The Hub's endpoints that write."""

    hub: LoopbackHub
    timeout = 30

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
        slug = unquote(self.path).removeprefix("/api/collections/")
        if slug in self.hub.collections:
            self._run(lambda: self._show_collection(200, slug))
        else:
            self._run(super().do_GET)

    do_HEAD = do_GET

    def _find_commit(self, match: re.Match[str]) -> Any:
        """Hide private repositories from all but their owner, as the Hub does: they are not found."""
        repo = self.hub.find(match["kind"] or "models", unquote(match["id"]))
        if repo is not None and repo.private and self._token() != self.hub.token:
            raise RefusedRequest(401, "RepoNotFound", "Repository not found")
        return super()._find_commit(match)

    def _token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def do_POST(self) -> None:
        if "/paths-info/" in self.path:
            self._run(self._describe_paths)
        else:
            self._run(self._post)

    def _describe_paths(self) -> None:
        """Answer as `serve` does, with the last commit of each file."""
        answer = self.answer

        def add_dates(status: int, rows: Any, *more: Any) -> None:
            commits = [{"id": "1", "title": "t", "date": self.hub.dates.get(row["path"], DATE)} for row in rows]
            answer(status, [row | {"lastCommit": commit} for row, commit in zip(rows, commits, strict=True)], *more)

        self.answer = add_dates  # type: ignore[method-assign]
        super().do_POST()
        self.answer = answer  # type: ignore[method-assign]

    def do_PUT(self) -> None:
        self._run(self._put)

    def do_DELETE(self) -> None:
        self._run(self._delete)

    def _allowed(self) -> bool:
        token = self._token()
        if token in self.hub.visitors:
            if re.search(r"/preupload/|/info/lfs/|/objects/|[?&]create_pr=1|/discussions/\d+/comment$", self.path):
                return True
            self.refuse(403, "Forbidden", "You don't have the rights to write here")
        elif token != self.hub.token:
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
        elif match := re.fullmatch(r"/api/collections(?:/(.+)/items)?", path):
            self._collect(match[1], json.loads(body))
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
        elif match := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/discussions/(\d+)/comment", path):
            self._comment(match[1], int(match[2]), json.loads(body)["comment"])
        else:
            raise self.refuse_path()

    def _comment(self, name: str, number: int, text: str) -> None:
        repo = self._repo("datasets", name)
        if repo is not None and f"refs/pr/{number}" not in repo.branches:
            self.refuse(404, "EntryNotFound", "no such discussion")
        elif repo is not None:
            self.hub.comments.setdefault((name, number), []).append(text)
            data = {"edited": False, "hidden": False, "latest": {"raw": text}}
            event = {"id": "1", "type": "comment", "createdAt": "2026-01-01T00:00:00.000Z", "author": {"name": "one"}}
            self.answer(200, {"newMessage": {**event, "data": data}})

    def _collect(self, slug: str | None, asked: dict[str, Any]) -> None:
        collections = self.hub.collections
        if slug is None:
            slug = f"{asked['namespace']}/{re.sub('[^a-z]+', '-', asked['title'].lower())}-1234"
            status = 409 if slug in collections else 200
            collections.setdefault(slug, [])
        else:
            status = 409 if asked["item"] in collections[slug] else 200
            collections[slug] += [asked["item"]] * (status == 200)
        self._show_collection(status, slug)

    def _show_collection(self, status: int, slug: str) -> None:
        items = [{"_id": f"{at}", "position": at, **item} for at, item in enumerate(self.hub.collections[slug])]
        facts = {"owner": {"name": slug.partition("/")[0]}, "lastUpdated": "2026-01-01T00:00:00.000Z", "position": 0}
        more = {"title": slug, "private": False, "theme": "blue", "upvotes": 0, "description": None}
        self.answer(status, {"slug": slug, **facts, **more, "items": items})

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
        number, request = 0, "create_pr=1" in urlsplit(self.path).query.split("&")
        if request:
            number = 1 + sum(name.startswith("refs/pr/") for name in repo.branches)
            repo.branches[f"refs/pr/{number}"] = repo.branches[revision]
            revision = f"refs/pr/{number}"
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
        more = {"pullRequestUrl": f"{self.hub.url}/{address}/discussions/{number}"} if request else {}
        self.answer(200, {"success": True, "commitUrl": url, "commitOid": commit, "hookOutput": "", **more})

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
            raise self.refuse_path()
        elif self._allowed():
            repo = self._repo(match[1], match[2])
            if repo is not None:
                repo.tags.pop(unquote(match[3]), None)
                self.answer(200, {})
