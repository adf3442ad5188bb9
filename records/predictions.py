"""ERASER prediction files, JSON lines or Parquet: typed, and read once, some instances at a time.

    for number, instance in instances(path): ..     typed instances, each with its line
    for number, row in plain_rows(path): ..               rows of another kind, such as those of the perturbation benchmark, untyped
    for part in parts(path): ..                     instances as flat arrays, as metrics/ takes them, several processes reading

The optional fields are those that `metrics.fields` names; other keys are left alone. Of Parquet a row counts as a line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from eraser_hub.metrics.fields import ERASED, HARD_FIELD, LIST_FIELDS, OCCLUDED_FIELD, SCORE_FIELDS, SOFT_FIELDS
from eraser_hub.metrics.flat import Predictions
from eraser_hub.metrics.flatten_rows import PredictionFlattener
from eraser_hub.metrics.offences import Offences, Rows

from .errors import DataError
from .instance_columns import InstanceColumns
from .json_lines import not_json, strict_object
from .lines import Lines, batches_of_lines, check_utf8, reading
from .processes import cores, process_pool

if TYPE_CHECKING:
    import pyarrow as pa

# bytes of lines that are decoded at a time: their objects fit into a processor's cache
BLOCK = 1 << 17
# bytes of a part: few parts of a large file, and little memory for a small one
LEAST, MOST, SHARE = 1 << 20, 1 << 22, 32
LEAST_ROWS, MOST_ROWS = 16, 1 << 15
# bytes of predictions that make another process worth its start
BYTES_A_PROCESS, MOST_PROCESSES = 128 << 20, 4

Scores = dict[str, float | None] | None


# ---------------------------------------------------------------------------------------------------------- instances
class Span(msgspec.Struct, gc=False):
    """Tokens ``[start_token, end_token)`` of a document."""

    start_token: int
    end_token: int


class Rationale(msgspec.Struct, gc=False):
    """A document's rationale; as it is read it has the fields of `fields.HARD_FIELD` and `fields.SOFT_FIELDS` besides."""

    docid: str | int = None  # type: ignore[assignment]


class Instance(msgspec.Struct, gc=False):
    """A model's output for an annotation; as it is read it has those of `SCORE_FIELDS` and `LIST_FIELDS` besides."""

    annotation_id: str | int = None  # type: ignore[assignment]
    rationales: list[Rationale] | None = None
    classification: str | None = None
    tokens_to_flip: float | None = None


_Rationale = msgspec.defstruct(
    "Rationale",
    [(HARD_FIELD, list[Span] | None, None), *((soft.field, list[float] | None, None) for soft in SOFT_FIELDS.values())],
    bases=(Rationale,),
    gc=False,
)
_Erased = msgspec.defstruct(
    "Erased", [("threshold", float, None), *((SCORE_FIELDS[side], Scores, None) for side in ERASED)], gc=False
)
_Instance: type[Instance] = msgspec.defstruct(
    "Instance",
    [
        ("rationales", list[_Rationale] | None, None),  # type: ignore[valid-type]
        *((field, Scores, None) for field in SCORE_FIELDS.values()),
        *((several.field, list[_Erased] | None, None) for several in LIST_FIELDS.values()),  # type: ignore[valid-type]
    ],
    bases=(Instance,),
    gc=False,
)  # type: ignore[assignment]
# with the rows of normalized_fidelity, which are no part of the flat arrays
_WholeInstance: type[Instance] = msgspec.defstruct(
    "Instance", [(OCCLUDED_FIELD, list[dict[str, Any]] | None, None)], bases=(_Instance,), gc=False
)  # type: ignore[assignment]
_decode, _decode_whole = (msgspec.json.Decoder(kind).decode for kind in (_Instance, _WholeInstance))


class _Named(msgspec.Struct, gc=False):
    annotation_id: str | int


def instances(path: Path) -> Iterator[tuple[int, Instance]]:
    """The instances of a prediction file, each with its line (of Parquet: its row), numbered from 1.

    Raises:
        DataError: the file cannot be read; a line is no JSON, has a field of another type, or lacks an id; with file,
            line and field.
    """
    for number, instance in _typed_rows(path) if is_parquet(path) else _typed_lines(path):
        if instance.annotation_id is None:
            message = "expected a string or an integer, found None"
            raise DataError(message, file=path, line=number, field="annotation_id")
        for at, rationale in enumerate(instance.rationales or ()):
            if rationale.docid is None:
                name, field = instance.annotation_id, f"rationales[{at}].docid"
                raise DataError("expected a string, found None", file=path, line=number, instance=name, field=field)
        yield number, instance


