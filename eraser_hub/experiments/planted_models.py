"""Planted texts, and for each kind a model in closed form that decides by the planted rationale and by nothing else.

Each model reads the words that decide (:mod:`samples.plant`) and puts p(POS) to 1 / (1 + exp(-z)), z = +3 or -3; where
the words that decide are not all there it knows nothing, and z is 0. Erasing any token that does not decide leaves p as
it is, by construction: what a score says of a rationale can be held against what is true of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance, instance_of_eraser
from eraser_hub.samples.plant import CUES, FIRST, LABELS, MODIFIERS, SECOND, planted

LOGIT = 3.0
SIGN = {word: sign for label, sign in zip(LABELS, (-1, 1), strict=True) for word in CUES[label]}
TURN = {word: sign for way, sign in (("turned", -1), ("kept", 1)) for word in MODIFIERS[way]}
SIDES = [{word: side for side, words in family.items() for word in words} for family in (FIRST, SECOND)]


def by_word(tokens: Sequence[str]) -> int:
    """The judgement, wherever it stands."""
    return next((SIGN[token] for token in tokens if token in SIGN), 0)


def by_conjunction(tokens: Sequence[str]) -> int:
    """POS where the words of both families are of the same side; 0 where one of them lacks."""
    first, second = (next((side[token] for token in tokens if token in side), None) for side in SIDES)
    return 0 if first is None or second is None else 1 if first == second else -1


def by_negation(tokens: Sequence[str]) -> int:
    """The judgement as the word right before it turns or keeps it; 0 without such a word."""
    places = range(1, len(tokens))
    return next((SIGN[tokens[at]] * TURN.get(tokens[at - 1], 0) for at in places if tokens[at] in SIGN), 0)


def by_position(tokens: Sequence[str]) -> int:
    """The last sentence's judgement: behind the last full stop but the one that ends the text."""
    body = tokens[:-1]
    start = max((at + 1 for at, token in enumerate(body) if token == "."), default=0)
    return next((SIGN[token] for token in reversed(body[start:]) if token in SIGN), 0)


RULES: dict[str, Callable[[Sequence[str]], int]] = {
    "word": by_word,
    "conjunction": by_conjunction,
    "negation": by_negation,
    "position": by_position,
}


def planted_rows(kind: str, split: str, size: int, seed: int) -> list[dict[str, Any]]:
    """Planted texts as rows of a built dataset; arguments as of :func:`samples.plant.planted`."""
    return [
        {**record, "documents": [{"docid": record["docids"][0], "text": text}]}
        for record, text in planted(kind, split, size, seed)
    ]


def planted_instances(rows: Sequence[Mapping[str, Any]]) -> list[Instance]:
    """Rows as instances, with their labels and the tokens that decide."""
    return [instance_of_eraser(row, LABELS) for row in rows]


class PlantedModel:
    """The rule of one kind of planting as a model: ``predict_proba(list of token lists)``."""

    label_names = LABELS
    mask_token = "[MASK]"

    def __init__(self, kind: str) -> None:
        self.rule = RULES[kind]

    def predict_proba(self, token_lists: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Probabilities of NEG and POS, shape (texts, 2)."""
        z = LOGIT * np.array([self.rule(tokens) for tokens in token_lists], dtype=np.float64)
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)
