"""Soft comprehensiveness and sufficiency, normalised: erasure by chance, likelier where a unit matters more (or less).

Importance a is the scores scaled to [0, 1] (0 where all are equal). Sufficiency keeps a unit with probability a,
comprehensiveness with 1 - a. Of one such input with probability p'::

    S  = 1 - max(0, p(full) - p'),   S0 = 1 - max(0, p(full) - p(nothing))
    soft sufficiency       = (S - S0) / (1 - S0)
    soft comprehensiveness = max(0, p(full) - p') / (1 - S0)

both cut to [0, 1], and 0 where 1 - S0 < 1e-5. Ours is the mean over all masks by their probabilities, exact to
:data:`EXACT_UNITS` units and by drawn masks above. High is good for both.

A mask erases whole units (``--soft-masks tokens``), or single numbers of the tokens' embeddings, as in the paper
(``elements``).

Source: Zhao and Aletras 2023. The released code draws its masks the other way round; this is the paper's direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .play import Search, Sets, Worths, all_sets
from .units import MASKS

EXACT_UNITS = 8
LEAST_SPAN = 1e-5  # of 1 - S0 below which nothing can be normalised


class Soft(NamedTuple):
    """Both scores, how many masks were drawn for each (0: all were looked at), and their larger standard error."""

    comprehensiveness: float
    sufficiency: float
    draws: int
    standard_error: float


def importance(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores scaled to [0, 1]; all 0 where they are equal."""
    span = np.ptp(scores) if len(scores) else 0.0
    return (scores - scores.min()) / span if span > 0 else np.zeros(len(scores))


def normalised(full: float, p: Worths, nothing: float) -> tuple[Worths, Worths]:
    """Soft comprehensiveness and soft sufficiency of single noisy predictions ``p``, each in [0, 1]."""
    span = max(0.0, full - nothing)  # 1 - S0
    if span < LEAST_SPAN:
        return np.zeros_like(p), np.zeros_like(p)
    loss = np.maximum(0.0, full - p) / span
    return np.clip(loss, 0.0, 1.0), np.clip(1.0 - loss, 0.0, 1.0)


def soft_scores(
    scores: NDArray[np.float64], full: float, draws: int, random: np.random.Generator, exact_up_to: int = EXACT_UNITS
) -> Search[Soft]:
    """Both scores of one instance.

    Args:
        scores: of the units.
        draws: masks for each score where there are more than ``exact_up_to`` units; at least 2.
    """
    keep, size = importance(scores), len(scores)
    if size <= exact_up_to:
        stands = all_sets(size)
        worths = yield stands
        losses, gains = normalised(full, worths, worths[0])
        return Soft(float(_chances(stands, 1 - keep) @ losses), float(_chances(stands, keep) @ gains), 0, 0.0)
    without, only = (random.random((draws, size)) < share for share in (1 - keep, keep))
    worths = yield np.concatenate([without, only, [[False] * size]])
    return soft_of_draws(full, worths[:draws], worths[draws:-1], float(worths[-1]))


def soft_of_draws(full: float, without: Worths, only: Worths, nothing: float) -> Soft:
    """Both scores from noisy predictions: ``without`` what matters, ``only`` it."""
    losses, _ = normalised(full, without, nothing)
    _, gains = normalised(full, only, nothing)
    draws = len(losses)
    error = max(values.std(ddof=1) for values in (losses, gains)) / np.sqrt(draws)
    return Soft(float(losses.mean()), float(gains.mean()), draws, float(error))


def _chances(stands: Sets, keep: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each mask where units stand with these probabilities, each by itself."""
    chances: NDArray[np.float64] = np.where(stands, keep, 1 - keep).prod(axis=1)
    return chances


def most_inputs(size: int, draws: int, masks: str) -> int:
    """How many inputs both scores take at most."""
    return 1 << size if size <= EXACT_UNITS and masks == MASKS[0] else 2 * draws + 1
