"""Largest sensitivity: the largest change of the scores when the input changes.

The largest ``|g(x + I) - g(x)| / |g(x)|`` over perturbations I, which are ADDED (I is -1 where a unit goes), g the
scores of the tokens that stay, computed anew; low is good. The sign is captum's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ..engine import Engine
from ..method import Measure, Method
from ..predictions import compute_scores
from ..text import Text
from .infidelity import draw_perturbations


@dataclass(frozen=True)
class Sensitivity(Measure):
    """The largest change of the scores, as a share of their norm, when a random tenth of the units is erased.

    Yeh et al. 2019.

    Attributes:
        draws: perturbed inputs that are scored anew.
    """

    fields = ("sensitivity_max",)
    recomputes_scores = True

    draws: Annotated[int, Meta(ge=1)] = 10

    def measure(self, texts: Sequence[Text], engine: Engine, method: Method | None) -> list[Mapping[str, Any]]:
        """Have the method score the perturbed inputs of all texts together."""
        model = engine.model
        masks = [text.spread(draw_perturbations(text.size, self.draws, text.random("perturbed"))) for text in texts]
        with model.uncounted():
            variants = []
            for text, kept in zip(texts, masks, strict=True):
                for one in map(text.instance.only, kept):
                    other = Text(one, model.read(one), text.settings, model.notes, text.by_sequence, label=text.label)
                    variants.append(other)
            readings = [one.reading for one in variants]
            for other, p in zip(variants, engine.proba_of_whole(readings), strict=True):
                other.p = p
            with engine.reading(readings):
                rows = iter(compute_scores(model, variants, engine))
        found: list[Mapping[str, Any]] = []
        for text, kept in zip(texts, masks, strict=True):
            assert text.scores is not None
            perturbed = np.repeat(text.scores[None], len(kept), axis=0)
            for row, flags in zip(perturbed, kept, strict=True):
                row[flags] = next(rows)
            found.append({"sensitivity_max": compute_max_sensitivity(text.scores, perturbed)})
        return found


def compute_max_sensitivity(scores: NDArray[np.float64], perturbed: NDArray[np.float64]) -> float:
    """Return the largest Euclidean distance of rows of perturbed scores from ``scores``, as a share of their norm."""
    norm = float(np.linalg.norm(scores)) or 1.0
    return float(np.linalg.norm(perturbed - scores, axis=1).max(initial=0.0)) / norm
