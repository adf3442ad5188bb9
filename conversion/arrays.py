"""Arrow arrays over the buffers of numpy arrays and Python strings.

``pyarrow.array`` imports pandas, which takes a third of a second. The build of a small corpus and the start of a worker
process avoid this cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eraser_hub.records.errors import DataError

MAX_BYTES = 2**31 - 1


def make_numbers(values: np.ndarray) -> pa.Array:
    """Return an Arrow array over the memory of a numpy array."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def to_numpy(values: pa.Array) -> np.ndarray:
    """Return the values of an Arrow array without nulls as numpy, over the same memory."""
    data = values.buffers()[1]
    kind = np.dtype(values.type.to_pandas_dtype())
    if data is None:
        return np.zeros(0, kind)
    return np.frombuffer(data, kind)[values.offset : values.offset + len(values)]


def make_strings(values: Sequence[str]) -> pa.StringArray:
    """Return an Arrow array of strings; none may hold half a surrogate pair."""
    joined = "".join(values)
    data = joined.encode("utf-8")
    if len(data) == len(joined):
        return make_string_array(data, np.fromiter(map(len, values), np.int64, len(values)))
    return make_byte_strings([value.encode("utf-8") for value in values])


def make_byte_strings(values: Sequence[bytes]) -> pa.StringArray:
    """Return an Arrow array of strings from their UTF-8 bytes."""
    return make_string_array(b"".join(values), np.fromiter(map(len, values), np.int64, len(values)))


def make_string_array(data: bytes | np.ndarray | pa.Buffer, sizes: np.ndarray) -> pa.StringArray:
    """Return the strings that lie one after another in ``data``.

    Args:
        data: the UTF-8 bytes of all strings.
        sizes: int64 (strings,), the bytes of each string.

    Raises:
        DataError: the strings have more bytes than Arrow's offsets of 32 bits allow.
    """
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > MAX_BYTES:
        raise DataError(f"expected texts of at most 2 GiB in a batch, found {offsets[-1]:,} bytes", rule="size-limit")
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets.astype(np.int32)), buffer)


def set_nulls(values: pa.StringArray, null: np.ndarray) -> pa.StringArray:
    """Return the strings with nulls where ``null``, bool (strings,), is true."""
    if not null.any():
        return values
    bits = np.packbits(~null, bitorder="little")
    _, offsets, data = values.buffers()
    return pa.StringArray.from_buffers(len(values), offsets, data, pa.py_buffer(bits))


def get_sizes(values: pa.StringArray) -> np.ndarray:
    """Return the bytes of each string, int64 (strings,)."""
    return np.diff(_get_offsets(values)).astype(np.int64)


def get_bytes(values: pa.StringArray) -> np.ndarray:
    """Return the bytes of all strings, one after another, uint8."""
    offsets = _get_offsets(values)
    data = values.buffers()[2]
    if data is None:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]


def _get_offsets(values: pa.StringArray) -> np.ndarray:
    if not len(values):
        return np.zeros(1, np.int32)
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
