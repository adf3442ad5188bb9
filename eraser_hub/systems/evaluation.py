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
from eraser_hub.schema.label_tasks import MULTI_LABEL, PRESENT, REGRESSION

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


@dataclass(frozen=True, slots=True)
class MultiLabelEvaluation(Evaluation):
    """F1 of the present labels, besides: over all pairs of a text and a label, and the mean of the labels' own."""

    label_micro_f1: float
    label_macro_f1: float

    def describe(self) -> str:
        """Return the figures as text."""
        return f"F1 of labels: micro {self.label_micro_f1:.3f}, macro {self.label_macro_f1:.3f}"


@dataclass(frozen=True, slots=True)
class RegressionEvaluation:
    """Error and correlation of a number, in the units of its gold values."""

    mean_absolute_error: float
    root_mean_squared_error: float
    pearson_r: float
    instances: int

    def describe(self) -> str:
        """Return the figures as text."""
        errors = f"mean absolute error {self.mean_absolute_error:.3f}, root of the mean squared error "
        return f"{errors}{self.root_mean_squared_error:.3f}, Pearson's r {self.pearson_r:.3f}"


def evaluate_on(
    model: Adapter,
    split: Split,
    *,
    rationale_only: bool,
    limit: int | None = None,
    seed: int = 1,
    say: Say = say_nothing,
) -> Evaluation | RegressionEvaluation:
    """Evaluate a model on the full texts of a split, or on its human rationales alone.

    Args:
        model: The model.
        split: The split; instances without label are skipped.
        rationale_only: Show the human rationales alone.
        limit: Number of instances, stratified by label; None for all.
        seed: Seed of that draw.
        say: Receives the progress and the time left, every ten seconds.
    """
    align_labels(model, split.label_names, task=split.label_task)
    options = {"rationale_only": rationale_only, "uses_query": model.uses_query or split.label_task == MULTI_LABEL}
    instances, gold = read_examples(split, limit=limit, seed=seed, **options)
    if split.label_task == REGRESSION:
        probabilities = TextProbabilities(model)
        chunks = split_into_chunks(map(model.seen, instances), CHUNK)
        values = np.concatenate([probabilities.compute(chunk)[:, 0] for _, chunk in chunks])
        return RegressionEvaluation(*compute_errors(np.asarray(list(map(float, gold))), values), len(gold))
    guesses: list[str] = []
    start = last_report = time.monotonic()
    for several in predict_labels(model, instances):
        guesses += several
        now = time.monotonic()
        if now - last_report > QUIET_SECONDS and len(guesses) < len(instances):
            seconds_left = (now - start) / len(guesses) * (len(instances) - len(guesses))
            say(f"evaluated {len(guesses)} of {len(instances)}, {format_duration(seconds_left)} left")
            last_report = now
    figures = compute_figures(gold, guesses)
    if split.label_task != MULTI_LABEL:
        return Evaluation(**figures, instances=len(gold))
    labels = [" ".join(one.query) for one in instances]
    return MultiLabelEvaluation(**figures, instances=len(gold), **compute_label_f1(labels, gold, guesses))


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


def compute_label_f1(labels: Sequence[str], gold: Sequence[str], guesses: Sequence[str]) -> dict[str, float]:
    """Return ``label_micro_f1`` and ``label_macro_f1`` of present labels; one that is nowhere counts as 0."""
    from sklearn.metrics import f1_score

    def score(rows: Sequence[int]) -> float:
        truth, guess = ([side[row] == PRESENT for row in rows] for side in (gold, guesses))
        return float(f1_score(truth, guess, zero_division=0))  # pyright: ignore[reportArgumentType]

    rows = {label: [row for row, name in enumerate(labels) if name == label] for label in sorted(set(labels))}
    macro = float(np.mean([score(own) for own in rows.values()]))
    return {"label_micro_f1": score(range(len(labels))), "label_macro_f1": macro}


def compute_errors(gold: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the mean absolute error, the root of the mean squared error, and Pearson's r; NaN for a constant side."""
    errors, spread = values - gold, gold.std() * values.std()
    covariance = float(np.mean((gold - gold.mean()) * (values - values.mean())))
    r = covariance / spread if spread > 0 else float("nan")
    return float(np.abs(errors).mean()), float(np.sqrt(np.square(errors).mean())), float(r)


def format_duration(seconds: float) -> str:
    """Return a duration as text: ``45 s``, ``3 min 20 s``, ``2 h 5 min``.

    >>> format_duration(44.6), format_duration(200), format_duration(7500)
    ('45 s', '3 min 20 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
