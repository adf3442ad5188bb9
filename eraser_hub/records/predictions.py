"""ERASER prediction files, JSON lines or Parquet: typed, and read once, some instances at a time.

    for number, instance in instances(path): ..    typed instances, each with its line
    for number, row in read_plain_rows(path): ..   untyped rows of another kind, e.g. the perturbation benchmark's
    for chunk in read_chunks(path): ..             instances as flat arrays, as metrics/ takes them, read by processes

The fields are those that `schema.instance` declares; a misspelt one is an error, any other is counted
(`metrics.unknown_fields`). Of Parquet a row counts as a line.

Lines are decoded by msgspec into typed objects, without Python code for each. Lines that it refuses, and runs of lines
in which a key may stand twice (their quotes are counted), are read again strictly by `json_lines`, which names the
fault.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from eraser_hub.metrics.columns import Level, ObjectColumns, UnsuitedError, find_issues
from eraser_hub.metrics.flat import Predictions
from eraser_hub.metrics.flatten import PREDICTION, get_row_name, keep_sound_rows
from eraser_hub.metrics.issues import Issues, RowNames
from eraser_hub.metrics.unknown_fields import UnknownFields
from eraser_hub.schema.instance import INSTANCE, QUOTES_FIELD, InstanceRecord
from eraser_hub.schema.instance import RationaleRecord as Rationale
from eraser_hub.schema.record import Record

from .errors import DataError, get_first_line, show
from .json_lines import has_quote_count, parse_strict_object
from .lines import LineBatch, find_line_end, read_line_batches, wrap_read_errors
from .processes import make_process_pool
from .rules import Rule

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")
__all__ = ["PredictionChunk", "Rationale", "instances", "is_parquet", "read_chunks", "read_plain_rows"]
# bytes of lines that are decoded at a time: their objects fit into a processor's cache
BLOCK = 1 << 18
# bytes of a part: each costs some two hundred calls, whatever its size
PART = 1 << 22
# values of a Parquet column: any file may have so many, more only as its bytes grow (half a bit each)
MAX_VALUES, MAX_VALUES_A_BYTE = 1 << 24, 16
MAX_BATCH_BYTES = 1 << 29
LEAST_ROWS, MOST_ROWS = 16, 1 << 15
# bytes of predictions that make another process worth its start
BYTES_A_PROCESS, MOST_PROCESSES = 128 << 20, 4
_TYPES: Mapping[str, Any] = {
    "text": str,
    "id": str | int,
    "label": str | int,
    "whole": int,
    "number": float,
    "flag": bool,
    "probabilities": dict[str, float | None],
}


# ---------------------------------------------------------------------------------------------------------- instances
def _struct(record: Record, absent: Any, strict: bool = True) -> Any:
    """Return the type of a record's objects.

    Args:
        record: the declaration.
        absent: the value of a field that is missing.
        strict: refuse fields that the record does not declare.
    """
    typed: list[Any] = []
    for field in record.values():
        kind = _TYPES[field.kind] if field.record is None else _struct(field.record, absent, strict)
        for _ in range(field.depth):
            kind = GenericAlias(list, kind)
        typed.append((field.name, kind) if field.required else (field.name, kind | None | msgspec.UnsetType, absent))
    return msgspec.defstruct("Object", typed, gc=False, kw_only=True, forbid_unknown_fields=strict, omit_defaults=True)


_decode = msgspec.json.Decoder(_struct(INSTANCE, None)).decode


@cache
def _null_decoder() -> msgspec.json.Decoder[Any]:
    """Return what tells null and nothing apart, to count the strings of lines that hold null."""
    return msgspec.json.Decoder(_struct(INSTANCE, UNSET))


@cache
def _open_type() -> Any:
    return _struct(INSTANCE, None, strict=False)


def instances(path: Path) -> Iterator[tuple[int, InstanceRecord]]:
    """Yield the instances of a prediction file, each with its line (of Parquet: its row), numbered from 1.

    Raises:
        DataError: the file cannot be read; a line is no JSON, has a field of another type or a misspelt one, or lacks
            an id; with file, line and field.
    """
    if is_parquet(path):
        rows = (row for table in _tables(path) for row in table.to_pylist())
        yield from ((number, _checked(row, path, number)) for number, row in enumerate(rows, start=1))
        return
    for lines in read_line_batches(path, BLOCK):
        level = _decoded(lines, path)
        if level is not None:
            yield from zip(lines.numbers, level.objects, strict=True)
            continue
        for number, line in zip(lines.numbers, lines.lines, strict=True):
            yield number, _checked(parse_strict_object(line, file=path, number=number), path, number)


def _checked(row: dict[str, Any], path: Path, number: int) -> InstanceRecord:
    """Return a row as a typed instance, or raise what is wrong with its first field that is."""
    misspelt = ((where, message, "key-unknown") for where, message in UnknownFields().count_row(row, INSTANCE))
    for where, message, rule in chain(misspelt, find_issues(row, INSTANCE)):
        name = get_row_name(row) or None
        raise DataError(message, rule=cast("Rule", rule), file=path, line=number, instance=name, field=where or None)
    return cast("InstanceRecord", msgspec.convert(row, _open_type()))


def read_plain_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a prediction file unchanged, each with its line (of Parquet: its row), from 1.

    Raises:
        DataError: the file cannot be read, or a line is no JSON object; with file and line.
    """
    if is_parquet(path):
        yield from enumerate((row for table in _tables(path) for row in table.to_pylist()), start=1)
        return
    for lines in read_line_batches(path):
        for number, line in zip(lines.numbers, lines.lines, strict=True):
            yield number, parse_strict_object(line, file=path, number=number)


