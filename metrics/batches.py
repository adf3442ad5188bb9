"""Batches of flat records: joined into one, and packed into bytes for the file in which an evaluate module keeps them.

A record is a dataclass whose fields are lists of strings and numpy arrays (`inputs.Predictions`, `inputs.References`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

Record = TypeVar("Record")


def pack(record: Any) -> bytes:
    """One record as bytes: the length of a JSON header, the header (strings, types and shapes), the arrays' bytes."""
    header: dict[str, Any] = {}
    body: list[bytes] = []
    for item in fields(record):
        value = getattr(record, item.name)
        if isinstance(value, np.ndarray):
            value = np.ascontiguousarray(value)
            header[item.name] = [value.dtype.str, list(value.shape)]
            body.append(value.tobytes())
        else:
            header[item.name] = list(value)
    head = json.dumps(header).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *body])


def unpack(kind: type[Record], data: bytes) -> Record:
    """The record that `pack` made the bytes of."""
    at = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:at])
    values: dict[str, Any] = {}
    for item in fields(kind):  # type: ignore[arg-type]
        value = header[item.name]
        if len(value) == 2 and isinstance(value[1], list):
            dtype, shape = np.dtype(value[0]), tuple(value[1])
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            values[item.name] = np.frombuffer(data[at : at + size], dtype=dtype).reshape(shape)
            at += size
        else:
            values[item.name] = value
    return kind(**values)


def _merged(parts: Sequence[Any], name: str) -> tuple[list[str], list[np.ndarray]]:
    """The union of the parts' vocabularies, and for each part its codes in it; code -1 stays -1."""
    codes: dict[str, int] = {}
    maps = []
    for part in parts:
        own = [codes.setdefault(word, len(codes)) for word in getattr(part, name)]
        maps.append(np.array([*own, -1], dtype=np.int64))
    return list(codes), maps


def concatenate(
    parts: Sequence[Record],
    *,
    coded: dict[str, str],
    shifted: dict[str, str],
    labelled: Sequence[str] = (),
) -> Record:
    """Several records as one, in order.

    Args:
        parts: at least one, all of one class.
        coded: array field -> the field that holds its vocabulary; the vocabularies are merged.
        shifted: array field of row numbers -> the field whose length shifts them; negative numbers stay.
        labelled: matrices with a column per label of ``labels``; NaN where a part does not know a label.
    """
    if len(parts) == 1:
        return parts[0]
    vocabularies = {name: _merged(parts, name) for name in set(coded.values()) | ({"labels"} if labelled else set())}
    values: dict[str, Any] = {}
    for item in fields(parts[0]):  # type: ignore[arg-type]
        name = item.name
        columns = [getattr(part, name) for part in parts]
        if name in vocabularies:
            values[name] = vocabularies[name][0]
            continue
        if not isinstance(columns[0], np.ndarray):
            values[name] = [word for column in columns for word in column]
            continue
        if name in coded:
            columns = [own[column] for own, column in zip(vocabularies[coded[name]][1], columns, strict=True)]
        elif name in shifted:
            sizes = [len(getattr(part, shifted[name])) for part in parts]
            before = np.cumsum([0, *sizes[:-1]])
            columns = [
                np.where(column < 0, column, column + shift) for column, shift in zip(columns, before, strict=True)
            ]
        elif name in labelled:
            words, maps = vocabularies["labels"]
            columns = [_widen(column, own[:-1], len(words)) for column, own in zip(columns, maps, strict=True)]
        values[name] = np.concatenate(columns)
    return type(parts[0])(**values)


def _widen(matrix: np.ndarray, places: np.ndarray, width: int) -> np.ndarray:
    out = np.full((matrix.shape[0], width), np.nan)
    out[:, places] = matrix
    return out
