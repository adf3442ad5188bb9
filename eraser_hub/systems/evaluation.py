"""Evaluate trained models on a split, with progress."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, align_labels
from eraser_hub.attribution.dataset import Split
from eraser_hub.attribution.instances import Instance, split_into_chunks
from eraser_hub.attribution.runner import Runner

from .data import read_examples, say_nothing
from .train_config import Say

CHUNK = 64  # instances that are evaluated together
BATCH_SIZE = 32  # inputs of full length that go through a model together
KEPT_RESULTS = 100_000  # inputs whose results a reader keeps, so that erased texts' equal sentences are read once
QUIET_SECONDS = 10.0  # between two lines of progress


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Accuracy and macro F1 (over the labels that occur) on full texts or on human rationales alone."""

    accuracy: float
    macro_f1: float
    instances: int

    def describe(self) -> str:
        """Return the figures as text."""
        return f"accuracy {self.accuracy:.3f}, macro F1 {self.macro_f1:.3f}"


def evaluate_on(
    model: Adapter,
    split: Split,
    *,
    rationale_only: bool,
    limit: int | None = None,
    seed: int = 1,
    say: Say = say_nothing,
) -> Evaluation:
    """Evaluate a model on the full texts of a split, or on its human rationales alone.

    Args:
        model: The model.
        split: The split; instances without label are skipped.
        rationale_only: Show the human rationales alone.
        limit: Number of instances, stratified by label; None for all.
        seed: Seed of that draw.
        say: Receives the progress and the time left, every ten seconds.
    """
    align_labels(model, split.label_names)
    options = {"rationale_only": rationale_only, "uses_query": model.uses_query}
    instances, gold = read_examples(split, limit=limit, seed=seed, **options)
    guesses: list[str] = []
    start = last_report = time.monotonic()
    for several in predict_labels(model, instances):
        guesses += several
        now = time.monotonic()
        if now - last_report > QUIET_SECONDS and len(guesses) < len(instances):
            seconds_left = (now - start) / len(guesses) * (len(instances) - len(guesses))
            say(f"evaluated {len(guesses)} of {len(instances)}, {format_duration(seconds_left)} left")
            last_report = now
    return Evaluation(**compute_figures(gold, guesses), instances=len(gold))


class TextProbabilities:
    """Probabilities of whole texts by a model, computed in batches."""

    def __init__(self, model: Adapter) -> None:
        self.model = model
        self._runner, self._kept = Runner(model, "remove", BATCH_SIZE), 0

    def compute(self, instances: Sequence[Instance]) -> NDArray[np.float64]:
        """Return probabilities of shape (instances, labels), in the order of the model's ``label_names``."""
        if self._runner.counts.inputs - self._kept > KEPT_RESULTS:
            self._runner.forget()
            self._kept = self._runner.counts.inputs
        encoded = [self.model.encode(one) for one in instances]
        return self._runner.run(encoded)


def predict_labels(model: Adapter, instances: Iterable[Instance]) -> Iterator[list[str]]:
    """Yield the model's labels of the instances, one list per chunk."""
    probabilities = TextProbabilities(model)
    for _, chunk in split_into_chunks(map(model.seen, instances), CHUNK):
        yield [model.label_names[place] for place in probabilities.compute(chunk).argmax(axis=1)]


def compute_figures(gold: Sequence[str] | Sequence[int], guesses: Sequence[str] | Sequence[int]) -> dict[str, float]:
    """Return ``accuracy``, and ``macro_f1`` over the labels that occur."""
    from sklearn.metrics import accuracy_score, f1_score

    macro_f1 = f1_score(gold, guesses, average="macro", zero_division=0)  # pyright: ignore[reportArgumentType]
    return {"accuracy": float(accuracy_score(gold, guesses)), "macro_f1": float(macro_f1)}


def format_duration(seconds: float) -> str:
    """Return a duration as text: ``45 s``, ``3 min 20 s``, ``2 h 5 min``.

    >>> format_duration(44.6), format_duration(200), format_duration(7500)
    ('45 s', '3 min 20 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
