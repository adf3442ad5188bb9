"""Infidelity: the error of scores as predictions of what perturbations do to the probability.

The mean over perturbations I of ``(I . scores - (p(x) - p(x - I)))^2``, low is good. Here I erases a random tenth of
the units, 1 where a unit goes; it is SUBTRACTED from the input. The sign is captum's.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chunk import Chunk, Coalitions, CoalitionSearch
from ..instances import Instance
from ..measure import Fields, Measure
from ..method import Setting

SHARE = 0.1  # of the units that a perturbation erases


class Infidelity(Measure):
    """Infidelity of the scores, as they are and at their best scale."""

    source = "Yeh et al. 2019"
    enabled_by, fields = "infidelity_draws", ("infidelity", "infidelity_normalized")
    settings: ClassVar = {"draws": Setting(50, "Perturbed inputs of each instance.", 1, field="infidelity_draws")}
    signature_format = "infidelity:{0.infidelity_draws}"

    def measure(self, chunk: Chunk) -> Fields:
        """Return both for each instance."""
        draws = chunk.settings.infidelity_draws
        results = chunk.evaluate_coalitions(
            lambda text_units, scores, one: evaluate_infidelity(
                scores,
                text_units.full,
                draw_perturbations(text_units.size, draws, chunk.make_generator(one, "perturbed")),
            )
        )
        return [dict(zip(self.fields, values, strict=True)) for _, values in results]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return the perturbed inputs."""
        return int(settings.infidelity_draws)


def draw_perturbations(size: int, draws: int, random: np.random.Generator) -> Coalitions:
    """Draw the units that each perturbed input keeps, (draws, size): all but a random tenth, at least one erased."""
    gone = min(size, int(np.ceil(SHARE * size)))
    return random.random((draws, size)).argsort(axis=1).argsort(axis=1) >= gone


def compute_infidelity(
    scores: NDArray[np.float64],
    perturbations: NDArray[np.float64],
    drops: NDArray[np.float64],
    normalise: bool = False,
) -> float:
    """Compute the mean of ``(I . scores - drop)^2``.

    Args:
        scores: float64 (n,).
        perturbations: subtracted from the input, float64 (draws, n).
        drops: p(x) - p(x - I) of each, float64 (draws,).
        normalise: scale the scores by the factor that makes it least, sum(a b) / sum(a^2) with a = I . scores and b the
            drops: methods whose scores are no probabilities can then be compared. Scores that are all 0 stay 0.
    """
    products = perturbations @ scores
    squares = float(products @ products)
    scale = float(products @ drops) / squares if normalise and squares > 0 else 1.0
    return float(np.mean((scale * products - drops) ** 2))


def evaluate_infidelity(
    scores: NDArray[np.float64], full: float, coalitions: Coalitions
) -> CoalitionSearch[tuple[float, float]]:
    """Evaluate infidelity of the scores as they are and at their best scale, over perturbed inputs."""
    if not len(scores):
        return 0.0, 0.0
    coalition_values = yield coalitions
    gone = (~coalitions).astype(np.float64)
    return compute_infidelity(scores, gone, full - coalition_values), compute_infidelity(
        scores, gone, full - coalition_values, normalise=True
    )
