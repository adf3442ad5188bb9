"""Comparison of the files beside a built folder's rows with those that `build` writes for the same rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from eraser_hub.records.atomic import link_or_copy
from eraser_hub.records.built import BuiltDataset, read_card
from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError, DataErrors, get_first_line
from eraser_hub.version import __version__

from .dataset import EVAL_YAML, read_build_version
from .finish import write_side_files
from .written_files import verify_digests

Difference = tuple[str, str]  # the name of a check, and what differs


def find_side_file_issues(
    built: BuiltDataset, name: str, release: Mapping[str, Any], make_card: Callable[[Path], str]
) -> Iterator[Difference]:
    """Yield the differences between the files of a built folder and those that `build` writes.

    Args:
        built: the folder.
        name: the dataset's name.
        release: the configs of its release.json.
        make_card: folder with the files of the rows -> text of its card.
    """
    version = read_build_version(built.folder)
    if version:
        yield from _find_changed_files(built.folder, release)
    if version != __version__:
        words = f"version {version}" if version else "an earlier version"
        yield "built by another version", f"{words} built it: card and {EVAL_YAML} are not compared"
        return
    with TemporaryDirectory(prefix="eraser-hub-") as aside:
        expected = Path(aside) / name
        for path in built.folder.rglob("*"):
            if path.is_file() and path.suffix in (".parquet", ".json"):
                link = expected / path.relative_to(built.folder)
                link.parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.symlink(path.absolute(), link)
                except OSError:  # Windows without the right to make links
                    link_or_copy(path.absolute(), link)
        try:
            write_side_files(expected, name, release, lambda: make_card(expected))
        except (DataError, pa.ArrowException, OSError) as error:
            yield "side files", f"they cannot be made from the rows: {get_first_line(error)}"
            return
        metadata, prose = read_card(expected / "README.md")
        for key, value in metadata.items():
            if built.card.get(key) != value:
                yield "card", f"{key}: differs from what build writes for these files"
        if added := [key for key in built.card if key not in metadata]:
            yield "edited card", f"keys that build does not write: {', '.join(map(str, added))}"
        if prose.split() != built.prose.split():
            yield "edited card", "its prose is not what build writes"
        for file in (EVAL_YAML, f"{name}.png"):
            if not (expected / file).is_file():
                continue
            if not (built.folder / file).is_file():
                yield file, "no such file, which build writes"
            elif (built.folder / file).read_bytes() != (expected / file).read_bytes():
                yield file, "its content is not what build writes for these files"


def _find_changed_files(folder: Path, release: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the files whose digest is not the recorded one, and those that are missing or not recorded."""
    recorded: dict[str, str] = {}
    for config, entry in release.items():
        recorded |= entry.get("digests", {})
        for facts in entry.get("splits", {}).values():
            recorded |= {f"{config}/{name}": digest for name, digest in facts.get("files", {}).items()}
    for path, digest in recorded.items():
        if not (folder / path).is_file():
            yield "files", f"{path}: no such file, which build wrote"
        elif compute_file_digest(folder / path) != digest:
            yield "files", f"{path}: differs from what build wrote"
    try:
        verify_digests(folder)
    except DataError as error:
        for each in error.errors if isinstance(error, DataErrors) else [error]:
            path = Path(each.file or folder).relative_to(folder).as_posix()
            if path not in recorded:
                yield "files", f"{path}: {each.message}"
