"""Evaluate trained models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.engine import Engine
from eraser_hub.attribution.instances import Instance, split_into_chunks
from eraser_hub.attribution.models.model import Model

CHUNK = 64  # instances that are evaluated together
KEPT_RESULTS = 100_000  # inputs whose results are kept, so that erased texts' equal sentences are read once
MIN_PROBABILITY = 1e-12  # whose logarithm is taken


class TextProbabilities:
    """Probabilities of whole texts by a model, each text computed once."""

    def __init__(self, model: Model) -> None:
        self.model, self._engine = model, Engine(model)

    def compute(self, instances: Sequence[Instance]) -> NDArray[np.float64]:
        """Return probabilities of shape (instances, labels), in the order of the model's ``label_names``."""
        if len(self._engine.known) > KEPT_RESULTS:
            self._engine.known.clear()
        return self._engine.proba_of_whole([self.model.read(self.model.see(one)) for one in instances])


def evaluate(model: Model, instances: Sequence[Instance], labels: Sequence[str]) -> dict[str, float]:
    """Return ``accuracy``, ``macro_f1`` and ``loss`` (mean cross entropy) of a model whose labels are aligned."""
    compute = TextProbabilities(model).compute
    probabilities = np.concatenate([compute(chunk) for _, chunk in split_into_chunks(instances, CHUNK)])
    numbers = [model.label_names.index(label) for label in labels]
    right = np.maximum(probabilities[np.arange(len(numbers)), numbers], MIN_PROBABILITY)
    return {**compute_figures(numbers, probabilities.argmax(axis=1)), "loss": float(-np.log(right).mean())}


def compute_figures(gold: Iterable[Any], guesses: Iterable[Any]) -> dict[str, float]:
    """Return ``accuracy``, and ``macro_f1`` over the labels that occur."""
    from sklearn.metrics import accuracy_score, f1_score

    pair: Any = list(gold), list(guesses)
    macro_f1 = f1_score(*pair, average="macro", zero_division=0)  # pyright: ignore[reportArgumentType]
    return {"accuracy": float(accuracy_score(*pair)), "macro_f1": float(macro_f1)}
