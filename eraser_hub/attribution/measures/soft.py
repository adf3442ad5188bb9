"""Soft comprehensiveness and sufficiency, normalised: erasure by chance, likelier where a unit matters more (or less).

Importance a is the scores scaled to [0, 1] (0 where all are equal). Sufficiency keeps a unit with probability a,
comprehensiveness with 1 - a. Of one such input with probability p'::

    S  = 1 - max(0, p(full) - p'),   S0 = 1 - max(0, p(full) - p(nothing))
    soft sufficiency       = (S - S0) / (1 - S0)
    soft comprehensiveness = max(0, p(full) - p') / (1 - S0)

both cut to [0, 1], and 0 where 1 - S0 < 1e-5. Ours is the mean over all masks by their probabilities, exact to 8 units
and by drawn masks above. High is good for both. The released code draws its masks the other way round; this is the
paper's direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ..engine import Engine
from ..method import Measure, Method, Search
from ..methods._shapley import enumerate_sets
from ..text import Text

EXACT_UNITS = 8
MIN_SPAN = 1e-5  # of 1 - S0 below which nothing can be normalised
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Soft(Measure):
    """Soft comprehensiveness and sufficiency, normalised: erasure by chance, likelier where a unit matters more.

    Zhao and Aletras 2023.

    Attributes:
        draws: masks of more than 8 units, and of elements, whose spread is told.
        masks: what a mask erases: units (tokens), or elements of the tokens' embeddings, as in the paper.
    """

    fields = ("soft_scores",)

    draws: Annotated[int, Meta(ge=2)] = 50
    masks: Literal["tokens", "elements"] = "tokens"

    def measure(self, texts: Sequence[Text], engine: Engine, method: Method | None) -> list[Mapping[str, Any]]:
        """Return both scores of each text; the model itself masks elements."""
        if self.masks == "tokens":
            return super().measure(texts, engine, method)
        found: list[Mapping[str, Any]] = []
        for text in texts:
            assert text.scores is not None
            keep, random = compute_importance(text.scores), text.random("soft elements")
            without, only, nothing = (
                engine.model.mask_elements(text.reading, text.label, share, draws, random)
                for share, draws in ((1 - keep, self.draws), (keep, self.draws), (np.zeros_like(keep), 1))
            )
            found.append(summarise(*normalise(text.full, without, only, nothing[0])))
        return found

    def search(self, text: Text) -> Search[Mapping[str, Any]]:
        """Ask for every mask of few units, and for drawn masks of more."""
        keep, size, draws = compute_importance(text.unit_scores), text.size, self.draws
        if size <= EXACT_UNITS:
            sets = enumerate_sets(size)
            p = yield from text.ask(sets)
            losses, gains = normalise(text.full, p, p, p[0])
            chances = [np.where(sets, share, 1 - share).prod(axis=1) for share in (1 - keep, keep)]
            return summarise(losses, gains, chances)
        random = text.random("soft")
        without, only = (random.random((draws, size)) < share for share in (1 - keep, keep))
        p = yield from text.ask(np.concatenate([without, only, [[False] * size]]))
        return summarise(*normalise(text.full, p[:draws], p[draws:-1], p[-1]))


def compute_importance(scores: Values) -> Values:
    """Return scores scaled to [0, 1]; all 0 where they are equal."""
    span = np.ptp(scores) if len(scores) else 0.0
    return (scores - scores.min()) / span if span > 0 else np.zeros(len(scores))


def normalise(full: float, without: Values, only: Values, nothing: float) -> tuple[Values, Values]:
    """Return soft comprehensiveness of inputs without the important units, and soft sufficiency of these only."""
    span = max(0.0, full - nothing)  # 1 - S0
    if span < MIN_SPAN:
        return np.zeros_like(without), np.zeros_like(only)
    losses, others = (np.maximum(0.0, full - p) / span for p in (without, only))
    return np.clip(losses, 0.0, 1.0), np.clip(1.0 - others, 0.0, 1.0)


def summarise(losses: Values, gains: Values, chances: Sequence[Values] | None = None) -> dict[str, Any]:
    """Return both means as a prediction has them.

    With them stand how many masks were drawn for each, 0 where all were looked at, and the larger standard error.

    Args:
        losses: soft comprehensiveness of each mask.
        gains: soft sufficiency of each.
        chances: probabilities of the masks, for both, where all are looked at.
    """
    draws, error = len(losses), 0.0
    if chances is None:
        means = losses.mean(), gains.mean()
        error = max(values.std(ddof=1) for values in (losses, gains)) / np.sqrt(draws)
    else:
        means, draws = (chances[0] @ losses, chances[1] @ gains), 0
    names = ("comprehensiveness", "sufficiency", "draws", "standard_error")
    return {"soft_scores": dict(zip(names, (*map(float, means), draws, float(error)), strict=True))}
