"""Arrow arrays over the buffers of numpy arrays and Python strings.

``pyarrow.array`` imports pandas, which takes a third of a second. The build of a small corpus and the start of a worker
process avoid this cost.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from eraser_hub.records.errors import DataError


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


def make_strings(values: Collection[str | bytes | None]) -> pa.StringArray:
    """Return an Arrow array of strings, out of strings without halves of surrogate pairs, of UTF-8, and of nulls.

    Raises:
        DataError: the strings have more bytes than Arrow's offsets of 32 bits allow.
    """
    with suppress(TypeError):  # of bytes and nulls; strings of ASCII alone are joined, which is faster
        joined = "".join(values)  # type: ignore[arg-type]
        if joined.isascii() and len(joined) < 1 << 31:
            offsets = np.zeros(len(values) + 1, np.int32)
            np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=offsets[1:])  # type: ignore[arg-type]
            return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(joined.encode()))
    builder: Any = pa.lib.StringBuilder()  # pyright: ignore[reportAttributeAccessIssue]
    try:
        builder.append_values(values)
    except pa.ArrowCapacityError:
        raise DataError("expected texts of at most 2 GiB in a batch, found more") from None
    return builder.finish()


def get_bytes(values: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of all strings, one after another, uint8; and the start of each and the end of the last, int64.

    None of the strings may be null.
    """
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return np.zeros(0, np.uint8), np.zeros(len(values) + 1, np.int64)
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0]
