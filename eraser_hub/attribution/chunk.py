"""A chunk of instances as a model sees it, and the probabilities of coalitions of their units.

The units of a text are its tokens or its sentences. A coalition is a set of units; its value is ``p(label | the
coalition is kept, the other units are erased)``. A search yields rows of coalitions and is sent their values.
:meth:`Chunk.evaluate_coalitions` runs the searches of a chunk side by side, so that short texts fill a batch too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .adapter import Adapter, Encoded
from .erasure import Erased, make_generator
from .instances import Instance
from .runner import Runner

EXACT_UNITS = 10  # up to so many units all coalitions are evaluated, 2 to the 10th
INPUTS_AT_ONCE = 1 << 13  # coalitions of several texts that go to the runner together

Scores = NDArray[np.float64]
Coalitions = NDArray[np.bool_]  # bool (n, units): True is kept, False is erased
CoalitionValues = NDArray[np.float64]
Result = TypeVar("Result")
CoalitionSearch = Generator[Coalitions, CoalitionValues, Result]


def compute_unit_bounds(one: Instance, units: str) -> NDArray[np.int64]:
    """Return the offsets of the units in the instance's tokens, the end included.

    Raises:
        DataError: sentences of a text that is not divided into any.
    """
    tokens = one.bounds[-1]
    if units == "tokens":
        return np.arange(tokens + 1)
    if tokens and not one.sentences:
        message = "`units` sentences: expected documents with sentences, found tokens alone"
        raise DataError(message, instance=one.id)
    return np.cumsum([0, *(size for sizes in one.sentences for size in sizes)])


@dataclass(frozen=True, slots=True)
class TextUnits:
    """The units of one instance.

    Attributes:
        number: the instance's number in its chunk.
        bounds: the first token of each unit, and the number of tokens behind them; ascending, int64 (units + 1,).
        label: the label whose probability is the value of a coalition, as an index.
        full: the value of the coalition of all units.
    """

    number: int
    bounds: NDArray[np.int64]
    label: int
    full: float

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.bounds) - 1

    def share_to_tokens(self, values: Scores) -> Scores:
        """Return values of units, each shared equally by its tokens: sums stay as they are."""
        sizes = np.diff(self.bounds)
        return np.repeat(values / sizes, sizes)

    def erased(self, coalitions: Coalitions) -> list[Erased]:
        """Return the inputs that keep the coalitions, each by the fewer of its kept and its erased tokens."""
        tokens = np.repeat(coalitions, np.diff(self.bounds), axis=1)
        keeps = 2 * tokens.sum(axis=1) < tokens.shape[1]
        rows, places = np.nonzero(tokens == keeps[:, None])
        ends = np.searchsorted(rows, np.arange(len(coalitions) + 1)).tolist()
        parts = zip(pairwise(ends), keeps.tolist(), strict=True)
        return [Erased(self.number, places[start:end], keep) for (start, end), keep in parts]


@dataclass(slots=True)
class Chunk:
    """Instances and their results so far, as methods, measures and the results' formats read them.

    Attributes:
        runner: the runner of erased inputs.
        encoded: the instances as the model sees them.
        model: the runner's model.
        instances: the instances that were encoded.
        settings: the run's :class:`settings.ExplainSettings`, of a module that imports this one.
        pairs: whether results are the perturbation benchmark's, which keeps sequences apart.
        full: probabilities of the whole inputs, float64 (instances, labels).
        predicted: the labels of these, as indices.
        targets: the labels that scores explain; empty where the rationales come with the instances.
        scores: of each instance's tokens, as they are written; likewise.
        hard: the tokens of each instance's rationale, ascending flat positions.
        sentences: of a model that scores sentences, for each instance the scores of each document's.
        erased: probabilities of each instance without its rationale, with it alone, and with nothing; further rows
            are the prediction's own.
    """

    runner: Runner
    encoded: Sequence[Encoded]
    settings: Any
    pairs: bool = False
    full: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    predicted: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    scores: list[Scores] = field(default_factory=list)
    hard: list[NDArray[np.int64]] = field(default_factory=list)
    sentences: list[tuple[tuple[float, ...], ...] | None] | None = None
    erased: list[NDArray[np.float64]] = field(default_factory=list)
    model: Adapter = field(init=False)
    instances: list[Instance] = field(init=False)

    def __post_init__(self) -> None:
        self.model, self.instances = self.runner.model, [one.instance for one in self.encoded]

    @property
    def probability(self) -> list[float]:
        """p of each explained label on the whole input."""
        p: list[float] = self.full[np.arange(len(self.targets)), self.targets].tolist()
        return p

    def run(self, erased: Sequence[Erased] | None = None) -> NDArray[np.float64]:
        """Return the probabilities of erased inputs, or of the whole ones; see :meth:`runner.Runner.run`."""
        return self.runner.run(self.encoded, erased, self.settings.choices.filler)

    def make_generator(self, one: Instance, purpose: str) -> np.random.Generator:
        """Return the random generator of this instance and purpose."""
        return make_generator(self.settings.seed, one.id, purpose)

    def with_instances(self, instances: Sequence[Instance], targets: Sequence[int]) -> Chunk:
        """Return other instances as a chunk, whose scores for these labels are to be computed."""
        with self.model.uncounted():
            encoded = list(map(self.model.encode, instances))
        others = Chunk(self.runner, encoded, self.settings, targets=list(targets))
        others.full = others.run()
        return others

    def to_text_units(self) -> list[TextUnits]:
        """Return the units of each instance."""
        rows = enumerate(zip(self.encoded, self.targets, self.probability, strict=True))
        return [
            TextUnits(number, compute_unit_bounds(one.instance, self.settings.units), label, p)
            for number, (one, label, p) in rows
        ]

    def evaluate_coalitions(
        self, search: Callable[[TextUnits, Scores, Instance], CoalitionSearch[Result]]
    ) -> list[tuple[TextUnits, Result]]:
        """Return the units of each instance and the result of a search over their coalitions.

        Args:
            search: begins a search from the units, their scores ((0,) before there are scores) and its
                instance.
        """
        all_units = self.to_text_units()
        units = [
            np.add.reduceat(self.scores[one.number], one.bounds[:-1]) if self.scores and one.size else np.zeros(0)
            for one in all_units
        ]
        searches = list(map(search, all_units, units, self.instances))
        results: dict[int, Result] = {}
        pending: dict[int, Coalitions] = {}

        def advance(place: int, coalition_values: CoalitionValues | None) -> None:
            try:
                pending[place] = (
                    next(searches[place]) if coalition_values is None else searches[place].send(coalition_values)
                )
            except StopIteration as end:
                results[place] = end.value

        for place in range(len(all_units)):
            advance(place, None)
        while pending:
            turn, pending = pending, {}
            for places in _groups(turn):
                values = self.run([one for place in places for one in all_units[place].erased(turn[place])])
                start = 0
                for place in places:
                    end = start + len(turn[place])
                    advance(place, values[start:end, all_units[place].label])
                    start = end
        return [(text_units, results[text_units.number]) for text_units in all_units]


def _groups(turn: dict[int, Coalitions]) -> list[list[int]]:
    """Return groups of places whose coalitions go to the runner together."""
    groups: list[list[int]] = []
    room = 0
    for place, sets in turn.items():
        if not groups or len(sets) > room:
            groups.append([])
            room = INPUTS_AT_ONCE
        groups[-1].append(place)
        room -= len(sets)
    return groups


def enumerate_coalitions(size: int) -> Coalitions:
    """Return every coalition of ``size`` units, shape (2 ** size, size); unit i is in number s if bit i of s is 1."""
    sets: Coalitions = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1 == 1
    return sets
