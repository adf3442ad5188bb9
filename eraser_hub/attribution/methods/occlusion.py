"""Occlusion, or leave one out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..chunk import Chunk, Scores
from ..erasure import Erased
from ..instances import Instance
from ..method import Method


class Occlusion(Method):
    """p of the label minus p without the token, for each token."""

    source = "Zeiler and Fergus 2014; Li, Monroe and Jurafsky 2016"
    erases = True

    def scores(self, chunk: Chunk) -> list[Scores]:
        """Return p(x) - p(x without t) of each token t."""
        sizes = [one.bounds[-1] for one in chunk.instances]
        places = np.arange(max(sizes, default=0))
        erased = [
            Erased(number, places[at : at + 1], keep=False) for number, size in enumerate(sizes) for at in range(size)
        ]
        values = chunk.runner.run(chunk.encoded, erased)
        rows = np.split(values, np.cumsum(sizes)[:-1])
        return [p - row[:, label] for p, row, label in zip(chunk.probability, rows, chunk.targets, strict=True)]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return one a token."""
        return one.bounds[-1]
