"""Sources of the rows of an import: files, datasets on disk or on the Hub, and rows in memory.

Tables are read here and not by `datasets`: its errors name no line, it guesses the types of a CSV's cells (so that the
label 1 becomes 1.0 beside an empty cell), and importing it takes longer than the import of a small table.
"""

from __future__ import annotations

import json
import logging
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.conversion.readers import (
    describe_separator,
    describe_value,
    parse_json,
    read_json_lines,
    read_table,
)
from eraser_hub.metrics.rows import to_list
from eraser_hub.records.errors import DataError, UsageError, get_first_line, show, show_controls
from eraser_hub.records.places import find_place
from eraser_hub.records.readers import read_limited

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
WORKBOOKS = (".xlsx", ".xls", ".ods", ".numbers")
log = logging.getLogger("eraser_hub")


class SourceRow(NamedTuple):
    """A row.

    Attributes:
        number: its line in the file, or its number, from 1.
        key: its key, if the source is an object of rows.
        cells: its cells.
        file: the file, if the source is several.
    """

    number: int
    key: str | None
    cells: Mapping[str, Any]
    file: str = ""


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


# -- files ------------------------------------------------------------------------------------------------------------


def open_file(path: Path) -> Source:
    """Open a file as rows.

    Raises:
        DataError: it has an ending that is not read; during iteration also the first fault of the file.
    """
    readers = (_read_csv, _read_csv, _read_json_lines, _read_json_lines, _read_json, _read_parquet)
    for suffix, read in zip(SUFFIXES, readers, strict=True):
        if path.name.endswith(suffix):
            classes = _read_parquet_classes(path) if suffix == ".parquet" else {}
            return Source(str(path), partial(read, path), classes)
    message = f"expected a file ending in {', '.join(SUFFIXES)}, found {show(path.name)}"
    raise DataError(message, file=path)


def _read_csv(path: Path) -> Iterator[SourceRow]:
    """Yield the records below the header, each with its first line."""
    _, rows = read_table(path, "\t" if path.suffix == ".tsv" else ",")
    return (SourceRow(line, None, row) for line, row in rows)


def _read_json_lines(path: Path) -> Iterator[SourceRow]:
    """Yield an object a line."""
    return (SourceRow(number, None, row) for number, row in read_json_lines(path))


def _read_json(path: Path) -> Iterator[SourceRow]:
    """Yield the objects of a list, of an object by key, or of lines."""
    data = read_limited(path, 1 << 30).removeprefix(BOM_UTF8)
    first, _, rest = data.partition(b"\n")
    if rest.strip() and first.strip().startswith(b"{") and first.strip().endswith(b"}"):
        yield from _read_json_lines(path)
        return
    value = parse_json(data, file=path, number=1)
    rows: Any = enumerate(value) if isinstance(value, list) else None
    if isinstance(value, dict):
        rows = value.items() if all(isinstance(each, dict) for each in value.values()) else [(0, value)]
    if rows is None:
        message = f"expected a list of rows, or an object of rows, found {describe_value(value)}"
        raise DataError(message, file=path)
    for number, (key, row) in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"expected an object, found {describe_value(row)}", file=path, line=number)
        yield SourceRow(number, key if isinstance(key, str) else None, row)


