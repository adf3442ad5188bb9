"""Arrow arrays out of numpy arrays and Python strings, made over their buffers.

``pyarrow.array`` asks pandas about all that it is given, and so imports pandas: a third of a second that neither the
build of a small corpus nor a worker's start should pay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eraser_hub.records.errors import DataError

MOST_BYTES = 2**31 - 1


def numbers(values: np.ndarray) -> pa.Array:
    """The array over the same memory."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def numpy_values(values: pa.Array) -> np.ndarray:
    """The numbers of an array without nulls, over the same memory."""
    data = values.buffers()[1]
    kind = np.dtype(values.type.to_pandas_dtype())
    if data is None:
        return np.zeros(0, kind)
    return np.frombuffer(data, kind)[values.offset : values.offset + len(values)]


def strings(values: Sequence[str]) -> pa.StringArray:
    """Strings without nulls, none of which holds half a surrogate pair."""
    joined = "".join(values)
    data = joined.encode("utf-8")
    if len(data) == len(joined):
        return string_array(data, np.fromiter(map(len, values), np.int64, len(values)))
    return byte_strings([value.encode("utf-8") for value in values])


def byte_strings(values: Sequence[bytes]) -> pa.StringArray:
    """Strings out of UTF-8."""
    return string_array(b"".join(values), np.fromiter(map(len, values), np.int64, len(values)))


def string_array(data: bytes | np.ndarray | pa.Buffer, sizes: np.ndarray) -> pa.StringArray:
    """Strings that lie one after another in ``data``, by their sizes in bytes.

    Raises:
        DataError: they hold more than Arrow's offsets of 32 bits reach.
    """
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > MOST_BYTES:
        raise DataError(f"expected texts of at most 2 GiB in a batch, found {offsets[-1]:,} bytes", rule="size-limit")
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets.astype(np.int32)), buffer)


def with_nulls(values: pa.StringArray, null: np.ndarray) -> pa.StringArray:
    """The same strings, null where ``null`` says so."""
    if not null.any():
        return values
    bits = np.packbits(~null, bitorder="little")
    _, offsets, data = values.buffers()
    return pa.StringArray.from_buffers(len(values), offsets, data, pa.py_buffer(bits))


def string_sizes(values: pa.StringArray) -> np.ndarray:
    """int64: the bytes of each string."""
    return np.diff(_offsets(values)).astype(np.int64)


def string_data(values: pa.StringArray) -> np.ndarray:
    """uint8: the bytes of all strings, one after another."""
    offsets = _offsets(values)
    data = values.buffers()[2]
    if data is None:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]


def _offsets(values: pa.StringArray) -> np.ndarray:
    if not len(values):
        return np.zeros(1, np.int32)
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
