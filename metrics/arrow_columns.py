"""Conversion of Arrow tables to the arrays of `columns.FlatColumns`, without a Python loop.

An `UnsuitedError` means that a column has a type or a null that these arrays do not support; the rows are then
read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from eraser_hub.schema.record import Field, Record

from .columns import FlatColumns, UnsuitedError
from .flatten import Flattened, Side, flatten_rows
from .issues import InputError, Issues, cut
from .tokens import TextSizes, measure_texts
from .unknown_fields import UnknownFields, describe_misspelling, find_similar

TEXT_AT_ONCE = 1 << 22  # bytes of texts that are counted at a time
EMPTY = np.zeros(0, dtype=np.int64)


def find_unknown_columns(fields: Iterable[pa.Field], known: Record, path: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield (path, similar known field or None) of each unknown field of a schema, at any depth."""
    for field in fields:
        if field.name not in known:
            yield f"{path}{field.name}", find_similar(field.name, known)
        elif inner := known[field.name].record:
            kind = field.type
            while _is_list(kind):
                kind = kind.value_type
            if t.is_struct(kind):
                yield from find_unknown_columns(kind, inner, f"{path}{field.name}.")


def flatten_table(table: pa.Table, side: Side, issues: Issues, needed: Sequence[str] = ()) -> Flattened:
    """Return a table's rows as a flat record, and their unknown fields.

    Arguments as of `flatten.flatten_rows`, which reads the rows one by one if the columns are not suited.
    """
    try:
        if not set(needed) <= {name for name in table.column_names if not table[name].null_count}:
            raise UnsuitedError
        reader = _Reader(side)
        reader.read(side.record, table, table.num_rows, "")
    except UnsuitedError:
        return flatten_rows(table.to_pylist(), side, issues, needed)
    unknown = UnknownFields()
    for path, near in find_unknown_columns(table.schema, side.record) if side.closed else ():
        if near is None:
            unknown[path] = table.num_rows
        else:
            issues.add(side.name, 0, cut(path)[1:-1], describe_misspelling(near), "key-unknown")
    return side.flat(reader.columns), unknown


class _Reader:
    """Reader of a table's columns.

    Args:
        side: the side of the rows.

    Attributes:
        columns: the arrays, as of `columns.ObjectColumns`.
    """

    def __init__(self, side: Side) -> None:
        self.paths, self.texts, self.columns = frozenset(side.paths), side.texts, FlatColumns()

    def read(self, record: Record, source: pa.Table | pa.StructArray | None, n: int, before: str) -> None:
        """Read n records.

        Raises:
            UnsuitedError: a column has a type or a null that the arrays do not support.
        """
        for name, field in record.items():
            if f"{before}{name}" in self.paths:
                array = None if source is None else _get_field(source, name)
                array = None if array is None or t.is_null(array.type) else array
                if field.required and n and (array is None or array.null_count):
                    raise UnsuitedError
                self._read_field(field, array, n, f"{before}{name}")

    def _read_field(self, field: Field, array: pa.Array | None, n: int, path: str) -> None:
        for depth in range(field.depth):
            sizes = np.full(n, -1, dtype=np.int64) if array is None else _get_lengths(array)
            self.columns.sizes[path + "[]" * depth] = sizes
            array = None if array is None else array.flatten()
            n = 0 if array is None else len(array)
            array = array if n else None
        if field.record is None:
            return self._read_values(field, array, n, path)
        if field.depth and array is not None and array.null_count:
            raise UnsuitedError
        return self.read(field.record, array, n, f"{path}.")

    def _read_values(self, field: Field, array: pa.Array | None, n: int, path: str) -> None:
        columns = self.columns
        if field.kind == "probabilities":
            columns.tables[path] = ([], np.zeros((n, 0))) if array is None else _read_probabilities(array)
        elif field.kind == "number":
            columns.values[path] = np.full(n, np.nan) if array is None else _to_numbers(array, nulls=not field.depth)
        elif field.kind == "whole":
            columns.values[path] = np.full(n, -1, dtype=np.int64) if array is None else _to_integers(array)
        elif path in self.texts:
            columns.texts[path] = TextSizes(EMPTY, EMPTY, EMPTY) if array is None else count_texts(array)
        elif path == "annotation_id":
            columns.ids = [] if array is None else _to_strings(array).to_pylist()
        else:
            columns.words[path], columns.values[path] = _encode(array, n, field.kind)


