"""Infidelity and sensitivity of an explanation, by fixed random perturbations.

*Infidelity* (Yeh et al. 2019): the mean over perturbations I of ``(I . scores - (p(x) - p(x - I)))^2``, low is good.
Here I erases a random tenth of the units, 1 where a unit goes; it is SUBTRACTED from the input. *Sensitivity*: the
largest ``|g(x + I) - g(x)| / |g(x)|`` over the same perturbations, which are ADDED (I is -1 where a unit goes), g the
scores of the tokens that stay, computed anew; low is good. The signs are captum's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .play import Search, Sets

SHARE = 0.1  # of the units that a perturbation erases


def perturbed_sets(size: int, draws: int, random: np.random.Generator) -> Sets:
    """Which units stand in each perturbed input, shape (draws, size): all but a random tenth, of one unit at least."""
    gone = min(size, int(np.ceil(SHARE * size)))
    return random.random((draws, size)).argsort(axis=1).argsort(axis=1) >= gone


def infidelity(
    scores: NDArray[np.float64],
    perturbations: NDArray[np.float64],
    drops: NDArray[np.float64],
    normalise: bool = False,
) -> float:
    """The mean of ``(I . scores - drop)^2``.

    Args:
        scores: float64 (n,).
        perturbations: what was subtracted from the input, float64 (draws, n).
        drops: p(x) - p(x - I) of each, float64 (draws,).
        normalise: scale the scores by the factor that makes it least, sum(a b) / sum(a^2) with a = I . scores and b the
            drops: methods whose scores are no probabilities can then be compared. Scores that are all 0 stay 0.
    """
    products = perturbations @ scores
    squares = float(products @ products)
    scale = float(products @ drops) / squares if normalise and squares > 0 else 1.0
    return float(np.mean((scale * products - drops) ** 2))


def infidelity_of(scores: NDArray[np.float64], full: float, stands: Sets) -> Search[tuple[float, float]]:
    """Infidelity, and infidelity of the scores at their best scale, over perturbed inputs."""
    if not len(scores):
        return 0.0, 0.0
    worths = yield stands
    gone = (~stands).astype(np.float64)
    return infidelity(scores, gone, full - worths), infidelity(scores, gone, full - worths, normalise=True)


def sensitivity_max(scores: NDArray[np.float64], perturbed: Sequence[NDArray[np.float64]]) -> float:
    """The largest Euclidean distance of perturbed scores from ``scores``, as a share of their norm (of 1 for 0)."""
    norm = float(np.linalg.norm(scores)) or 1.0
    return max((float(np.linalg.norm(row - scores)) / norm for row in perturbed), default=0.0)
