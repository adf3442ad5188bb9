"""Instance of a predictions file: a model's output for one annotation, and the fields that scores read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .record import Id, Probabilities, Record, area, column, describe, share

# tolerance of the sum of probabilities
PROBABILITY_SLACK = 1e-3
# the least similarity (2 common characters in sequence / characters of both) of a changed quote, from docs/results.md
QUOTE_THRESHOLD = 0.8
ANSWERED = "answered"  # the outcome of an instance that a model gave an answer for


@dataclass(kw_only=True)
class SpanRecord:
    """Tokens of a document, counted from its start."""

    start_token: int = column("the first token", unit="tokens", low=0, required=True)
    end_token: int = column("the token behind the last one", unit="tokens", low=1, required=True)


@dataclass(kw_only=True)
class RationaleRecord:
    """Predicted rationale in one document."""

    docid: Id = column("a document of the annotation; each one once", required=True)
    hard_rationale_predictions: list[SpanRecord] | None = column(
        "the predicted spans; they may touch and not overlap", scores="exact match, token, IOU and sentence P/R/F1"
    )
    soft_rationale_predictions: list[float] | None = column(
        "one number a token, on any scale; higher is more important", scores="AUPRC, AP, ROC-AUC"
    )
    soft_sentence_predictions: list[float] | None = column(
        "one number a sentence; a sentence is predicted from 0.5 on (`--sentence-threshold`)",
        scores="the same for sentences, sentence P/R/F1",
    )


@dataclass(kw_only=True)
class ErasedRecord:
    """A model's probabilities on inputs without some tokens, and on these tokens alone."""

    comprehensiveness_classification_scores: Probabilities | None = column("probabilities without the tokens")
    sufficiency_classification_scores: Probabilities | None = column("probabilities on the tokens alone")


@dataclass(kw_only=True)
class _Threshold:
    threshold: float = share("the share of tokens that is erased", required=True)


@dataclass(kw_only=True)
class ThresholdedScores(ErasedRecord, _Threshold):
    """Probabilities when the most important tokens are erased."""


@dataclass(kw_only=True)
class _Occlusion:
    occlusion_rate: float = share("the share of the rationale's tokens that is left out", required=True)
    trial: int | None = column("which of several draws of these tokens this is")


@dataclass(kw_only=True)
class OccludedScores(ErasedRecord, _Occlusion):
    """Probabilities when the rationale lacks a share of its tokens."""


@dataclass(kw_only=True)
class AopcBoundsRecord:
    """The least and the greatest AOPC of all rankings."""

    lower: float | None = area("the least AOPC", name="comprehensiveness_lower")
    upper: float | None = area("the greatest AOPC", name="comprehensiveness_upper")
    comprehensiveness: float | None = column(
        "the ranking's own AOPC (without: that over the thresholds)", low=-1, high=1, name="comprehensiveness_bounded"
    )
    sufficiency_lower: float | None = area("the least AOPC of sufficiency", name="sufficiency_lower")
    sufficiency_upper: float | None = area("the greatest AOPC of sufficiency", name="sufficiency_upper")
    sufficiency: float | None = area("the ranking's own", name="sufficiency_bounded")
    method: str | None = column("how the bounds were found")
    beam: int | None = column("how many orders were followed together")


@dataclass(kw_only=True)
class SoftScoresRecord:
    """Soft comprehensiveness and sufficiency of an instance."""

    comprehensiveness: float | None = share("of this instance", name="soft_comprehensiveness")
    sufficiency: float | None = share("of this instance", name="soft_sufficiency")
    draws: int | None = column("over how many masks (0: all)")
    standard_error: float | None = column("of the mean over masks")


@dataclass(kw_only=True)
class QuoteRecord:
    """A language model's quote, and its place in the text."""

    text: str | None = column("the quote as the model gave it")
    status: str | None = column(
        "exact, normalised, fuzzy, ambiguous, not_found or empty", scores="in_text, invented .."
    )
    docid: Id | None = column("the document that it was found in")
    start_token: int | None = column("its first token there", unit="tokens", low=0, scores="coverage")
    end_token: int | None = column("the token behind its last one", unit="tokens", low=1, scores="coverage")
    similarity: float | None = share("of the quote and the text at this place")


@dataclass(kw_only=True)
class ConsistencyAnswer:
    """A language model's answer to a changed question."""

    kind: str | None = column("redacted, removed, random or alone: what was changed")
    classification: str | None = column("the label that it answered")
    outcome: str | None = column('"answered", or why there is no answer')


