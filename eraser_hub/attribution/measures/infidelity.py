"""Infidelity: the error of scores as predictions of what perturbations do to the probability.

The mean over perturbations I of ``(I . scores - (p(x) - p(x - I)))^2``, low is good. Here I erases a random tenth of
the units, 1 where a unit goes; it is SUBTRACTED from the input. The sign is captum's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ..method import Kept, Measure, Search
from ..text import Text

SHARE = 0.1  # of the units that a perturbation erases


@dataclass(frozen=True)
class Infidelity(Measure):
    """Infidelity of the scores, as they are and at their best scale.

    Yeh et al. 2019.

    Attributes:
        draws: perturbed inputs of each instance.
    """

    fields = ("infidelity", "infidelity_normalized")

    draws: Annotated[int, Meta(ge=1)] = 50

    def search(self, text: Text) -> Search[Mapping[str, Any]]:
        """Ask for the perturbed inputs."""
        if not text.size:
            return dict.fromkeys(self.fields, 0.0)
        kept = draw_perturbations(text.size, self.draws, text.random("perturbed"))
        drops = text.full - (yield from text.ask(kept))
        return dict(zip(self.fields, compute_infidelity(text.unit_scores, (~kept).astype(float), drops), strict=True))


def draw_perturbations(size: int, draws: int, random: np.random.Generator) -> Kept:
    """Draw the units that each perturbed input keeps, (draws, size): all but a random tenth, at least one erased."""
    gone = min(size, int(np.ceil(SHARE * size)))
    return random.random((draws, size)).argsort(axis=1).argsort(axis=1) >= gone


def compute_infidelity(
    scores: NDArray[np.float64], perturbations: NDArray[np.float64], drops: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the mean of ``(I . scores - drop)^2``, of the scores as they are and at the scale that makes it least.

    That is sum(a b) / sum(a^2) with a = I . scores and b the drops: methods whose scores are no probabilities can then
    be compared. Scores that are all 0 stay 0.

    Args:
        scores: float64 (n,).
        perturbations: subtracted from the input, float64 (draws, n).
        drops: p(x) - p(x - I) of each, float64 (draws,).
    """
    products = perturbations @ scores
    scale = float(products @ drops) / (float(products @ products) or 1.0)
    return float(np.mean((products - drops) ** 2)), float(np.mean((scale * products - drops) ** 2))
