"""Leave one out, for tau_loo: agreement of a ranking with the effect of each unit's own erasure."""

from __future__ import annotations

from typing import Any

import numpy as np

from eraser_hub.schema.instance import LEAVE_ONE_OUT
from eraser_hub.schema.label_tasks import REGRESSION

from ..chunk import Chunk, CoalitionSearch, Scores, TextUnits
from ..instances import Instance
from ..measure import Fields, Measure


class LeaveOneOut(Measure):
    """p of the label minus p without it, of each unit; the tokens of a sentence share its value.

    Of a regression the absolute difference, as its scores are absolute.
    """

    source = "Li, Monroe and Jurafsky 2016; Jain and Wallace 2019, the correlation"
    enabled_by, reads, fields = "leave_one_out", ("units",), (LEAVE_ONE_OUT,)
    signature_format = "leave-one-out"

    def measure(self, chunk: Chunk) -> Fields:
        """Return the value of each token."""

        def search(text_units: TextUnits, scores: Scores, one: Instance) -> CoalitionSearch[Scores]:
            if not text_units.size:
                return np.zeros(0)
            coalition_values = yield ~np.eye(text_units.size, dtype=bool)
            differences = text_units.full - coalition_values
            return np.abs(differences) if chunk.model.label_task == REGRESSION else differences

        return [
            {LEAVE_ONE_OUT: text_units.share_to_tokens(values).tolist()}
            for text_units, values in chunk.evaluate_coalitions(search)
        ]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return one a unit."""
        return units
