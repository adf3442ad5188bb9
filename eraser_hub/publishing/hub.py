"""The Hub: what is there, what would change, uploads, and its errors in one line without a token."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile

from eraser_hub.records.errors import DataError, hide_credentials
from eraser_hub.records.files import compute_file_digest

from .staging import Repository

ADDRESSES = {"dataset": "datasets/", "space": "spaces/", "model": ""}
DATA = "*.parquet"  # a dataset's repository has no other files of this kind than its folder
MAX_FILES = 10_000  # of a repository


def list_published(api: HfApi, repository: Repository, revision: str) -> dict[str, RepoFile]:
    """Return the files on the Hub by their paths; none if there is no such repository or branch."""
    kind: Any = repository.kind
    try:
        tree = api.list_repo_tree(repository.repo_id, recursive=True, revision=revision, repo_type=kind)
        return {entry.path: entry for entry in islice(tree, MAX_FILES) if isinstance(entry, RepoFile)}
    except (RepositoryNotFoundError, RevisionNotFoundError):
        return {}


def compare(repository: Repository, published: Mapping[str, RepoFile]) -> dict[str, str]:
    """Return path -> add, change or delete, for each file in which the folder and the repository differ."""
    changes, folder = {}, repository.folder
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    for path, file in files.items():
        if path not in published:
            changes[path] = "add"
            continue
        lfs, blob = published[path].lfs, hashlib.sha1(b"blob %d\0" % file.stat().st_size)  # git's digest
        if compute_file_digest(file, None if lfs else blob) != (lfs.sha256 if lfs else published[path].blob_id):
            changes[path] = "change"
    if repository.kind == "dataset":
        deleted = sorted(path for path in published.keys() - files.keys() if path.endswith(DATA[1:]))
        changes |= dict.fromkeys(deleted, "delete")
    return changes


def describe_plan(repository: Repository, changes: Mapping[str, str]) -> list[str]:
    """Return the lines that say what becomes of a repository; of results the lines of the files themselves, too."""
    tag = f" (tag v{repository.version})" if repository.version else ""
    lines = [f"  {change} {path}" for path, change in changes.items()] or ["  unchanged"]
    lines.insert(0, f"{repository.kind} {repository.repo_id}{tag}")
    if repository.kind == "model":
        for path in changes:
            lines += (repository.folder / path).read_text(encoding="utf-8").splitlines()
    return lines


def upload(api: HfApi, repository: Repository, changes: Mapping[str, str], revision: str, private: bool) -> str:
    """Create a repository where there is none, upload what changes, and tag it; return its address."""
    kind, repo_id, folder, version = repository
    if kind != "model":  # which is its owner's to create
        sdk = "gradio" if kind == "space" else None
        api.create_repo(repo_id, repo_type=kind, private=private or None, exist_ok=True, space_sdk=sdk)
    if revision != "main":
        api.create_branch(repo_id, branch=revision, repo_type=kind, exist_ok=True)
    if changes:
        api.upload_folder(
            repo_id=repo_id,
            repo_type=kind,
            folder_path=folder,
            revision=revision,
            commit_message=f"{repo_id.partition('/')[2]} {version}" if version else "Results of evaluations",
            delete_patterns=DATA if kind == "dataset" else None,
        )
    if version and revision == "main":
        api.create_tag(repo_id, tag=f"v{version}", repo_type=kind, exist_ok=True)
    return f"{hide_credentials(str(api.endpoint))}/{ADDRESSES[kind]}{repo_id}"


@contextmanager
def explain_errors(api: HfApi, repo_id: str, published: Sequence[str]) -> Iterator[None]:
    """Raise errors of the Hub, the network and the disk as a DataError of one line, without any token."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # the client raises its own kinds, those of two HTTP libraries and the system's
        cause: BaseException = error
        while getattr(cause, "response", None) is None and cause.__cause__ is not None:
            cause = cause.__cause__
        response = getattr(cause, "response", None)
        if response is None:
            message = " ".join(str(error).split()) or type(error).__name__
        else:
            reason = getattr(cause, "server_message", None) or response.headers.get("X-Error-Message") or ""
            message = f"the Hub answers {response.status_code} {' '.join(str(reason).split())[:300]}".rstrip()
            if response.status_code in (401, 403):
                message += ": log in with `hf auth login`, or set HF_TOKEN to a token that may write there"
        message = redact(f"{api.endpoint}: {message}", str(api.token or get_token() or ""))
        before = f"; published before: {', '.join(published)}" if published else ""
        raise DataError(f"failed at {message}{before}; run the same command again", file=repo_id) from None


def redact(text: str, token: str) -> str:
    """Return the text without the token, without anything that resembles one, and without queries of addresses."""
    text = text.replace(token, "***") if token else text
    text = re.sub(r"\bhf_[A-Za-z0-9_]{6,}", "hf_***", text)
    text = re.sub(r"(?i)\bbearer\s+\S+", "Bearer ***", text)
    return hide_credentials(re.sub(r"(https?://[^\s?]+)\?\S+", r"\1", text))
