"""The interface that every kind of model has.

A model reads an instance once, and cuts its erased variants from what it read, so that a thousand erased inputs of a
document cost a thousand forward passes and little beside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.engine import Engine
from eraser_hub.attribution.instances import Instance, make_text_instance
from eraser_hub.papers.presets import Choices
from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from .inputs import ModelInput, Notes, run_in_halves

if TYPE_CHECKING:
    from eraser_hub.attribution.method import Method, Scores
    from eraser_hub.attribution.methods._captum import GradientMethod
    from eraser_hub.attribution.text import Text

Item = TypeVar("Item")
Result = TypeVar("Result")
FULL_LENGTH_ROWS = 16  # half as many as forward passes take: the backward pass keeps every layer's values


class Selection(NamedTuple):
    """The rationale that a model selects by itself.

    Attributes:
        positions: the selected tokens, ascending flat positions.
        sentences: per document a score of each sentence; None where no sentences are scored.
    """

    positions: NDArray[np.int64]
    sentences: tuple[tuple[float, ...], ...] | None = None


class Model(ABC):
    """A model behind one interface.

    Attributes:
        label_names: the labels; in the dataset's order once :func:`labels.align_labels` was called.
        order: the output column of each label; None: the labels' own order.
        provides: what methods may ask for: ``probabilities`` (of erased inputs), ``gradients``, ``layers`` of a network
            whose modules can be hooked (DeepLIFT), ``attention``, ``coefficients``. A name of its own lets a method of
            its own ask for it.
        uses_query: whether the query is part of the input.
        pads: whether inputs of different length may share a batch; False for a network that sees its padding.
        has_labels: whether its outputs are labels, which it may name and order otherwise than the dataset.
        prompted: whether it is a language model that answers a prompt.
        answers: whether it answers with words of the text (:meth:`answer`) and has no probabilities of labels.
        selects: whether it decides by tokens that it selects itself (:meth:`select`).
        embeds: whether it embeds its tokens: papers' presets choose their method by that.
        choices: choices of a paper; set before anything is computed.
        notes: counters and messages for the report.
        description: one noun for messages.
        details: what a run's signature says of the model beside its name, such as its prompt.
    """

    label_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] | None = None  # as the model orders them, kept by `align_labels`
    order: NDArray[np.int64] | None = None
    provides: frozenset[str] = frozenset({"probabilities"})
    uses_query: bool = False
    pads: bool = True
    has_labels: ClassVar[bool] = True
    prompted: ClassVar[bool] = False
    answers: ClassVar[bool] = False
    selects: bool = False
    embeds: bool = False
    description: str = ""
    details: str = ""

    def __init__(self) -> None:
        self.notes, self.choices = Notes(), Choices()

    @abstractmethod
    def read(self, instance: Instance) -> Any:
        """Read an instance once; what comes back is what the other methods take as a reading."""

    @abstractmethod
    def cut(self, reading: Any, kept: NDArray[np.bool_], erase: str) -> Iterable[Sequence[ModelInput]]:
        """Yield the inputs of each of several erased variants of an instance.

        Args:
            reading: of :meth:`read`.
            kept: flags of the tokens that stay, bool (variants, tokens).
            erase: what happens to the others: remove, mask or pad.

        Returns:
            For each variant one input, or several where a text is longer than the model's window: then the mean of
            their probabilities counts.
        """

    @abstractmethod
    def forward(self, inputs: Sequence[Any]) -> Any:
        """Return the probabilities of inputs' data, (inputs, outputs), columns in the model's own order.

        An array or a tensor: while a GPU computes it, the next batch is made ready.
        """

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return how many inputs of this size make a batch, where ``batch_size`` of full length do."""
        return batch_size

    def supports(self, method: type[Method]) -> bool:
        """Return True if the model provides what a method needs."""
        return set(method.needs) <= self.provides

    def gradients(self, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
        """Return token scores by a gradient method, which gets this network's embedded inputs in batches."""
        raise DataError(f"{self.description} has no gradients", argument="method")

    def attention(self, texts: Sequence[Text]) -> list[Scores]:
        """Return the attention to each token."""
        raise DataError(f"{self.description} has no attention", argument="method")

    def coefficients(self, texts: Sequence[Text]) -> list[Scores]:
        """Return each token's share of a linear model's weighted features."""
        raise DataError(f"{self.description} has no coefficients", argument="method")

    def select(self, readings: Sequence[Any]) -> list[Selection]:
        """Return the rationales that the model selects by itself."""
        raise DataError(f"{self.description} selects no tokens", argument="rationales")

    def answer(self, reading: Any) -> tuple[str, float]:
        """Return the words with which the model answers, and their probability."""
        raise DataError(f"{self.description} gives labels, no answers")

    def mask_elements(
        self, reading: Any, label: int, keep: NDArray[np.float64], draws: int, random: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return p of a label, (draws,), where each number of a token's embedding stays with its chance ``keep``."""
        message = f"soft(masks=elements): {self.description} has no embeddings of tokens to mask"
        raise DataError(message, argument="measure")

    def column(self, label: int) -> int:
        """Return the model's own output column of a label."""
        return int(self.order[label]) if self.order is not None else label

    def see(self, instance: Instance) -> Instance:
        """Return the instance as the model sees it: without a query that it does not read."""
        return instance if self.uses_query else replace(instance, query=())

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Leave the notes of a block out: they count explained texts alone, each once."""
        notes, self.notes = self.notes, Notes()
        try:
            yield
        finally:
            self.notes = notes

    def proba(
        self,
        texts: Sequence[str | Sequence[str]],
        queries: Sequence[str | Sequence[str]] = (),
        batch_size: int = 32,
    ) -> NDArray[np.float64]:
        """Return the probabilities of whole texts, as LIME, SHAP and other libraries call a model.

        Args:
            texts: each a string, cut at U+0020 and line ends, or a list of tokens.
            queries: one for each text; () for none.
            batch_size: texts of full length at a time.

        Returns:
            float64 (texts, labels), columns in the order of :attr:`label_names`.

        Raises:
            DataError: a string in place of a list; other numbers of texts and queries; an output that holds no
                probabilities.
        """
        if isinstance(texts, str):
            raise DataError("expected a list of texts, found a string: put it into a list", argument="texts")
        if len(queries) not in (0, len(texts)):
            message = f"expected a query for each of {len(texts)} texts, found {len(queries)}"
            raise DataError(message, argument="queries")
        pairs = zip(texts, queries or [()] * len(texts), strict=True)
        readings = [self.read(make_text_instance(str(number), *pair)) for number, pair in enumerate(pairs)]
        return Engine(self, batch_size=batch_size).proba_of_whole(readings)

    def map_batches(
        self, work: Callable[[list[Item]], Sequence[Result]], items: Sequence[Item], sizes: Sequence[int]
    ) -> list[Result]:
        """Return the results of work on batches of similar length (:meth:`rows_for`), in the order of the items.

        Where memory runs out a batch is worked on in halves, which is noted.
        """
        order, results, start = sorted(range(len(items)), key=lambda at: -sizes[at]), dict[int, Result](), 0
        while start < len(order):
            size = sizes[order[start]]
            batch = order[start : start + max(1, self.rows_for(size, FULL_LENGTH_ROWS))]
            batch = batch if self.pads else [at for at in batch if sizes[at] == size]
            results.update(zip(batch, run_in_halves(work, [items[at] for at in batch], self.notes), strict=True))
            start += len(batch)
        return [results[at] for at in range(len(items))]

    def map_inputs(
        self,
        method: GradientMethod,
        work: Callable[[list[Item]], Sequence[Result]],
        items: Sequence[Item],
        sizes: Sequence[int],
    ) -> list[Result]:
        """Return the results of work that attributes batches of a gradient method's inputs, see :meth:`map_batches`."""
        need("captum")
        if method.one_by_one:
            return [result for item in items for result in run_in_halves(work, [item], self.notes)]
        return self.map_batches(work, items, sizes)
