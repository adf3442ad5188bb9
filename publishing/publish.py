"""Built folders -> repositories on the Hub: changed files only, one commit each, a tag per version.

A run can be repeated at any point: it lists what the Hub holds, uploads what differs, and sets the tags that are
missing. A repository's files come in one commit, so that no reader meets half of them, and the commit is compared with
the folder before it is called published.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from eraser_hub.conversion.croissant import dataset_version, verify_digests
from eraser_hub.records.built import open_built
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import DataError, raise_all, summary
from eraser_hub.version import __version__

from .hub_errors import Refusal, explained, redacted
from .spaces import metric_names, space_files

if TYPE_CHECKING:
    from huggingface_hub import HfApi

# what a former version may have left and this one no longer has; any other file on the Hub is its owner's
OURS = (".parquet", ".py", ".json", ".png")
KINDS = {"dataset": "datasets", "space": "spaces"}
LONGEST_WAIT = 600.0
CLIENT_PATIENCE = 10.0
Answer = TypeVar("Answer")
Say = Callable[[str], None]
Stamps = dict[str, tuple[int, int]]  # path -> size and time of a file


@dataclass(frozen=True, slots=True)
class Upload:
    """One folder on its way to one repository.

    Attributes:
        name: the folder's name.
        repo_id: ``ORG/NAME``.
        kind: ``dataset`` or ``space``.
        files: path in the repository -> file.
        left_out: hidden files and caches in the folder, which stay here.
        version: what its tag says, without the ``v``.
        moving_tags: tags that follow the newest commit.
    """

    name: str
    repo_id: str
    kind: str
    files: Mapping[str, Path]
    left_out: Sequence[str]
    version: str
    moving_tags: tuple[str, ...] = ()


@dataclass(slots=True)
class Changes:
    """How a folder differs from its repository."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


# -- what there is to publish -----------------------------------------------------------------------------------------


def collect(
    folder: Path,
    namespace: str,
    datasets: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    source: Path | None = None,
) -> list[Upload]:
    """The uploads asked for; with neither datasets nor metrics named, all that ``build`` wrote into the folder.

    Raises:
        DataError: a name that there is not, a folder that was not built, a link in it, nothing to publish at all.
    """
    from eraser_hub.conversion import HUB_DATASETS

    known = {"dataset": sorted(HUB_DATASETS), "space": metric_names(source)}
    everything = not datasets and not metrics
    uploads, errors = [], []
    for kind, asked in (("dataset", datasets), ("space", metrics)):
        for name in known[kind] if everything else dict.fromkeys(asked or ()):
            if name not in known[kind]:
                errors.append(DataError(f"no {_noun(kind)} {name!r}: there are {', '.join(known[kind])}"))
            elif (folder / name / "README.md").is_file():
                uploads.append(_upload(folder / name, name, f"{namespace}/{name}", kind))
            elif not everything:
                built = "metrics" if kind == "space" else name
                errors.append(DataError(f"no such folder: run `eraser-hub build {built}` first", file=folder / name))
    raise_all(errors)
    if not uploads:
        raise DataError("nothing to publish: `eraser-hub build` writes what can be", file=folder)
    return uploads


def _noun(kind: str) -> str:
    return "metric" if kind == "space" else kind


def _upload(folder: Path, name: str, repo_id: str, kind: str) -> Upload:
    files, left_out = {}, []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_symlink():
            raise DataError("a link: only files that lie in the folder itself are published", file=path)
        if any(part.startswith(".") or part == "__pycache__" for part in relative.parts):
            left_out += [relative.as_posix()] if path.is_file() else []
        elif path.is_file():
            files[relative.as_posix()] = path
    moving = (evaluate_tag(),) if kind == "space" else ()
    return Upload(name, repo_id, kind, files, left_out, _version(folder, kind), moving)


def evaluate_tag() -> str:
    """The tag at which ``evaluate.load`` looks for a Space first: the version of evaluate that Spaces pin."""
    from .spaces import metrics_folder

    pins = (metrics_folder() / "requirements.txt").read_text("utf-8")
    match = re.search(r"^evaluate==(\S+)", pins, flags=re.MULTILINE)
    return f"v{match[1] if match else __version__}"


