"""Kernel SHAP: Shapley values by sets that are drawn by the Shapley kernel, each with its complement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ..erasure import limit_to_one_thread
from ..method import Kept, Search
from ..text import Text
from ._shapley import ShapleyMethod


@dataclass(frozen=True)
class KernelShap(ShapleyMethod):
    """Shapley values of the units; of more than ten by a linear model of p over drawn sets that keeps the sum.

    Lundberg and Lee 2017.

    Attributes:
        samples: sets of more than 10 units; 0: 2 n + 2048, as the shap package.
    """

    packages = ("threadpoolctl",)

    samples: Annotated[int, Meta(ge=0)] = 0

    def estimate(self, text: Text) -> Search[NDArray[np.float64]]:
        """Ask for the drawn sets, nothing and everything; fit coefficients whose sum is p(text) - p(nothing)."""
        size = text.size
        sets = draw_kernel_sets(size, self.samples or 2 * size + 2048, text.random("kernel-shap"))
        p = yield from text.ask(np.concatenate([sets, [[False] * size, [True] * size]]))
        values, (empty, full) = p[:-2], p[-2:]
        present = sets.astype(np.float64)
        # the last coefficient is what the others leave of the sum
        left = present[:, :-1] - present[:, -1:]
        right = values - empty - present[:, -1] * (full - empty)
        with limit_to_one_thread("numpy"):
            others = np.linalg.lstsq(left, right, rcond=None)[0]
        return np.append(others, full - empty - others.sum())


def draw_kernel_sets(size: int, samples: int, random: np.random.Generator) -> Kept:
    """Draw sets by the Shapley kernel, size k with weight 1 / (k (n - k)), each followed by its complement."""
    counts = np.arange(1, size)
    weights = 1 / (counts * (size - counts))
    drawn = random.choice(counts, size=(samples + 1) // 2, p=weights / weights.sum())
    places = random.random((len(drawn), size)).argsort(axis=1).argsort(axis=1)
    sets = places < drawn[:, None]
    return np.stack([sets, ~sets], axis=1).reshape(-1, size)[:samples]
