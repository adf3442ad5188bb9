"""Erased inputs through a model: equal ones once, in batches of similar length, halved when memory runs out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .models.inputs import ModelInput, is_out_of_memory, release_memory, to_array

if TYPE_CHECKING:
    from .method import Kept, Search
    from .models.model import Model

Result = TypeVar("Result")
MAX_WAITING = 500_000  # tokens of inputs that wait to be run together
MAX_FLAGS = 1 << 26  # flags of erased inputs that searches ask for together
SUM_TOLERANCE = 1e-3  # by which the sum of a row of probabilities may differ from 1 (half precision)


class Engine:
    """Sends the erased inputs of a chunk of texts through a model.

    Equal inputs, and equal windows of long ones, run once: :attr:`known` keeps their probabilities, so the rationale at
    100 % is the whole input's very result.

    Args:
        model: the model.
        readings: the instances as the model reads them.
        erase: remove, mask or pad.
        batch_size: inputs of full length at a time; of shorter ones there are more.
        on_passes: called with the number of forward passes after each batch.
        filler: the token that stands in a document of which nothing is left, by a paper's choice; "" for none.

    Attributes:
        inputs, passes: inputs that were asked for, forward passes that were made.
    """

    def __init__(
        self,
        model: Model,
        readings: Sequence[Any] = (),
        erase: str = "remove",
        batch_size: int = 32,
        on_passes: Callable[[int], None] | None = None,
        filler: str = "",
    ) -> None:
        self.model, self.readings, self.erase, self.batch_size = model, readings, erase, batch_size
        self.on_passes, self.filler = on_passes, filler
        self.inputs = self.passes = 0
        self.known: dict[Hashable, NDArray[np.float64]] = {}
        self._share = 1.0  # of the model's batches, less after memory ran out

    @contextmanager
    def reading(self, readings: Sequence[Any]) -> Iterator[None]:
        """Let a block ask for other texts; what is known of inputs stays."""
        before, self.readings = self.readings, readings
        try:
            yield
        finally:
            self.readings = before

    def run(self, searches: Sequence[Search[Result]], filled: bool = True) -> list[Result]:
        """Run the searches of texts side by side, so that short texts fill a batch too; return their results.

        Args:
            searches: one for each of the readings; each yields flags of the tokens that stay, bool (inputs, tokens),
                and is sent the probabilities of these inputs, float64 (inputs, labels).
            filled: whether :attr:`filler` stands in emptied documents.
        """
        results: dict[int, Result] = {}
        waiting: deque[tuple[int, Any]] = deque((number, None) for number in range(len(searches)))
        while waiting:
            asked: list[tuple[int, Kept]] = []
            flags = 0
            while waiting and flags < MAX_FLAGS:
                number, p = waiting.popleft()
                try:
                    asked.append((number, searches[number].send(p)))
                    flags += asked[-1][1].size
                except StopIteration as end:
                    results[number] = end.value
            waiting.extend((number, p) for (number, _), p in zip(asked, self.proba(asked, filled), strict=True))
        return [results[number] for number in range(len(searches))]

    def proba(self, asked: Iterable[tuple[int, Kept]], filled: bool = True) -> list[NDArray[np.float64]]:
        """Return the probabilities of erased inputs, float64 (inputs, labels) for each text that is asked about.

        Args:
            asked: the number of a text among the readings, and flags of the tokens that stay, bool (inputs, tokens).
            filled: whether :attr:`filler` stands in emptied documents.
        """
        keys: list[list[list[Hashable]]] = []  # per text, per erased variant: of its inputs
        waiting: dict[Hashable, tuple[ModelInput, int]] = {}
        tokens = 0
        for number, kept in asked:
            keys.append([])
            for variant in self._cut(number, kept, self.filler if filled else ""):
                keys[-1].append([one.key for one in variant])
                for one in variant:
                    if one.key not in self.known and one.key not in waiting:
                        waiting[one.key] = one, number
                        tokens += one.size
                if tokens > MAX_WAITING:
                    self._forward(waiting)
                    waiting, tokens = {}, 0
            self.inputs += len(keys[-1])
        self._forward(waiting)
        empty, known = np.zeros((0, len(self.model.label_names))), self.known
        return [
            np.stack([known[one[0]] if len(one) == 1 else np.mean([known[key] for key in one], axis=0) for one in rows])
            if rows
            else empty
            for rows in keys
        ]

    def proba_of_whole(self, readings: Sequence[Any]) -> NDArray[np.float64]:
        """Return the probabilities of whole texts, float64 (texts, labels)."""
        asked = ((number, np.ones((1, one.instance.bounds[-1]), bool)) for number, one in enumerate(readings))
        with self.reading(readings):
            return np.concatenate([np.zeros((0, len(self.model.label_names))), *self.proba(asked)])

    def _cut(self, number: int, kept: Kept, filler: str) -> Iterable[Sequence[ModelInput]]:
        """Yield the inputs of each erased variant; a paper's filler stands in documents of which nothing is left."""
        reading = self.readings[number]
        if not filler or self.erase != "remove":
            yield from self.model.cut(reading, kept, self.erase)
            return
        instance = reading.instance
        for flags in kept:
            if all(flags[start:end].any() for start, end in pairwise(instance.bounds)):
                yield from self.model.cut(reading, flags[None], self.erase)
                continue
            with self.model.uncounted():
                filled = self.model.read(instance.left(flags, filler))
            yield from self.model.cut(filled, np.ones((1, filled.instance.bounds[-1]), bool), self.erase)

    def _forward(self, waiting: dict[Hashable, tuple[ModelInput, int]]) -> None:
        """Run inputs, the longest first: what does not fit into memory shows at once."""
        inputs = sorted(waiting.values(), key=lambda pair: -pair[0].size)
        model, place = self.model, 0
        before: tuple[Any, list[tuple[ModelInput, int]]] | None = None
        while place < len(inputs):
            size = inputs[place][0].size
            rows = max(1, int(model.rows_for(size, self.batch_size) * self._share + 1e-9))
            batch = inputs[place : place + rows]
            if not model.pads:
                batch = [pair for pair in batch if pair[0].size == size]
            outputs, fits = None, True
            try:
                outputs = model.forward([one.data for one, _ in batch])
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                if len(batch) == 1:
                    message = f"out of memory with a single input of length {size}; a shorter `window` needs less"
                    raise DataError(message, instance=self._get_id(batch[0][1])) from error
                fits = False  # memory is given back below: here the error still holds the tensors of the failed pass
            if not fits:
                # a share and no number of rows: what was too long in eights may be short enough in hundreds
                self._share *= len(batch) // 2 / len(batch)
                model.notes.say(f"out of memory with {len(batch)} inputs at a time: halved to {len(batch) // 2}")
                release_memory()
                continue
            # a GPU works on this batch while the one before is read and the one after is made ready
            if before is not None:
                self._keep(*before)
            before = outputs, batch
            place += len(batch)
        if before is not None:
            self._keep(*before)

    def _keep(self, outputs: Any, batch: Sequence[tuple[ModelInput, int]]) -> None:
        """Keep a batch's checked probabilities, in the labels' order."""
        model = self.model
        ids = [number for _, number in batch]
        values = check_outputs(outputs, ids, len(model.label_names), model.description, self._get_id)
        values = values if model.order is None else values.take(model.order, axis=1)
        self.known.update(zip([one.key for one, _ in batch], values, strict=True))
        self.passes += len(batch)
        if self.on_passes is not None:
            self.on_passes(len(batch))

    def _get_id(self, number: int) -> str:
        return str(self.readings[number].instance.id)