def _read_parquet(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a table, numbered from 1."""
    from eraser_hub.conversion.built import read_rows

    rows = (row for table in read_rows([path]) for row in table.to_pylist())
    return (SourceRow(number, None, row) for number, row in enumerate(rows, 1))


def _read_parquet_classes(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the names that `datasets` wrote into the file's schema, where it did."""
    import pyarrow.parquet as pq

    from eraser_hub.conversion.built import wrap_parquet_errors

    with wrap_parquet_errors(path):
        metadata = pq.read_schema(path).metadata or {}
    try:
        return dict(find_class_names(json.loads(metadata[b"huggingface"])["info"]["features"]))
    except (KeyError, ValueError, TypeError):
        return {}


def find_class_names(features: Any, name: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (column, names) of each ClassLabel in the JSON of a dataset's features; ``a.b`` is a nested column."""
    if isinstance(features, list):
        yield from find_class_names(features[0], name)
    elif isinstance(features, dict) and features.get("_type") == "ClassLabel":
        yield name, tuple(features["names"])
    elif isinstance(features, dict) and "feature" in features:
        yield from find_class_names(features["feature"], name)
    elif isinstance(features, dict) and not isinstance(features.get("_type"), str):
        for key, feature in features.items():
            yield from find_class_names(feature, f"{name}.{key}" if name else key)


def refuse_other_kinds(path: Path) -> None:
    """Raise a DataError that says what a file or folder is and what takes it, if it is no table and no export."""
    taken_by = ""
    if path.name.endswith(WORKBOOKS):
        taken_by = "a workbook: save its sheet as CSV (UTF-8, with commas)"
    elif path.is_dir() and (path / "corpus.yaml").is_file():
        taken_by = "a corpus in ERASER's format already: `eraser-hub build own --source` takes it"
    elif path.is_dir() and ((path / "docs").is_dir() or (path / "docs.jsonl").is_file()):
        taken_by = "a folder in ERASER's format: with a corpus.yaml in it `eraser-hub build own --source` takes it"
    elif path.is_file() and path.name.endswith((".json", ".jsonl")):
        start = path.open("rb").read(1 << 16)
        if b'"signature"' in start and b'"eraser-hub ' in start:
            taken_by = "a score file: `eraser-hub board --scores` takes it"
        elif b'"rationales"' in start and b'_rationale_predictions"' in start:
            taken_by = "a file of predictions: `eraser-hub score --predictions` takes it"
    if taken_by:
        raise DataError(f"expected a table, a dataset or an annotation tool's export, found {taken_by}", file=path)


# -- datasets and rows in memory --------------------------------------------------------------------------------------


def wrap_rows(rows: Any, name: str) -> Source:
    """Return the source of a Dataset, in memory or streamed, of a DataFrame, or of a list of dicts.

    Raises:
        DataError: the rows are neither.
    """
    if hasattr(rows, "to_dict") and hasattr(rows, "iterrows"):  # pandas
        rows = rows.to_dict("records")
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        plain = [{name: to_list(cell) for name, cell in row.items()} for row in rows]
        return Source(name, lambda: (SourceRow(number, None, row) for number, row in enumerate(plain, 1)))
    if not hasattr(rows, "with_format"):
        message = f"expected a Dataset, a DataFrame or a list of dicts, found {type(rows).__name__}"
        raise DataError(message, argument="source")
    given: Any = rows
    dataset = given.with_format(None)

    def iterate() -> Iterator[SourceRow]:
        number = 0
        try:
            for number, row in enumerate(dataset, 1):
                yield SourceRow(number, None, row)
        except DataError:
            raise
        except Exception as error:  # datasets, Arrow and the Hub's client raise many types
            message = f"cannot be read after row {number}: {get_first_line(error)}"
            raise DataError(message, file=name) from error

    features = dataset.features.to_dict() if dataset.features else {}
    return Source(name, iterate, dict(find_class_names(features)))


def open_dataset(dataset: str, config: str | None) -> dict[str, Source]:
    """Return split -> rows of a folder that `datasets` wrote or loads, or of a dataset on the Hub.

    Raises:
        DataError: there is no such dataset or config.
    """
    folder, place = Path(dataset), find_place(dataset)
    if not folder.is_dir() and place.repository is None:
        raise DataError(
            "expected a file, a dataset's folder, or a dataset of the Hub (org/name), found none", file=dataset
        )
    import datasets
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            saved = datasets.load_from_disk(dataset)
            splits = saved if isinstance(saved, dict) else {str(saved.split or "train"): saved}
        else:
            splits = datasets.load_dataset(place.repository or dataset, config, revision=place.revision, streaming=True)
    except Exception as error:  # datasets raises many types; their text names the config or the file
        raise DataError(f"cannot be opened: {get_first_line(error)}", file=dataset) from error
    return {str(split): wrap_rows(rows, f"{dataset}/{split}") for split, rows in splits.items()}


def find_label_column(source: Source, used: Collection[str | None]) -> str:
    """Return the only column that can be the label.

    A candidate is a ClassLabel, else a column of strings or whole numbers in which values repeat.

    Args:
        source: the rows.
        used: columns with another role.

    Raises:
        UsageError: there is no candidate, or there are several, which the message names.
    """
    columns: dict[str, Counter[str]] = {}
    rows = 0
    for row in source.rows():
        rows += 1
        for name, value in row.cells.items():
            if name not in used and isinstance(value, str | int):
                names = source.classes.get(name, ())
                is_number = isinstance(value, int) and 0 <= value < len(names)
                columns.setdefault(name, Counter())[names[int(value)] if is_number else str(value)] += 1
    full = {name: counts for name, counts in columns.items() if counts.total() == rows}
    classes = {name: counts for name, counts in full.items() if name in source.classes}
    return pick_label(classes or {key: each for key, each in full.items() if 1 < len(each) < max(3, rows)}, columns)


def pick_label(candidates: Mapping[str, Counter[str]], known: Collection[str]) -> str:
    """Return the only candidate, and say so.

    Raises:
        UsageError: there is none, or there are several; the message names these, or what is known.
    """
    described = [f"{name} ({describe_counts(counts)})" for name, counts in candidates.items()]
    if len(described) == 1:
        log.warning(f"label: {described[0]}, the only candidate")
        return next(iter(candidates))
    message = f"expected the label, one of: {'; '.join(described) or ', '.join(known) or 'none can be found'}"
    hint = describe_separator([*known]) if len(known) == 1 else ""
    raise UsageError(show_controls(message + hint), argument="label")


def describe_counts(counts: Counter[str], limit: int = 8) -> str:
    """Describe how often the most frequent values stand: ``bad 3, good 4``."""
    shown = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.most_common(limit)))
    return (shown or "none") + (f" and {len(counts) - limit:,} more" if len(counts) > limit else "")
