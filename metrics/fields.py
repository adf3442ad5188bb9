"""The fields of predictions, and the scores that modules are judged by: each is named here once.

Keys are the names that the flat arrays of `flat.Predictions` have, values what stands in the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

# {label: probability} of an instance; `ERASED` are those of an erased input
SCORE_FIELDS = {
    "full": "classification_scores",
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
    "null": "null_classification_scores",
}
ERASED = ("comprehensiveness", "sufficiency")
# how a caller asks that annotations without an instance be left out
ONLY_PREDICTED = "only_predicted=True"
# how far from 1 the probabilities may sum
PROBABILITY_SLACK = 1e-3

# shares of the tokens at which the area over the perturbation curve is measured
AOPC_THRESHOLDS: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)

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
    """A list of erased inputs; entries' probabilities stand in ``ENTRY_comprehensiveness``, ``ENTRY_sufficiency``."""

    field: str
    entry: str


LIST_FIELDS = {
    "thresholds": ListField("thresholded_scores", "threshold"),
    "draws": ListField("random_rationales", "draw"),
}
# the same of inputs of which rationales lack a share of their tokens; `normalized_fidelity` alone reads it
OCCLUDED_FIELD = "occluded_scores"
# what a ranking was asked besides: the bounds of its AOPC, its soft scores, and p minus p without each token
AOPC_BOUNDS, SOFT_MASKS, LEAVE_ONE_OUT = "aopc_bounds", "soft_scores", "leave_one_out"


# of the whole input, of it without the rationale, and of the rationale alone: how far the model's state lies from
# those of training texts, and how unsure the model is
DISTANCES = ("distance_whole", "distance_comprehensiveness", "distance_sufficiency")
ENTROPIES = ("entropy_whole", "entropy_comprehensiveness", "entropy_sufficiency")


class NumberField(NamedTuple):
    """A number of an instance: the field, or the field of an object in it; its least and largest value."""

    path: tuple[str, ...]
    low: float
    high: float = math.inf

    @property
    def field(self) -> str:
        """As offences name it."""
        return ".".join(self.path)


NUMBER_FIELDS = {
    "tokens_to_flip": NumberField(("tokens_to_flip",), 0.0),
    "sensitivity_max": NumberField(("sensitivity_max",), 0.0),
    "infidelity": NumberField(("infidelity",), 0.0),
    "infidelity_normalized": NumberField(("infidelity_normalized",), 0.0),
    "soft_comprehensiveness": NumberField((SOFT_MASKS, "comprehensiveness"), 0.0, 1.0),
    "soft_sufficiency": NumberField((SOFT_MASKS, "sufficiency"), 0.0, 1.0),
    "comprehensiveness_lower": NumberField((AOPC_BOUNDS, "lower"), -1.0, 1.0),
    "comprehensiveness_upper": NumberField((AOPC_BOUNDS, "upper"), -1.0, 1.0),
    "comprehensiveness_bounded": NumberField((AOPC_BOUNDS, "comprehensiveness"), -1.0, 1.0),
    "sufficiency_lower": NumberField((AOPC_BOUNDS, "sufficiency_lower"), -1.0, 1.0),
    "sufficiency_upper": NumberField((AOPC_BOUNDS, "sufficiency_upper"), -1.0, 1.0),
    "sufficiency_bounded": NumberField((AOPC_BOUNDS, "sufficiency"), -1.0, 1.0),
    **{name: NumberField((name,), 0.0) for name in (*DISTANCES, *ENTROPIES)},
}
# the objects, and what they say besides of how their numbers were found
OBJECT_FIELDS = {
    AOPC_BOUNDS: {"method": str, "beam": int},
    SOFT_MASKS: {"draws": int, "standard_error": float},
}
# the numbers that stand in an instance itself, and those of each object in it
PLAIN_NUMBERS = tuple(number.path[0] for number in NUMBER_FIELDS.values() if len(number.path) == 1)
OBJECT_NUMBERS = {
    name: tuple(number.path[1] for number in NUMBER_FIELDS.values() if number.path[0] == name) for name in OBJECT_FIELDS
}
# the matrices with a column per label
LABELLED = (*SCORE_FIELDS, *(f"{entry}_{side}" for _, entry in LIST_FIELDS.values() for side in ERASED))

