"""Systems, and the files of predictions of each one's runs, as callers name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path

from eraser_hub.conversion.download.addresses import is_remote, local_file
from eraser_hub.records.errors import DataError
from eraser_hub.records.operators import operator_files

from .operators import runs_by_operator


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
        asked = [local_file(file) for file in own]
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
    """The systems with the runs of each way of erasing: one way "" where no system has several.

    Raises:
        DataError: some system has predictions by a way that another has not.
    """
    numbers = runs_by_operator({system.name: system.paths for system in systems})
    return {
        way: [System(one.name, tuple(one.paths[number] for number in own[one.name])) for one in systems]
        for way, own in numbers.items()
    }