def _to_numpy(column: pa.Array) -> np.ndarray:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _is_list(kind: pa.DataType) -> bool:
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def _get_lengths(array: pa.Array) -> np.ndarray:
    """Return the lengths of lists; -1 for null."""
    if not _is_list(array.type):
        raise UnsuitedError
    lengths = pc.list_value_length(array)  # pyright: ignore[reportAttributeAccessIssue]  # made at import
    return _to_numpy(pc.fill_null(lengths, -1)).astype(np.int64)


def _get_field(source: pa.Table | pa.StructArray, name: str) -> pa.Array | None:
    """Return a column, or a field of a struct array, null where the struct is; None where there is no such field."""
    if isinstance(source, pa.Table):
        if name not in source.column_names:
            return None
        array = source.column(name).combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # several chunks that would not fit one
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        return array
    if not t.is_struct(source.type):
        raise UnsuitedError
    if source.type.get_field_index(name) < 0:
        if any(field.name == name for field in source.type):
            raise InputError(f"expected each field once, found {name!r} twice", "key-twice")
        return None
    return pc.struct_field(source, name)  # pyright: ignore[reportAttributeAccessIssue]


def _to_integers(array: pa.Array) -> np.ndarray:
    """Return integers, -1 for null; of any width, also one that holds no -1."""
    if not t.is_integer(array.type) or t.is_uint64(array.type):
        raise UnsuitedError
    return _to_numpy(array.cast(pa.int64()).fill_null(-1))


def _to_numbers(array: pa.Array, nulls: bool) -> np.ndarray:
    """Return float64; NaN for null, where nulls may be."""
    if not (t.is_floating(array.type) or t.is_integer(array.type)) or (array.null_count and not nulls):
        raise UnsuitedError
    if array.null_count:
        array = array.cast(pa.float64(), safe=False)
    return _to_numpy(array).astype(np.float64)


def _to_strings(array: pa.Array) -> pa.Array:
    """Return an array of strings, of integers too."""
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    if t.is_integer(array.type):
        array = array.cast(pa.string())
    if not (t.is_string(array.type) or t.is_large_string(array.type) or t.is_string_view(array.type)):
        raise UnsuitedError
    return array


def _encode(array: pa.Array | None, n: int, kind: str) -> tuple[list[str], np.ndarray]:
    """Return the distinct texts, and each row's place among them; -1 for null, and for the number -1 of a label."""
    if array is None:
        return [], np.full(n, -1, dtype=np.int64)
    numbered = t.is_integer(array.type)
    if numbered and kind == "text":
        raise UnsuitedError
    coded = _to_strings(array).dictionary_encode()
    words, places = coded.dictionary.to_pylist(), _to_numpy(coded.indices.fill_null(-1)).astype(np.int64)
    if numbered and kind == "label":
        places[places == (words.index("-1") if "-1" in words else -2)] = -1
        words = [f"\0{word}" for word in words]
    return words, places


def _read_probabilities(array: pa.Array) -> tuple[list[str], np.ndarray]:
    """Return the labels of a struct of label: probability, and its values; a NaN that it holds is infinite."""
    if not t.is_struct(array.type):
        raise UnsuitedError
    matrix = np.full((len(array), array.type.num_fields), np.nan)
    for at, field in enumerate(array.type):
        column = _get_field(array, field.name)
        if column is not None and not t.is_null(column.type):
            matrix[:, at] = _to_numbers(column, nulls=True)
            matrix[np.isnan(matrix[:, at]) & ~_to_numpy(column.is_null()), at] = np.inf
    return [field.name for field in array.type], matrix


def count_texts(texts: pa.Array) -> TextSizes:
    """Count the tokens and sentences of a string array, a few megabytes at a time; no string is made."""
    if not (t.is_string(texts.type) or t.is_large_string(texts.type)):
        raise UnsuitedError
    kind = np.int64 if t.is_large_string(texts.type) else np.int32
    n, buffers = len(texts), texts.buffers()
    if not n or buffers[2] is None:
        return TextSizes(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), EMPTY)
    offsets = np.frombuffer(buffers[1], dtype=kind)[texts.offset : texts.offset + n + 1].astype(np.int64)
    content = np.frombuffer(buffers[2], dtype=np.uint8)
    counts, begin = [], 0
    while begin < n:
        stop = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + TEXT_AT_ONCE, side="right")) - 1)
        counts.append(measure_texts(content[offsets[begin] : offsets[stop]], np.diff(offsets[begin : stop + 1])))
        begin = stop
    return TextSizes.concatenate(counts)
