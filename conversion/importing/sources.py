"""Where the rows of an import come from: a file (JSON lines, JSON, CSV, TSV, Parquet), a dataset on disk or on the Hub,
or a Dataset in memory; a row is what stands in it, with the number by which errors name it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eraser_hub.records.errors import DataError, first_line, shown
from eraser_hub.records.hub import place_of
from eraser_hub.records.json_lines import describe, strict_object, strict_value
from eraser_hub.records.lines import batches_of_lines, reading, utf8_lines

from .cells import cell

if TYPE_CHECKING:
    from datasets import Dataset, Features, IterableDataset

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
LONGEST_CELL = 1 << 27


class SourceRow(NamedTuple):
    """A row: its line in the file (or its number, from 1), its key where the source is an object of rows, its cells."""

    number: int
    key: str | None
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """The rows of one split.

    Attributes:
        name: the file or dataset, for messages.
        rows: them, each time anew.
        classes: column -> the names of a ClassLabel's numbers; ``a.b`` for a column below another.
    """

    name: str
    rows: Callable[[], Iterator[SourceRow]]
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def source_of_file(path: Path) -> Source:
    """A file, read by what its name ends in.

    Raises:
        DataError: another ending; and, while it is read, at the first line that is none of its format.
    """
    readers = {".jsonl": _json_lines, ".ndjson": _json_lines, ".json": _json, ".csv": _csv, ".tsv": _csv}
    if path.suffix == ".parquet":
        return Source(str(path), lambda: _parquet(path), _classes_of_parquet(path))
    if path.suffix not in readers:
        message = f"expected a file ending in {', '.join(SUFFIXES)}, found {shown(path.name)}"
        raise DataError(message, rule="file-name", file=path)
    with reading(path):
        return Source(str(path), lambda: readers[path.suffix](path))


def _json_lines(path: Path) -> Iterator[SourceRow]:
    for batch in batches_of_lines(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            yield SourceRow(number, None, strict_object(line, file=path, number=number))


def _json(path: Path) -> Iterator[SourceRow]:
    """A list of rows, or an object whose values are rows; or lines, as many a .json holds."""
    with reading(path):
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    first, _, rest = data.partition(b"\n")
    if rest.strip() and first.strip().startswith(b"{") and first.strip().endswith(b"}"):
        yield from _json_lines(path)
        return
    value = strict_value(data, file=path, number=1)
    rows: Iterable[tuple[str | None, object]]
    if isinstance(value, dict):
        by_key = all(isinstance(each, dict) for each in value.values())
        rows = value.items() if by_key else [(None, value)]
    elif isinstance(value, list):
        rows = ((None, each) for each in value)
    else:
        message = f"expected a list of rows, or an object of rows, found {describe(value)}"
        raise DataError(message, rule="type", file=path)
    for number, (key, row) in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"expected an object, found {describe(row)}", rule="type", file=path, line=number)
        yield SourceRow(number, key, row)


def _csv(path: Path) -> Iterator[SourceRow]:
    limit = csv.field_size_limit(LONGEST_CELL)  # of the process: it is put back
    reader = csv.reader(utf8_lines(path), "excel-tab" if path.suffix == ".tsv" else "excel", strict=True)
    header: list[str] = []
    before = 0
    try:
        for fields in reader:
            line, before = before + 1, reader.line_num
            if not header:
                header = fields
                if len(set(header)) < len(header):
                    message = f"expected each column once, found {shown(header, 200)}"
                    raise DataError(message, rule="key-twice", file=path, line=line)
            elif len(fields) != len(header):
                message = f"expected {len(header)} fields, found {len(fields)}"
                raise DataError(message, rule="length", file=path, line=line)
            else:
                yield SourceRow(line, None, dict(zip(header, fields, strict=True)))
    except csv.Error as error:
        raise DataError(f"is no CSV: {error}", rule="syntax", file=path, line=reader.line_num) from None
    finally:
        csv.field_size_limit(limit)


def _parquet(path: Path) -> Iterator[SourceRow]:
    from eraser_hub.records.built import batches  # with Arrow

    rows = (row for table in batches([path]) for row in table.to_pylist())
    return (SourceRow(number, None, row) for number, row in enumerate(rows, 1))


def _classes_of_parquet(path: Path) -> dict[str, tuple[str, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features

    try:
        with reading(path):
            schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot be read as Parquet ({first_line(error)})", rule="syntax", file=path) from None
    if len(set(schema.names)) < len(schema.names):
        raise DataError(f"expected each column once, found {shown(schema.names, 200)}", rule="key-twice", file=path)
    if b"huggingface" not in (schema.metadata or {}):
        return {}
    try:
        return dict(_classes(Features.from_arrow_schema(schema)))
    except Exception:  # what another version of datasets wrote; the numbers are then labels by themselves
        return {}


def parted(source: Source, shares: Mapping[str, float], texts: Sequence[str]) -> dict[str, Source]:
    """Split -> its rows: of each split as many texts as its share asks for, by their digests; ``train`` the rest.

    Equal texts come into one split, and the same rows always into the same.

    Args:
        source: all rows.
        shares: split -> its share of the texts.
        texts: the columns of the texts.

    Raises:
        DataError: the shares leave nothing.
    """
    if not shares:
        return {"train": source}
    if sum(shares.values()) >= 1:
        message = f"expected shares of less than 100% together, found {shown(dict(shares))}"
        raise DataError(message, rule="option-value", field="--split")

    def digest(row: SourceRow) -> bytes:
        try:
            content = repr([cell(row.cells, column) for column in texts]).encode("utf-8", "surrogatepass")
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

    def of(split: str) -> Source:
        return replace(source, rows=lambda: (row for row in source.rows() if splits.get(digest(row), "train") == split))

    return {split: of(split) for split in ("train", *shares)}


def source_of_rows(rows: Dataset | IterableDataset, name: str) -> Source:
    """A Dataset in memory, or one that is streamed."""
    return Source(name, lambda: _of_dataset(rows, name), dict(_classes(rows.features or {})))


def _of_dataset(rows: Dataset | IterableDataset, name: str) -> Iterator[SourceRow]:
    each, number = iter(rows), 0
    while True:
        try:
            row = next(each, None)
        except Exception as error:  # datasets, Arrow and the Hub's client raise many kinds
            message = f"cannot be read after row {number}: {first_line(error)}"
            raise DataError(message, rule="file-unreadable", file=name) from error
        if row is None:
            return
        number += 1
        yield SourceRow(number, None, row)


def _classes(features: Features | Mapping[str, Any], above: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, feature in features.items():
        kind = feature
        while isinstance(kind, list) or getattr(kind, "feature", None) is not None:
            kind = kind[0] if isinstance(kind, list) else kind.feature
        if isinstance(kind, dict):
            yield from _classes(kind, f"{above}{name}.")
        elif getattr(kind, "names", None):
            yield f"{above}{name}", tuple(kind.names)


def sources_of_dataset(dataset: str, config: str | None, revision: str | None) -> dict[str, Source]:
    """Split -> its rows, of a folder that `datasets` wrote or loads, or of a dataset of the Hub.

    Raises:
        DataError: there is no such dataset or config.
    """
    import datasets
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder, place = Path(dataset), place_of(dataset, revision)
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
    except Exception as error:  # datasets raises many kinds; its words name the config or the file
        raise DataError(f"cannot be opened: {first_line(error)}", rule="file-unreadable", file=dataset) from error
    return {str(split): source_of_rows(rows, f"{dataset}/{split}") for split, rows in splits.items()}