def _decoded(lines: LineBatch, path: Path) -> Level | None:
    """Return the instances of lines; None if they must be read strictly.

    Raises:
        DataError: a key stands twice.
    """
    try:
        decoded = Level(list(map(_decode, lines.raw)), INSTANCE, astuple)
        if not lines.data.isascii():  # the decoder skips fields without a look at them
            lines.data.decode()
        sound = has_quote_count(lines.data, _strings(decoded, None))
        if not sound and b"null" in lines.data:
            nulls = Level(list(map(_null_decoder().decode, lines.raw)), INSTANCE, astuple)
            sound = has_quote_count(lines.data, _strings(nulls, UNSET))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not sound:
        for number, line in zip(lines.numbers, lines.lines, strict=True):
            parse_strict_object(line, file=path, number=number)
    return decoded


def _strings(level: Level, absent: object) -> int:
    """Count the strings, keys included, in the JSON of typed objects without repeated keys."""
    count = 0
    for name, field in level.record.items():
        values = level.columns[name]
        there = len(values) if all(values) else len(values) - values.count(absent)
        count += there
        if there and field.record is not None:
            count += _strings(level.inner(name), absent)
        elif there and field.kind in ("text", "id", "label"):
            count += list(map(type, values)).count(str)
        elif there and field.kind == "probabilities":
            count += sum(map(len, filter(None, values)))
    return count


# --------------------------------------------------------------------------------------------------------------- parts
ROW_FIELDS = frozenset((QUOTES_FIELD,))  # of language models, scored row by row


class PredictionChunk(NamedTuple):
    """Some instances of a prediction file.

    Attributes:
        predictions: flat; documents and labels are numbered by this part alone.
        lines: the line of each.
        issues: misspelt fields, and fields of a wrong type, which count as absent; by line.
        unknown: the fields that the format does not know.
        row_fields: of `ROW_FIELDS` those that any instance holds.
    """

    predictions: Predictions
    lines: range
    issues: Issues
    unknown: UnknownFields
    row_fields: frozenset[str] = frozenset()


_Read = tuple[PredictionChunk | DataError, int]  # a part, its lines numbered from 1, or why it is none; and its lines


