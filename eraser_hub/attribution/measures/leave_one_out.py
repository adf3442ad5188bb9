"""Leave one out, for tau_loo: how a ranking agrees with what each unit's own erasure does."""

from __future__ import annotations

from typing import Any

import numpy as np

from eraser_hub.schema.instance import LEAVE_ONE_OUT

from ..chunk import Chunk, CoalitionSearch, Scores, TextUnits
from ..instances import Instance
from ..measure import Fields, Measure


class LeaveOneOut(Measure):
    """p of the label minus p without it, of each unit; the tokens of a sentence share its value."""

    source = "Li, Monroe and Jurafsky 2016; Jain and Wallace 2019, the correlation"
    asked, reads, fields = "leave_one_out", ("units",), (LEAVE_ONE_OUT,)
    signature_format = "leave-one-out"

    def measure(self, chunk: Chunk) -> Fields:
        """Return the value of each token."""

        def search(game: TextUnits, scores: Scores, one: Instance) -> CoalitionSearch[Scores]:
            if not game.size:
                return np.zeros(0)
            coalition_values = yield ~np.eye(game.size, dtype=bool)
            return game.full - coalition_values

        return [
            {LEAVE_ONE_OUT: game.share_to_tokens(values).tolist()} for game, values in chunk.evaluate_coalitions(search)
        ]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return one a unit."""
        return units
