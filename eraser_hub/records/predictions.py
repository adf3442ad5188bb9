"""ERASER prediction files, JSON lines or Parquet: typed, and read once, some instances at a time.

    for number, instance in instances(path): ..   typed instances, each with its line
    for number, row in plain_rows(path): ..       untyped rows of another kind, such as the perturbation benchmark's
    for part in parts(path): ..                   instances as flat arrays, as metrics/ takes them, read by processes

The fields are those that `metrics.fields` names; a misspelt one is an error, any other is counted
(`metrics.strangers`). Of Parquet a row counts as a line.

Lines are decoded by msgspec, typed, and without a word of Python for each. What it refuses, and a run of lines in which
a key may stand twice (their quotes are counted), is read again strictly (`json_lines`), which says what is wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import msgspec
from msgspec import UNSET

from eraser_hub.metrics.fields import (
    AGAIN_FIELD,
    ERASED,
    HARD_FIELD,
    INSTANCE,
    LEAVE_ONE_OUT,
    LIST_FIELDS,
    OBJECT_FIELDS,
    OBJECT_NUMBERS,
    OCCLUDED_FIELD,
    OUTCOME_FIELD,
    PLAIN_NUMBERS,
    QUOTES_FIELD,
    SCORE_FIELDS,
    SOFT_FIELDS,
    Format,
)
from eraser_hub.metrics.flat import Predictions
from eraser_hub.metrics.flatten_rows import PredictionFlattener
from eraser_hub.metrics.offences import Offences, Rows
from eraser_hub.metrics.strangers import Strangers

from .errors import DataError, first_line, shown
from .instance_columns import Fields, TypedColumns
from .json_lines import quotes_are, strict_object
from .lines import Lines, batches_of_lines, check_utf8, reading
from .processes import cores, process_pool
from .rules import Rule

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
    """A document's rationale; as read it has the fields of `fields.HARD_FIELD` and `fields.SOFT_FIELDS` besides."""

    docid: str | int = cast("str", None)  # None while it is read


class TypedInstance(msgspec.Struct, gc=False):
    """A model's output for an annotation; as it is read it has the others of `INSTANCE` besides."""

    annotation_id: str | int = cast("str", None)  # None while it is read
    rationales: list[Rationale] | None = None
    classification: str | None = None


def _kind(absent: Any, rationale: Any = msgspec.Struct, instance: Any = msgspec.Struct) -> Any:
    """A typed instance with every field of `fields.INSTANCE` and no other.

    Args:
        absent: what stands for a field that is not there.
        rationale, instance: the bases of both.
    """

    def struct(name: str, fields: dict[str, Any], base: Any = msgspec.Struct) -> Any:
        typed = [(field, kind | None | msgspec.UnsetType, absent) for field, kind in fields.items()]
        return msgspec.defstruct(name, typed, bases=(base,), gc=False, forbid_unknown_fields=True)

    scores = dict[str, float | None]
    sides = {SCORE_FIELDS[side]: scores for side in ERASED}
    span = msgspec.defstruct(
        "Span", [("start_token", int), ("end_token", int)], bases=(Span,), gc=False, forbid_unknown_fields=True
    )
    soft = {soft.field: list[float] for soft in SOFT_FIELDS.values()}
    rationale = struct("Rationale", {"docid": str | int, HARD_FIELD: GenericAlias(list, span), **soft}, rationale)
    erased = {
        several.field: struct("Erased", ({"threshold": float} if several.entry == "threshold" else {}) | sides)
        for several in LIST_FIELDS.values()
    }
    erased[OCCLUDED_FIELD] = struct("Occluded", {"occlusion_rate": float, "trial": int, **sides})
    place = {"docid": str | int, "start_token": int, "end_token": int}
    erased[AGAIN_FIELD] = struct("Again", {"kind": str, "classification": str, "outcome": str})
    erased[QUOTES_FIELD] = struct("Quote", {"text": str, "status": str, **place, "similarity": float})
    return struct(
        "Instance",
        {
            "annotation_id": str | int,
            "rationales": GenericAlias(list, rationale),
            "classification": str,
            LEAVE_ONE_OUT: list[float],
            OUTCOME_FIELD: str,
            **dict.fromkeys(PLAIN_NUMBERS, float),
            **{
                name: struct(name, dict.fromkeys(OBJECT_NUMBERS[name], float) | more)
                for name, more in OBJECT_FIELDS.items()
            },
            **dict.fromkeys(SCORE_FIELDS.values(), scores),
            **{field: GenericAlias(list, kind) for field, kind in erased.items()},
        },
        instance,
    )


