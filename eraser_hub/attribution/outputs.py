"""Predictions on disk: written chunk by chunk beside the result, gathered and renamed into place at the end.

During a run ``OUT.partial`` holds a first line with its settings and then one line per finished chunk. A line that
was cut by a kill is dropped when the run resumes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import OutputWriter, atomic_write, hold_lock
from eraser_hub.records.predictions import is_recorded, is_run_record, read_run, run_path
from eraser_hub.records.readers import JSON_ERRORS

FORMATS = (".jsonl", ".parquet")
STOPPED = "a stopped run lies here: say `resume` to go on with it, or delete the file"


def get_partial_path(out: Path) -> Path:
    """Return the path of a run's finished chunks until it is complete."""
    return out.with_name(out.name + ".partial")


def check_format(out: Path, writer: OutputWriter, resume: bool = True) -> None:
    """Refuse a place that no result may take.

    Args:
        out: path of the result.
        writer: the run's writer.
        resume: whether a stopped run may lie there, which goes on.

    Raises:
        DataError: an ending of neither JSON lines nor Parquet, or what the writer refuses (a result has its
            ``OUT.run.json``, a stopped run its ``OUT.partial``).
    """
    if out.suffix not in FORMATS:
        message = f"expected a file ending in {' or '.join(FORMATS)}, found {show(out.name)}"
        raise DataError(message, argument="out")
    partial = get_partial_path(out)
    stopped = partial.is_file() and partial.stat().st_size > 0  # before its record was written
    writer.check(out, lambda path: stopped or is_recorded(path))
    writer.check(run_path(out), is_run_record)
    writer.check(partial, lambda path: True)  # its reader refuses what no run wrote
    if stopped and not resume:
        raise DataError(STOPPED, file=partial)


def refuse_other(out: Path, header: dict[str, Any], force: bool = False) -> dict[str, Any]:
    """Return the record of a result that lies there and was made alike; {} where there is none.

    Args:
        out: path of the result.
        header: record of all that decides the results.
        force: whether a result that was made otherwise may be replaced.

    Raises:
        DataError: the result was made otherwise; names the differences.
    """
    # a run that was stopped between result and record left its chunks, whose header `open_partial_result` compares
    stopped = not run_path(out).exists() and get_partial_path(out).exists()
    if not out.is_file() or not out.stat().st_size or stopped:
        return {}
    before = dict[str, Any]()
    with suppress(DataError):  # a damaged record says nothing, so all differs
        before = read_run(out)
    words = describe_differences({key: before.get(key) for key in header}, header)
    if words and not force:
        message = f"a result that was made otherwise lies here: {'; '.join(words)}; `force` replaces it"
        raise DataError(message, argument="out", file=out)
    return {} if words else before


@dataclass(frozen=True, slots=True)
class PartialResult:
    """The finished chunks of a run, see :func:`open_partial_result`.

    Attributes:
        file: their file, open for reading and writing.
        places: the place of each finished chunk in it, by number.
    """

    file: BinaryIO
    places: dict[int, int]

    def append(self, chunk: int, record: Mapping[str, Any]) -> None:
        """Keep a finished chunk: its ``predictions`` as JSON lines, and its counters, through to the disk.

        Raises:
            OSError: it could not be written (a full disk); what was written before is whole.
        """
        place = self.file.seek(0, os.SEEK_END)
        self.file.write(msgspec.json.encode({"chunk": chunk, **record}) + b"\n")
        self.file.flush()
        self.places[chunk] = place

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the finished chunks in the dataset's order."""
        for chunk in sorted(self.places):
            self.file.seek(self.places[chunk])
            yield msgspec.json.decode(self.file.readline())


@contextmanager
def open_partial_result(out: Path, header: dict[str, Any], resume: bool) -> Iterator[PartialResult]:
    """Open the finished chunks of a run, and delete them when the block ends; after an error they are kept.

    Args:
        out: the result's path.
        header: settings, model and data, which must agree to resume a stopped run.
        resume: go on from what is there.

    Raises:
        BusyError: another run writes here.
        DataError: a stopped run is there and ``resume`` is not asked for, or it was made otherwise; an OSError of the
            block, if there are finished chunks.
    """
    path = get_partial_path(out)
    with hold_lock(out.with_name(f".{path.name}.lock"), "another run is writing here", path):
        if not path.exists() or not path.stat().st_size:
            atomic_write(path, msgspec.json.encode(header) + b"\n")
            resume = True
        file = open(path, "r+b")  # noqa: SIM115  # closed below, where a line that did not fit may be in its buffer
        try:
            partial = PartialResult(file, _find_chunks(path, file, header, resume))
            is_complete = False
            try:
                yield partial
                is_complete = True
            except OSError as error:
                error.filename = error.filename or str(path)  # an error of writing does not say where
                if not partial.places:
                    raise
                words = f"{error.strerror or error}; finished chunks are kept: `resume` goes on"
                raise DataError(words, file=error.filename) from error
            finally:
                # a run that failed in its first chunk leaves nothing to go on with
                if is_complete or not partial.places:
                    path.unlink(missing_ok=True)
        finally:
            with suppress(OSError):  # that error was raised already
                file.close()


def _find_chunks(path: Path, file: BinaryIO, header: dict[str, Any], resume: bool) -> dict[int, int]:
    """Return the places of the chunks that a stopped run has finished; what follows them is cut off."""
    before = _parse(file.readline())
    if not isinstance(before, dict) or "settings" not in before:
        raise DataError("expected the settings of a stopped run, found something else", file=path, line=1)
    if not resume:
        raise DataError(STOPPED, file=path)
    if words := describe_differences(before, header):
        message = f"the stopped run was made otherwise: {'; '.join(words)}"
        raise DataError(message, argument="resume", file=path)
    places = dict[int, int]()
    while True:
        place, line = file.tell(), file.readline()
        record = _parse(line) if line.endswith(b"\n") else None
        if not isinstance(record, dict) or not isinstance(record.get("chunk"), int):
            file.truncate(place)  # a line cut by a kill, and whatever follows it, is written again
            return places
        places[record["chunk"]] = place


def _parse(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except JSON_ERRORS:
        return None


def describe_differences(before: dict[str, Any], header: dict[str, Any]) -> list[str]:
    """Describe how a stopped run's header differs from this one's."""
    now = msgspec.json.decode(msgspec.json.encode(header))
    words = []
    for key in sorted(before.keys() | now.keys()):
        left, right = before.get(key), now.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            words += describe_differences(left, right)
        elif left != right:
            words.append(f"{key} was {show(left)}, now {show(right)}")
    return words


def write_predictions(out: Path, lines: Iterable[str], writer: OutputWriter) -> None:
    """Write predictions in order, by ``out``'s ending as JSON lines or as Parquet with the types of all rows."""
    with writer.open(out, lambda path: True) as beside:  # `check_format` was asked before the run
        if out.suffix == ".jsonl":
            with open(beside, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in lines)
            return
        rows = list(map(msgspec.json.decode, lines))
        names = dict.fromkeys(name for row in rows for name in row)
        pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), beside)
