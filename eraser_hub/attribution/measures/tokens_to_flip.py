"""Number of highest-ranked tokens that have to be erased until the label changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..chunk import Chunk
from ..erasure import rank_tokens, without
from ..instances import Instance
from ..measure import Fields, Measure

NEVER_FLIPPED = "labels that no erasure of the ranked tokens changed"
FIRST_STEP, LARGEST_STEP = 8, 256  # numbers of tokens that are tried together


class TokensToFlip(Measure):
    """The least number of an instance's highest-ranked tokens whose erasure changes the predicted label.

    Tokens of the documents that hold gold evidence count and are erased, no others: the score is a share of those
    documents' tokens. Where no evidence is known the tokens of all documents do. Where no number of them changes the
    label it is the number of all. Looked for from one token on, in growing steps that go through the model together, so
    the answer is the exact first change also where probabilities do not fall steadily.
    """

    source = "Nguyen 2018, switching point; Serrano and Smith 2019, decision flips; DeYoung et al. 2020, ERASER's code"
    enabled_by = "tokens_to_flip"
    signature_format = "flip:evidence-documents"
    fields = ("tokens_to_flip",)
    erases_units = costly = False

    def measure(self, chunk: Chunk) -> Fields:
        """Return the number for each instance."""
        ties = chunk.settings.choices.ties
        rankings = [
            rank_evidence_tokens(one, row, ties) for one, row in zip(chunk.instances, chunk.scores, strict=True)
        ]
        flips: dict[int, int] = {}
        searches = {number: 1 for number, order in enumerate(rankings) if len(order)}
        step = FIRST_STEP
        while searches:
            plan = [
                (number, count)
                for number, start in searches.items()
                for count in range(start, min(start + step, len(rankings[number]) + 1))
            ]
            erased = [without(number, rankings[number][:count]) for number, count in plan]
            values = chunk.runner.run(chunk.encoded, erased)
            for (number, count), label in zip(plan, values.argmax(axis=1).tolist(), strict=True):
                if label != chunk.predicted[number]:
                    flips.setdefault(number, count)
            searches = {
                number: start + step
                for number, start in searches.items()
                if number not in flips and start + step <= len(rankings[number])
            }
            step = min(step * 2, LARGEST_STEP)
        if len(flips) < len(rankings):
            chunk.model.notes.count(NEVER_FLIPPED, len(rankings) - len(flips))
        return [{"tokens_to_flip": flips.get(number, len(order))} for number, order in enumerate(rankings)]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return one a token."""
        return one.bounds[-1]


def rank_evidence_tokens(one: Instance, scores: NDArray[np.float64], ties: str) -> NDArray[np.int64]:
    """Rank the tokens of the evidence documents, as flat positions; all tokens if no evidence is known."""
    order = rank_tokens(scores, ties)
    if not one.evidence_documents or len(one.evidence_documents) == len(one.documents):
        return order
    bounds, inside = one.bounds, np.zeros(len(scores), dtype=bool)
    for number in one.evidence_documents:
        inside[bounds[number] : bounds[number + 1]] = True
    return order[inside[order]]
