"""The true explanation of a planted text, and worse ones that a good score ranks below it.

An explanation is a score for each token, and a budget: the number of tokens of its hard rationale. Explanations are
matched, so that nothing but the choice of tokens tells them apart:

- scale: the absolute scores of each explanation sum to 1. All but ``longer`` are permutations of the true scores.
- length: each has the budget of the true explanation that it is compared with. ``longer`` has a larger budget than its
  partner, because its length is its fault; ``wrong_order`` and its partner share a budget five times as large.
- budget of the model: draws of masks and perturbations are the same for all explanations of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .plantings import PlantedText

Scores = NDArray[np.float64]
NOISE = 0.01  # largest score of a token that does not decide, before scores are scaled; ranks them at random
PADDING = 4  # other tokens beside each one that decides, in a wide budget
TRUE, TRUE_WIDE = "true", "true_wide"
# worse explanation -> the true one that it is compared with
CANDIDATES: Mapping[str, str] = {
    "random": TRUE,
    "distractor": TRUE,
    "incomplete": TRUE,
    "leaking": TRUE,
    "wrong_order": TRUE_WIDE,
    "longer": TRUE,
}
WIDE = (TRUE_WIDE, "wrong_order", "longer")


class PlantedExplanation(NamedTuple):
    """Scores of a text's tokens, float64 (tokens,), and the number of tokens of the hard rationale."""

    scores: Scores
    budget: int


def make_explanations(one: PlantedText, random: np.random.Generator) -> dict[str, PlantedExplanation]:
    """Make the true explanation of a text and the worse ones, by name.

    ``incomplete`` is missing where one word alone decides; ``distractor`` where there are too few distractors.

    - ``true``: the importance of each deciding token, next to nothing for others.
    - ``random``: the true scores on tokens in random order.
    - ``distractor``: distractors hold the highest scores.
    - ``incomplete``: the most important token and one that does not decide exchange their scores.
    - ``leaking``: other tokens hold the highest scores, the first of the text for POS, the last for NEG: their
      positions reveal the label.
    - ``true_wide`` and ``wrong_order``: the same tokens are marked, all evidence among them. The true one has the
      evidence on top, the other below the tokens that do not decide.
    - ``longer``: marks these tokens as well, with equal scores but for ties.

    Args:
        one: The text.
        random: Random numbers.
    """
    values = one.importance + (one.importance == 0) * NOISE * random.random(len(one.importance))
    truth: Scores = values / np.abs(values).sum()
    order = np.argsort(-truth, kind="stable")
    ranked, budget = truth[order], int(one.supporting.sum())
    wide = min(len(truth), (1 + PADDING) * budget)

    def place(first: NDArray[np.int64]) -> Scores:
        """Return the true scores, the highest ones on ``first``, the others at random."""
        rest = random.permutation(np.setdiff1d(order, first))
        scores = np.empty_like(truth)
        scores[np.concatenate([first, rest])] = ranked
        return scores

    others = np.flatnonzero(one.importance == 0)
    lures = random.permutation(np.flatnonzero(one.distractors))[:budget]
    ends = others[:budget] if one.instance.label == "POS" else others[len(others) - budget :]
    found = {TRUE: PlantedExplanation(truth, budget), "random": PlantedExplanation(place(order[:0]), budget)}
    if len(lures) == budget:
        found["distractor"] = PlantedExplanation(place(lures), budget)
    if budget > 1:
        swapped, other = truth.copy(), random.choice(others)
        swapped[[order[0], other]] = swapped[[other, order[0]]]
        found["incomplete"] = PlantedExplanation(swapped, budget)
    found["leaking"] = PlantedExplanation(place(ends), budget)
    found[TRUE_WIDE] = PlantedExplanation(truth, wide)
    found["wrong_order"] = PlantedExplanation(place(np.concatenate([order[budget:wide], order[:budget]])), wide)
    equal = np.where(np.argsort(np.argsort(-truth, kind="stable")) < wide, 1.0, 0.0)
    equal += NOISE * random.random(len(truth))
    found["longer"] = PlantedExplanation(equal / equal.sum(), wide)
    return found
