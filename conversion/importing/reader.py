"""Base class of the readers of an import, and the rows that they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from eraser_hub.records.errors import DataError


@contextmanager
def locate(file: str | Path | None, line: int | None) -> Iterator[None]:
    """Add file and line to a DataError of the block."""
    try:
        yield
    except DataError as error:
        raise error.at(file=file, line=line) from None


class SourceRow(NamedTuple):
    """A row: its line in the file (or its number, from 1), its key if the source is an object of rows, its cells."""

    number: int
    key: str | None
    cells: Mapping[str, Any]


class Reader(ABC):
    """Base class of a reader of one file format, in `readers` or in a plug-in's entry point ``eraser_hub.readers``.

    Attributes:
        suffixes: endings of the names of its files.
        path: the file.
    """

    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def rows(self) -> Iterator[SourceRow]:
        """Read the file's rows in order.

        Raises:
            DataError: at the first fault, with file and line.
        """

    def classes(self) -> Mapping[str, tuple[str, ...]]:
        """Return column -> names of a ClassLabel's numbers, if the format has such names."""
        return {}


def find_class_names(features: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (column, names) of each ClassLabel in datasets.Features; ``a.b`` is a nested column."""
    for name, feature in features.items():
        kind = feature
        while isinstance(kind, list) or getattr(kind, "feature", None) is not None:
            kind = kind[0] if isinstance(kind, list) else kind.feature
        if isinstance(kind, dict):
            yield from find_class_names(kind, f"{above}{name}.")
        elif getattr(kind, "names", None):
            yield f"{above}{name}", tuple(kind.names)


def describe_separator(header: Collection[str], separator: str = "") -> str:
    """Describe another separator that a header of CSV seems to have; "" if it has none in each column.

    >>> describe_separator(["id;text"], ",")
    " (the header seems to be separated by ';'; .csv has ',', .tsv has '\\\\t')"
    """
    counts = {one: sum(name.count(one) for name in header) for one in ",\t;|" if one != separator}
    other = max(counts, key=counts.__getitem__)
    if counts[other] < max(1, len(header)):
        return ""
    return f" (the header seems to be separated by {other!r}; .csv has ',', .tsv has '\\t')"
