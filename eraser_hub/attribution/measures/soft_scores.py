"""Soft comprehensiveness and sufficiency, normalised: erasure by chance, likelier where a unit matters more (or less).

Importance a is the scores scaled to [0, 1] (0 where all are equal). Sufficiency keeps a unit with probability a,
comprehensiveness with 1 - a. Of one such input with probability p'::

    S  = 1 - max(0, p(full) - p'),   S0 = 1 - max(0, p(full) - p(nothing))
    soft sufficiency       = (S - S0) / (1 - S0)
    soft comprehensiveness = max(0, p(full) - p') / (1 - S0)

both cut to [0, 1], and 0 where 1 - S0 < 1e-5. Ours is the mean over all masks by their probabilities, exact to
:data:`EXACT_UNITS` units and by drawn masks above. High is good for both.

A mask erases whole units (``masks`` tokens), or single numbers of the tokens' embeddings, as in the paper
(elements). The released code draws its masks the other way round; this is the paper's direction.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.measure import SOFT_MASKS

from ..chunk import Chunk, Coalitions, CoalitionSearch, CoalitionValues, TextUnits, enumerate_coalitions
from ..instances import Instance
from ..measure import Fields, Measure
from ..method import Setting

EXACT_UNITS = 8
MIN_SPAN = 1e-5  # of 1 - S0 below which nothing can be normalised


class SoftScores(Measure):
    """Soft comprehensiveness and sufficiency, normalised: erasure by chance, likelier where a unit matters more."""

    source = "Zhao and Aletras 2023"
    enabled_by, fields = "soft_draws", (SOFT_MASKS,)
    settings: ClassVar = {
        "draws": Setting(50, "Masks of more than 8 units, at least 2, whose spread is told.", 2, field="soft_draws"),
        "masks": Setting(
            "tokens",
            "What a mask erases: tokens (units), or elements of their embeddings (transformers).",
            choices=("tokens", "elements"),
            field="soft_masks",
        ),
    }

    def measure(self, chunk: Chunk) -> Fields:
        """Return both scores of each instance."""
        draws = chunk.settings.soft_draws
        if chunk.settings.soft_masks == "elements":
            return [{SOFT_MASKS: _score_elements(chunk, one, draws)._asdict()} for one in chunk.to_text_units()]
        results = chunk.evaluate_coalitions(
            lambda text_units, scores, one: compute_soft_scores(
                scores, text_units.full, draws, chunk.make_generator(one, "soft")
            )
        )
        return [{SOFT_MASKS: result._asdict()} for _, result in results]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return every set of few units; of more, or of embeddings, the masks of both scores and the empty input."""
        every = units <= EXACT_UNITS and settings.soft_masks == "tokens"
        return 1 << units if every else 2 * settings.soft_draws + 1

    @classmethod
    def describe_settings(cls, settings: Any) -> list[str]:
        """Return the masks."""
        return [f"soft:{settings.soft_draws}" + (f",{settings.soft_masks}" if settings.soft_masks != "tokens" else "")]


def _score_elements(chunk: Chunk, text_units: TextUnits, draws: int) -> SoftEstimate:
    """Return both soft scores of an instance, numbers of its tokens' embeddings erased by chance."""
    one = chunk.encoded[text_units.number]
    random = chunk.make_generator(one.instance, "soft elements")
    keep = compute_importance(chunk.scores[text_units.number])
    without, only, nothing = (
        chunk.model.masked_elements(one, text_units.label, share, number, random)
        for share, number in ((1 - keep, draws), (keep, draws), (np.zeros_like(keep), 1))
    )
    return summarise_draws(text_units.full, without, only, float(nothing[0]))


class SoftEstimate(NamedTuple):
    """Both scores, how many masks were drawn for each (0: all were looked at), and their larger standard error."""

    comprehensiveness: float
    sufficiency: float
    draws: int
    standard_error: float


def compute_importance(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale scores to [0, 1]; all 0 where they are equal."""
    span = np.ptp(scores) if len(scores) else 0.0
    return (scores - scores.min()) / span if span > 0 else np.zeros(len(scores))


def normalise_losses(full: float, p: CoalitionValues, nothing: float) -> tuple[CoalitionValues, CoalitionValues]:
    """Compute soft comprehensiveness and soft sufficiency of noisy predictions ``p``, each in [0, 1]."""
    span = max(0.0, full - nothing)  # 1 - S0
    if span < MIN_SPAN:
        return np.zeros_like(p), np.zeros_like(p)
    loss = np.maximum(0.0, full - p) / span
    return np.clip(loss, 0.0, 1.0), np.clip(1.0 - loss, 0.0, 1.0)


def compute_soft_scores(
    scores: NDArray[np.float64], full: float, draws: int, random: np.random.Generator, exact_up_to: int = EXACT_UNITS
) -> CoalitionSearch[SoftEstimate]:
    """Compute both scores of one instance.

    Args:
        scores: of the units.
        full: value of the coalition of all units.
        draws: masks for each score where there are more than ``exact_up_to`` units; at least 2.
        random: random generator.
        exact_up_to: largest number of units for which all masks are evaluated.
    """
    keep, size = compute_importance(scores), len(scores)
    if size <= exact_up_to:
        coalitions = enumerate_coalitions(size)
        coalition_values = yield coalitions
        losses, gains = normalise_losses(full, coalition_values, coalition_values[0])
        return SoftEstimate(
            float(_weigh_masks(coalitions, 1 - keep) @ losses), float(_weigh_masks(coalitions, keep) @ gains), 0, 0.0
        )
    without, only = (random.random((draws, size)) < share for share in (1 - keep, keep))
    coalition_values = yield np.concatenate([without, only, [[False] * size]])
    return summarise_draws(full, coalition_values[:draws], coalition_values[draws:-1], float(coalition_values[-1]))


def summarise_draws(full: float, without: CoalitionValues, only: CoalitionValues, nothing: float) -> SoftEstimate:
    """Compute both scores from noisy predictions ``without`` the important units and of them ``only``."""
    losses, _ = normalise_losses(full, without, nothing)
    _, gains = normalise_losses(full, only, nothing)
    draws = len(losses)
    error = max(values.std(ddof=1) for values in (losses, gains)) / np.sqrt(draws)
    return SoftEstimate(float(losses.mean()), float(gains.mean()), draws, float(error))


def _weigh_masks(coalitions: Coalitions, keep: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of each mask where units are kept independently with these probabilities."""
    chances: NDArray[np.float64] = np.where(coalitions, keep, 1 - keep).prod(axis=1)
    return chances
