"""Inputs of models, notes on them, and work that is halved where memory runs out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")
OUT_OF_MEMORY = (
    "out of memory", "can't allocate memory", "not enough memory", "alloc_failed", "could not create a memory object",
)  # fmt: skip


class ModelInput(NamedTuple):
    """One input of a model, ready to run.

    Attributes:
        key: equal exactly when the inputs are equal for the model.
        size: its length; inputs of similar length share a batch.
        data: what :meth:`Model.forward` takes.
    """

    key: Hashable
    size: int
    data: Any


@dataclass(slots=True)
class Notes:
    """Counters, maxima and messages for the reader of the results; printed, and written beside them."""

    counts: dict[str, int] = field(default_factory=dict)
    maxima: dict[str, float] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    def keep_largest(self, name: str, value: float) -> None:
        """Keep the largest of a value."""
        self.maxima[name] = max(value, self.maxima.get(name, value))

    def say(self, message: str) -> None:
        """Keep a message, once."""
        if message not in self.messages:
            self.messages.append(message)

    def take(self) -> Notes:
        """Return the notes since the last call and start anew."""
        notes = Notes(self.counts, self.maxima, self.messages)
        self.counts, self.maxima, self.messages = {}, {}, []
        return notes

    def add(self, other: Notes) -> None:
        """Add other notes."""
        for name, number in other.counts.items():
            self.count(name, number)
        for name, value in other.maxima.items():
            self.keep_largest(name, value)
        for message in other.messages:
            self.say(message)


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


def run_in_halves(work: Callable[[list[Item]], Sequence[Result]], items: list[Item], notes: Notes) -> list[Result]:
    """Return ``work(items)``; where memory runs out, the halves' results one after the other, which is noted.

    Raises:
        DataError: out of memory with a single item.
    """
    try:
        return list(work(items))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        if len(items) == 1:
            raise DataError("out of memory with a single input; a shorter `window` needs less") from error
    half = len(items) // 2
    notes.say(f"out of memory with {len(items)} inputs at a time: halved to {half}")
    release_memory()
    return [*run_in_halves(work, items[:half], notes), *run_in_halves(work, items[half:], notes)]


def is_out_of_memory(error: BaseException) -> bool:
    """Return True for Python's MemoryError, and for torch's out-of-memory errors on any device."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(phrase in words for phrase in OUT_OF_MEMORY)


def release_memory() -> None:
    """Give cached device memory back after an out-of-memory error."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
