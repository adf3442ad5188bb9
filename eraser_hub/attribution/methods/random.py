"""Chance, against which methods are compared."""

from __future__ import annotations

from typing import Any, ClassVar

from ..chunk import Chunk, Scores
from ..instances import Instance
from ..method import Method, Setting


class Random(Method):
    """Scores drawn at random, by seed and instance."""

    needs, sampled = (), True
    settings: ClassVar = {"draws": Setting(1, "Number of draws, each in a file of its own.", 1, field="draws")}

    def scores(self, chunk: Chunk) -> list[Scores]:
        """Return uniform numbers from 0 to 1."""
        return [chunk.make_generator(one, "scores").random(one.bounds[-1]) for one in chunk.instances]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return 0."""
        return 0