def _version(folder: Path, kind: str) -> str:
    """A dataset's version stands in its card; the metrics share the package's."""
    return dataset_version(open_built(folder).card) if kind == "dataset" else __version__


# -- what may be published --------------------------------------------------------------------------------------------


def verify(upload: Upload, folder: Path, source: Path | None = None) -> None:
    """Refuse a folder that is not what ``build`` wrote, or that ``check`` does not pass.

    Raises:
        DataError: what differs, or what the check found.
    """
    if upload.kind == "space":
        _verify_space(upload, source)
        return
    verify_digests(folder / upload.name)
    check_dataset(upload.name, folder / upload.name)


def check_dataset(name: str, folder: Path) -> None:
    """Raise a DataError when the dataset's integrity report holds a violation."""
    from eraser_hub.conversion import HUB_DATASETS

    errors = HUB_DATASETS[name].check(folder).errors
    if errors:
        raise DataError(f"`eraser-hub check` does not pass {name}, so it is not published:\n{summary(errors)}")


def _verify_space(upload: Upload, source: Path | None) -> None:
    built = space_files(upload.name, source)
    errors = []
    for path in sorted(built.keys() | upload.files.keys()):
        if path not in built:
            errors.append(DataError("not written by `eraser-hub build metrics`", file=upload.files[path]))
        elif path not in upload.files:
            errors.append(DataError(f"{path} is missing: run `eraser-hub build metrics` again", file=upload.name))
        elif upload.files[path].read_bytes() != built[path]:
            errors.append(
                DataError("not as `eraser-hub build metrics` writes it: build again", file=upload.files[path])
            )
    raise_all(errors)


# -- comparing --------------------------------------------------------------------------------------------------------


def compare(files: Mapping[str, Path], remote: Mapping[str, tuple[str, str | None]]) -> Changes:
    """What to add, change and remove.

    Args:
        files: path -> local file.
        remote: path -> (git blob id, SHA-256 where the file is in LFS) on the Hub.
    """
    changes = Changes()
    for path, file in files.items():
        if path not in remote:
            changes.added.append(path)
            continue
        blob, lfs = remote[path]
        same = file_digest(file) == lfs if lfs else _blob_digest(file) == blob
        (changes.same if same else changes.changed).append(path)
    changes.removed = sorted(path for path in remote if path not in files and path.endswith(OURS))
    return changes


def _blob_digest(file: Path) -> str:
    """The name that git gives the file's content."""
    return file_digest(file, hashlib.sha1(b"blob %d\0" % file.stat().st_size))


def plan_lines(upload: Upload, changes: Changes | None) -> Iterator[str]:
    """The plan of one upload, in words; ``changes`` is None where the Hub was not asked."""
    size = sum(file.stat().st_size for file in upload.files.values())
    tags = ", ".join((f"v{upload.version}", *upload.moving_tags))
    yield f"{upload.kind} {upload.repo_id}: {len(upload.files)} files, {_bytes(size)}; tags {tags}"
    if changes is None:
        yield from (f"  {path} ({_bytes(file.stat().st_size)})" for path, file in upload.files.items())
    else:
        for verb, paths in (("add", changes.added), ("change", changes.changed), ("remove", changes.removed)):
            yield from (f"  {verb} {path}" for path in paths)
        yield f"  {len(changes.same)} unchanged" if changes else "  nothing to upload"
    if upload.left_out:
        yield f"  left out (hidden): {', '.join(upload.left_out)}"


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


# -- the Hub ----------------------------------------------------------------------------------------------------------


