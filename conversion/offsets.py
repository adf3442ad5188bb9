"""Numbers in order, each once, and where lists lie that stand one after another: numpy alone."""

from __future__ import annotations

import numpy as np


def distinct(values: np.ndarray) -> np.ndarray:
    """The values, ascending, each once. (``numpy.unique`` imports numpy.ma, which takes as long as a small corpus.)"""
    ordered = np.sort(values)
    once: np.ndarray = ordered[_changes(ordered)]
    return once


def first_places(values: np.ndarray) -> np.ndarray:
    """int64, as long as values: where each value stands first."""
    order = np.argsort(values, kind="stable")
    new = _changes(values[order])
    firsts = np.empty(len(values), np.int64)
    firsts[order] = order[new][np.cumsum(new) - 1]
    return firsts


def in_first_order(values: np.ndarray) -> np.ndarray:
    """The values each once, in the order in which they stand first."""
    once: np.ndarray = values[first_places(values) == np.arange(len(values))]
    return once


def _changes(ordered: np.ndarray) -> np.ndarray:
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """int64, one more than lengths: where each begins, and where the last ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