def read_chunks(path: Path, num_proc: int = 1) -> Iterator[PredictionChunk]:
    """Yield the instances of a prediction file as flat arrays, in chunks and in order.

    Args:
        path: the file.
        num_proc: number of processes that decode JSON lines; 0: one, or more for a large file on several cores.

    Raises:
        DataError: the file cannot be read, or a line of it is no JSON.
    """
    if is_parquet(path):
        yield from _parts_of_rows(path)
        return
    with wrap_read_errors(path):
        size = path.stat().st_size
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = num_proc or max(1, min(cores, MOST_PROCESSES, size // BYTES_A_PROCESS))
        ranges, start, before = list[tuple[int, int]](), 0, 0  # whole lines: the bytes [start, end) of each chunk
        with path.open("rb") as file:
            while start < size:
                end = find_line_end(path, file, min(start + PART, size))
                ranges.append((start, min(end, size)))
                start = ranges[-1][1]
        for part, lines in _shared(path, ranges, count) if count > 1 else (_read(path, *own) for own in ranges):
            if isinstance(part, DataError):
                raise DataError(part.message, rule=part.rule, file=path, line=before + (part.line or 0))
            if part.lines:
                moved = Issues()
                moved += [issue._replace(row=issue.row + before) for issue in part.issues]
                moved.total = part.issues.total
                yield part._replace(lines=range(before + 1, before + 1 + len(part.lines)), issues=moved)
            before += lines


def _shared(path: Path, ranges: Sequence[tuple[int, int]], count: int) -> Iterator[_Read]:
    """Yield the result of `_read` for each range, in order, by several processes if they can start."""
    waiting: deque[tuple[tuple[int, int], Future[_Read] | None]] = deque()
    with make_process_pool(count) as pool:
        try:
            for own in ranges:
                submit = cast("Callable[[], Future[_Read]]", partial(pool.submit, _read, path, *own))
                waiting.append((own, _unless_broken(submit)))
                if len(waiting) > count:
                    yield _awaited(path, *waiting.popleft())
            while waiting:
                yield _awaited(path, *waiting.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _awaited(path: Path, own: tuple[int, int], future: Future[_Read] | None) -> _Read:
    return (future and _unless_broken(future.result)) or _read(path, *own)


def _unless_broken(call: Callable[[], Result]) -> Result | None:
    """Return the result of the call; None if the pool of processes is broken."""
    with suppress(BrokenProcessPool):
        return call()
    return None


def _read(path: Path, start: int, end: int, strict: bool = False) -> _Read:
    """Return the lines between two bytes as a chunk, or why they are no JSON, and the number of lines."""
    columns, unknown, issues = ObjectColumns(INSTANCE, PREDICTION.paths), UnknownFields(), Issues()
    count, row_fields = 0, frozenset[str]()
    try:
        for lines in read_line_batches(path, BLOCK, start, end):
            level = None if strict else _decoded(lines, path)
            if level is None:
                rows = [
                    parse_strict_object(x, file=path, number=n) for n, x in zip(lines.numbers, lines.lines, strict=True)
                ]
                own = Issues({"prediction": RowNames(lines.numbers, [*map(get_row_name, rows)])})
                level = Level(keep_sound_rows(rows, PREDICTION, own, unknown), INSTANCE)
                issues.take(own)
            columns.add(level)
            count = lines.numbers[-1]
            row_fields |= {
                name for name in ROW_FIELDS - row_fields if any(one is not None for one in level.columns[name])
            }
            del level  # its memory, still in the processor's cache, holds the next ones
    except UnsuitedError:
        if strict:
            raise
        return _read(path, start, end, strict=True)
    except DataError as error:
        return error, count
    return PredictionChunk(PREDICTION.flat(columns.finish()), range(1, count + 1), issues, unknown, row_fields), count


def _parts_of_rows(path: Path) -> Iterator[PredictionChunk]:
    """Yield a Parquet file of instances in chunks of rows."""
    # the Arrow libraries are slow to import: only where they are needed
    import pyarrow as pa

    from eraser_hub.metrics.arrow_columns import flatten_table

    first = 1
    for table in _tables(path):
        lines = range(first, first + table.num_rows)
        first = lines.stop
        ids = table.column("annotation_id").to_pylist() if "annotation_id" in table.column_names else [""] * len(lines)
        issues = Issues({"prediction": RowNames(lines, [get_row_name({"annotation_id": one}) for one in ids])})
        try:
            predictions, unknown = flatten_table(table, PREDICTION, issues)
        except pa.ArrowInvalid as error:  # equal strings of a dictionary that are too long together
            message = f"cannot be read: {get_first_line(error)}"
            raise DataError(message, rule="size-limit", file=path, line=lines[0]) from None
        held = (name for name in ROW_FIELDS if name in table.column_names)
        row_fields = frozenset(name for name in held if table.column(name).null_count < table.num_rows)
        yield PredictionChunk(predictions, lines, issues, unknown, row_fields)


def _tables(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            again = next((name for at, name in enumerate(names) if name in names[:at]), None)
            if again is not None:
                raise DataError(f"expected each column once, found {show(again)} twice", rule="key-twice", file=path)
            size = _check_size(file.metadata, path)
            wanted = PART * file.metadata.num_rows // max(size, 1)
            for batch in file.iter_batches(batch_size=min(max(wanted, LEAST_ROWS), MOST_ROWS)):
                if batch.nbytes > MAX_BATCH_BYTES:
                    message = f"expected rows of at most {MAX_BATCH_BYTES:,} bytes in a batch, found {batch.nbytes:,}"
                    raise DataError(message, rule="size-limit", file=path)
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError, UnicodeError, OverflowError) as error:
        raise DataError(f"not a readable Parquet file: {get_first_line(error)}", rule="syntax", file=path) from None


def _check_size(metadata: Any, path: Path) -> int:
    """Return the bytes of a file's values, of which a small file may hold very many: a run of equal ones costs nothing.

    Raises:
        DataError: a column has more values than its bytes can account for.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values, size = 0, 0
    for number in range(metadata.num_columns):
        columns = [group.column(number) for group in groups]
        count, stored = sum(one.num_values for one in columns), sum(one.total_compressed_size for one in columns)
        if count > max(MAX_VALUES, MAX_VALUES_A_BYTE * stored):
            message = f"expected at most {max(MAX_VALUES, MAX_VALUES_A_BYTE * stored):,} values in {stored:,} bytes"
            name = columns[0].path_in_schema
            raise DataError(f"{message} of a column, found {count:,}", rule="size-limit", file=path, field=name)
        values, size = values + count, size + sum(one.total_uncompressed_size for one in columns)
    return max(size, 8 * values)


def is_parquet(path: Path) -> bool:
    """Return True if the first bytes are those of Parquet, whatever the name.

    Raises:
        DataError: the file cannot be read.
    """
    with wrap_read_errors(path), open(path, "rb") as file:
        return file.read(4) == b"PAR1"
