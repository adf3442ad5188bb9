"""The game of an instance, and the searches that ask it for the worth of sets.

The players are the units of a text, its tokens or its sentences. A set of them is worth ``p(label | they stand, the
others are erased)``. A search yields rows of sets and is sent their worths; :func:`played` lets the searches of a whole
chunk take their turns together, so that short texts fill a batch as long ones do.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Encoded
from eraser_hub.attribution.erasure import Erased
from eraser_hub.attribution.runner import Runner

from .units import unit_bounds

EXACT_UNITS = 10  # so many players at most have all their sets looked at, 2 to the 10th
INPUTS_AT_ONCE = 1 << 13  # sets of several games that go to the runner together

Sets = NDArray[np.bool_]  # rows of units: True stands, False is erased
Worths = NDArray[np.float64]
Result = TypeVar("Result")
Search = Generator[Sets, Worths, Result]


@dataclass(frozen=True, slots=True)
class Game:
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

    def of_units(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of tokens summed to units."""
        return np.add.reduceat(scores, self.bounds[:-1]) if self.size else np.zeros(0)

    def of_tokens(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of units, each shared equally by its tokens: sums stay as they are."""
        sizes = np.diff(self.bounds)
        return np.repeat(values / sizes, sizes)

    def erased(self, stands: Sets) -> list[Erased]:
        """The inputs in which rows of units stand; each named by what is fewer, the tokens kept or those erased."""
        tokens = np.repeat(stands, np.diff(self.bounds), axis=1)
        keeps = 2 * tokens.sum(axis=1) < tokens.shape[1]
        rows, places = np.nonzero(tokens == keeps[:, None])
        ends = np.searchsorted(rows, np.arange(len(stands) + 1)).tolist()
        parts = zip(pairwise(ends), keeps.tolist(), strict=True)
        return [Erased(self.number, places[start:end], keep) for (start, end), keep in parts]


def games_of(encoded: Sequence[Encoded], labels: Sequence[int], full: Sequence[float], units: str) -> list[Game]:
    """The game of each instance of a chunk.

    Args:
        labels: the label whose probability counts, as an index.
        full: that probability on the whole input.
    """
    rows = enumerate(zip(encoded, labels, full, strict=True))
    return [Game(number, unit_bounds(one.instance, units), label, p) for number, (one, label, p) in rows]


def played(
    runner: Runner,
    encoded: Sequence[Encoded],
    games: Sequence[Game],
    searches: Sequence[Search[Result]],
    filler: str = "",
) -> list[Result]:
    """The result of each game's search; in each turn all that still search ask together."""
    results: dict[int, Result] = {}
    asked: dict[int, Sets] = {}

    def go_on(place: int, worths: Worths | None) -> None:
        try:
            asked[place] = next(searches[place]) if worths is None else searches[place].send(worths)
        except StopIteration as end:
            results[place] = end.value

    for place in range(len(games)):
        go_on(place, None)
    while asked:
        turn, asked = asked, {}
        for places in _groups(turn):
            inputs = [one for place in places for one in games[place].erased(turn[place])]
            values = runner.run(encoded, inputs, filler)
            start = 0
            for place in places:
                end = start + len(turn[place])
                go_on(place, values[start:end, games[place].label])
                start = end
    return [results[place] for place in range(len(games))]


def _groups(turn: dict[int, Sets]) -> list[list[int]]:
    """Places whose sets go to the runner together."""
    groups: list[list[int]] = []
    room = 0
    for place, sets in turn.items():
        if not groups or len(sets) > room:
            groups.append([])
            room = INPUTS_AT_ONCE
        groups[-1].append(place)
        room -= len(sets)
    return groups


def all_sets(size: int) -> Sets:
    """Every set of ``size`` units, shape (2 ** size, size); unit i stands in set number s where bit i of s is 1."""
    sets: Sets = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1 == 1
    return sets
