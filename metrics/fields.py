"""The optional fields of an ERASER instance: each is named here once, for all that flatten and check it.

Keys are the names that the flat arrays of `flat.Predictions` have, values what stands in the JSON.
"""

from __future__ import annotations

from typing import NamedTuple

# {label: probability} of an instance; `ERASED` are those of an erased input
SCORE_FIELDS = {
    "full": "classification_scores",
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
    "null": "null_classification_scores",
}
ERASED = ("comprehensiveness", "sufficiency")
# how far from 1 the probabilities may sum
PROBABILITY_SLACK = 1e-3

# the spans of a rationale
HARD_FIELD = "hard_rationale_predictions"


class SoftField(NamedTuple):
    """Scores of a rationale, one for each unit of its document."""

    field: str
    unit: str
    prefix: str  # of the result's keys


SOFT_FIELDS = {
    "soft": SoftField("soft_rationale_predictions", "tokens", ""),
    "sentence": SoftField("soft_sentence_predictions", "sentences", "sentence_"),
}


class ListField(NamedTuple):
    """A list of erased inputs; the entries' probabilities stand in ``ENTRY_comprehensiveness``, ``ENTRY_sufficiency``."""

    field: str
    entry: str


LIST_FIELDS = {
    "thresholds": ListField("thresholded_scores", "threshold"),
    "draws": ListField("random_rationales", "draw"),
}
# the same of inputs of which rationales lack a share of their tokens; `normalized_fidelity` alone reads it
OCCLUDED_FIELD = "occluded_scores"
# the matrices with a column per label
LABELLED = (*SCORE_FIELDS, *(f"{entry}_{side}" for _, entry in LIST_FIELDS.values() for side in ERASED))