class Publisher:
    """Talks to one Hub, with patience where that helps and clear words where it does not.

    Args:
        api: the client; its token never leaves it.
        say: takes each line of the report.
        revision: the branch to publish to.
        private: whether repositories that do not exist yet are created private.
        pause: seconds before the first further try of a request; it doubles.
    """

    def __init__(
        self, api: HfApi, say: Say, *, revision: str = "main", private: bool = False, pause: float = 1.0
    ) -> None:
        self.api, self.say, self.revision, self.private, self.pause = api, say, revision, private, pause

    def attempt(self, what: str, call: Callable[[], Answer], tries: int = 4) -> Answer:
        """The call's answer; tried again after errors that pass.

        Raises:
            Refusal: (a DataError) what was refused and what helps.
        """
        pause, left = self.pause, tries
        while True:
            left, began = left - 1, time.monotonic()
            try:
                return call()
            except Exception as error:  # the client raises its own, httpx's, requests' and the system's
                refusal = explained(error, what, str(self.api.endpoint), self._token())
                # the client tries some requests again itself: what it was patient with for long is not begun anew
                if not refusal.passing or not left or time.monotonic() - began > CLIENT_PATIENCE:
                    raise refusal from None
                wait = pause if refusal.retry_after is None else refusal.retry_after
                if wait > LONGEST_WAIT:
                    raise refusal from None
                self.say(f"  {refusal.message}; trying again in {wait:g} s")
                time.sleep(wait)
                pause *= 2

    def _token(self) -> str | None:
        from huggingface_hub import get_token

        return self.api.token if isinstance(self.api.token, str) else get_token()

    def remote(self, upload: Upload, revision: str | None = None) -> dict[str, tuple[str, str | None]] | None:
        """Path -> (blob id, SHA-256 in LFS) of what the Hub holds; None where there is no such repository or branch."""
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
        from huggingface_hub.hf_api import RepoFile

        def ask() -> dict[str, tuple[str, str | None]] | None:
            try:
                rows = list(
                    self.api.list_repo_tree(
                        upload.repo_id, recursive=True, repo_type=upload.kind, revision=revision or self.revision
                    )
                )
            except (RepositoryNotFoundError, RevisionNotFoundError) as error:
                if getattr(error.response, "status_code", 404) == 404:
                    return None
                raise
            files = (row for row in rows if isinstance(row, RepoFile))
            return {row.path: (row.blob_id, row.lfs.sha256 if row.lfs else None) for row in files}

        return self.attempt(f"list {upload.repo_id}", ask)

    def publish(self, upload: Upload) -> str:
        """Create, commit, compare, tag; the address of what now is on the Hub."""
        repo_id, kind = upload.repo_id, upload.kind
        space = {"space_sdk": "gradio"} if kind == "space" else {}
        self.attempt(
            f"create {repo_id}",
            lambda: self.api.create_repo(
                repo_id,
                repo_type=kind,
                private=self.private or None,
                exist_ok=True,
                **space,  # type: ignore[arg-type]
            ),
        )
        if self.revision != "main":
            self.attempt(
                f"create the branch {self.revision} of {repo_id}",
                lambda: self.api.create_branch(repo_id, branch=self.revision, repo_type=kind, exist_ok=True),
            )
        # a try that failed may have reached the Hub all the same, so each starts by listing what is there
        self.attempt(f"upload to {repo_id}", lambda: self._commit(upload), tries=3)
        left = compare(upload.files, self.remote(upload) or {})
        if left:
            paths = ", ".join([*left.added, *left.changed, *left.removed][:10])
            raise DataError(f"{repo_id} does not hold what was uploaded: {paths}; run the same command again")
        if self.revision == "main":
            self._tag(upload)
        address = f"{re.sub(r'//[^/@]*@', '//', str(self.api.endpoint))}/{KINDS[kind]}/{repo_id}"
        return address if self.revision == "main" else f"{address}/tree/{self.revision}"

    def _commit(self, upload: Upload) -> None:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        changes = compare(upload.files, self.remote(upload) or {})
        if not changes:
            return
        add = [CommitOperationAdd(path, str(upload.files[path])) for path in changes.added + changes.changed]
        remove = [CommitOperationDelete(path) for path in changes.removed]
        self.api.create_commit(
            upload.repo_id,
            [*add, *remove],
            commit_message=f"{upload.name} {upload.version}",
            repo_type=upload.kind,
            revision=self.revision,
        )

    def _tag(self, upload: Upload) -> None:
        repo_id, kind = upload.repo_id, upload.kind
        refs = self.attempt(f"list the tags of {repo_id}", lambda: self.api.list_repo_refs(repo_id, repo_type=kind))
        head = next((ref.target_commit for ref in refs.branches if ref.name == "main"), None)
        tags = {ref.name: ref.target_commit for ref in refs.tags}
        for tag in (f"v{upload.version}", *upload.moving_tags):
            if tags.get(tag) == head and head is not None:
                continue
            if tag in tags and tag not in upload.moving_tags:
                if compare(upload.files, self.remote(upload, tag) or {}):
                    self.say(f"  {repo_id}: {tag} stays on the commit it names; a new version gets a tag of its own")
                continue
            if tag in tags:
                self.attempt(
                    f"move the tag {tag} of {repo_id}",
                    lambda tag=tag: self.api.delete_tag(repo_id, tag=tag, repo_type=kind),  # type: ignore[misc]
                )
            self.attempt(
                f"tag {repo_id} {tag}",
                lambda tag=tag: self.api.create_tag(  # type: ignore[misc]
                    repo_id, tag=tag, repo_type=kind, exist_ok=True
                ),
            )


