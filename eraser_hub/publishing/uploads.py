"""Collect and check uploads, and compare them with the Hub's files; nothing here asks the Hub."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from eraser_hub.conversion import list_datasets
from eraser_hub.conversion.built import open_built, read_card
from eraser_hub.conversion.card import get_dataset_version, make_card_text
from eraser_hub.conversion.dataset import RELEASE, read_release, read_release_key
from eraser_hub.conversion.leaderboard import EVAL_YAML
from eraser_hub.conversion.verbs import recognize_dataset
from eraser_hub.records.errors import DataError, UsageError, add_count
from eraser_hub.records.files import compute_file_digest
from eraser_hub.version import __version__

from .spaces import list_metric_names, make_space_files, read_pin

PART = "**A sample, or a part of the release**"  # on the card of a folder that has not all rows
# in a repository: path -> (git blob id, SHA-256) of each file that the last publish wrote
MANIFEST = ".eraser-hub.json"
Manifest = Mapping[str, Sequence[str]]
Stamps = dict[Path, tuple[int, int]]  # a file's size and time


@dataclass(frozen=True, slots=True)
class Upload:
    """A folder to publish as a repository.

    Attributes:
        name: The folder's name.
        repo_id: ``ORG/NAME``.
        kind: ``dataset``, ``space`` or ``model``.
        files: Maps a path in the repository to its file.
        left_out: Files in the folder that no build wrote, which are not published.
        version: The version of its tag, without the ``v``; empty for no tag.
        built_by: The version of this package that built it, which is a tag as well; empty for none.
        moving_tags: Tags that follow the newest commit.
        keeps_others: The repository belongs to a user and holds more files: nothing is created or removed.
        stamps: Stamps of the folder's files before the checks.
    """

    name: str
    repo_id: str
    kind: str
    files: Mapping[str, Path]
    left_out: Sequence[str]
    version: str
    moving_tags: tuple[str, ...] = ()
    keeps_others: bool = False
    stamps: Stamps = field(default_factory=dict)
    built_by: str = ""

    @property
    def fixed_tags(self) -> tuple[str, ...]:
        """Tags that stay on the commit that they name."""
        return tuple(dict.fromkeys(f"v{version}" for version in (self.version, self.built_by) if version))

    @property
    def commit_message(self) -> str:
        """Message of its commit."""
        return f"{self.name} {self.version}" if self.version else "Results of evaluations"


@dataclass(slots=True)
class Changes:
    """The differences between a folder and its repository.

    Attributes:
        added, changed, same: Paths of the folder's files.
        removed: Paths of files that an earlier publish wrote, and that are as it wrote them.
        others: Paths of all other files of the repository, which stay.
        exists: Whether there is such a repository, and its branch.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    exists: bool = True

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
    """Return the requested uploads; without datasets and metrics, all built folders.

    Raises:
        DataError: An unknown name, a folder that was not built, a link in it, or nothing to publish.
    """
    own = [path.parent.name for path in folder.glob(f"[!.]*/{RELEASE}")]  # a killed build may leave .NAME.building
    known = {
        "dataset": sorted({*list_datasets(), *own}),
        "space": list_metric_names(source),
    }
    everything = not datasets and not metrics
    uploads: list[Upload] = []
    for kind, requested in (("dataset", datasets), ("space", metrics)):
        for name in known[kind] if everything else dict.fromkeys(requested or ()):
            if name not in known[kind]:
                message = f"no {'metric' if kind == 'space' else kind} {name!r}: there are {', '.join(known[kind])}"
                raise UsageError(message)
            if (folder / name / "README.md").is_file():
                uploads.append(_make_upload(folder / name, name, f"{namespace}/{name}", kind))
            elif not everything:
                message = f"no such folder: run `eraser-hub build {name if kind == 'dataset' else 'metrics'}` first"
                raise DataError(message, file=folder / name)
    if not uploads:
        raise DataError("nothing to publish: `eraser-hub build` writes what can be", file=folder)
    return uploads


def _make_upload(folder: Path, name: str, repo_id: str, kind: str) -> Upload:
    files, left_out = {}, []
    built = {"README.md", RELEASE, EVAL_YAML, f"{name}.png"}
    if kind == "dataset":
        built |= {path for entry in read_release(folder).values() for path in entry["files"]}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_symlink():
            message = "a link: only files that lie in the folder itself are published"
            raise DataError(message, file=path)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
        if hidden or (kind == "dataset" and relative.as_posix() not in built):
            left_out += [relative.as_posix()] if path.is_file() else []
        elif path.is_file():
            files[relative.as_posix()] = path
    # `evaluate.load` looks for a Space at the tag of its own version first
    moving = (f"v{read_pin('evaluate')}",) if kind == "space" else ()
    # the metrics share the package's version
    version = get_dataset_version(open_built(folder).card) if kind == "dataset" else __version__
    built_by = (read_release_key(folder, "version") or "") if kind == "dataset" else ""
    stamps = read_stamps(files.values())
    return Upload(name, repo_id, kind, files, left_out, version, moving, stamps=stamps, built_by=built_by)


# -- what may be published --------------------------------------------------------------------------------------------


def verify(upload: Upload, folder: Path, source: Path | None = None) -> None:
    """Refuse a Space that differs from the output of ``build``, and a dataset that fails ``check``.

    Raises:
        DataError: The differences, or the findings of the check.
    """
    if upload.kind == "space":
        verify_space(upload, make_space_files(upload.name, source))
        return
    dataset = recognize_dataset(upload.name, folder / upload.name)
    result = dataset.check(folder / upload.name)
    if result.failed:
        message = f"`eraser-hub check` does not pass {upload.name}, so it is not published: {result.errors[0]}"
        raise add_count(DataError(message), len(result.errors))
    entries = read_release(folder / upload.name)
    path, text = folder / upload.name / EVAL_YAML, dataset.make_eval_yaml({c: e["splits"] for c, e in entries.items()})
    if text and (not path.is_file() or path.read_text(encoding="utf-8") != text):
        raise DataError("its content is not what build writes for this card: build again", file=path)


