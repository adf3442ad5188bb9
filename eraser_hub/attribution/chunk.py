"""A chunk of instances as a model sees it, and the games that are played with its inputs.

The players of a game are the units of a text, its tokens or its sentences. A set of them is worth ``p(label | they
stand, the others are erased)``. A search yields rows of sets and is sent their worths; :meth:`Chunk.play` lets the
searches of a whole chunk take their turns together, so that short texts fill a batch as long ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .adapter import Adapter, Encoded
from .erasure import Erased, full, make_generator
from .instances import Instance
from .runner import Runner

EXACT_UNITS = 10  # so many players at most have all their sets looked at, 2 to the 10th
INPUTS_AT_ONCE = 1 << 13  # sets of several games that go to the runner together

Scores = NDArray[np.float64]
Coalitions = NDArray[np.bool_]  # rows of units: True stands, False is erased
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
        words = "`units` sentences: expected documents with sentences, found tokens alone"
        raise DataError(words, rule="unsupported", instance=one.id)
    return np.cumsum([0, *(size for sizes in one.sentences for size in sizes)])


@dataclass(frozen=True, slots=True)
class TextUnits:
    """One instance as a game.

    Attributes:
        number: the instance's number in its chunk.
        bounds: the first token of each unit, and the number of tokens behind them; ascending, int64 (units + 1,).
        label: the label whose probability is the worth, as an index.
        full: the worth of all units.
    """

    number: int
    bounds: NDArray[np.int64]
    label: int
    full: float

    @property
    def size(self) -> int:
        """How many units there are."""
        return len(self.bounds) - 1

    def sum_to_units(self, scores: Scores) -> Scores:
        """Return scores of tokens summed to units."""
        return np.add.reduceat(scores, self.bounds[:-1]) if self.size else np.zeros(0)

    def share_to_tokens(self, values: Scores) -> Scores:
        """Return values of units, each shared equally by its tokens: sums stay as they are."""
        sizes = np.diff(self.bounds)
        return np.repeat(values / sizes, sizes)

    def erased(self, coalitions: Coalitions) -> list[Erased]:
        """Return the inputs in which rows of units stand, each by what is fewer: the tokens kept or those erased."""
        tokens = np.repeat(coalitions, np.diff(self.bounds), axis=1)
        keeps = 2 * tokens.sum(axis=1) < tokens.shape[1]
        rows, places = np.nonzero(tokens == keeps[:, None])
        ends = np.searchsorted(rows, np.arange(len(coalitions) + 1)).tolist()
        parts = zip(pairwise(ends), keeps.tolist(), strict=True)
        return [Erased(self.number, places[start:end], keep) for (start, end), keep in parts]


@dataclass(slots=True)
class Chunk:
    """Instances on their way to predictions: what methods, measures and the results' formats read.

    Attributes:
        runner: by which inputs go through the model, erased in the way at hand.
        encoded: the instances as the model sees them.
        settings: the run's :class:`settings.ExplainSettings`, which stands above and knows the methods by name.
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

    @property
    def model(self) -> Adapter:
        """The model."""
        return self.runner.model

    @property
    def instances(self) -> list[Instance]:
        """The instances."""
        return [one.instance for one in self.encoded]

    @property
    def probability(self) -> list[float]:
        """p of each explained label on the whole input."""
        p: list[float] = self.full[np.arange(len(self.targets)), self.targets].tolist()
        return p

    def run(self, erased: Sequence[Erased]) -> NDArray[np.float64]:
        """Return the probabilities of erased inputs; see :meth:`runner.Runner.run`."""
        return self.runner.run(self.encoded, erased, self.settings.choices.filler)

    def random(self, one: Instance, purpose: str) -> np.random.Generator:
        """Return random numbers of this instance and purpose."""
        return make_generator(self.settings.seed, one.id, purpose)

    def by(self, erase: str) -> Chunk:
        """Return the chunk with inputs erased in another way."""
        return replace(self, runner=self.runner.by(erase))

    def with_instances(self, instances: Sequence[Instance], targets: Sequence[int]) -> Chunk:
        """Return other instances as a chunk, whose scores for these labels are to be computed."""
        others = Chunk(self.runner, list(map(self.model.encode, instances)), self.settings, targets=list(targets))
        others.full = others.run(list(map(full, range(len(instances)))))
        return others.by(self.settings.scores_erase or self.settings.erase)

    def to_text_units(self) -> list[TextUnits]:
        """Return the game of each instance, the probability of its explained label its worth."""
        rows = enumerate(zip(self.encoded, self.targets, self.probability, strict=True))
        return [
            TextUnits(number, compute_unit_bounds(one.instance, self.settings.units), label, p)
            for number, (one, label, p) in rows
        ]

    def evaluate_coalitions(
        self, search: Callable[[TextUnits, Scores, Instance], CoalitionSearch[Result]]
    ) -> list[tuple[TextUnits, Result]]:
        """Return each instance's game, and the result of a search in it; in each turn all that still search ask.

        Args:
            search: begins a search from a game, the scores of its units ((0,) before there are scores) and its
                instance.
        """
        all_units = self.to_text_units()
        units = [game.sum_to_units(self.scores[game.number]) if self.scores else np.zeros(0) for game in all_units]
        searches = list(map(search, all_units, units, self.instances))
        results: dict[int, Result] = {}
        asked: dict[int, Coalitions] = {}

        def go_on(place: int, coalition_values: CoalitionValues | None) -> None:
            try:
                asked[place] = (
                    next(searches[place]) if coalition_values is None else searches[place].send(coalition_values)
                )
            except StopIteration as end:
                results[place] = end.value

        for place in range(len(all_units)):
            go_on(place, None)
        while asked:
            turn, asked = asked, {}
            for places in _groups(turn):
                values = self.run([one for place in places for one in all_units[place].erased(turn[place])])
                start = 0
                for place in places:
                    end = start + len(turn[place])
                    go_on(place, values[start:end, all_units[place].label])
                    start = end
        return [(game, results[game.number]) for game in all_units]


def _groups(turn: dict[int, Coalitions]) -> list[list[int]]:
    """Return places whose sets go to the runner together."""
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
    """Return every set of ``size`` units, shape (2 ** size, size); unit i stands in set s where bit i of s is 1."""
    sets: Coalitions = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1 == 1
    return sets
