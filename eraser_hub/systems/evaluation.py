"""How a trained model does on a split, and how long that will take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, align_labels
from eraser_hub.attribution.dataset import Split
from eraser_hub.attribution.erasure import full
from eraser_hub.attribution.instances import Instance, split_into_chunks
from eraser_hub.attribution.runner import Runner

from .data import examples, silent
from .recipe import Say

CHUNK = 64  # instances that are evaluated together
BATCH_SIZE = 32  # inputs of full length that go through a model together
KEPT_RESULTS = 100_000  # inputs whose results a reader keeps, so that erased texts' equal sentences are read once
QUIET_SECONDS = 10.0  # between two lines of progress


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Accuracy and macro F1 (over the labels that occur) on a text: full, or the human rationale alone."""

    accuracy: float
    macro_f1: float
    instances: int


def evaluate_on(
    model: Adapter, split: Split, *, rationale_only: bool, limit: int | None = None, seed: int = 1, say: Say = silent
) -> Evaluation:
    """How a trained model does on a split's full text or on its rationales alone.

    Args:
        limit: on so many instances, drawn by ``seed`` with each label's share; None: on all.
        say: called with how far it is and the time that is left, every ten seconds.
    """
    align_labels(model, split.label_names)
    how = {"rationale_only": rationale_only, "uses_query": model.uses_query}
    instances, gold = examples(split, limit=limit, seed=seed, **how)
    guesses: list[str] = []
    began = said = time.monotonic()
    for several in guesses_of(model, instances):
        guesses += several
        now = time.monotonic()
        if now - said > QUIET_SECONDS and len(guesses) < len(instances):
            left = (now - began) / len(guesses) * (len(instances) - len(guesses))
            say(f"evaluated {len(guesses)} of {len(instances)}, {in_words(left)} left")
            said = now
    return Evaluation(**figures_of(gold, guesses), instances=len(gold))


class TextProbabilities:
    """Asks a model for probabilities of whole texts."""

    def __init__(self, model: Adapter) -> None:
        self.model = model
        self._runner, self._kept = Runner(model, "remove", BATCH_SIZE), 0

    def of(self, instances: Sequence[Instance]) -> NDArray[np.float64]:
        """Shape (instances, labels), in the order of the model's ``label_names``."""
        if self._runner.counts.inputs - self._kept > KEPT_RESULTS:
            self._runner.forget()
            self._kept = self._runner.counts.inputs
        encoded = [self.model.encode(one) for one in instances]
        return self._runner.run(encoded, [full(number) for number in range(len(encoded))])


def guesses_of(model: Adapter, instances: Iterable[Instance]) -> Iterator[list[str]]:
    """The label that the model gives each instance, a chunk at a time."""
    probabilities = TextProbabilities(model)
    for _, chunk in split_into_chunks(map(model.seen, instances), CHUNK):
        yield [model.label_names[place] for place in probabilities.of(chunk).argmax(axis=1)]


def hits_of(model: Adapter, instances: Sequence[Instance]) -> list[bool]:
    """Whether the model tells each instance's label."""
    guesses = chain.from_iterable(guesses_of(model, instances))
    return [guess == one.label for guess, one in zip(guesses, instances, strict=True)]


def figures_of(gold: Sequence[str] | Sequence[int], guesses: Sequence[str] | Sequence[int]) -> dict[str, float]:
    """``accuracy``, and ``macro_f1`` over the labels that occur."""
    from sklearn.metrics import accuracy_score, f1_score

    macro_f1 = f1_score(gold, guesses, average="macro", zero_division=0)  # pyright: ignore[reportArgumentType]
    return {"accuracy": float(accuracy_score(gold, guesses)), "macro_f1": float(macro_f1)}


def in_words(seconds: float) -> str:
    """A duration: ``45 s``, ``3 min 20 s``, ``2 h 5 min``.

    >>> in_words(44.6), in_words(200), in_words(7500)
    ('45 s', '3 min 20 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
