"""Digests of a split's columns: `build` records one per column in ``release.json``, and `check` computes them again.

The digest of a column is the SHA-256 of its values in the order of the ids' bytes. Row order, files, compression and
other settings of Parquet do not change it. Values are hashed level by level, as Arrow stores them:

- any level: the number of its values and of its nulls, int64 each; if there are nulls, one byte per value (1 for a
  value, 0 for null), then the values that are not null;
- a list: the length of each, int32, then its items as the next level;
- a struct: its fields, in order;
- a string: the bytes of each in UTF-8, int64, then all bytes;
- a number: its bytes in the column's type; a Boolean: one byte. All numbers are little-endian.

A document's text is hashed as the 32 bytes of its own SHA-256, because many rows may share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from .arrays import get_bytes, make_numbers, to_numpy
from .offsets import compute_offsets

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers


class ColumnDigests:
    """Digests of a split's columns under construction; rows come in any order.

    Args:
        columns: the columns; the first one has the ids.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self._tables: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Add rows; texts of documents are kept as digests alone."""
        rows = rows.select(self.columns)
        if "documents" in self.columns:
            documents = rows["documents"].combine_chunks()
            structs = documents.flatten()
            codes = structs.field("text").dictionary_encode()
            replaced = [structs.field("docid"), make_digests(digest_texts(codes.dictionary)).take(codes.indices)]
            lengths = pc.list_value_length(documents).fill_null(0).to_numpy(zero_copy_only=False)
            offsets = make_numbers(compute_offsets(lengths).astype(np.int32))
            structs = pa.StructArray.from_arrays(replaced, ["docid", "text"])
            documents = pa.ListArray.from_arrays(offsets, structs, mask=documents.is_null())
            rows = rows.set_column(self.columns.index("documents"), "documents", documents)
        self._tables.append(rows)

    def compute(self) -> dict[str, str]:
        """Return the digest of each column, in hexadecimal digits."""
        if not self._tables:
            return compute_column_digests(pa.table({name: pa.array([], pa.string()) for name in self.columns}))
        return compute_column_digests(pa.concat_tables(self._tables))


def compute_column_digests(table: pa.Table) -> dict[str, str]:
    """Return the digest of each column of a split, in hexadecimal digits.

    Args:
        table: the rows, in any order; the first column has the ids, and documents have digests in place of texts.
    """
    order = pc.sort_indices(table[0].combine_chunks())
    digests = {}
    for name in table.column_names:
        digest = hashlib.sha256()
        _add_values(digest, table[name].combine_chunks().take(order))
        digests[name] = digest.hexdigest()
    return digests


def digest_texts(texts: pa.StringArray) -> np.ndarray:
    """Return the SHA-256 of each string, uint8 (texts, 32); none may be null."""
    content, bounds = get_bytes(texts)
    data = content.data
    hashes = b"".join([hashlib.sha256(data[start:end]).digest() for start, end in pairwise(bounds.tolist())])
    return np.frombuffer(hashes, np.uint8).reshape(-1, 32)


def make_digests(digests: np.ndarray) -> pa.FixedSizeBinaryArray:
    """Return the digests of `digest_texts` as an Arrow array."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(digests))]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(32), len(digests), buffers)


def _add_values(digest: hashlib._Hash, values: pa.Array) -> None:
    """Add an array and the levels below it; `fill_null` and `Array.to_numpy` would import pandas."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    _add_numbers(digest, np.array([len(values), values.null_count]))
    if values.null_count:
        _add_numbers(digest, to_numpy(values.is_valid().cast(pa.uint8())))
        values = values.drop_null()
    if pa.types.is_list(kind):
        _add_numbers(digest, to_numpy(pc.list_value_length(values)))
        _add_values(digest, values.flatten())
    elif pa.types.is_struct(kind):
        for field in values.flatten():
            _add_values(digest, field)
    elif pa.types.is_primitive(kind):
        _add_numbers(digest, to_numpy(values.cast(pa.uint8()) if pa.types.is_boolean(kind) else values))
    else:
        values = values.cast(pa.large_binary())
        _add_numbers(digest, to_numpy(pc.binary_length(values)))
        _, offsets, content = values.buffers()
        if len(values):
            bounds = np.frombuffer(offsets, np.int64)[[values.offset, values.offset + len(values)]]
            digest.update(memoryview(content)[bounds[0] : bounds[1]])


def _add_numbers(digest: hashlib._Hash, values: np.ndarray) -> None:
    digest.update(values.astype(values.dtype.newbyteorder("<"), copy=False).data)
