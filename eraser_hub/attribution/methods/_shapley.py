"""Shapley values of a text's units: the mean gain of p by each over all orders in which units are added.

They sum to p(text) - p(nothing). Of few units all sets are looked at.
"""

from __future__ import annotations

from abc import abstractmethod
from math import comb

import numpy as np
from numpy.typing import NDArray

from ..method import Kept, Method, Scores, Search
from ..text import Text

EXACT_UNITS = 10  # up to so many units all sets are evaluated, 2 to the 10th


class ShapleyMethod(Method):
    """Shapley values, each shared equally by its unit's tokens."""

    scores_units = True

    def search(self, text: Text) -> Search[Scores]:
        """Ask for every set of few units, and for drawn sets of more."""
        if text.size > EXACT_UNITS:
            return text.share((yield from self.estimate(text)))
        p = yield from text.ask(enumerate_sets(text.size))
        return text.share(compute_shapley_values(p))

    @abstractmethod
    def estimate(self, text: Text) -> Search[NDArray[np.float64]]:
        """Ask for drawn sets of the units; return an estimate of each unit's value."""


def enumerate_sets(size: int) -> Kept:
    """Return every set of ``size`` units, bool (2 ** size, size); unit i is in number s if bit i of s is 1."""
    sets: Kept = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1 == 1
    return sets


def compute_shapley_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Shapley values of a game: means over the sets S without i of v(S + i) - v(S), each size alike.

    Args:
        values: of every set, in the order of :func:`enumerate_sets`.
    """
    size = len(values).bit_length() - 1
    sets, numbers = enumerate_sets(size), np.arange(len(values))
    weights = np.array([1 / (size * comb(size - 1, count)) for count in range(size)])
    shapley = np.zeros(size)
    for unit in range(size):
        without = numbers[~sets[:, unit]]
        gains = values[without | (1 << unit)] - values[without]
        shapley[unit] = weights[sets[without].sum(axis=1)] @ gains
    return shapley
