"""Systems, and the files of predictions of each one's runs, as callers name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import exists, realpath
from pathlib import Path

from eraser_hub.conversion.download import REMOTE, fetch_file
from eraser_hub.records.errors import DataError, UsageError, describe_bad_name
from eraser_hub.records.predictions import find_seed_files, read_signature

_ERASED_BY = re.compile(r"\|erase:([^|]+)\|")  # in a run's signature


@dataclass(frozen=True, slots=True)
class System:
    """A system, and the files of predictions of its runs."""

    name: str
    paths: tuple[Path, ...]

    @property
    def path(self) -> Path:
        """The first run's file."""
        return self.paths[0]

    @property
    def file_name(self) -> str:
        """The name as a file's: no separator, no leading dot, no longer than file systems allow with an ending."""
        name = "".join(c if c.isalnum() or c in "-_.+" else "_" for c in self.name).lstrip(".") or "system"
        return name.encode()[:200].decode(errors="ignore")


def make_system_names(paths: Sequence[Path]) -> list[str]:
    """Return names for prediction files: their stems, or as much of their paths as distinguishes them.

    Raises:
        DataError: the same file twice.
    """
    if len(set(map(realpath, paths))) != len(paths):
        raise DataError("expected different files of predictions, found one twice")
    for depth in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join((*path.parts[-depth:-1], path.stem)) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def parse_systems(arguments: Sequence[str], *, seeds: bool = False) -> list[System]:
    """Return the systems and the files of their runs: ``FILE``, ``NAME=FILE``, or ``NAME=FILE,FILE,..``.

    Several files are runs of one system. A file may be an address (``https://..``, ``hf://..``), which is fetched. A
    file without a name is named by its stem, or by as much of its path as distinguishes it.

    Args:
        arguments: a system each.
        seeds: a missing file stands for the files that ``explain`` wrote for several trainings
            (``FILE.seed-1.jsonl``).

    Raises:
        DataError: the same file twice, or a name; a name that no table can show.
    """
    named: list[tuple[str, Path, list[Path]]] = []
    for argument in arguments:
        name, equals, files = argument.partition("=")
        if not (equals and name) or argument.startswith(REMOTE) or exists(argument):
            name, files = "", argument
        own = [files] if exists(files) else [file for file in files.split(",") if file] or [files]
        named_files = [fetch_file(file) for file in own]
        runs = [path for file in named_files for path in find_seed_files(file)] if seeds else named_files
        named.append((name, named_files[0], runs))
    whole = [realpath(path) for _, _, paths in named for path in paths]  # it takes links in a circle as they are
    if len(set(whole)) != len(whole):
        raise DataError("expected different files of predictions, found one twice")
    stems = iter(make_system_names([named_files for name, named_files, _ in named if not name]))
    names = [name or next(stems) for name, _, _ in named]
    for words in filter(None, map(describe_bad_name, names)):
        raise DataError(f"{words} (NAME=FILE names a system)")
    if len(set(names)) != len(names):
        message = "expected a name of its own for each system (NAME=FILE; several runs of it: NAME=FILE,FILE), found "
        raise UsageError(message + ", ".join(names))
    return [System(name, tuple(paths)) for name, (_, _, paths) in zip(names, named, strict=True)]


def _read_operator(results: Path) -> str:
    """Return how tokens were erased, from the signature beside predictions; "" if there is none."""
    signed = _ERASED_BY.search(read_signature(results))
    return signed[1] if signed else ""


def describe_unlike_operators(systems: Sequence[System]) -> list[str]:
    """Return a caution if the systems were erased by different operators: their scores are not comparable."""
    operators = {system.name: _read_operator(system.path) for system in systems}
    if len({*operators.values()} - {""}) < 2:
        return []
    words = ", ".join(f"{name} by {operator}" for name, operator in operators.items() if operator)
    return [f"tokens were erased in different ways ({words}): comprehensiveness and sufficiency do not compare"]
