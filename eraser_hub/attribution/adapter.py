"""What a model is here: the interface that every kind of model is put behind.

An adapter says how an instance is encoded once and how its erased variants are cut from that encoding, so that a
thousand erased inputs of one document cost a thousand forward passes and nothing beside. Which adapter a model gets:
:mod:`open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.papers.presets import Choices
from eraser_hub.records.errors import DataError

from .erasure import Erased
from .instances import Instance


def array_of(numbers: Any) -> NDArray[np.float64]:
    """Nested lists, any array, a data frame, or a torch tensor (which may carry a gradient or be bf16) as float64.

    Raises:
        TypeError, ValueError: no array of numbers.
    """
    plain = numbers.detach().cpu().double().numpy() if callable(getattr(numbers, "detach", None)) else numbers
    if isinstance(plain, (list, tuple)) and any(callable(getattr(one, "detach", None)) for one in plain):
        plain = [array_of(one) for one in plain]
    values = np.asarray(plain)
    if values.dtype.kind not in "biufO" or not values.ndim:
        raise TypeError(f"expected an array of numbers, found {type(numbers).__name__}")
    return values.astype(np.float64)


@dataclass(slots=True)
class View:
    """One erased input, ready for the model.

    Attributes:
        keys: for each unit bytes that are equal exactly when the model's inputs are; a document longer than the
            model's window has several units.
        sizes: length of each unit.
        data: what :meth:`Adapter.forward` reads.
    """

    keys: tuple[bytes, ...]
    sizes: tuple[int, ...]
    data: Any


@dataclass(frozen=True, slots=True)
class Selection:
    """The rationale that a model which selects by itself has for an instance.

    Attributes:
        positions: the selected tokens, ascending flat positions.
        sentences: for each document a score of each of its sentences; None where no sentences are scored.
    """

    positions: NDArray[np.int64]
    sentences: tuple[tuple[float, ...], ...] | None = None


@dataclass(slots=True)
class Notes:
    """What happened on the way that a reader of the results must know; counted, printed, written beside the results."""

    counts: dict[str, int] = field(default_factory=dict)
    maxima: dict[str, float] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    def largest(self, name: str, value: float) -> None:
        """Keep the largest of a value."""
        self.maxima[name] = max(value, self.maxima.get(name, value))

    def take(self) -> Notes:
        """What has gathered since the last call, and start anew (each chunk carries its own)."""
        notes = Notes(self.counts, self.maxima, self.words)
        self.counts, self.maxima, self.words = {}, {}, []
        return notes

    def add(self, other: Notes) -> None:
        """Add what another part of the work has gathered."""
        for name, number in other.counts.items():
            self.count(name, number)
        for name, value in other.maxima.items():
            self.largest(name, value)
        for sentence in other.words:
            self.say(sentence)

    def say(self, words: str) -> None:
        """Keep a sentence, once."""
        if words not in self.words:
            self.words.append(words)


class Encoded(ABC):
    """An instance as one model sees it; erased variants are cut from it."""

    instance: Instance

    def alike(self, positions: NDArray[np.int64]) -> bytes:
        """Bytes that are equal only for token positions whose erasure (or keeping) gives the same input.

        Cheaper than :meth:`view`, which is made once for each. By default the positions themselves.
        """
        return positions.tobytes()

    @abstractmethod
    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """The input with the tokens that are not ``kept`` erased as ``erase`` says (remove, mask or pad)."""

    def views(self, erased: Sequence[Erased], erase: str) -> Iterator[View]:
        """A view of each of several erased inputs of this instance, in order."""
        tokens = self.instance.bounds[-1]
        return (self.view(one.kept(tokens), erase) for one in erased)


class Adapter(ABC):
    """A model behind one interface.

    Attributes:
        label_names: class names in the dataset's order.
        order: column of the model's output for each of ``label_names``.
        uses_query: whether the query is part of the input.
        pads: whether inputs unlike in length may go together; False for a network that sees its padding.
        has_labels: whether the outputs are labels, which may be named and ordered otherwise than the dataset's.
        gives_answers: whether it answers with words of the text (:meth:`answer_text`) and has no probabilities of
            labels.
        selects: whether it decides by tokens that it selects itself, and says which (:meth:`selections`).
        provides: what methods may ask of it: ``probabilities`` (of erased inputs), ``gradients`` of p along its tokens,
            their ``embeddings``, ``attention``, the ``coefficients`` of a linear model, ``layers`` of a network whose
            modules can be hooked. A name of its own lets a method of its own ask for it.
        notes: counters and sentences for the report.
        choices: a paper's, of what no option says; set before :meth:`scores` is asked.
        outputs: probabilities known so far by their view's key, columns as in ``label_names``; set before
            :meth:`scores` is asked.
    """

    label_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] | None = None  # of the model's outputs in its own order, kept by align_labels
    order: NDArray[np.int64] | None = None
    uses_query = False
    pads = True
    provides: frozenset[str] = frozenset({"probabilities"})
    has_labels = True  # False: answers, which are the dataset's own, stand in the labels' place
    gives_answers = False
    has_embeddings = False  # of its tokens, along which gradients are taken
    has_states = False  # pooled ones, whose distance from training texts can be told
    selects = False
    choices = Choices()
    outputs: Mapping[bytes, NDArray[np.float64]] = {}
    description = ""

    def __init__(self) -> None:
        self.notes = Notes()

    def seen(self, instance: Instance) -> Instance:
        """The instance as the model sees it: without the query where it does not read one."""
        return instance if self.uses_query else instance.without_query()

    def batches(self, sizes: Sequence[int], batch_size: int) -> Iterator[list[int]]:
        """Numbers of units of these sizes in batches of like length, longest first; of one if the model does not pad.

        Args:
            batch_size: of units of full length.
        """
        order, start = sorted(range(len(sizes)), key=lambda number: -sizes[number]), 0
        while start < len(order):
            size = sizes[order[start]]
            batch = order[start : start + self.rows_for(size, batch_size)]
            if not self.pads:
                batch = [number for number in batch if sizes[number] == size]
            yield batch
            start += len(batch)

    @abstractmethod
    def encode(self, instance: Instance) -> Encoded:
        """Read an instance once."""

    @abstractmethod
    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        """Probabilities of (view, number of its unit), shape (len(units), classes), in the model's own order."""

    def start(self, units: Sequence[tuple[View, int]]) -> Any:
        """Begin :meth:`forward` and give what :meth:`finish` takes; on a GPU the next batch is made ready meanwhile."""
        return self.forward(units)

    def finish(self, outputs: Any) -> NDArray[np.float64]:
        """The probabilities of a batch, from what :meth:`start` gave."""
        probabilities: NDArray[np.float64] = outputs
        return probabilities

    def rows_for(self, size: int, batch_size: int) -> int:
        """How many units whose longest has ``size`` go through together."""
        return batch_size

    def supports(self, method: str) -> bool:
        """Return whether the model computes a method in :meth:`scores` beside those that need what it provides."""
        return False

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Token scores of a method that looks inside the model (gradients, attention, coefficients).

        Args:
            targets: the class to explain, as an index into ``label_names``.
            steps: integration steps of integrated gradients.
        """
        raise DataError(f"`method` {method}: {self.description} has nothing to compute it from", rule="unsupported")

    def ahead(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int | None]
    ) -> dict[bytes, NDArray[np.float64]]:
        """Outputs of whole inputs that come of the passes of :meth:`scores`, which is asked next, by their view's keys.

        Args:
            targets: the class to explain; None for the predicted one.

        Returns:
            {} where the method needs the prediction first, or its passes are not the model's.
        """
        return {}

    def states(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        """The pooled states of views' units by a model of :attr:`has_states`, float64 (len(units), width)."""
        raise DataError(f"{self.description} has no pooled state", argument="distribution_texts", rule="unsupported")

    def selections(self, encoded: Sequence[Encoded]) -> list[Selection]:
        """The rationale of each instance by a model of :attr:`selects`."""
        raise DataError(f"`rationales` model: {self.description} selects no tokens", rule="unsupported")

    def masked_elements(
        self, encoded: Encoded, target: int, keep: NDArray[np.float64], draws: int, random: np.random.Generator
    ) -> NDArray[np.float64]:
        """p of a label where each number of a token's embedding stays by chance, shape (draws,).

        Args:
            keep: for each token the probability that a number of its embedding stays; the others are 0.
        """
        words = f"`soft_masks` elements: {self.description} has no embeddings of tokens to mask"
        raise DataError(words, rule="unsupported")

    def answer_text(self, encoded: Encoded) -> tuple[str, float]:
        """The words that a model of :attr:`gives_answers` answers with, and their probability."""
        raise DataError(f"{self.description} gives labels, no answers", rule="unsupported")

    def column(self, target: int) -> int:
        """The model's own output column of a label."""
        return int(self.order[target]) if self.order is not None else target
