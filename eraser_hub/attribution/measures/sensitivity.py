"""Largest sensitivity: the largest change of the scores when the input changes.

The largest ``|g(x + I) - g(x)| / |g(x)|`` over perturbations I, which are ADDED (I is -1 where a unit goes), g the
scores of the tokens that stay, computed anew; low is good. The sign is captum's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chunk import Chunk
from ..engine import attribute
from ..instances import Instance
from ..measure import Fields, Measure
from ..method import METHODS, Setting
from .infidelity import draw_perturbations


class Sensitivity(Measure):
    """The largest change of the scores, as a share of their norm, when a random tenth of the units is erased."""

    source = "Yeh et al. 2019"
    enabled_by, fields = "sensitivity_draws", ("sensitivity_max",)
    settings: ClassVar = {"draws": Setting(10, "Perturbed inputs that are scored anew.", 1, field="sensitivity_draws")}
    signature_format = "sensitivity:{0.sensitivity_draws}"
    recomputes_scores = True

    def measure(self, chunk: Chunk) -> Fields:
        """Return the largest distance for each instance."""
        instances, labels, kept, owner = list[Instance](), list[int](), list[NDArray[np.bool_]](), list[int]()
        for text_units, one in zip(chunk.to_text_units(), chunk.instances, strict=True):
            random = chunk.make_generator(one, "perturbed")
            for coalitions in draw_perturbations(text_units.size, chunk.settings.sensitivity_draws, random):
                tokens = np.repeat(coalitions, np.diff(text_units.bounds))
                instances.append(one.only(tokens))
                labels.append(text_units.label)
                kept.append(tokens)
                owner.append(text_units.number)
        rows = attribute(chunk.with_instances(instances, labels))
        moved: list[list[NDArray[np.float64]]] = [[] for _ in chunk.instances]
        for number, tokens, row in zip(owner, kept, rows, strict=True):
            perturbed = chunk.scores[number].copy()
            perturbed[tokens] = row
            moved[number].append(perturbed)
        pairs = zip(chunk.scores, moved, strict=True)
        return [{"sensitivity_max": compute_max_sensitivity(scores, several)} for scores, several in pairs]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return for each perturbed input itself, and what the method takes for its scores."""
        method = METHODS.find(settings.method).most_inputs(one, units, settings)
        return int(settings.sensitivity_draws * (1 + method))


def compute_max_sensitivity(scores: NDArray[np.float64], perturbed: Sequence[NDArray[np.float64]]) -> float:
    """Compute the largest Euclidean distance of perturbed scores from ``scores``, as a share of their norm."""
    norm = float(np.linalg.norm(scores)) or 1.0
    return max((float(np.linalg.norm(row - scores)) / norm for row in perturbed), default=0.0)