def _texts(kind: Any) -> Iterator[str]:
    """The fields of a typed object, and of those in it, that may hold a string."""
    for field in msgspec.structs.fields(kind):
        kinds = get_args(field.type)
        if str in kinds:
            yield field.name
        for inner in chain(kinds, *map(get_args, kinds)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from _texts(inner)


_Instance: type[TypedInstance] = _kind(None, Rationale, TypedInstance)
_TEXTS = frozenset(_texts(_Instance))
_decode = msgspec.json.Decoder(_Instance).decode
Wrong = tuple[str, str, Rule]  # a field, what is wrong with it, and the rule that it breaks


@cache
def _null_decoder() -> msgspec.json.Decoder[Any]:
    """Tells null and nothing apart, to count the strings of lines that hold null."""
    return msgspec.json.Decoder(_kind(UNSET))


def instances(path: Path) -> Iterator[tuple[int, TypedInstance]]:
    """The instances of a prediction file, each with its line (of Parquet: its row), numbered from 1.

    Raises:
        DataError: the file cannot be read; a line is no JSON, has a field of another type or a misspelt one, or lacks
            an id; with file, line and field.
    """
    strangers = Strangers()
    for number, instance, wrong in _typed_rows(path, strangers) if is_parquet(path) else _typed_lines(path, strangers):
        name = instance.annotation_id
        if wrong:
            field, message, rule = wrong[0]
            raise DataError(message, rule=rule, file=path, line=number, instance=name or None, field=field or None)
        if name is None:
            message = "expected a string or an integer, found None"
            raise DataError(message, rule="type", file=path, line=number, field="annotation_id")
        for at, rationale in enumerate(instance.rationales or ()):
            if rationale.docid is None:
                field = f"rationales[{at}].docid"
                words = "expected a string, found None"
                raise DataError(words, rule="type", file=path, line=number, instance=name, field=field)
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
                yield number, strict_object(line, file=path, number=number)


def _typed_lines(path: Path, strangers: Strangers) -> Iterator[tuple[int, TypedInstance, Sequence[Wrong]]]:
    with reading(path):
        for lines in batches_of_lines(path, BLOCK):
            decoded = _decoded(lines, path)
            if decoded is None:
                yield from _strict_lines(lines, path, strangers)
            else:
                yield from zip(lines.numbers, decoded.objects, repeat(()))


def _typed_rows(path: Path, strangers: Strangers) -> Iterator[tuple[int, TypedInstance, Sequence[Wrong]]]:
    rows = (row for table in _tables(path) for row in table.to_pylist())
    for number, row in enumerate(rows, start=1):
        yield number, *_converted(row, strangers)


def _strict_lines(
    lines: Lines, path: Path, strangers: Strangers
) -> Iterator[tuple[int, TypedInstance, Sequence[Wrong]]]:
    """Of each line its number, its instance, and what is wrong with its fields.

    Raises:
        DataError: a line is no JSON object.
    """
    for number, line in zip(lines.numbers, lines.lines, strict=True):
        yield number, *_converted(strict_object(line, file=path, number=number), strangers)


def _decoded(lines: Lines, path: Path) -> Fields | None:
    """The instances of lines; None where they have to be read strictly.

    Raises:
        DataError: a key stands twice.
    """
    try:
        decoded = Fields(list(map(_decode, lines.raw)), INSTANCE)
        check_utf8(lines.raw)
        sound = quotes_are(lines.data, _strings(decoded, None))
        if not sound and b"null" in lines.data:
            nulls = Fields(list(map(_null_decoder().decode, lines.raw)), INSTANCE)
            sound = quotes_are(lines.data, _strings(nulls, UNSET))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not sound:
        for number, line in zip(lines.numbers, lines.lines, strict=True):
            strict_object(line, file=path, number=number)
    return decoded


def _strings(objects: Fields, absent: object) -> int:
    """How many strings, keys included, the JSON of typed objects holds when no key stands there twice."""
    count = 0
    for name, inner in objects.known.items():
        values = objects[name]
        there = len(values) if all(values) else len(values) - values.count(absent)
        count += there
        if there and inner:
            count += _strings(objects.inner(name), absent)
        elif there and inner is None and name in _TEXTS:
            count += list(map(type, values)).count(str)
        elif there and inner is not None:
            count += sum(map(len, filter(None, values)))
    return count


def _converted(row: dict[str, Any], strangers: Strangers) -> tuple[TypedInstance, Sequence[Wrong]]:
    """The instance of a row, and what is wrong with it: then no more is known of it than its id."""
    wrong: list[Wrong] = []
    strangers.look(row, INSTANCE, lambda field, message: wrong.append((field, message, "key-unknown")))
    if not wrong:
        try:
            return msgspec.convert(_known(row, INSTANCE), _Instance), ()
        except msgspec.ValidationError as error:
            wrong.append(_place(error))
    name = row.get("annotation_id")
    identity = name if isinstance(name, str | int) and not isinstance(name, bool) else ""
    return _Instance(annotation_id=identity), wrong


def _known(value: Any, known: Format) -> Any:
    """The value without the fields that the format does not know."""
    if isinstance(value, list):
        return [_known(one, known) for one in value]
    if not isinstance(value, dict):
        return value
    kept = [(name, one, known[name]) for name, one in value.items() if name in known]
    return {name: _known(one, inner) if inner else one for name, one, inner in kept}


def _place(error: Exception) -> Wrong:
    """What a typed decoder's error says: "Expected .. - at `$.path`"."""
    message, _, place = str(error).partition(" - at `$")
    return place.rstrip("`").lstrip("."), message[:1].lower() + message[1:], "type"


# --------------------------------------------------------------------------------------------------------------- parts
class PredictionPart(NamedTuple):
    """Some instances of a prediction file.

    Attributes:
        predictions: flat; documents and labels are numbered by this part alone.
        lines: the line of each.
        offences: misspelt fields, and fields of a wrong type, which count as absent; by line.
        strangers: the fields that the format does not know.
        quoted: whether any instance holds a language model's quotes.
    """

    predictions: Predictions
    lines: Sequence[int]
    offences: Offences
    strangers: Strangers
    quoted: bool = False


def parts(path: Path, num_proc: int = 1) -> Iterator[PredictionPart]:
    """The instances of a prediction file, flat, some at a time and in order.

    Args:
        num_proc: how many processes decode JSON lines; 0: this one, and for a large file others where there are cores.

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
                raise DataError(part.message, rule=part.rule, file=path, line=before + (part.line or 0))
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


def _shared(
    path: Path, ranges: Iterator[tuple[int, int]], count: int
) -> Iterator[tuple[PredictionPart | DataError, int]]:
    """What `_read` gives of each range, in order, by several processes; by this one where others cannot start."""
    waiting: deque[tuple[tuple[int, int], Future[tuple[PredictionPart | DataError, int]] | None]] = deque()
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
) -> Future[tuple[PredictionPart | DataError, int]] | None:
    try:
        return pool.submit(_read, path, *own)
    except BrokenProcessPool:
        return None


def _awaited(
    path: Path, own: tuple[int, int], future: Future[tuple[PredictionPart | DataError, int]] | None
) -> tuple[PredictionPart | DataError, int]:
    try:
        return _read(path, *own) if future is None else future.result()
    except BrokenProcessPool:
        return _read(path, *own)


def _read(path: Path, start: int, end: int) -> tuple[PredictionPart | DataError, int]:
    """The lines between two bytes as a part, its lines numbered from 1, or why they are no JSON; how many there are."""
    columns, strangers, count, quoted = TypedColumns(), Strangers(), 0, False
    try:
        for lines in batches_of_lines(path, BLOCK, start, end):
            instances, wrong = _decoded(lines, path), list[tuple[int, str, str, Rule]]()
            if instances is None:
                _, objects, offences = zip(*_strict_lines(lines, path, strangers), strict=True)
                instances = Fields(objects, INSTANCE)
                wrong = [(at, *one) for at, several in enumerate(offences) for one in several]
            columns.add(instances, lines.numbers, wrong)
            count = lines.numbers[-1]
            quoted = quoted or instances[QUOTES_FIELD].count(None) < len(instances[QUOTES_FIELD])
            del instances  # its memory, still in the processor's cache, holds the next ones
    except DataError as error:
        return error, count
    return PredictionPart(*columns.finish(), strangers, quoted), count


def _moved(part: PredictionPart, before: int) -> PredictionPart:
    """The part as it stands behind so many lines."""
    told = Offences()
    told += [offence._replace(row=offence.row + before) for offence in part.offences]
    told.total = part.offences.total
    lines = part.lines
    moved = (
        range(lines.start + before, lines.stop + before) if isinstance(lines, range) else [n + before for n in lines]
    )
    return part._replace(lines=moved, offences=told)


def _parts_of_rows(path: Path) -> Iterator[PredictionPart]:
    """A Parquet file of instances, some rows at a time."""
    # the Arrow libraries are slow to import: only where they are needed
    from eraser_hub.metrics.flatten_arrow import predictions_from_arrow

    first = 1
    for table in _tables(path):
        lines = range(first, first + table.num_rows)
        first = lines.stop
        offences, strangers = Offences(), Strangers()
        predictions = predictions_from_arrow(table, offences, strangers)
        if predictions is None:
            flattener = PredictionFlattener(offences)
            strangers = flattener.strangers
            offences.sides = {"prediction": Rows(lines, flattener.ids)}
            for row in table.to_pylist():
                flattener.add(row)
            predictions = flattener.finish()
        quoted = QUOTES_FIELD in table.column_names and table.column(QUOTES_FIELD).null_count < table.num_rows
        yield PredictionPart(predictions, lines, offences, strangers, quoted)


def _tables(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            again = next((name for at, name in enumerate(names) if name in names[:at]), None)
            if again is not None:
                raise DataError(f"expected each column once, found {shown(again)} twice", rule="key-twice", file=path)
            groups = range(file.metadata.num_row_groups)
            size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
            wanted = part_size(size) * file.metadata.num_rows // max(size, 1)
            for batch in file.iter_batches(batch_size=min(max(wanted, LEAST_ROWS), MOST_ROWS)):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError, UnicodeError, OverflowError) as error:
        raise DataError(f"not a readable Parquet file: {first_line(error)}", rule="syntax", file=path) from None


def is_parquet(path: Path) -> bool:
    """By its first bytes, whatever its name.

    Raises:
        DataError: the file cannot be read.
    """
    with reading(path), open(path, "rb") as file:
        return file.read(4) == b"PAR1"