# module -> the scores that it is judged by: `compare` corrects its p-values over these, all others are exploratory
HEADLINE = {
    "eraser_agreement": ("token_macro_f1", "iou_macro_f1", "auprc", "sentence_macro_f1"),
    "eraser_faithfulness": ("comprehensiveness_aopc", "sufficiency_aopc", "macro_f1"),
    "perturbation_map": ("map",),
    "rationale_set_agreement": ("token_f1",),
    "normalized_fidelity": ("normalized_sufficiency", "normalized_comprehensiveness"),
    "annotator_agreement": ("cohen_kappa",),
    "quote_faithfulness": ("in_text",),
}
# field -> the format of the objects that stand there; LABELS where their keys are labels, None for any other value
Format: TypeAlias = Mapping[str, "Format | None"]
LABELS: Format = {}

_SIDES: Format = {SCORE_FIELDS[side]: LABELS for side in ERASED}
# an ERASER instance. `outcome` other than "answered": a language model gave no answer
OUTCOME_FIELD, ANSWERED = "outcome", "answered"
# the quotes of a language model, and where they stand; `quote_faithfulness` alone reads them
QUOTES_FIELD = "quotes"
# what a language model answered to changed questions: without its quotes, with them alone, ..
AGAIN_FIELD = "asked_again"
INSTANCE: Format = {
    **dict.fromkeys(("annotation_id", "classification", OUTCOME_FIELD, LEAVE_ONE_OUT, *PLAIN_NUMBERS)),
    **{name: dict.fromkeys((*OBJECT_NUMBERS[name], *more)) for name, more in OBJECT_FIELDS.items()},
    "rationales": {
        "docid": None,
        HARD_FIELD: dict.fromkeys(("start_token", "end_token")),
        **dict.fromkeys(soft.field for soft in SOFT_FIELDS.values()),
    },
    **dict.fromkeys(SCORE_FIELDS.values(), LABELS),
    **{
        field: {"threshold": None, **_SIDES} if entry == "threshold" else _SIDES
        for field, entry in LIST_FIELDS.values()
    },
    OCCLUDED_FIELD: {"occlusion_rate": None, "trial": None, **_SIDES},
    QUOTES_FIELD: dict.fromkeys(("text", "status", "docid", "start_token", "end_token", "similarity")),
    AGAIN_FIELD: dict.fromkeys(("kind", "classification", "outcome")),
}
# rows of the other modules
ID_FIELDS = ("annotation_id", "id", "sent_id")
PROBABILITIES = ("pred_proba", "rationale_pred_proba", "non_rationale_pred_proba")
# answers (words) to what is left of the input, as `pred_label` is the answer to the whole
ERASED_ANSWERS = ("rationale_pred_label", "non_rationale_pred_label")
_RANKED = ("rationale", "rationale_tokens", "ranked_tokens", "kd")
_ANSWER = (*ERASED_ANSWERS, "answer", "answer_proba", OUTCOME_FIELD, QUOTES_FIELD, AGAIN_FIELD)
PERTURBATION_ROW: Format = dict.fromkeys(
    (*ID_FIELDS, "pred_label", *_RANKED, *PROBABILITIES, "empty_pred_proba", *_ANSWER)
)
# where an ERASER instance holds the four probabilities that `normalized_fidelity` reads
FIDELITY_FIELDS = {
    "p_full": SCORE_FIELDS["full"],
    "p_rationale": SCORE_FIELDS["sufficiency"],
    "p_complement": SCORE_FIELDS["comprehensiveness"],
    "p_empty": SCORE_FIELDS["null"],
}
FIDELITY_ROW: Format = dict.fromkeys((*ID_FIELDS, *FIDELITY_FIELDS, "occlusion_rate", "trial"))
ANNOTATOR_ROW: Format = dict.fromkeys((*ID_FIELDS, "annotators"))
