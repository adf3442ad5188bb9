"""Distinct values, their first places, and offsets of consecutive lists, with numpy alone."""

from __future__ import annotations

import numpy as np


def sort_distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct values, ascending.

    ``numpy.unique`` imports numpy.ma, which takes as long as the build of a small corpus.
    """
    return np.sort(drop_repeated(values))


def find_first_places(values: np.ndarray) -> np.ndarray:
    """Return the first place of each value, int64 (values,)."""
    order = np.argsort(values, kind="stable")
    new = np.ones(len(values), bool)
    np.not_equal(values[order[1:]], values[order[:-1]], out=new[1:])
    firsts = np.empty(len(values), np.int64)
    firsts[order] = order[new][np.cumsum(new) - 1]
    return firsts


def drop_repeated(values: np.ndarray) -> np.ndarray:
    """Return the distinct values in the order of their first places."""
    once: np.ndarray = values[find_first_places(values) == np.arange(len(values))]
    return once


def compute_offsets(lengths: np.ndarray) -> np.ndarray:
    """Return the start of each list and the end of the last, int64 (lengths + 1,)."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
