"""Erased inputs through a model: equal ones once, in batches of like length, halved when memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .adapter import Adapter, Encoded, Notes, View, check_probabilities, numbers_of
from .erasure import Erased

Item = TypeVar("Item")
Found = TypeVar("Found")
OUT_OF_MEMORY = (
    "out of memory", "can't allocate memory", "not enough memory", "alloc_failed", "could not create a memory object",
)  # fmt: skip
KEPT_SIZE = 500_000  # tokens of inputs that are kept between finding equal ones and running them


@dataclass(slots=True)
class Counts:
    """How much work was done: inputs asked for, forward passes made."""

    inputs: int = 0
    passes: int = 0
    batches: int = 0
    halved: int = 0


@dataclass(slots=True)
class _Waiting:
    """A unit that has to run: one of the windows of an erased input, which is made again where it was not kept."""

    erased: Erased
    number: int
    size: int
    view: View | None


@dataclass(frozen=True, slots=True)
class _Started:
    value: Any


class Runner:
    """Sends erased inputs of a chunk of instances through a model.

    Equal units (inputs, or windows of long ones) run once: results are kept by the unit's content until :meth:`forget`,
    so the rationale at 100 % is the full input's very result, and of a long text with one token masked the windows
    without that token are not computed again. Beside the batch at hand, inputs of :data:`KEPT_SIZE` tokens in all wait
    ready made; what else waits is token positions.

    Args:
        model: the adapter.
        erase: remove, mask or pad.
        batch_size: forward passes at a time for inputs of full length; shorter inputs go in larger batches.
        on_passes: called with the number of forward passes after each batch (progress).
    """

    def __init__(
        self, model: Adapter, erase: str, batch_size: int, on_passes: Callable[[int], None] | None = None
    ) -> None:
        self.model, self.erase, self.batch_size = model, erase, batch_size
        self.counts = Counts()
        self._on_passes = on_passes
        self._known: dict[bytes, NDArray[np.float64]] = {}
        self._share = 1.0  # of the model's batches, less after memory ran out

    def forget(self) -> None:
        """Drop the kept results; called between chunks, so that memory does not grow with the dataset."""
        self._known.clear()

    def run(self, encoded: Sequence[Encoded], erased: Sequence[Erased]) -> NDArray[np.float64]:
        """Probabilities of each erased input, shape (len(erased), classes), columns in the dataset's label order.

        Those of an input of several windows are the mean of its windows'.
        """
        number_of: dict[tuple[int, bool, bytes], int] = {}
        different: list[Erased] = []
        numbers: list[int] = []
        for one in erased:
            place = (one.instance, one.keep, encoded[one.instance].alike(one.positions))
            number = number_of.setdefault(place, len(different))
            if number == len(different):
                different.append(one)
            numbers.append(number)
        keys: list[tuple[bytes, ...]] = [()] * len(different)
        waiting: dict[bytes, _Waiting] = {}
        kept_size = 0
        for number, view in self._views(encoded, different):
            keys[number] = view.keys
            kept_size += sum(view.sizes)
            kept = view if kept_size <= KEPT_SIZE else None
            for unit, (key, size) in enumerate(zip(view.keys, view.sizes, strict=True)):
                if key not in self._known and key not in waiting:
                    waiting[key] = _Waiting(different[number], unit, size, kept)
        self.counts.inputs += len(erased)
        self._run(encoded, waiting)
        values = [
            self._known[parts[0]] if len(parts) == 1 else np.mean([self._known[key] for key in parts], axis=0)
            for parts in keys
        ]
        return np.stack(values)[numbers] if values else np.zeros((0, len(self.model.label_names)))

    def _views(self, encoded: Sequence[Encoded], erased: Sequence[Erased]) -> Iterator[tuple[int, View]]:
        """Numbers and views of erased inputs, those of one instance together."""
        of: dict[int, list[int]] = {}
        for number, one in enumerate(erased):
            of.setdefault(one.instance, []).append(number)
        for instance, members in of.items():
            yield from zip(members, encoded[instance].views([erased[n] for n in members], self.erase), strict=True)

    def _run(self, encoded: Sequence[Encoded], waiting: dict[bytes, _Waiting]) -> None:
        # longest first: what does not fit into memory shows at once, and what follows is shorter
        units = sorted(waiting.items(), key=lambda unit: -unit[1].size)
        place = 0
        under_way: tuple[_Started, list[tuple[bytes, _Waiting]], list[str]] | None = None
        while place < len(units):
            most = self.model.rows_for(units[place][1].size, self.batch_size)
            batch = units[place : place + max(1, int(most * self._share + 1e-9))]
            if not self.model.pads:
                batch = [unit for unit in batch if unit[1].size == batch[0][1].size]
            again = {id(one.erased): one.erased for _, one in batch if one.view is None}
            names = list(again)
            made = {names[number]: view for number, view in self._views(encoded, list(again.values()))}
            ready = [(one.view or made[id(one.erased)], one.number) for _, one in batch]
            ids = [encoded[one.erased.instance].instance.id for _, one in batch]
            started = self._started(ready, ids)
            if started is None:
                # a share and no number of rows: what was too long in eights may be short enough in hundreds
                self._share = len(batch) // 2 / most
                self.counts.halved += 1
                self.model.notes.say(f"out of memory with {len(batch)} inputs at a time: halved to {len(batch) // 2}")
                release_memory()
                continue
            # a GPU works on this batch while the one before is read and the one after is made ready
            if under_way is not None:
                self._finish(*under_way)
            under_way = started, batch, ids
            place += len(batch)
        if under_way is not None:
            self._finish(*under_way)

    def _started(self, batch: list[tuple[View, int]], ids: Sequence[str]) -> _Started | None:
        """What the model finishes later; None when memory ran out and the batch must be halved."""
        try:
            return _Started(self.model.start(batch))
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if len(batch) == 1:
                raise DataError(
                    f"out of memory with a single input of length {max(batch[0][0].sizes)}; a shorter --window needs less",
                    instance=ids[0],
                ) from error
            # memory is given back by the caller: here the error still holds the tensors of the failed pass
            return None

    def _finish(self, started: _Started, batch: Sequence[tuple[bytes, _Waiting]], ids: Sequence[str]) -> None:
        """Keep a batch's checked probabilities, in the dataset's order."""
        raw = self.model.finish(started.value)
        names = self.model.label_names
        try:
            values = check_probabilities(raw, len(batch), len(names), self.model.description)
        except DataError as error:
            error.instance = ids[first_bad_row(raw)]
            raise
        self.counts.passes += len(batch)
        self.counts.batches += 1
        if self._on_passes is not None:
            self._on_passes(len(batch))
        ordered = values[:, self.model.order] if self.model.order is not None else values
        self._known.update(zip((key for key, _ in batch), ordered, strict=True))


def first_bad_row(values: object) -> int:
    """The first row of a refused output that is not a probability distribution (0 when the shape itself is wrong)."""
    try:
        rows = numbers_of(values, "")
    except DataError:
        return 0
    if rows.ndim != 2 or not len(rows):
        return 0
    good = np.isfinite(rows).all(axis=1) & (rows >= 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) <= 1e-3)
    return int(np.argmin(good))


def in_halves(
    work: Callable[[list[Item]], list[Found]], items: Sequence[Item], notes: Notes, all_of: bool = True
) -> list[Found]:
    """``work(items)``, in halves as often as memory runs out; says so in ``notes``.

    Args:
        all_of: the halves' results one after the other; False: the first half's alone, for work whose result does not
            depend on how many items go together.

    Raises:
        DataError: out of memory with a single item.
    """
    try:
        return work(list(items))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        if len(items) == 1:
            raise DataError("out of memory with a single input; a shorter --window needs less") from error
    half = len(items) // 2
    notes.say(f"out of memory with {len(items)} inputs at a time: halved to {half}")
    release_memory()
    found = in_halves(work, items[:half], notes, all_of)
    return [*found, *in_halves(work, items[half:], notes)] if all_of else found


def out_of_memory(error: BaseException) -> bool:
    """True for Python's MemoryError and for torch's out-of-memory errors on any device.

    torch.cuda.OutOfMemoryError, the processor's allocator, cuBLAS and oneDNN each have their own words.
    """
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(known in words for known in OUT_OF_MEMORY)


def release_memory() -> None:
    """Give cached device memory back after an out-of-memory error."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