def plain_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a prediction file as they stand there, each with its line (of Parquet: its row), numbered from 1.

    Raises:
        DataError: the file cannot be read, or a line is no JSON object; with file and line.
    """
    if is_parquet(path):
        yield from enumerate((row for table in _tables(path) for row in table.to_pylist()), start=1)
        return
    with reading(path):
        for lines in batches_of_lines(path):
            for number, line in zip(lines.numbers, lines.lines, strict=True):
                if line.strip():
                    yield number, strict_object(line, file=path, number=number)


def _typed_lines(path: Path) -> Iterator[tuple[int, Instance]]:
    with reading(path):
        for lines in batches_of_lines(path, BLOCK):
            for number, line in zip(lines.numbers, lines.raw, strict=True):
                if not line.strip():
                    continue
                instance = _decoded(_decode_whole, line, path, number)
                if isinstance(instance, msgspec.ValidationError):
                    field, message = _place(instance)
                    name = _id_of(line) or None
                    raise DataError(message, file=path, line=number, instance=name, field=field or None)
                yield number, instance


def _typed_rows(path: Path) -> Iterator[tuple[int, Instance]]:
    number = 0
    for table in _tables(path):
        for row in table.to_pylist():
            number += 1
            try:
                yield number, msgspec.convert(row, _WholeInstance)
            except msgspec.ValidationError as error:
                field, message = _place(error)
                name = row.get("annotation_id")
                raise DataError(message, file=path, line=number, instance=name, field=field or None) from None


def _decoded(
    decode: Callable[[bytes], Instance], line: bytes, path: Path, number: int
) -> Instance | msgspec.ValidationError:
    """A line's instance, or what is wrong with its types.

    Raises:
        DataError: the line is no JSON.
    """
    try:
        instance: Instance | msgspec.ValidationError = decode(line)
    except msgspec.ValidationError as error:
        instance = error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(not_json(error, line), file=path, line=number) from None
    try:
        check_utf8([line])
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: {error}", file=path, line=number) from None
    return instance


def _place(error: Exception) -> tuple[str, str]:
    """Field and message of a typed decoder's error: "Expected .. - at `$.path`"."""
    message, _, place = str(error).partition(" - at `$")
    return place.rstrip("`").lstrip("."), message[:1].lower() + message[1:]


def _id_of(line: bytes) -> str | int:
    """The id of a line whose types are wrong elsewhere."""
    try:
        return msgspec.json.decode(line, type=_Named).annotation_id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


# --------------------------------------------------------------------------------------------------------------- parts
class Part(NamedTuple):
    """Some instances of a prediction file.

    Attributes:
        predictions: flat; documents and labels are numbered by this part alone.
        lines: the line of each.
        offences: fields of a wrong type, which count as absent; by line.
    """

    predictions: Predictions
    lines: Sequence[int]
    offences: Offences