@dataclass(kw_only=True)
class InstanceRecord:
    """A model's output for one annotation."""

    annotation_id: Id = column("which annotation this answers; each one once", required=True)
    rationales: list[RationaleRecord] | None = column("one rationale a document", scores="agreement")
    classification: str | None = column("the predicted label", scores="accuracy, macro F1")
    classification_scores: Probabilities | None = share("probabilities on the whole input", scores="everything below")
    comprehensiveness_classification_scores: Probabilities | None = share(
        "the same without the hard rationale", scores="comprehensiveness"
    )
    sufficiency_classification_scores: Probabilities | None = share(
        "the same on the hard rationale alone", scores="sufficiency"
    )
    null_classification_scores: Probabilities | None = share(
        "the same on an empty input", scores="`normalized_fidelity`"
    )
    thresholded_scores: list[ThresholdedScores] | None = column(
        "erased at each share of tokens", scores="the AOPC scores"
    )
    tokens_to_flip: float | None = column(
        "top tokens that had to go until the label changed", unit="tokens", low=0, scores="tokens_to_flip_ratio"
    )
    random_rationales: list[ErasedRecord] | None = column("the same for random rationales of this length")
    occluded_scores: list[OccludedScores] | None = column(
        "rationales with a share of their tokens occluded", scores="fidelity curves"
    )
    aopc_bounds: AopcBoundsRecord | None = column("the least and the greatest AOPC of all orders", scores="naopc_*")
    soft_scores: SoftScoresRecord | None = column("soft comprehensiveness and sufficiency", scores="soft_*")
    sensitivity_max: float | None = column("of this instance", low=0, scores="sensitivity_max")
    infidelity: float | None = column("of this instance", low=0, scores="infidelity")
    infidelity_normalized: float | None = column("of this instance", low=0, scores="infidelity_normalized")
    outcome: str | None = column('"answered", or why a model gave no answer')
    quotes: list[QuoteRecord] | None = column("a language model's quotes", scores="`quote_faithfulness`")
    asked_again: list[ConsistencyAnswer] | None = column("answers to changed questions")


INSTANCE: Record = describe(InstanceRecord)

# {label: probability} of an instance: name in flat arrays -> field; `ERASED` are those of erased inputs
SCORE_FIELDS = {
    "full": "classification_scores",
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
    "null": "null_classification_scores",
}
ERASED = ("comprehensiveness", "sufficiency")
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
    """List of erased inputs; flat arrays ``ENTRY_comprehensiveness``, ``ENTRY_sufficiency`` hold them."""

    field: str
    entry: str


LIST_FIELDS = {
    "thresholds": ListField("thresholded_scores", "threshold"),
    "draws": ListField("random_rationales", "draw"),
}
# the matrices with a column per label
LABELLED = (*SCORE_FIELDS, *(f"{entry}_{side}" for _, entry in LIST_FIELDS.values() for side in ERASED))
# shares of the tokens at which the area over the perturbation curve is measured (DeYoung et al. 2020)
AOPC_THRESHOLDS: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
OCCLUDED_FIELD, OUTCOME_FIELD, QUOTES_FIELD, CONSISTENCY_FIELD = "occluded_scores", "outcome", "quotes", "asked_again"
AOPC_BOUNDS, SOFT_MASKS = "aopc_bounds", "soft_scores"


class NumberField(NamedTuple):
    """Number of an instance: the path of its field as messages show it, its least and its greatest value."""

    field: str
    low: float
    high: float


def _find_number_fields() -> dict[str, NumberField]:
    """Return the numbers of an instance that scores read, by their names in scores."""
    numbers: dict[str, NumberField] = {}
    for one in INSTANCE.values():
        inner = {} if one.record is None or one.depth else one.record
        named = {f"{one.name}.{name}": field for name, field in inner.items() if field.facts["name"]}
        for path, field in ({one.name: one} | named).items():
            if field.kind == "number" and not field.depth:
                low, high = field.facts["low"], field.facts["high"]
                numbers[field.facts["name"] or path] = NumberField(path, low, float("inf") if high is None else high)
    return numbers


NUMBER_FIELDS = _find_number_fields()
_OTHER_FIELDS = (
    *(SCORE_FIELDS["null"], OCCLUDED_FIELD, OUTCOME_FIELD),
    *(QUOTES_FIELD, CONSISTENCY_FIELD),
)
# the fields of an instance that `eraser_faithfulness` reads
FAITHFULNESS_FIELDS = tuple(name for name in INSTANCE if name not in _OTHER_FIELDS)
