"""Erased inputs through a model: equal ones once, in batches of like length, halved when memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .adapter import Adapter, Encoded, View, is_out_of_memory, release_memory, to_array
from .erasure import Erased, full

MAX_KEPT_TOKENS = 500_000  # tokens of inputs that are kept between finding equal ones and running them
SUM_TOLERANCE = 1e-3  # by which the sum of a row of probabilities may differ from 1 (half precision)


@dataclass(slots=True)
class Counts:
    """Counts of work: inputs asked for, forward passes made."""

    inputs: int = 0
    passes: int = 0


@dataclass(slots=True)
class _Unit:
    """One window of an erased input that has to run; its view is made again if it was not kept."""

    key: bytes
    erased: Erased
    number: int
    size: int
    view: View | None


class Runner:
    """Sends erased inputs of a chunk of instances through a model.

    Equal units (inputs, or windows of long ones) run once: :attr:`results` keeps them by the unit's content until
    :meth:`forget`. So the rationale at 100 % is the full input's very result, and the windows of a long text that do
    not hold a masked token are not computed again. Views of :data:`MAX_KEPT_TOKENS` tokens in all are kept ready; the
    others are made again from token positions.

    Args:
        model: the adapter.
        erase: remove, mask or pad.
        batch_size: forward passes at a time for inputs of full length; shorter inputs go in larger batches.
        on_passes: called with the number of forward passes after each batch (progress).
    """

    def __init__(
        self,
        model: Adapter,
        erase: str,
        batch_size: int,
        on_passes: Callable[[int], None] | None = None,
    ) -> None:
        self.model, self.erase, self.batch_size = model, erase, batch_size
        self.counts = Counts()
        self._on_passes = on_passes
        self.results: dict[bytes, NDArray[np.float64]] = {}
        self._share = 1.0  # of the model's batches, less after memory ran out

    def forget(self) -> None:
        """Drop the kept results; called between chunks, so that memory does not grow with the dataset."""
        self.results.clear()

    def run(
        self, encoded: Sequence[Encoded], erased: Sequence[Erased] | None = None, filler: str = ""
    ) -> NDArray[np.float64]:
        """Return probabilities of each erased input, shape (len(erased), classes), in the dataset's label order.

        Those of an input of several windows are the mean of its windows'.

        Args:
            encoded: the instances as the model sees them.
            erased: the erased inputs; None: each instance whole.
            filler: the token in place of a document of which nothing is left; "" for none.
        """
        erased = list(map(full, range(len(encoded)))) if erased is None else erased
        if filler:
            encoded, erased = self._insert_fillers(encoded, erased, filler)
        numbers_by_key: dict[tuple[int, bool, bytes], int] = {}
        different: list[Erased] = []
        numbers: list[int] = []
        for one in erased:
            place = (one.instance, one.keep, encoded[one.instance].alike(one.positions))
            number = numbers_by_key.setdefault(place, len(different))
            if number == len(different):
                different.append(one)
            numbers.append(number)
        keys: list[tuple[bytes, ...]] = [()] * len(different)
        units: dict[bytes, _Unit] = {}
        size_so_far = 0
        for number, view in self._make_views(encoded, different):
            keys[number] = view.keys
            size_so_far += sum(view.sizes)
            kept = view if size_so_far <= MAX_KEPT_TOKENS else None
            for place_of_unit, (key, size) in enumerate(zip(view.keys, view.sizes, strict=True)):
                if key not in self.results and key not in units:
                    units[key] = _Unit(key, different[number], place_of_unit, size, kept)
        self.counts.inputs += len(erased)
        # longest first: what does not fit into memory shows at once
        self._run_units(encoded, sorted(units.values(), key=lambda unit: -unit.size))
        values = [
            self.results[parts[0]] if len(parts) == 1 else np.mean([self.results[key] for key in parts], axis=0)
            for parts in keys
        ]
        if not values:
            return np.zeros((0, len(self.model.label_names)))
        return np.stack(values)[numbers]

    def _insert_fillers(
        self, encoded: Sequence[Encoded], erased: Sequence[Erased], filler: str
    ) -> tuple[list[Encoded], list[Erased]]:
        """Make instances of the erased inputs that have an empty document, with the filler there."""
        whole, inputs = list(encoded), list(erased)
        for place, one in enumerate(erased):
            instance = encoded[one.instance].instance
            kept = one.kept(instance.bounds[-1])
            if self.erase == "remove" and not all(kept[start:end].any() for start, end in pairwise(instance.bounds)):
                inputs[place] = full(len(whole))
                with self.model.uncounted():
                    whole.append(self.model.encode(instance.left(kept, filler)))
        return whole, inputs

    def _make_views(self, encoded: Sequence[Encoded], erased: Sequence[Erased]) -> Iterator[tuple[int, View]]:
        """Yield numbers and views of erased inputs, those of one instance together."""
        of: dict[int, list[int]] = {}
        for number, one in enumerate(erased):
            of.setdefault(one.instance, []).append(number)
        for instance, members in of.items():
            yield from zip(members, encoded[instance].views([erased[n] for n in members], self.erase), strict=True)

    def _run_units(self, encoded: Sequence[Encoded], units: Sequence[_Unit]) -> None:
        """Run units, the longest first."""
        place = 0
        before: tuple[Any, list[bytes], list[str]] | None = None
        while place < len(units):
            most = self.model.rows_for(units[place].size, self.batch_size)
            longest = max(unit.size for unit in units[place : place + most])
            most = self.model.rows_for(longest, self.batch_size)
            batch = list(units[place : place + max(1, int(most * self._share + 1e-9))])
            if not self.model.pads:
                longer = (number for number, unit in enumerate(batch) if unit.size != batch[0].size)
                batch = batch[: next(longer, None)]
            ids = [encoded[unit.erased.instance].instance.id for unit in batch]
            # views that were not kept are made again, each once
            again = {id(unit.erased): unit.erased for unit in batch if unit.view is None}
            erased = list(again.values())
            views = {id(erased[number]): view for number, view in self._make_views(encoded, erased)}
            inputs = [(unit.view or views[id(unit.erased)], unit.number) for unit in batch]
            outputs, fits = None, True
            try:
                outputs = self.model.forward(inputs)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                if len(batch) == 1:
                    longest = max(inputs[0][0].sizes)
                    message = f"out of memory with a single input of length {longest}; a shorter `window` needs less"
                    raise DataError(message, instance=ids[0]) from error
                fits = False  # memory is given back below: here the error still holds the tensors of the failed pass
            if not fits:
                # a share and no number of rows: what was too long in eights may be short enough in hundreds
                half = len(batch) // 2
                self._share = half / most
                self.model.notes.add_message(f"out of memory with {len(batch)} inputs at a time: halved to {half}")
                release_memory()
                continue
            # a GPU works on this batch while the one before is read and the one after is made ready
            if before is not None:
                self._keep(*before)
            before = outputs, [unit.key for unit in batch], ids
            place += len(batch)
        if before is not None:
            self._keep(*before)

    def take(self, outputs: Mapping[bytes, NDArray[np.float64]]) -> None:
        """Keep outputs that the model gave already, by a unit's key (:meth:`Adapter.ahead`), and count its passes.

        What is no number is left out: it is computed again, by code that knows whose it is.
        """
        sound = {key: row for key, row in outputs.items() if np.isfinite(row).all()}
        if sound:
            self._keep(np.stack([*sound.values()]), [*sound], [""] * len(sound))

    def _keep(self, outputs: Any, keys: Sequence[bytes], ids: Sequence[str]) -> None:
        """Keep a batch's checked probabilities, in the dataset's order."""
        model = self.model
        values = check_outputs(outputs, ids, len(model.label_names), model.description)
        self.counts.passes += len(keys)
        if self._on_passes is not None:
            self._on_passes(len(keys))
        ordered = values[:, model.order] if model.order is not None else values
        self.results.update(zip(keys, ordered, strict=True))


def check_outputs(output: object, ids: Sequence[str], classes: int, whose: str) -> NDArray[np.float64]:
    """Check a model's output for a batch and return it, shape (len(ids), classes).

    Args:
        output: nested lists, any array, a data frame, a torch tensor.
        ids: the instance of each input, for the error.
        classes: number of outputs.
        whose: the model, for the error.

    Raises:
        DataError: no array of numbers, wrong shape, another number of labels, NaN, infinite or negative values, rows
            that do not sum to 1.
    """
    try:
        values = to_array(output)
    except (TypeError, ValueError):
        message = f"{whose}: expected an array of numbers (inputs, labels), found {type(output).__name__}"
        raise DataError(message, instance=ids[0]) from None
    message, row, rows = "", 0, len(ids)
    if values.ndim != 2 or len(values) != rows:
        message = f"expected probabilities of shape ({rows}, {classes}), found {values.shape}"
    elif values.shape[1] != classes:
        message = f"expected {classes} labels as in the dataset, found {values.shape[1]} in its output"
    elif not (finite := np.isfinite(values).all(axis=1)).all():
        message = f"its output holds NaN or infinite values for {rows - finite.sum()} of {rows} inputs of a batch"
        row = int(finite.argmin())
    if message:
        raise DataError(f"{whose}: {message}", instance=ids[row])
    sums, least = values.sum(axis=1), values.min(axis=1, initial=0)
    bad = (least < 0) | (np.abs(sums - 1) > SUM_TOLERANCE)
    if bad.any():
        row = int(bad.argmax())
        message = f"{least[row]:.4g}" if least[row] < 0 else f"a row that sums to {sums[row]:.4g}"
        message = f"{whose}: expected non-negative probabilities that sum to 1, found {message}"
        raise DataError(message, instance=ids[row])
    return values
