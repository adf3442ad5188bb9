"""Chance, against which methods are compared."""

from __future__ import annotations

from typing import Any

from ..chunk import Chunk, Scores
from ..instances import Instance
from ..method import Method


class Random(Method):
    """Scores drawn at random, by seed and instance."""

    needs, drawn, sampled = (), True, True

    def scores(self, chunk: Chunk) -> list[Scores]:
        """Return uniform numbers from 0 to 1."""
        return [chunk.make_generator(one, "scores").random(one.bounds[-1]) for one in chunk.instances]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return 0."""
        return 0