def verify_space(upload: Upload, contents: Mapping[str, bytes]) -> None:
    """Refuse a Space that is not as ``build metrics`` writes it.

    Args:
        upload: The Space.
        contents: Maps a path to the content that ``build metrics`` writes.
    """
    errors = []
    for path in sorted(contents.keys() | upload.files.keys()):
        if path not in contents:
            errors.append(DataError("not written by `eraser-hub build metrics`", file=upload.files[path]))
        elif path not in upload.files:
            message = "no such file: run `eraser-hub build metrics` again"
            errors.append(DataError(message, file=f"{upload.name}/{path}"))
        elif upload.files[path].read_bytes() != contents[path]:
            words = "not as `eraser-hub build metrics` wrote it: run `eraser-hub build metrics` again"
            errors.append(DataError(words, file=upload.files[path]))
    if errors:
        raise add_count(errors[0], len(errors))


# -- comparing --------------------------------------------------------------------------------------------------------


def add_manifest(upload: Upload, aside: Path) -> Upload:
    """Return the upload with its `MANIFEST`, written ``aside``."""
    digests = {path: (_compute_blob_digest(file), compute_file_digest(file)) for path, file in upload.files.items()}
    aside.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"about": "the files that `eraser-hub publish` wrote", "files": digests}, indent=1)
    (aside / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return replace(upload, files={**upload.files, MANIFEST: aside / MANIFEST})


def parse_manifest(text: str) -> Manifest:
    """Return a repository's manifest; none where its text is another's."""
    try:
        files = json.loads(text)["files"]
        return {str(path): [str(digest) for digest in digests] for path, digests in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def compare(upload: Upload, remote: Mapping[str, tuple[str, str | None]], manifest: Manifest | None = None) -> Changes:
    """Return the files to add, change and remove.

    Args:
        upload: Maps a path to its local file.
        remote: Maps a path to (git blob id, SHA-256 if the file is in LFS) on the Hub.
        manifest: That of the repository; None removes nothing.
    """
    changes = Changes()
    for path, file in upload.files.items():
        if path not in remote:
            changes.added.append(path)
            continue
        blob, lfs = remote[path]
        same = compute_file_digest(file) == lfs if lfs else _compute_blob_digest(file) == blob
        (changes.same if same else changes.changed).append(path)
    for path in sorted(remote.keys() - upload.files.keys() - {".gitattributes"}):  # that the Hub itself writes
        ours = not upload.keeps_others and (remote[path][1] or remote[path][0]) in (manifest or {}).get(path, ())
        (changes.removed if ours else changes.others).append(path)
    return changes


def _compute_blob_digest(file: Path) -> str:
    """Return git's digest of the file's content."""
    return compute_file_digest(file, hashlib.sha1(b"blob %d\0" % file.stat().st_size))


def describe_plan(upload: Upload, changes: Changes | None) -> Iterator[str]:
    """Yield the lines of an upload's plan; ``changes`` is None if the Hub was not asked."""
    size = sum(file.stat().st_size for file in upload.files.values())
    tags = f"; tags {', '.join((*upload.fixed_tags, *upload.moving_tags))}" if upload.version else ""
    yield f"{upload.kind} {upload.repo_id}: {len(upload.files)} files, {_format_bytes(size)}{tags}"
    if changes is None:
        yield from (f"  {path} ({_format_bytes(file.stat().st_size)})" for path, file in upload.files.items())
    else:
        for verb, paths in (("add", changes.added), ("change", changes.changed), ("remove", changes.removed)):
            yield from (f"  {verb} {path}" for path in paths)
        yield f"  {len(changes.same)} unchanged" if changes else "  nothing to upload"
        if changes.others and not upload.keeps_others:
            yield f"  left there, since no publish on record wrote them: {', '.join(changes.others)}"
    if upload.kind == "dataset" and PART in upload.files["README.md"].read_text(encoding="utf-8"):
        yield "  a sample, or a part of the release, as its card says"
    if upload.left_out:
        yield f"  left out, since no build wrote them: {', '.join(upload.left_out)}"


def _format_bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def read_stamps(files: Iterable[Path]) -> Stamps:
    """Return size and time of each existing file; they change when a file is written or removed."""
    return {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()}


def fill_namespace(upload: Upload, namespace: str, aside: Path) -> Upload:
    """Return the upload with its namespace in files that name datasets and metrics without one, written ``aside``.

    These are a card's code, and the ``datasets`` of a Space's card.
    """
    files = dict(upload.files)
    text = files["README.md"].read_text(encoding="utf-8")
    if upload.kind == "space":
        metadata, prose = read_card(files["README.md"])
        names = [name if "/" in str(name) else f"{namespace}/{name}" for name in metadata.get("datasets") or ()]
        text = make_card_text(metadata | ({"datasets": names} if names else {}), prose)
    ours = "|".join(map(re.escape, (*list_datasets(), upload.name, *list_metric_names())))
    text = re.sub(rf'((?:load_dataset|evaluate\.load)\(")({ours})"', rf'\g<1>{namespace}/\g<2>"', text)
    files["README.md"] = aside / "README.md"
    aside.mkdir(parents=True, exist_ok=True)
    files["README.md"].write_text(text, encoding="utf-8")
    return replace(upload, files=files)
