"""Prediction files, JSON Lines or Parquet, read once and some rows at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.metrics.errors import DataError, cut

from .lines import describe_bad_byte, read_line_batches, wrap_read_errors

CHUNK_BYTES = 1 << 22
# values of a Parquet column: any file may have so many, more only as its bytes grow (half a bit each)
MAX_VALUES, MAX_VALUES_A_BYTE = 1 << 24, 16
MIN_ROWS, MAX_ROWS = 16, 1 << 15


def is_parquet(path: Path) -> bool:
    """Return True if the first bytes are those of Parquet, whatever the name.

    Raises:
        DataError: the file cannot be read.
    """
    with wrap_read_errors(path), open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def read_chunks(path: Path, digest: Any = None) -> Iterator[tuple[list[dict[str, Any]], Sequence[int]]]:
    """Yield (rows, their lines) of a file of predictions, in its order; of Parquet a row counts as a line.

    Args:
        path: the file.
        digest: of `hashlib`; updated with the bytes of the file.

    Raises:
        DataError: the file cannot be read or is empty; a line is no JSON object, with its number.
    """
    digest = digest or hashlib.sha256()
    if is_parquet(path):
        first = 1
        with open(path, "rb") as file:
            while block := file.read(CHUNK_BYTES):
                digest.update(block)
        for table in read_tables(path):
            yield table.to_pylist(), range(first, first + table.num_rows)
            first += table.num_rows
        return
    empty = True
    for batch in read_line_batches(path, CHUNK_BYTES):
        digest.update(batch.data)
        try:
            rows = list(map(orjson.loads, batch.raw))
        except orjson.JSONDecodeError:
            rows = [parse_line(line, path, number) for line, number in zip(batch.lines, batch.numbers, strict=True)]
        if set(map(type, rows)) - {dict}:
            at = next(at for at, row in enumerate(rows) if type(row) is not dict)
            raise DataError(f"expected an object, found {cut(rows[at])}", file=path, line=batch.numbers[at])
        empty = False
        yield rows, batch.numbers
    if empty:
        raise DataError("expected at least one instance, found an empty file", file=path)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return all rows of a file of predictions; errors as of `read_chunks`."""
    return [row for rows, _ in read_chunks(path) for row in rows]


def read_plain_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, row) of a file of predictions; errors as of `read_chunks`."""
    for rows, lines in read_chunks(path):
        yield from zip(lines, rows, strict=True)


def read_instances(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, instance) of a file of ERASER instances.

    Raises:
        DataError: as of `read_chunks`; a field of another type or a misspelt one, or no id.
    """
    from eraser_hub.metrics.match import INSTANCE
    from eraser_hub.metrics.rows import find_fault  # with Arrow, which is slow to import

    for number, row in read_plain_rows(path):
        if fault := find_fault(row, INSTANCE):
            raise DataError(fault[1], file=path, line=number, instance=row.get("annotation_id"), field=fault[0] or None)
        yield number, row


def parse_line(line: bytes, path: Path, number: int) -> Any:
    """Return the value of a line of JSON, which may hold NaN as Python writes it.

    Raises:
        DataError: it is no JSON, or no UTF-8.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        message = f"expected JSON, found {error.msg}" if line.strip() else "expected JSON, found an empty line"
    try:
        return json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except UnicodeDecodeError as error:
        message = f"expected UTF-8, found {describe_bad_byte(line, error)}"
    except (ValueError, RecursionError):
        pass
    raise DataError(message, file=path, line=number)


def read_tables(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet file as Arrow tables of about four megabytes.

    Raises:
        DataError: it is no Parquet, has a column twice, or a column holds more values than its bytes account for.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with wrap_read_errors(path), pq.ParquetFile(path) as file:
            names, metadata = file.schema_arrow.names, file.metadata
            twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
            if twice is not None:
                raise DataError(f"expected each column once, found {cut(twice)} twice", file=path)
            groups, size = [metadata.row_group(number) for number in range(metadata.num_row_groups)], 1
            for number in range(metadata.num_columns):
                columns = [group.column(number) for group in groups]
                values, stored = (sum(getattr(c, k) for c in columns) for k in ("num_values", "total_compressed_size"))
                limit = max(MAX_VALUES, MAX_VALUES_A_BYTE * stored)
                if values > limit:
                    name, words = columns[0].path_in_schema, f"at most {limit:,} values in {stored:,} bytes"
                    raise DataError(f"expected {words} of a column, found {values:,}", file=path, field=name)
                size += max(8 * values, sum(column.total_uncompressed_size for column in columns))
            wanted = CHUNK_BYTES * metadata.num_rows // size
            for batch in file.iter_batches(batch_size=min(max(wanted, MIN_ROWS), MAX_ROWS)):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError, UnicodeError, OverflowError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"not a readable Parquet file: {reason}", file=path) from None
