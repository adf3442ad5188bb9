"""Systems, and the files of predictions of each one's runs, as callers name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path

from eraser_hub.conversion.download.addresses import is_remote, fetch_file
from eraser_hub.records.errors import DataError
from eraser_hub.records.operators import operator_files, operator_of


@dataclass(frozen=True, slots=True)
class System:
    """A system, and the files of predictions of its runs (other seeds, or other ways of erasing)."""

    name: str
    paths: tuple[Path, ...]

    @property
    def path(self) -> Path:
        """The first run's file."""
        return self.paths[0]

    @property
    def file_name(self) -> str:
        """The name as a file's: no separator, no leading dot."""
        return "".join(c if c.isalnum() or c in "-_.+" else "_" for c in self.name).lstrip(".") or "system"


def system_names(paths: Sequence[Path]) -> list[str]:
    """Names of prediction files: their stems, or as much of their paths as tells them apart.

    Raises:
        DataError: the same file twice.
    """
    if len(set(map(realpath, paths))) != len(paths):
        raise DataError("expected different files of predictions, found one twice", rule="file-twice")
    for depth in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join((*path.parts[-depth:-1], path.stem)) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def named_systems(arguments: Sequence[str], *, ways: bool = False, draws: bool = False) -> list[System]:
    """The systems and the files of their runs: ``FILE``, ``NAME=FILE``, or ``NAME=FILE,FILE,..`` for several runs of
    one; a file may be an address (``https://..``, ``hf://..``), which is fetched. A file without a name has its stem,
    or as much of its path as tells it apart.

    Args:
        arguments: a system each.
        ways: a file that is not there stands for those that ``explain`` wrote for it by several ways of erasing
            (``FILE.mask.jsonl``); `by_operator` tells them apart.
        draws: a name given more than once is of several draws of one system, not a mistake.

    Raises:
        DataError: the same file twice, or a name.
    """
    named: list[tuple[str, Path, list[Path]]] = []
    for argument in arguments:
        name, equals, files = argument.partition("=")
        if not (equals and name) or is_remote(argument) or Path(argument).exists():
            name, files = "", argument
        own = [files] if Path(files).exists() else [file for file in files.split(",") if file] or [files]
        asked = [fetch_file(file) for file in own]
        runs = [path for file in asked for path in operator_files(file)] if ways else asked
        named.append((name, asked[0], runs))
    whole = [realpath(path) for _, _, paths in named for path in paths]  # it takes links in a circle as they are
    if len(set(whole)) != len(whole):
        raise DataError("expected different files of predictions, found one twice", rule="file-twice")
    stems = iter(system_names([asked for name, asked, _ in named if not name]))
    names = [name or next(stems) for name, _, _ in named]
    if len(set(names)) != len(names) and not draws:
        message = f"expected a name of its own for each system (NAME=FILE), found {', '.join(names)}"
        raise DataError(message, rule="option-value")
    return [System(name, tuple(paths)) for name, (_, _, paths) in zip(names, named, strict=True)]


def by_operator(systems: Sequence[System]) -> dict[str, list[System]]:
    """The systems with the runs of each way of erasing, told by the signatures beside the files.

    Returns:
        Ways in the order of the first system's files; one way "" where no system's files differ in it.

    Raises:
        DataError: some system has predictions by a way that another has not.
    """
    ways = {system.name: [operator_of(path) for path in system.paths] for system in systems}
    if all(len(set(own)) <= 1 for own in ways.values()):
        return {"": list(systems)}
    order = list(dict.fromkeys(way for own in ways.values() for way in own))
    for name, own in ways.items():
        lacking = [way or "unknown" for way in order if way not in own]
        if lacking:
            words = f"expected predictions by each way of erasing ({', '.join(filter(None, order))}), found none by "
            raise DataError(words + ", ".join(lacking), rule="score-missing", field=name)
    runs = {one.name: list(zip(one.paths, ways[one.name], strict=True)) for one in systems}
    return {
        way: [System(name, tuple(path for path, by in own if by == way)) for name, own in runs.items()] for way in order
    }


def unlike_ways(systems: Sequence[System]) -> list[str]:
    """A sentence where systems were erased in different ways, so that their scores say different things."""
    ways = {system.name: operator_of(system.path) for system in systems}
    if len({*ways.values()} - {""}) < 2:
        return []
    words = ", ".join(f"{name} by {way}" for name, way in ways.items() if way)
    return [f"tokens were erased in different ways ({words}): comprehensiveness and sufficiency do not compare"]
