"""Systems, and the files of predictions of each one's runs, as callers name them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from os.path import exists, realpath
from pathlib import Path
from typing import Any

from eraser_hub.conversion.download import REMOTE, fetch_file
from eraser_hub.metrics.errors import cut
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


def split_argument(argument: Any) -> tuple[str, list[Any]]:
    """Return the name, "" for none, and the files of ``FILE``, ``NAME=FILE`` or ``NAME=FILE,FILE``.

    >>> split_argument("ours=a.jsonl,b.jsonl"), split_argument("a.jsonl")
    (('ours', ['a.jsonl', 'b.jsonl']), ('', ['a.jsonl']))
    """
    if not isinstance(argument, str | PathLike):
        return "", [argument]
    text = fspath(argument)
    if exists(text) or text.startswith(REMOTE):
        return "", [text]
    name, equals, files = text.partition("=")
    name, files = (name, files) if equals and name else ("", text)
    return name, [files] if exists(files) else [file for file in files.split(",") if file] or [files]


def parse_systems(*predictions: Any, seeds: bool = False) -> list[System]:
    """Return the systems and the files of their runs.

    A file may be an address (``https://..``, ``hf://..``), which is fetched. A file without a name is named by its
    stem, or by as much of its path as distinguishes it.

    Args:
        *predictions: as of `split_argument`, or several of these, a system each; or a mapping of names to a file, or to
            the files of several runs.
        seeds: a missing file stands for the files that ``explain`` wrote for several trainings
            (``FILE.seed-1.jsonl``).

    Raises:
        DataError: the same file twice, or a name; a name that no table can show.
    """
    given: list[tuple[str, list[Any]]] = []
    for each in predictions:
        if isinstance(each, Mapping):
            given += [
                (name, [files] if isinstance(files, str | PathLike) else [*files]) for name, files in each.items()
            ]
        else:
            given += map(split_argument, [each] if isinstance(each, str | PathLike) else each)
    for name, files in given:
        if not isinstance(name, str) or not files or not all(isinstance(file, str | PathLike) for file in files):
            message = f"expected a file, or NAME=FILE,FILE for several runs of a system, found {cut(files)}"
            raise UsageError(message, argument="predictions")
    named = [(name, [fetch_file(fspath(file)) for file in files]) for name, files in given]
    runs = [[path for file in files for path in (find_seed_files(file) if seeds else [file])] for _, files in named]
    whole = [realpath(path) for paths in runs for path in paths]  # it takes links in a circle as they are
    if len(set(whole)) != len(whole):
        raise DataError("expected different files of predictions, found one twice")
    unnamed, stems = [files[0] for name, files in named if not name], list[str]()
    for depth in range(1, 2 + max((len(path.parts) for path in unnamed), default=0)):
        stems = ["/".join((*path.parts[-depth:-1], path.stem)) for path in unnamed]
        if len(set(stems)) == len(stems):
            break
    names = [name or stems.pop(0) for name, _ in named]
    for words in filter(None, map(describe_bad_name, names)):
        raise DataError(f"{words} (NAME=FILE names a system)")
    if len(set(names)) != len(names):
        message = "expected a name of its own for each system (NAME=FILE; several runs of it: NAME=FILE,FILE), found "
        raise UsageError(message + ", ".join(names))
    return [System(name, tuple(paths)) for name, paths in zip(names, runs, strict=True)]


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
