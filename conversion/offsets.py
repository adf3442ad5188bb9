"""Offsets of consecutive lists, and distinct values, with numpy alone: a score needs no Arrow."""

from __future__ import annotations

import numpy as np


def sort_distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct integers, ascending; `numpy.unique` hashes them, which takes several times as long."""
    ordered = np.sort(values)
    distinct: np.ndarray = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def compute_offsets(lengths: np.ndarray) -> np.ndarray:
    """Return the start of each list and the end of the last, int64 (lengths + 1,)."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
