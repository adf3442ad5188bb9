"""Sources of the rows of an import: files with a reader, datasets on disk or on the Hub, and Datasets in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from eraser_hub.records.errors import DataError, get_first_line, show
from eraser_hub.records.hub import find_place
from eraser_hub.records.lines import wrap_read_errors
from eraser_hub.records.registry import Registry

from .reader import Reader, SourceRow, find_class_names
from .texts import get_cell

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


def open_file(path: Path) -> Source:
    """Open a file with the reader for its ending.

    Raises:
        DataError: no reader has this ending; during iteration also the first fault of the file.
    """
    for kind in READERS.values():
        if path.name.endswith(kind.suffixes):
            with wrap_read_errors(path):
                reader = kind(path)
                return Source(str(path), reader.rows, reader.classes())
    message = f"expected a file ending in {', '.join(list_suffixes())}, found {show(path.name)}"
    raise DataError(message, rule="file-name", file=path)


def split_source(source: Source, shares: Mapping[str, float], texts: Sequence[str]) -> dict[str, Source]:
    """Return split -> rows, divided by digests of the texts; ``train`` has the rest.

    Equal texts are in one split, and the result is deterministic.

    Args:
        source: all rows.
        shares: split -> share of the texts.
        texts: the columns of the texts.

    Raises:
        DataError: the shares leave nothing for ``train``.
    """
    if not shares:
        return {"train": source}
    if sum(shares.values()) >= 1:
        message = f"expected shares of less than 100% together, found {show(dict(shares))}"
        raise DataError(message, rule="option-value", argument="split")

    def digest(row: SourceRow) -> bytes:
        try:
            content = repr([get_cell(row.cells, column) for column in texts]).encode("utf-8", "surrogatepass")
        except DataError as error:
            raise error.at(file=source.name, line=row.number) from None
        return blake2b(content, digest_size=8).digest()

    digests = sorted({digest(row) for row in source.rows()})
    splits: dict[bytes, str] = {}
    first = 0
    for split, share in shares.items():
        size = max(1, round(share * len(digests)))
        splits |= dict.fromkeys(digests[first : first + size], split)
        first += size

    def select(split: str) -> Source:
        return replace(source, rows=lambda: (row for row in source.rows() if splits.get(digest(row), "train") == split))

    return {split: select(split) for split in ("train", *shares)}


def wrap_dataset(rows: Dataset | IterableDataset, name: str) -> Source:
    """Return the source of a Dataset in memory or a streamed one."""
    return Source(name, lambda: _iterate_dataset(rows, name), dict(find_class_names(rows.features or {})))


def _iterate_dataset(rows: Dataset | IterableDataset, name: str) -> Iterator[SourceRow]:
    each, number = iter(rows), 0
    while True:
        try:
            row = next(each, None)
        except Exception as error:  # datasets, Arrow and the Hub's client raise many types
            message = f"cannot be read after row {number}: {get_first_line(error)}"
            raise DataError(message, rule="file-unreadable", file=name) from error
        if row is None:
            return
        number += 1
        yield SourceRow(number, None, row)


def open_dataset(dataset: str, config: str | None, revision: str | None) -> dict[str, Source]:
    """Return split -> rows of a folder that `datasets` wrote or loads, or of a dataset on the Hub.

    Raises:
        DataError: there is no such dataset or config.
    """
    import datasets
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder, place = Path(dataset), find_place(dataset, revision)
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            saved = datasets.load_from_disk(dataset)
            splits = saved if isinstance(saved, dict) else {str(saved.split or "train"): saved}
        elif folder.is_dir() or place.repository is not None:
            splits = datasets.load_dataset(place.repository or dataset, config, revision=place.revision, streaming=True)
        else:
            message = "expected a file, a dataset's folder, or a dataset of the Hub (org/name), found none"
            raise DataError(message, rule="file-missing")
    except DataError as error:
        raise error.at(file=dataset) from None
    except Exception as error:  # datasets raises many types; their text names the config or the file
        raise DataError(f"cannot be opened: {get_first_line(error)}", rule="file-unreadable", file=dataset) from error
    return {str(split): wrap_dataset(rows, f"{dataset}/{split}") for split, rows in splits.items()}
