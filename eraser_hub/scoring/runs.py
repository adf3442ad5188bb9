"""Systems, and the files of predictions of each one's runs, as callers name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import exists, realpath
from pathlib import Path

from eraser_hub.conversion.download.addresses import REMOTE, fetch_file
from eraser_hub.records.errors import DataError, describe_bad_name
from eraser_hub.records.operators import find_operator_files, read_operator


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


def make_system_names(paths: Sequence[Path]) -> list[str]:
    """Return names for prediction files: their stems, or as much of their paths as distinguishes them.

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


def parse_systems(arguments: Sequence[str], *, several_operators: bool = False, draws: bool = False) -> list[System]:
    """Return the systems and the files of their runs: ``FILE``, ``NAME=FILE``, or ``NAME=FILE,FILE,..``.

    Several files are runs of one system. A file may be an address (``https://..``, ``hf://..``), which is fetched. A
    file without a name is named by its stem, or by as much of its path as distinguishes it.

    Args:
        arguments: a system each.
        several_operators: a missing file stands for the files that ``explain`` wrote for several operators
            (``FILE.mask.jsonl``); `group_by_operator` distinguishes them.
        draws: a repeated name means several draws of one system, and is no mistake.

    Raises:
        DataError: the same file twice, or a name; a name that no table can show.
    """
    named: list[tuple[str, Path, list[Path]]] = []
    for argument in arguments:
        name, equals, files = argument.partition("=")
        if not (equals and name) or argument.startswith(REMOTE) or exists(argument):
            name, files = "", argument
        own = [files] if Path(files).exists() else [file for file in files.split(",") if file] or [files]
        named_files = [fetch_file(file) for file in own]
        runs = (
            [path for file in named_files for path in find_operator_files(file)] if several_operators else named_files
        )
        named.append((name, named_files[0], runs))
    whole = [realpath(path) for _, _, paths in named for path in paths]  # it takes links in a circle as they are
    if len(set(whole)) != len(whole):
        raise DataError("expected different files of predictions, found one twice", rule="file-twice")
    stems = iter(make_system_names([named_files for name, named_files, _ in named if not name]))
    names = [name or next(stems) for name, _, _ in named]
    for words in filter(None, map(describe_bad_name, names)):
        raise DataError(f"{words} (NAME=FILE names a system)", rule="text")
    if len(set(names)) != len(names) and not draws:
        message = f"expected a name of its own for each system (NAME=FILE), found {', '.join(names)}"
        raise DataError(message, rule="option-value")
    return [System(name, tuple(paths)) for name, (_, _, paths) in zip(names, named, strict=True)]


def group_by_operator(systems: Sequence[System]) -> dict[str, list[System]]:
    """Return the systems with the runs of each operator, read from the signatures beside the files.

    Returns:
        The operators in the order of the first system's files; one operator "" if no system's files differ in it.

    Raises:
        DataError: a system has predictions by an operator that another lacks.
    """
    operators = {system.name: [read_operator(path) for path in system.paths] for system in systems}
    if all(len(set(own)) <= 1 for own in operators.values()):
        return {"": list(systems)}
    order = list(dict.fromkeys(operator for own in operators.values() for operator in own))
    for name, own in operators.items():
        lacking = [operator or "unknown" for operator in order if operator not in own]
        if lacking:
            words = f"expected predictions by each way of erasing ({', '.join(filter(None, order))}), found none by "
            raise DataError(words + ", ".join(lacking), rule="score-missing", field=name)
    runs = {one.name: list(zip(one.paths, operators[one.name], strict=True)) for one in systems}
    return {
        operator: [System(name, tuple(path for path, by in own if by == operator)) for name, own in runs.items()]
        for operator in order
    }


def describe_unlike_operators(systems: Sequence[System]) -> list[str]:
    """Return a caution if the systems were erased by different operators: their scores are not comparable."""
    operators = {system.name: read_operator(system.path) for system in systems}
    if len({*operators.values()} - {""}) < 2:
        return []
    words = ", ".join(f"{name} by {operator}" for name, operator in operators.items() if operator)
    return [f"tokens were erased in different ways ({words}): comprehensiveness and sufficiency do not compare"]