def publish(
    folder: str | os.PathLike[str],
    namespace: str,
    *,
    datasets: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    private: bool = False,
    revision: str = "main",
    dry_run: bool = False,
    say: Say = print,
    endpoint: str | None = None,
    token: str | None = None,
    pause: float = 1.0,
    source: Path | None = None,
) -> list[str]:
    """Publish built folders under a namespace.

    Args:
        folder: what ``build`` wrote into, e.g. ``hub``.
        namespace: the user or organisation on the Hub.
        datasets, metrics: names; all that is built when neither is given.
        private: create repositories that do not exist yet as private ones.
        revision: the branch; tags are set for ``main`` alone.
        dry_run: check and print the plan, ask nothing of the Hub.
        say: takes each line: the plan first, the addresses last.
        endpoint, token: of the Hub, by default the client's own settings.
        pause: seconds before the first further try of a failed request.
        source: the folder of metric modules, by default the package's own.

    Returns:
        The addresses of what was published; none after a dry run.

    Raises:
        DataError: a folder is not as built or fails its check (nothing is sent then), or the Hub refuses; what had been
            published by then is said, and running again uploads the rest.
    """
    folder = Path(folder)
    uploads = collect(folder, namespace, datasets, metrics, source=source)
    stamps = {}
    for upload in uploads:
        stamps[upload.name] = _stamps(upload)
        verify(upload, folder, source)
    publisher = None
    if not dry_run:
        publisher = Publisher(_client(endpoint, token), say, revision=revision, private=private, pause=pause)
    for upload in uploads:
        changes = None if publisher is None else compare(upload.files, publisher.remote(upload) or {})
        for line in plan_lines(upload, changes):
            say(line)
    if publisher is None:
        say("dry run: nothing was asked of the Hub, nothing sent")
        return []
    return _send(uploads, publisher, stamps, folder)


def _send(uploads: Sequence[Upload], publisher: Publisher, stamps: Mapping[str, Stamps], folder: Path) -> list[str]:
    """Publish one after another; their addresses. ``stamps`` are those of the files when they were checked."""
    addresses: list[str] = []
    for upload in uploads:
        try:
            if _stamps(upload) != stamps[upload.name]:
                raise DataError("changed since it was checked: run the same command again", file=folder / upload.name)
            addresses.append(publisher.publish(upload))
        except DataError as error:
            waiting = [other.repo_id for other in uploads[len(addresses) :]]
            done = f"published: {', '.join(addresses)}; " if addresses else ""
            again = f"{done}not published: {', '.join(waiting)}; the same command uploads the rest"
            raise DataError(f"{error}\n{again}") from None
        publisher.say(f"published {addresses[-1]}")
    return addresses


def _stamps(upload: Upload) -> Stamps:
    return {path: (file.stat().st_size, file.stat().st_mtime_ns) for path, file in upload.files.items()}


def _client(endpoint: str | None, token: str | None) -> HfApi:
    import huggingface_hub
    from huggingface_hub.utils import disable_progress_bars
    from huggingface_hub.utils import logging as hub_logging

    # its warnings repeat what is said here, and name presigned addresses
    hub_logging.set_verbosity_error()
    disable_progress_bars()
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        raise DataError("HF_HUB_OFFLINE is set: unset it to publish, or ask for a --dry-run")
    if not (token or huggingface_hub.get_token()):
        raise DataError("no token: log in with `hf auth login`, or set HF_TOKEN to one that may write")
    return huggingface_hub.HfApi(endpoint=endpoint, token=token, library_name="eraser-hub", library_version=__version__)


__all__ = ["Changes", "Publisher", "Refusal", "Upload", "collect", "compare", "publish", "redacted", "verify"]
