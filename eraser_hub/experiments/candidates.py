"""Explanations of a planted text: the true one, and those that a good score must put below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.measures.infidelity import perturbed_sets
from eraser_hub.attribution.measures.sensitivity import sensitivity_max

Scores = NDArray[np.float64]
Maker = Callable[[NDArray[np.bool_], str, np.random.Generator], Scores]

NOISE = 0.01  # of scores that are to be equal but for ties
PERTURBED = "perturbed"  # purpose of the random numbers that say which tokens are gone, as in `explain`
PADDING = 4  # tokens beside each one that decides, in a longer explanation and in one of the wrong order


def true(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """The tokens that decide lead, the others follow in no order."""
    return deciding + NOISE * random.random(len(deciding))


def random(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Uniform scores."""
    return random.random(len(deciding))


def shuffled(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """The true explanation's scores, on other tokens."""
    return random.permutation(true(deciding, label, random))


def wrong_order(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Among its first tokens are the right ones, behind four others for each."""
    return true(_padded(deciding, random), label, random) - 0.5 * deciding


def longer(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """The right tokens and four others for each, in any order; its hard rationale holds them all."""
    return true(_padded(deciding, random), label, random)


def leaking(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """As many tokens as decide, none of which does: the first of the text for POS, the last for NEG. They tell the
    label by where they stand, and the model does not look at them."""
    others = np.flatnonzero(~deciding)
    count = int(deciding.sum())
    chosen = np.zeros(len(deciding), dtype=bool)
    chosen[others[:count] if label == "POS" else others[len(others) - count :]] = True
    return true(chosen, label, random)


def _padded(deciding: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
    others = np.flatnonzero(~deciding)
    padded: NDArray[np.bool_] = deciding.copy()
    padded[random.choice(others, min(len(others), PADDING * int(deciding.sum())), replace=False)] = True
    return padded


def sensitivity(
    maker: Maker,
    one: Instance,
    label: str,
    scores: Scores,
    perturbations: int,
    random_of: Callable[[str], np.random.Generator],
) -> float:
    """The largest change of an explanation that is made anew without a random tenth of the tokens.

    See :mod:`explain.games.stability`. What is judged is the way in which explanations are made: the true way marks
    whatever is left of the words that decide, a way that draws draws anew for each input.

    Args:
        scores: of the whole text.
        random_of: the random numbers of a purpose; of :data:`PERTURBED` the same for every maker.
    """
    deciding, moved = deciding_of(one), list[Scores]()
    for number, stands in enumerate(perturbed_sets(len(scores), perturbations, random_of(PERTURBED))):
        anew = scores.copy()
        anew[stands] = maker(deciding[stands], label, random_of(f"anew {number}"))
        moved.append(anew)
    return sensitivity_max(scores, moved)


def deciding_of(one: Instance) -> NDArray[np.bool_]:
    """Which tokens of a planted text decide."""
    return np.array([flag for document in one.rationale or () for flag in document], dtype=bool)


TRUE = "true"
CANDIDATES: Mapping[str, Maker] = {maker.__name__: maker for maker in (random, shuffled, wrong_order, longer, leaking)}