def check_outputs(
    output: object, texts: Sequence[int], labels: int, whose: str, get_id: Callable[[int], str]
) -> NDArray[np.float64]:
    """Check a model's output for a batch and return it, float64 (len(texts), labels).

    Args:
        output: nested lists, any array, a data frame, a torch tensor.
        texts: the number of each input's text.
        labels: number of outputs.
        whose: the model, for the error.
        get_id: the id of a text, for the error.

    Raises:
        DataError: no array of numbers, wrong shape, another number of labels, NaN, infinite or negative values, rows
            that do not sum to 1.
    """
    rows = len(texts)

    def refuse(message: str, row: int = 0) -> NoReturn:
        raise DataError(f"{whose}: {message}", instance=get_id(texts[row]))

    try:
        values = to_array(output)
    except (TypeError, ValueError):
        refuse(f"expected an array of numbers (inputs, labels), found {type(output).__name__}")
    if values.ndim != 2 or len(values) != rows:
        refuse(f"expected probabilities of shape ({rows}, {labels}), found {values.shape}")
    columns = values.shape[-1]
    if columns != labels:
        refuse(f"expected {labels} labels as in the dataset, found {columns} in its output")
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        wrong = f"{rows - finite.sum()} of {rows} inputs of a batch"
        refuse(f"its output holds NaN or infinite values for {wrong}", int(finite.argmin()))
    sums, least = values.sum(axis=1), values.min(axis=1, initial=0)
    bad = (least < 0) | (np.abs(sums - 1) > SUM_TOLERANCE)
    if bad.any():
        row = int(bad.argmax())
        found = f"{least[row]:.4g}" if least[row] < 0 else f"a row that sums to {sums[row]:.4g}"
        refuse(f"expected non-negative probabilities that sum to 1, found {found}", row)
    return values
