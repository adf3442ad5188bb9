"""Shapley values by permutations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ..method import Search
from ..text import Text
from ._shapley import ShapleyMethod


@dataclass(frozen=True)
class PermutationShapley(ShapleyMethod):
    """Shapley values of the units; of more than ten by permutations, each with its reverse (antithetic sampling).

    Castro, Gomez and Tejada 2009; Mitchell et al. 2022.

    Attributes:
        draws: permutations of more than 10 units, 2 (n - 1) inputs each.
    """

    draws: Annotated[int, Meta(ge=1)] = 10

    def estimate(self, text: Text) -> Search[NDArray[np.float64]]:
        """Ask for what has come when each unit comes; note the largest standard error of a value."""
        size, random = text.size, text.random("shapley")
        empty, full = yield from text.ask(np.repeat([[False], [True]], size, axis=1))
        estimates = np.empty((self.draws, size))
        for draw in range(self.draws):
            order = random.permutation(size)
            orders = np.stack([order, order[::-1]])
            places = np.argsort(orders, axis=1)
            inside = places[:, None, :] < np.arange(1, size)[:, None]  # row k: the first k + 1 have come
            p = yield from text.ask(inside.reshape(-1, size))
            curves = np.column_stack([[empty] * 2, p.reshape(2, -1), [full] * 2])
            gains = np.empty((2, size))
            np.put_along_axis(gains, orders, np.diff(curves, axis=1), axis=1)
            estimates[draw] = gains.mean(axis=0)
        if self.draws > 1:
            error = estimates.std(axis=0, ddof=1).max() / np.sqrt(self.draws)
            text.notes.keep_largest("largest standard error of a Shapley value", float(error))
        return np.asarray(estimates.mean(axis=0))
