"""The interface that every kind of model is put behind.

An adapter says how an instance is encoded once and how its erased variants are cut from that encoding, so that a
thousand erased inputs of one document cost a thousand forward passes and nothing beside. Which adapter a model gets:
:mod:`open`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.papers.presets import Choices
from eraser_hub.records.errors import DataError, UsageError

from .erasure import Erased
from .instances import Instance, make_text_instance

Item = TypeVar("Item")
Result = TypeVar("Result")
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "alloc_failed",
    "could not create a memory object",
)


class ProbabilityModel(Protocol):
    """The smallest interface of a model."""

    def predict_proba(self, token_lists: list[list[str]]) -> NDArray[np.float64]:
        """Return probabilities, shape (token lists, classes), each row summing to 1."""
        ...


def to_array(numbers: Any) -> NDArray[np.float64]:
    """Convert nested lists, an array, a data frame or a torch tensor (on any device, of any type) to float64.

    Raises:
        TypeError, ValueError: no array of numbers.
    """
    plain = numbers.detach().cpu().double().numpy() if callable(getattr(numbers, "detach", None)) else numbers
    if isinstance(plain, (list, tuple)) and any(callable(getattr(one, "detach", None)) for one in plain):
        plain = [to_array(one) for one in plain]
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
        data: the input of :meth:`Adapter.forward`.
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
    """Counters, maxima and messages for the reader of the results; printed, and written beside the results."""

    counts: dict[str, int] = field(default_factory=dict)
    maxima: dict[str, float] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    def largest(self, name: str, value: float) -> None:
        """Keep the largest of a value."""
        self.maxima[name] = max(value, self.maxima.get(name, value))

    def take(self) -> Notes:
        """Return the notes since the last call and start anew: each chunk carries its own."""
        notes = Notes(self.counts, self.maxima, self.messages)
        self.counts, self.maxima, self.messages = {}, {}, []
        return notes

    def add(self, other: Notes) -> None:
        """Add what another part of the work has gathered."""
        for name, number in other.counts.items():
            self.count(name, number)
        for name, value in other.maxima.items():
            self.largest(name, value)
        for message in other.messages:
            self.add_message(message)

    def add_message(self, message: str) -> None:
        """Keep a message, once."""
        if message not in self.messages:
            self.messages.append(message)


class Encoded(ABC):
    """An instance as one model sees it; erased variants are cut from it."""

    instance: Instance

    def alike(self, positions: NDArray[np.int64]) -> bytes:
        """Return bytes that are equal only for token positions whose erasure (or keeping) gives the same input.

        Cheaper than :meth:`view`, which is made once for each. By default the positions themselves.
        """
        return positions.tobytes()

    @abstractmethod
    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """Return the input with the tokens that are not ``kept`` erased by the operator (remove, mask or pad)."""

    def views(self, erased: Sequence[Erased], erase: str) -> Iterator[View]:
        """Yield a view of each of several erased inputs of this instance, in order."""
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
        selects: whether it decides by tokens that it selects itself (:meth:`selections`).
        provides: capabilities that methods need: ``probabilities`` (of erased inputs), ``gradients`` of p along tokens,
            their ``embeddings``, ``attention``, the ``coefficients`` of a
            linear model, ``layers`` of a network whose modules can be hooked. A name of its own lets a method of its
            own ask for it.
        notes: counters and sentences for the report.
        choices: choices of a paper without an option; set before :meth:`scores` is called.
        outputs: probabilities known so far by their view's key, columns as in ``label_names``; set before
            :meth:`scores` is called.
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
    selects = False
    prompted = False  # a language model that answers a prompt
    choices = Choices()
    outputs: Mapping[bytes, NDArray[np.float64]] = {}
    description = ""

    def __init__(self) -> None:
        self.notes = Notes()

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Leave the notes of a block out: notes count the explained texts alone, each once."""
        notes, self.notes = self.notes, Notes()
        try:
            yield
        finally:
            self.notes = notes

    def seen(self, instance: Instance) -> Instance:
        """Return the instance as the model sees it: without the query if the model does not read one."""
        return instance if self.uses_query else replace(instance, query=())

    def batches(self, sizes: Sequence[int], batch_size: int) -> Iterator[list[int]]:
        """Yield the numbers of units in batches of similar length, longest first.

        Args:
            sizes: length of each unit.
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

    def map_batches(
        self, work: Callable[[list[Item]], list[Result]], items: Sequence[Item], sizes: Sequence[int], batch_size: int
    ) -> list[Result]:
        """Return the results of work on batches of items (`batches`, `run_in_halves`), in the order of the items."""
        results: dict[int, Result] = {}
        for batch in self.batches(sizes, batch_size):
            values = run_in_halves(work, [items[number] for number in batch], self.notes)
            results.update(zip(batch, values, strict=True))
        return [results[number] for number in range(len(items))]

    def average_units(
        self, work: Callable[[list[tuple[View, int]]], Any], views: Sequence[View], batch_size: int
    ) -> NDArray[np.float64]:
        """Return the mean over each view's units of the rows that work gives for units, float64 (len(views), width)."""
        units = [(view, unit) for view in views for unit in range(len(view.keys))]
        sizes = [view.sizes[unit] for view, unit in units]
        rows = np.stack(self.map_batches(lambda some: list(to_array(work(some))), units, sizes, batch_size))
        counts = [len(view.keys) for view in views]
        sums = np.zeros((len(views), rows.shape[1]))
        np.add.at(sums, np.repeat(np.arange(len(views)), counts), rows)
        return np.asarray(sums / np.asarray(counts)[:, None])

    def predict_proba(
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
            float64 (texts, labels), in the order of :attr:`label_names`; of a text of several windows their mean.

        Raises:
            DataError: other numbers of texts and queries; the model gives no probabilities.
        """
        if isinstance(texts, str):
            raise DataError("expected a list of texts, found a string: put it into a list", field="texts")
        if len(queries) not in (0, len(texts)):
            message = f"expected a query for each of {len(texts)} texts, found {len(queries)}"
            raise DataError(message, field="queries")
        if not len(texts):
            return np.zeros((0, len(self.label_names)))
        pairs = zip(texts, queries or [()] * len(texts), strict=True)
        encoded = [self.encode(make_text_instance(str(number), *pair)) for number, pair in enumerate(pairs)]
        views = [one.view(np.ones(one.instance.bounds[-1], bool), "remove") for one in encoded]
        means = self.average_units(self.forward, views, batch_size)
        return means if self.order is None else means[:, self.order]

    @abstractmethod
    def encode(self, instance: Instance) -> Encoded:
        """Read an instance once."""

    @abstractmethod
    def forward(self, units: Sequence[tuple[View, int]]) -> Any:
        """Return probabilities of (view, number of its unit), shape (len(units), classes), in the model's own order.

        They are an array, or a tensor: while a GPU computes it the next batch is made ready.
        """

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return the number of units in a batch whose longest unit has ``size``."""
        return batch_size

    def supports(self, method: str) -> bool:
        """Return True if :meth:`scores` computes a method whose needs the model does not provide."""
        return False

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Compute token scores by a method that looks inside the model (gradients, attention, coefficients).

        Args:
            method: name of the method.
            encoded: the instances as the model sees them.
            targets: the class to explain, as an index into ``label_names``.
            steps: integration steps of integrated gradients.
        """
        raise DataError(f"`method` {method}: {self.description} has nothing to compute it from")

    def ahead(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int | None]
    ) -> dict[bytes, NDArray[np.float64]]:
        """Return the outputs of whole inputs that the passes of the next :meth:`scores` give, by their view's keys.

        Args:
            method: name of the method.
            encoded: the instances as the model sees them.
            targets: the class to explain; None for the predicted one.

        Returns:
            {} where the method needs the prediction first, or its passes are not the model's.
        """
        return {}

    def selections(self, encoded: Sequence[Encoded]) -> list[Selection]:
        """Return the rationale of each instance by a model of :attr:`selects`."""
        raise DataError(f"`rationales` model: {self.description} selects no tokens")

    def masked_elements(
        self, encoded: Encoded, target: int, keep: NDArray[np.float64], draws: int, random: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return p of a label with elements of token embeddings masked at random, shape (draws,).

        Args:
            encoded: the instances as the model sees them.
            target: the explained label, as an index.
            keep: for each token the probability that a number of its embedding stays; the others are 0.
            draws: number of draws.
            random: random generator.
        """
        message = f"`measure` soft(masks=elements): {self.description} has no embeddings of tokens to mask"
        raise DataError(message)

    def answer_text(self, encoded: Encoded) -> tuple[str, float]:
        """Return the answer of a model of :attr:`gives_answers`, and its probability."""
        raise DataError(f"{self.description} gives labels, no answers")

    def column(self, target: int) -> int:
        """Return the model's own output column of a label."""
        return int(self.order[target]) if self.order is not None else target


def align_labels(adapter: Adapter, dataset_names: Sequence[str], stated: Sequence[str] = ()) -> None:
    """Bring a model's labels into the dataset's order, by name.

    Args:
        adapter: the model; its order and label names are set.
        dataset_names: the dataset's ClassLabel names; () where it has none, then the model's own order stays.
        stated: names stated by hand for the model's outputs (the model's setting ``labels``).

    Raises:
        DataError: another number of labels, names that are not the dataset's, or stated names in another order than the
            model's own.
    """
    if adapter.output_names is None:
        adapter.output_names = adapter.label_names
    names = tuple(stated) or adapter.output_names
    if len(set(names)) < len(names):
        message = f"{adapter.description}: expected different labels, found {', '.join(names[:10])}"
        raise DataError(message)
    if not names and not dataset_names and adapter.has_labels:
        raise UsageError(
            f"{adapter.description} does not name its labels, nor does the dataset: state them, in the model's order, "
            "with `label_names`, or with the model: NAME(labels=[A,B])",
            argument="label_names",
        )
    if adapter.output_names and len(names) != len(adapter.output_names):
        message = f"expected {len(adapter.output_names)} names (the model's outputs), found {len(names)}"
        raise DataError(message, argument="labels")
    if stated and _contradict(stated, adapter.output_names):
        own = ", ".join(adapter.output_names)
        message = f"expected the order of the model's own names, {own}, found {', '.join(stated)}"
        message += ": leave them out, or mend the model's names where they are wrong"
        raise DataError(message, argument="labels")
    if dataset_names:
        adapter.order = _order(adapter, names, dataset_names)
        adapter.label_names = tuple(dataset_names)
    else:
        adapter.order = np.arange(len(names)) if names else None
        adapter.label_names = names


def _contradict(stated: Sequence[str], own: Sequence[str]) -> bool:
    """Return True if a stated name is the model's own name of another output, or the beginning of it, or begins so.

    ``LABEL_0`` and its like are no names.
    """
    if _are_generic(own):
        return False
    folded = [name.casefold() for name in own]
    for column, name in enumerate(map(str.casefold, stated)):
        fitting = [at for at, other in enumerate(folded) if other == name] or [
            at
            for at, other in enumerate(folded)
            if min(len(name), len(other)) > 2 and name[: len(other)] == other[: len(name)]
        ]
        if len(fitting) == 1 and fitting != [column]:
            return True
    return False


def _are_generic(names: Sequence[str]) -> bool:
    return all(name.upper() == f"LABEL_{column}" for column, name in enumerate(names))


def _order(adapter: Adapter, names: Sequence[str], dataset_names: Sequence[str]) -> NDArray[np.int64]:
    """Return the output column of each of the dataset's labels."""
    listing, in_order = ", ".join(dataset_names), np.arange(len(dataset_names))
    if not names:
        if adapter.has_labels:
            adapter.notes.add_message(f"the model does not name its labels: taken in the dataset's order {listing}")
        return in_order
    if len(names) != len(dataset_names):
        raise DataError(
            f"{adapter.description}: expected {len(dataset_names)} labels ({listing}), "
            f"found {len(names)} ({', '.join(names[:10])})",
        )
    columns = {name.casefold(): column for column, name in enumerate(names)}
    if sorted(columns) == sorted(name.casefold() for name in dataset_names):
        order = np.asarray([columns[name.casefold()] for name in dataset_names])
        if (order != in_order).any():
            adapter.notes.add_message(
                f"the model's labels stand in another order ({', '.join(names)}): matched by name to {listing}"
            )
        return order
    if _are_generic(names):
        adapter.notes.add_message(
            f"the model names its labels {names[0]}, ..: taken in the dataset's order {listing}; "
            "say `labels` if it is another"
        )
        return in_order
    raise DataError(
        f"{adapter.description}: expected the labels {listing}, found {', '.join(names[:10])}; "
        "state the dataset's name of each output, in the model's order, with `labels`",
    )


def run_in_halves(
    work: Callable[[list[Item]], list[Result]], items: Sequence[Item], notes: Notes, all_of: bool = True
) -> list[Result]:
    """Return ``work(items)``; where memory runs out, work in halves and note it.

    Args:
        work: function of a list of items.
        items: inputs of the work.
        notes: notes, to which halving is added.
        all_of: the halves' results one after the other; False: the first half's alone, for work whose result does not
            depend on how many items go together.

    Raises:
        DataError: out of memory with a single item.
    """
    try:
        return work(list(items))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        if len(items) == 1:
            message = "out of memory with a single input; a shorter `window` needs less"
            raise DataError(message) from error
    half = len(items) // 2
    notes.add_message(f"out of memory with {len(items)} inputs at a time: halved to {half}")
    release_memory()
    results = run_in_halves(work, items[:half], notes, all_of)
    return [*results, *run_in_halves(work, items[half:], notes)] if all_of else results


def is_out_of_memory(error: BaseException) -> bool:
    """True for Python's MemoryError and for torch's out-of-memory errors on any device.

    torch.cuda.OutOfMemoryError, the processor's allocator, cuBLAS and oneDNN each have their own words.
    """
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(phrase in words for phrase in OUT_OF_MEMORY)


def release_memory() -> None:
    """Give cached device memory back after an out-of-memory error."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
