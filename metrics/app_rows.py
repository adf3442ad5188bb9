"""Rows for a Space's page: pasted text, files, and gold of a dataset by its name.

A Space holds this file beside its app.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyarrow import ArrowException, Table, parquet

MOST_CHARACTERS = 5_000_000  # of a pasted text: a browser is slow above it, and a file is not
MOST_UNPACKED_BYTES = 2_000_000_000  # of a Parquet file
MOST_JSON_BYTES = 500_000_000  # of a JSON or JSON lines file: its rows take several times as much memory
READING_SECONDS = 120
FILE_TYPES = [".json", ".jsonl", ".parquet"]


class Malformed(ValueError):
    """Box or file with wrong content."""


def parse_box(text: str | None, box: str, kind: type) -> Any:
    """Parse the JSON of one box: a list of rows, JSON lines, or an object; None if the box is empty."""
    text = (text or "").strip()
    if len(text) > MOST_CHARACTERS:
        raise Malformed(f"{box}: {len(text)} characters, at most {MOST_CHARACTERS} in a box; give the rows as a file")
    return parse_json(text, box, kind) if text else None


def parse_json(text: str, box: str, kind: type) -> Any:
    """Parse JSON: a list of rows, JSON lines, or an object.

    Raises:
        Malformed: No JSON, or another type.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise Malformed(f"{box}: nested too deeply") from None
    except ValueError as error:
        try:
            # lines end at \n alone: U+2028 and its like may stand inside a string
            value = [json.loads(line) for line in text.split("\n") if line.strip()] if kind is list else None
        except (ValueError, RecursionError):
            value = None
        if value is None:
            raise Malformed(f"{box}: no JSON: {error}") from None
    if kind is list and isinstance(value, dict):
        value = [value]
    if not isinstance(value, kind):
        expected = "a list of rows" if kind is list else "an object"
        raise Malformed(f"{box}: expected {expected}, found {type(value).__name__}")
    return value


def read_file(path: str, box: str) -> Any:
    """Read a file of rows: a list of a JSON or JSON lines file, a table of a Parquet file.

    JSON lines and Parquet are read in parts, for at most `READING_SECONDS`; a JSON file is read whole.

    Raises:
        Malformed: No such rows, no UTF-8, more than `MOST_JSON_BYTES` or `MOST_UNPACKED_BYTES`, or the time is over.
    """
    name, suffix = Path(path).name, Path(path).suffix.lower()
    try:
        if suffix == ".parquet":
            return _read_parquet(path, box)
        if (size := Path(path).stat().st_size) > MOST_JSON_BYTES:
            words = f"expected at most {MOST_JSON_BYTES} bytes, found {size}; use the module in Python"
            raise Malformed(f"{box}: {name}: {words}")
        if suffix == ".json":
            return parse_json(Path(path).read_bytes().decode("utf-8-sig"), f"{box}: {name}", list)
        return list(_read_lines(path, f"{box}: {name}"))
    except UnicodeDecodeError as error:
        raise Malformed(f"{box}: {name} is no UTF-8: {error}") from None
    except (ArrowException, OSError) as error:
        raise Malformed(f"{box}: cannot read {name}: {error}") from None


def _read_lines(path: str, where: str) -> Iterator[Any]:
    deadline, found = time.monotonic() + READING_SECONDS, 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            _check_deadline(deadline, where)
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if not text:
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise Malformed(f"{where}, line {number}: no JSON: {error}") from None
            if number == 1 and isinstance(row, list) and len(row) and isinstance(row[0], dict):
                raise Malformed(f"{where}, line 1: expected a row a line, found a list; name the file .json")
            found += 1
            yield row
    if not found:
        raise Malformed(f"{where}: expected rows, found an empty file")


def _read_parquet(path: str, box: str) -> Table:
    deadline, file = time.monotonic() + READING_SECONDS, parquet.ParquetFile(path)
    size = sum(file.metadata.row_group(at).total_byte_size for at in range(file.metadata.num_row_groups))
    if size > MOST_UNPACKED_BYTES:
        words = f"{size} bytes unpacked, at most {MOST_UNPACKED_BYTES} here; use the module in Python"
        raise Malformed(f"{box}: {Path(path).name}: {words}")
    batches = []
    for batch in file.iter_batches():
        _check_deadline(deadline, f"{box}: {Path(path).name}")
        batches.append(batch)
    return Table.from_batches(batches, schema=file.schema_arrow)


def _check_deadline(deadline: float, where: str) -> None:
    if time.monotonic() > deadline:
        raise Malformed(f"{where}: not read within {READING_SECONDS} s; use the module in Python")


def get_namespace() -> str:
    """Return the namespace of this Space on the Hub; empty elsewhere."""
    return os.environ.get("SPACE_ID", "").partition("/")[0]


def find_dataset(name: str, hub: Path | None = None) -> str:
    """Return the place of a dataset: the folder of that name in ``hub``, else its id on the Hub.

    Without ``hub``, the folder beside the Space's counts.
    """
    beside = (hub or Path(__file__).resolve().parent.parent) / name
    if "/" not in name and (beside / "README.md").is_file():
        return str(beside)
    namespace = get_namespace()
    return f"{namespace}/{name}" if namespace and "/" not in name else name


def load_gold(name: str, config: str, split: str, hub: Path | None = None) -> Any:
    """Load the references of a dataset by name.

    Args:
        name: Id on the Hub (``ORG/eraser``), or the name of a folder beside the Space's.
        config: The configuration, e.g. ``movies``; empty for the default one.
        split: The split; ``val``, the releases' name, is ``validation``.
        hub: See `find_dataset`.

    Raises:
        Malformed: There is no such dataset, configuration or split, or the Hub does not answer.
    """
    import datasets

    name, config, split = name.strip(), config.strip(), split.strip()
    if not name or not split:
        raise Malformed("gold: expected the name of a dataset and a split, e.g. ORG/eraser, movies, validation")
    place = find_dataset(name, hub)
    try:
        return datasets.load_dataset(place, config or None, split="validation" if split == "val" else split)
    except Exception as error:  # an unknown name, or no network: its message says which
        words = str(error).splitlines() or [type(error).__name__]
        raise Malformed(f"gold: {name}, {config or 'default'}, {split}: {words[0]}") from None


def list_rows(rows: Any) -> list[Any]:
    """Return rows of a list or a table as a list."""
    return list(rows.to_pylist()) if isinstance(rows, Table) else rows
