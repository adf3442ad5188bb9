"""Number of highest-ranked tokens that have to be erased until the label changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..erasure import rank_tokens
from ..method import Measure, Search
from ..text import Text

NEVER_FLIPPED = "labels that no erasure of the ranked tokens changed"
FIRST_STEP, LARGEST_STEP = 8, 256  # numbers of tokens that are tried together


class TokensToFlip(Measure):
    """The least number of an instance's highest-ranked tokens whose erasure changes the predicted label.

    Tokens of the documents that hold gold evidence count and are erased, no others: the score is a share of those
    documents' tokens. Where no evidence is known the tokens of all documents do. Where no number of them changes the
    label it is the number of all. Looked for from one token on, in growing steps that go through the model together, so
    the answer is the exact first change also where probabilities do not fall steadily.

    Nguyen 2018, switching point; Serrano and Smith 2019, decision flips; DeYoung et al. 2020, ERASER's code.
    """

    fields = ("tokens_to_flip",)

    def search(self, text: Text) -> Search[Mapping[str, Any]]:
        """Ask for the text without its first tokens by rank, more and more of them."""
        order = rank_evidence_tokens(text)
        start, step = 1, FIRST_STEP
        while start <= len(order):
            counts = np.arange(start, min(start + step, len(order) + 1))
            kept = np.ones((len(counts), text.tokens), dtype=bool)
            kept[:, order] = np.arange(len(order)) >= counts[:, None]
            flipped = (yield kept).argmax(axis=1) != text.predicted
            if flipped.any():
                return {"tokens_to_flip": int(counts[flipped.argmax()])}
            start, step = start + step, min(step * 2, LARGEST_STEP)
        text.notes.count(NEVER_FLIPPED)
        return {"tokens_to_flip": len(order)}


def rank_evidence_tokens(text: Text) -> NDArray[np.int64]:
    """Return the tokens of the evidence documents by falling score, flat positions; all tokens if none is known."""
    assert text.scores is not None
    instance, order = text.instance, rank_tokens(text.scores, text.settings.choices.ties)
    if not instance.evidence_documents:
        return order
    inside = np.zeros(text.tokens, dtype=bool)
    for number in instance.evidence_documents:
        inside[instance.bounds[number] : instance.bounds[number + 1]] = True
    return order[inside[order]]
