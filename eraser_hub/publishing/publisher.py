"""A client of a Hub, with retries for passing errors and clear messages for others."""

from __future__ import annotations

import logging
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from eraser_hub.records.errors import DataError
from eraser_hub.version import __version__

from .hub_errors import explain_error
from .uploads import MANIFEST, Changes, Upload, compare, parse_manifest

if TYPE_CHECKING:
    from huggingface_hub import HfApi

KINDS = {"dataset": "datasets/", "space": "spaces/", "model": ""}
LONGEST_WAIT = 600.0
CLIENT_PATIENCE = 10.0
TRIES = 4
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
log = logging.getLogger("eraser_hub")


class Publisher:
    """A client of one Hub, with retries for passing errors and clear messages for others.

    Args:
        api: The client; its token never leaves it.
        revision: The branch to publish to.
        private: Create new repositories as private ones.
        pause: Seconds before the first retry of a request; it doubles.
    """

    def __init__(self, api: HfApi, *, revision: str = "main", private: bool = False, pause: float = 1.0) -> None:
        self.api, self.revision, self.private, self.pause = api, revision, private, pause

    def attempt(
        self, what: str, call: Callable[Arguments, Answer], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Answer:
        """Return the call's result; retry after passing errors.

        Raises:
            Refusal: (a DataError) what was refused and what helps.
        """
        from huggingface_hub import get_token

        pause, left = self.pause, TRIES
        while True:
            left, began = left - 1, time.monotonic()
            try:
                return call(*arguments, **named)
            except Exception as error:  # the client raises its own, httpx's, requests' and the system's
                token = self.api.token if isinstance(self.api.token, str) else get_token()
                refusal = explain_error(error, what, str(self.api.endpoint), token)
                # the client retries some requests itself: long retries are not repeated
                if not refusal.passing or not left or time.monotonic() - began > CLIENT_PATIENCE:
                    raise refusal from None
                wait = pause if refusal.retry_after is None else refusal.retry_after
                if wait > LONGEST_WAIT:
                    raise refusal from None
                log.info(f"  {refusal.message}; trying again in {wait:g} s")
                time.sleep(wait)
                pause *= 2

    def list_files(self, upload: Upload, revision: str | None = None) -> dict[str, tuple[str, str | None]] | None:
        """Return path -> (blob id, SHA-256 in LFS) on the Hub; None without repository or branch."""
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
        from huggingface_hub.hf_api import RepoFile

        def fetch() -> dict[str, tuple[str, str | None]] | None:
            try:
                of: dict[str, Any] = {"repo_type": upload.kind, "revision": revision or self.revision}
                rows = list(self.api.list_repo_tree(upload.repo_id, recursive=True, **of))
            except (RepositoryNotFoundError, RevisionNotFoundError) as error:
                if getattr(error.response, "status_code", 404) == 404:
                    return None
                raise
            files = (row for row in rows if isinstance(row, RepoFile))
            return {row.path: (row.blob_id, row.lfs.sha256 if row.lfs else None) for row in files}

        return self.attempt(f"list {upload.repo_id}", fetch)

    def read_text(self, model: str, path: str) -> str | None:
        """Return a text file of a model's repository; empty without the file, None without the model."""

        def fetch() -> str | None:
            if not self.api.repo_exists(model):
                return None
            revision = self.revision if self.api.revision_exists(model, self.revision) else "main"
            if not self.api.file_exists(model, path, revision=revision):
                return ""
            return self._download(model, path, revision)

        return self.attempt(f"read {path} of {model}", fetch)

    def _download(self, repo_id: str, path: str, revision: str, kind: str = "model") -> str:
        with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:  # a cached file may be an older one
            file = self.api.hf_hub_download(repo_id, path, repo_type=kind, revision=revision, local_dir=aside)
            return Path(file).read_text("utf-8", errors="replace")

    def find_changes(self, upload: Upload) -> Changes:
        """Return the differences between an upload and its repository, by its manifest."""
        remote, text = self.list_files(upload), ""
        if remote is not None and MANIFEST in remote:
            what = f"read {MANIFEST} of {upload.repo_id}"
            text = self.attempt(what, self._download, upload.repo_id, MANIFEST, self.revision, upload.kind)
        return replace(compare(upload, remote or {}, parse_manifest(text)), exists=remote is not None)

    def publish(self, upload: Upload) -> str:
        """Create, commit, compare and tag a repository; return its address."""
        repo_id, kind = upload.repo_id, upload.kind
        if not upload.keeps_others:  # a model is its owner's to create
            space: dict[str, Any] = {"space_sdk": "gradio"} if kind == "space" else {}
            options = {"repo_type": kind, "private": self.private or None, "exist_ok": True, **space}
            self.attempt(f"create {repo_id}", self.api.create_repo, repo_id, **options)
        if self.revision != "main":
            what, create = f"create the branch {self.revision} of {repo_id}", self.api.create_branch
            self.attempt(what, create, repo_id, branch=self.revision, repo_type=kind, exist_ok=True)
        # a try that failed may have reached the Hub all the same, so each starts by listing what is there
        self.attempt(f"upload to {repo_id}", self._commit, upload)
        left = self.find_changes(upload)
        if left:
            paths = ", ".join([*left.added, *left.changed, *left.removed][:10])
            message = f"{repo_id} does not hold what was uploaded: {paths}; run the same command again"
            raise DataError(message)
        if self.revision == "main" and upload.version:
            self._tag(upload)
        address = f"{re.sub(r'//[^/@]*@', '//', str(self.api.endpoint))}/{KINDS[kind]}{repo_id}"
        return address if self.revision == "main" else f"{address}/tree/{self.revision}"

    def _commit(self, upload: Upload) -> None:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        changes = self.find_changes(upload)
        if not changes:
            return
        add = [CommitOperationAdd(path, str(upload.files[path])) for path in changes.added + changes.changed]
        remove = [CommitOperationDelete(path) for path in changes.removed]
        of: dict[str, Any] = {"repo_type": upload.kind, "revision": self.revision}
        self.api.create_commit(upload.repo_id, [*add, *remove], commit_message=upload.commit_message, **of)

    def _tag(self, upload: Upload) -> None:
        repo_id, kind = upload.repo_id, upload.kind
        refs = self.attempt(f"list the tags of {repo_id}", self.api.list_repo_refs, repo_id, repo_type=kind)
        head = next((ref.target_commit for ref in refs.branches if ref.name == "main"), None)
        tags = {ref.name: ref.target_commit for ref in refs.tags}
        for tag in (*upload.fixed_tags, *upload.moving_tags):
            if tags.get(tag) == head and head is not None:
                continue
            if tag in tags and tag not in upload.moving_tags:
                if compare(upload, self.list_files(upload, tag) or {}):
                    log.info(f"  {repo_id}: {tag} stays on the commit it names; a new version gets a tag of its own")
                continue
            if tag in tags:
                self.attempt(f"move the tag {tag} of {repo_id}", self.api.delete_tag, repo_id, tag=tag, repo_type=kind)
            self.attempt(f"tag {repo_id} {tag}", self.api.create_tag, repo_id, tag=tag, repo_type=kind, exist_ok=True)


def client(endpoint: str | None, token: str | None, *, writes: bool = True) -> HfApi:
    """Return the Hub library's client; reading needs no token."""
    import huggingface_hub
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]
    from huggingface_hub.utils import logging as hub_logging

    # its warnings repeat our messages and name presigned addresses
    hub_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    disable_progress_bars()
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        remedy = "to publish, or ask for a `dry_run`" if writes else "to read from the Hub"
        raise DataError(f"HF_HUB_OFFLINE is set: unset it {remedy}")
    if writes and not (token or huggingface_hub.get_token()):
        raise DataError("no token: log in with `hf auth login`, or set HF_TOKEN to one that may write")
    return huggingface_hub.HfApi(endpoint=endpoint, token=token, library_name="eraser-hub", library_version=__version__)
