"""Sources of the rows of an import: files with a reader, datasets on disk or on the Hub, and Datasets in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eraser_hub.records.errors import DataError, UsageError, get_first_line, show, show_controls
from eraser_hub.records.places import find_place
from eraser_hub.records.readers import wrap_read_errors
from eraser_hub.records.registry import Registry

from .reader import Reader, SourceRow, describe_separator, find_class_names
from .tasks import TaskReader

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

READERS = Registry("eraser_hub.readers", "reader", Reader, "eraser_hub.conversion.importing.readers")  # type: ignore[type-abstract]


def list_suffixes() -> tuple[str, ...]:
    """Return the endings of file names that the readers, those of plug-ins included, accept."""
    return tuple(suffix for reader in READERS.values() for suffix in reader.suffixes)


@dataclass(frozen=True)
class Source:
    """The rows of one split.

    Attributes:
        name: the file or dataset, for messages.
        rows: returns a new iterator over the rows.
        classes: column -> names of a ClassLabel's numbers; ``a.b`` is a nested column.
    """

    name: str
    rows: Callable[[], Iterator[SourceRow]]
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class UnknownEndingError(DataError):
    """A file whose name says of no reader that it reads it."""


def find_reader(path: Path, name: str | None = None) -> type[Reader]:
    """Return the reader of a file or a folder: by name, by looking for an annotation tool's export, or by its ending.

    Args:
        path: the file, or a folder of a tool that writes several files.
        name: name of the reader, such as ``doccano``; None to look.

    Raises:
        DataError: there is no reader of that name, or none, or several, for the file.
    """
    if name is not None:
        return READERS.find(name, "reader")
    tools = find_tools(path)
    if len(tools) > 1:
        message = f"expected an export of one tool, found signs of {', '.join(tools)}: `reader` says which"
        raise UsageError(message, argument="reader")
    return next(iter(tools.values())) if tools else _find_by_ending(path)


def _find_by_ending(path: Path) -> type[Reader]:
    for kind in READERS.values():
        if path.name.endswith(kind.suffixes):
            return kind
    message = f"expected a file ending in {', '.join(list_suffixes())}, found {show(path.name)}"
    raise UnknownEndingError(message, file=path)


def find_tools(path: Path) -> dict[str, type[TaskReader]]:
    """Return the readers of annotation tools that recognize a file or a folder, by name."""
    return {name: kind for name, kind in READERS.items() if issubclass(kind, TaskReader) and kind.recognizes(path)}


def open_file(path: Path, name: str | None = None) -> Source:
    """Open a file as rows, with the reader of that name, or of the file's ending.

    Raises:
        DataError: no reader has this ending; during iteration also the first fault of the file.
    """
    kind = READERS.find(name, "reader") if name is not None else _find_by_ending(path)
    with wrap_read_errors(path):
        reader = kind(path)
        return Source(str(path), reader.rows, reader.classes())


def open_tool(path: Path, name: str | None = None, text: Sequence[str] = ()) -> TaskReader:
    """Return the reader of an annotation tool's export; ``text`` has the columns of texts that it does not say itself.

    Raises:
        DataError: no tool's reader recognizes the file or folder.
    """
    if not path.exists():
        raise DataError("cannot be read: no such file or folder", file=path)
    kind = find_reader(path, name)
    if not issubclass(kind, TaskReader):
        tools = [name for name, each in READERS.items() if issubclass(each, TaskReader)]
        message = f"expected an export of {', '.join(tools)}; plain rows need `tokens` or `text`"
        raise UsageError(message, file=path)
    return kind(path, text)


def wrap_rows(rows: Dataset | IterableDataset | Sequence[Mapping[str, Any]], name: str) -> Source:
    """Return the source of a Dataset, in memory or streamed, or of a list of dicts.

    A Dataset's format, such as numpy's, does not count.

    Raises:
        DataError: the rows are neither.
    """
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        numbered = [SourceRow(number, None, row) for number, row in enumerate(rows, 1)]
        return Source(name, lambda: iter(numbered))
    if not hasattr(rows, "with_format"):
        message = f"expected a list of dicts or a Dataset (`Dataset.from_pandas`), found a {type(rows).__name__}"
        raise DataError(message, argument="source")
    dataset: Any = rows
    dataset = dataset.with_format(None)

    def iterate() -> Iterator[SourceRow]:
        each, number = iter(dataset), 0
        while True:
            try:
                row = next(each, None)
            except Exception as error:  # datasets, Arrow and the Hub's client raise many types
                message = f"cannot be read after row {number}: {get_first_line(error)}"
                raise DataError(message, file=name) from error
            if row is None:
                return
            number += 1
            yield SourceRow(number, None, row)

    return Source(name, iterate, dict(find_class_names(dataset.features or {})))


def open_dataset(dataset: str, config: str | None) -> dict[str, Source]:
    """Return split -> rows of a folder that `datasets` wrote or loads, or of a dataset on the Hub.

    Raises:
        DataError: there is no such dataset or config.
    """
    import datasets
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder, place = Path(dataset), find_place(dataset)
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            saved = datasets.load_from_disk(dataset)
            splits = saved if isinstance(saved, dict) else {str(saved.split or "train"): saved}
        elif folder.is_dir() or place.repository is not None:
            splits = datasets.load_dataset(place.repository or dataset, config, revision=place.revision, streaming=True)
        else:
            message = "expected a file, a dataset's folder, or a dataset of the Hub (org/name), found none"
            raise DataError(message)
    except DataError as error:
        raise error.at(file=dataset) from None
    except Exception as error:  # datasets raises many types; their text names the config or the file
        raise DataError(f"cannot be opened: {get_first_line(error)}", file=dataset) from error
    return {str(split): wrap_rows(rows, f"{dataset}/{split}") for split, rows in splits.items()}


def find_label_column(source: Source, used: Collection[str | None]) -> tuple[str, str]:
    """Return the only column that can be the label, and its values with their numbers of rows.

    A candidate is a ClassLabel, else a column of strings or whole numbers in which values repeat.

    Args:
        source: the rows.
        used: columns with another role.

    Raises:
        DataError: there is no candidate, or there are several, which the message names.
    """
    columns: dict[str, Counter[str]] = {}
    rows = 0
    for row in source.rows():
        rows += 1
        for name, value in row.cells.items():
            if name not in used and isinstance(value, str | int):
                names = source.classes.get(name)
                is_number = names is not None and isinstance(value, int) and 0 <= value < len(names)
                columns.setdefault(name, Counter())[names[int(value)] if names and is_number else str(value)] += 1
    full = {name: counts for name, counts in columns.items() if counts.total() == rows}
    classes = {name: counts for name, counts in full.items() if name in source.classes}
    repeated = {name: counts for name, counts in full.items() if 1 < len(counts) < rows}
    candidates = classes or repeated
    described = {
        name: ", ".join(f"{value} {count:,}" for value, count in sorted(counts.most_common(5)))
        + (", .." if len(counts) > 5 else "")
        for name, counts in candidates.items()
    }
    if len(described) != 1:
        there = "; ".join(f"{name} ({values})" for name, values in described.items())
        message = f"expected the column of the label, one of: {there or ', '.join(columns) or 'none can be found'}"
        message += describe_separator(columns) if len(columns) == 1 else ""
        raise DataError(show_controls(message), argument="label")
    return next(iter(described.items()))
