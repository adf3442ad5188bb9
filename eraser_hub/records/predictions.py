"""Prediction files, JSON Lines or Parquet, read once and some rows at a time; their run records, and files of seeds."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.metrics.errors import DataError, cut

from .errors import get_first_line
from .files import RUN_SUFFIX, atomic_write, compute_file_digest, to_json_bytes
from .readers import JSON_ERRORS, describe_bad_json, read_json_object, read_line_batches, wrap_read_errors

CHUNK_BYTES = 1 << 22
# values of a Parquet column: any file may have so many, more only as its bytes grow (half a bit each)
MAX_VALUES, MAX_VALUES_A_BYTE = 1 << 24, 16
MIN_ROWS, MAX_ROWS = 16, 1 << 15
TABLES = (".csv", ".tsv", ".xlsx", ".xls", ".ods")
SEED = "seed-"  # of a training, in the names of folders and files


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
    empty, decode = True, msgspec.json.Decoder().decode
    for batch in read_line_batches(path, CHUNK_BYTES):
        digest.update(batch.data)
        try:
            rows = list(map(decode, batch.raw))
        except JSON_ERRORS:
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
    from eraser_hub.metrics.predictions import INSTANCE
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
        return msgspec.json.decode(line)
    except JSON_ERRORS as error:
        message = describe_bad_json(line, error) if line.strip() else "expected JSON, found an empty line"
        if line.strip() == b"{":
            message = "expected a line of JSON for each prediction, found JSON over several lines, such as a score file"
        if path.suffix.lower() in TABLES:
            message = (
                "expected JSON Lines or Parquet, found a table (pandas: to_json(.., orient='records', lines=True))"
            )
    try:
        return json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        raise DataError(message, file=path, line=number) from None


def read_tables(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a Parquet file, all columns or some, as Arrow tables of about four megabytes.

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
                chunks = [group.column(number) for group in groups]
                values, stored = (sum(getattr(c, k) for c in chunks) for k in ("num_values", "total_compressed_size"))
                limit = max(MAX_VALUES, MAX_VALUES_A_BYTE * stored)
                if values > limit:
                    name, words = chunks[0].path_in_schema, f"at most {limit:,} values in {stored:,} bytes"
                    raise DataError(f"expected {words} of a column, found {values:,}", file=path, field=name)
                size += max(8 * values, sum(chunk.total_uncompressed_size for chunk in chunks))
            wanted = CHUNK_BYTES * metadata.num_rows // size
            rows = min(max(wanted, MIN_ROWS), MAX_ROWS)
            for batch in file.iter_batches(batch_size=rows, columns=None if columns is None else list(columns)):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError, UnicodeError, OverflowError) as error:
        raise DataError(f"not a readable Parquet file: {get_first_line(error)}", file=path) from None


# -- records of runs, and their files ---------------------------------------------------------------------------------


def run_path(out: Path) -> Path:
    """Return the file that records how a result was made."""
    return out.parent / (out.name + RUN_SUFFIX)  # a folder without a name has none, either


def read_run(out: Path) -> dict[str, Any]:
    """Return the record of the run that wrote ``out``; empty if there is none.

    Raises:
        DataError: that file is no JSON object.
    """
    path = run_path(out)
    return read_json_object(path) if path.is_file() else {}


def write_run(out: Path, facts: Mapping[str, Any]) -> None:
    """Write the record of a run atomically, with the SHA-256 of the predictions that stand in ``out``."""
    if out.is_file():  # it may lead to a device
        facts = {**facts, "predictions_sha256": compute_file_digest(out)}
    atomic_write(run_path(out).resolve(), to_json_bytes(facts))


def read_signature(results: Path) -> str:
    """Return the signature of the run that wrote the predictions; "" for none.

    Raises:
        DataError: as of `read_run`.
    """
    signature = read_run(results).get("signature")
    return signature if isinstance(signature, str) else ""


def read_model_digest(predictions: Path) -> str:
    """Return the digest of the model that made the predictions, by the record of the run; "" where it is not known."""
    model = read_run(predictions).get("model") if predictions.is_file() else None
    digest = model.get("digest") if isinstance(model, dict) else None
    return digest if isinstance(digest, str) else ""


def is_recorded(path: Path) -> bool:
    """Return True if the record beside predictions is of a run that wrote them, and they are as it wrote them."""
    if not is_run_record(run_path(path)):
        return False
    return read_run(path).get("predictions_sha256", "") in ("", compute_file_digest(path))


def is_run_record(path: Path) -> bool:
    """Return True if a file is the record of a run."""
    with suppress(DataError):
        return not {"signature", "generator"}.isdisjoint(read_json_object(path))
    return False


def find_inputs(*arguments: str | PathLike[str] | Sequence[str | PathLike[str]] | None) -> tuple[Path, ...]:
    """Return the files and folders that arguments name (``FILE``, ``NAME=FILE,FILE,..``), and the files' records."""
    paths = []
    for argument in arguments:
        for value in [argument] if isinstance(argument, str | PathLike) else argument or ():
            whole = os.fspath(value)
            names = {whole, *whole.split(","), *whole.partition("=")[2].split(",")}
            files = [file for name in names if name for file in find_seed_files(Path(name))]
            paths += [*files, *(run_path(file) for file in files if file.name)]
    return tuple(path for path in paths if os.path.exists(path))


def make_seed_path(out: Path, seed: int) -> Path:
    """Return the file of one of several trainings: ``predictions.seed-1.jsonl``."""
    return out.with_name(f"{out.stem}.{SEED}{seed}{out.suffix}")


def find_seed_files(path: Path) -> list[Path]:
    """Return the files that a run with ``--out path`` of several trainings wrote, in the order of seeds.

    Return ``path`` alone if it exists or no such file does.
    """
    if os.path.exists(path) or not path.name:  # False of a name that is too long
        return [path]
    form = re.compile(rf"{re.escape(path.stem)}\.{SEED}([0-9]+){re.escape(path.suffix)}")
    names = [each.name for each in path.parent.iterdir()] if os.path.isdir(path.parent) else []
    seeds = {int(found[1]) for found in map(form.fullmatch, names) if found}
    return [make_seed_path(path, seed) for seed in sorted(seeds)] or [path]
