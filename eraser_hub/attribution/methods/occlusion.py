"""Occlusion, or leave one out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..chunk import Chunk, Scores
from ..erasure import Erased
from ..instances import Instance
from ..method import Method


class Occlusion(Method):
    """p of the label minus p without the token (or the sentence, whose tokens share it), for each."""

    source = "Zeiler and Fergus 2014; Li, Monroe and Jurafsky 2016"
    scores_units = True

    def scores(self, chunk: Chunk) -> list[Scores]:
        """Return p(x) - p(x without u) of each unit u, shared by its tokens."""
        units = chunk.to_text_units()
        places = np.arange(max((int(one.bounds[-1]) for one in units), default=0))
        erased = [
            Erased(one.number, places[start:end], keep=False)
            for one in units
            for start, end in pairwise(one.bounds.tolist())
        ]
        values = chunk.runner.run(chunk.encoded, erased)
        rows = np.split(values, np.cumsum([len(one.bounds) - 1 for one in units])[:-1])
        return [one.share_to_tokens(one.full - row[:, one.label]) for one, row in zip(units, rows, strict=True)]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return one a unit."""
        return units
