"""Shapley values of the units: the mean gain of each over all orders in which units are added.

They sum to p(full) - p(nothing). To :data:`chunk.EXACT_UNITS` units all sets are looked at.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..chunk import EXACT_UNITS, Chunk, CoalitionSearch, CoalitionValues, Scores, enumerate_coalitions
from ..instances import Instance
from ..method import Method


class ShapleyEstimate(NamedTuple):
    """Values of the units, and the largest of their standard errors: 0 of exact ones, NaN where none is known."""

    values: NDArray[np.float64]
    standard_error: float


def compute_exact_shapley(size: int) -> CoalitionSearch[ShapleyEstimate]:
    """Compute by definition: the mean over sets S without i of v(S + i) - v(S), each size weighing alike."""
    if not size:
        return ShapleyEstimate(np.zeros(0), 0.0)
    coalition_values = yield enumerate_coalitions(size)
    return ShapleyEstimate(compute_shapley_values(size, coalition_values), 0.0)


def compute_shapley_values(size: int, coalition_values: CoalitionValues) -> NDArray[np.float64]:
    """Compute Shapley values from the values of every coalition, in the order of :func:`chunk.enumerate_coalitions`."""
    coalitions = enumerate_coalitions(size)
    weight = np.array([1 / (size * comb(size - 1, count)) for count in range(size)])
    values = np.empty(size)
    for unit in range(size):
        without = np.flatnonzero(~coalitions[:, unit])
        gains = coalition_values[without | (1 << unit)] - coalition_values[without]
        values[unit] = weight[coalitions[without].sum(axis=1)] @ gains
    return values


class ShapleyMethod(Method):
    """Shapley values, each shared equally by its unit's tokens."""

    erases_units = scores_units = True

    @abstractmethod
    def search(self, size: int, settings: Any, random: np.random.Generator) -> CoalitionSearch[ShapleyEstimate]:
        """Return the search for the values of so many units."""

    def scores(self, chunk: Chunk) -> Sequence[Scores]:
        """Return each unit's value, shared by its tokens."""
        rows = []
        for text_units, result in chunk.evaluate_coalitions(
            lambda text_units, _, one: self.search(
                text_units.size, chunk.settings, chunk.make_generator(one, chunk.settings.method)
            )
        ):
            if result.standard_error > 0:
                chunk.model.notes.largest("largest standard error of a Shapley value", result.standard_error)
            rows.append(text_units.share_to_tokens(result.values))
        return rows

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return every coalition of few units; of more the drawn, the whole and the empty one."""
        return 1 << units if units <= EXACT_UNITS else 2 + cls.drawn_inputs(units, settings)

    @classmethod
    @abstractmethod
    def drawn_inputs(cls, units: int, settings: Any) -> int:
        """Return the number of coalitions that are drawn of more than `EXACT_UNITS` units."""