def parts(path: Path, num_proc: int = 1) -> Iterator[Part]:
    """The instances of a prediction file, flat, some at a time and in order.

    Args:
        num_proc: how many processes decode JSON lines; 0: this one, and others beside a large file where there are cores.

    Raises:
        DataError: the file cannot be read, or a line of it is no JSON.
    """
    if is_parquet(path):
        yield from _parts_of_rows(path)
        return
    with reading(path):
        size = path.stat().st_size
        count = num_proc or max(1, min(cores(), MOST_PROCESSES, size // BYTES_A_PROCESS))
        ranges = _ranges(path, size)
        before = 0
        for part, lines in _shared(path, ranges, count) if count > 1 else (_read(path, *own) for own in ranges):
            if isinstance(part, DataError):
                raise DataError(part.message, file=path, line=before + (part.line or 0))
            if part.lines:
                yield _moved(part, before)
            before += lines


def part_size(size: int) -> int:
    """The bytes that make a part of a file of so many bytes."""
    return min(max(size // SHARE, LEAST), MOST)


def _ranges(path: Path, size: int) -> Iterator[tuple[int, int]]:
    """Runs of whole lines, one per part: the bytes [start, end) of each."""
    start = 0
    with path.open("rb") as file:
        while start < size:
            file.seek(min(start + part_size(size), size))
            file.readline()
            end = min(file.tell(), size)
            yield start, end
            start = end


def _shared(path: Path, ranges: Iterator[tuple[int, int]], count: int) -> Iterator[tuple[Part | DataError, int]]:
    """What `_read` gives of each range, in order, by several processes; by this one where others cannot start."""
    waiting: deque[tuple[tuple[int, int], Future[tuple[Part | DataError, int]] | None]] = deque()
    with process_pool(count) as pool:
        try:
            for own in ranges:
                waiting.append((own, _submitted(pool, path, own)))
                if len(waiting) > count:
                    yield _awaited(path, *waiting.popleft())
            while waiting:
                yield _awaited(path, *waiting.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _submitted(
    pool: ProcessPoolExecutor, path: Path, own: tuple[int, int]
) -> Future[tuple[Part | DataError, int]] | None:
    try:
        return pool.submit(_read, path, *own)
    except BrokenProcessPool:
        return None


def _awaited(
    path: Path, own: tuple[int, int], future: Future[tuple[Part | DataError, int]] | None
) -> tuple[Part | DataError, int]:
    try:
        return _read(path, *own) if future is None else future.result()
    except BrokenProcessPool:
        return _read(path, *own)


def _read(path: Path, start: int, end: int) -> tuple[Part | DataError, int]:
    """The lines between two bytes as a part, its lines numbered from 1, or why they are no JSON; how many lines there are."""
    columns, count = InstanceColumns(), 0
    try:
        for lines in batches_of_lines(path, BLOCK, start, end):
            columns.add(*_decoded_lines(lines, path))
            count = lines.numbers[-1]
    except DataError as error:
        return error, count
    return Part(*columns.finish()), count


def _decoded_lines(lines: Lines, path: Path) -> tuple[list[Instance], Sequence[int], list[tuple[int, str, str]]]:
    """The instances of lines, the line of each, and what is wrong: (place among the instances, field, message).

    Raises:
        DataError: a line is no JSON.
    """
    try:
        decoded = [_decode(line) for line in lines.raw]
        check_utf8(lines.raw)
        return decoded, lines.numbers, []
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a blank line, or one that is not as it should be
        decoded, numbers, wrong = [], list[int](), list[tuple[int, str, str]]()
    for number, line in zip(lines.numbers, lines.raw, strict=True):
        if not line.strip():
            continue
        instance = _decoded(_decode, line, path, number)
        if isinstance(instance, msgspec.ValidationError):
            wrong.append((len(decoded), *_place(instance)))
            instance = _Instance(annotation_id=_id_of(line))
        decoded.append(instance)
        numbers.append(number)
    return decoded, numbers, wrong


def _moved(part: Part, before: int) -> Part:
    """The part as it stands behind so many lines."""
    told = Offences()
    told += [offence._replace(row=offence.row + before) for offence in part.offences]
    told.total = part.offences.total
    lines = part.lines
    moved = (
        range(lines.start + before, lines.stop + before) if isinstance(lines, range) else [n + before for n in lines]
    )
    return Part(part.predictions, moved, told)


def _parts_of_rows(path: Path) -> Iterator[Part]:
    """A Parquet file of instances, some rows at a time."""
    # the Arrow libraries are slow to import: only where they are needed
    from eraser_hub.metrics.flatten_arrow import predictions_from_arrow

    first = 1
    for table in _tables(path):
        lines = range(first, first + table.num_rows)
        first = lines.stop
        predictions, offences = predictions_from_arrow(table), Offences()
        if predictions is None:
            flattener = PredictionFlattener(offences)
            offences.sides = {"prediction": Rows(lines, flattener.ids)}
            for row in table.to_pylist():
                flattener.add(row)
            predictions = flattener.finish()
        yield Part(predictions, lines, offences)


def _tables(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            groups = range(file.metadata.num_row_groups)
            size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
            wanted = part_size(size) * file.metadata.num_rows // max(size, 1)
            for batch in file.iter_batches(batch_size=min(max(wanted, LEAST_ROWS), MOST_ROWS)):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"not a readable Parquet file: {str(error).splitlines()[0]}", file=path) from None


def is_parquet(path: Path) -> bool:
    """By its first bytes, whatever its name.

    Raises:
        DataError: the file cannot be read.
    """
    with reading(path), open(path, "rb") as file:
        return file.read(4) == b"PAR1"
