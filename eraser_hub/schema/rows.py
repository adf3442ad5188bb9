"""Records beside the instances of predictions: the rows of datasets, and those of the other modules."""

from __future__ import annotations

from dataclasses import dataclass

from .instance import ConsistencyAnswer, QuoteRecord
from .record import Id, Label, column, describe, share


@dataclass(kw_only=True)
class DocumentRecord:
    """A document of an annotation."""

    docid: Id = column("its name", required=True)
    text: str = column('sentences separated by "\\n", tokens by " "', required=True)


@dataclass(kw_only=True)
class EvidenceRecord:
    """Tokens that a person marked."""

    docid: Id = column("the document", required=True)
    text: str | None = column("the tokens")
    start_token: int = column("the first token", unit="tokens", low=0, required=True)
    end_token: int = column("the token behind the last one", unit="tokens", low=0, required=True)
    start_sentence: int | None = column("the first sentence; -1: not known", unit="sentences")
    end_sentence: int | None = column("the sentence behind the last one; -1: not known", unit="sentences")


@dataclass(kw_only=True)
class AnnotationRecord:
    """Row of a dataset, as scores read it; scores ignore further columns."""

    annotation_id: Id = column("its name; each one once", required=True)
    classification: Label | None = column("the gold label, or its number", scores="accuracy, macro F1")
    documents: list[DocumentRecord] | None = column("its documents", scores="agreement")
    evidences: list[list[EvidenceRecord]] | None = column(
        "groups of evidence; each group alone is a rationale", scores="agreement"
    )


@dataclass(kw_only=True)
class _RowIds:
    annotation_id: Id | None = column("the row's name; each one once")
    id: Id | None = column("the same")
    sent_id: Id | None = column("the same, as the benchmark's files call it")


@dataclass(kw_only=True)
class PairRow(_RowIds):
    """A model's output for a record of the perturbation benchmark."""

    rationale_tokens: list[list[str]] | None = column(
        "per sequence the tokens of its rationale, most important first", scores="map, map_prefix_hits"
    )
    kd: list[float] | None = share("the share of tokens that was ranked")
    ranked_tokens: list[list[str]] | None = column("all tokens, most important first", scores="map_full_ranking")
    rationale: list[list[int]] | None = column("per sequence the indices of its rationale", scores="token F1, IOU F1")
    pred_label: int | None = column("the predicted class, or an answer in words", scores="accuracy, new_p")
    pred_proba: list[float] | None = share("probabilities of the whole input")
    rationale_pred_proba: list[float] | None = share("of the rationale alone", scores="sufficiency")
    non_rationale_pred_proba: list[float] | None = share("of the input without it", scores="comprehensiveness")
    empty_pred_proba: list[float] | None = share("of an empty input")
    answer: str | None = column("the answer", scores="answer_f1")
    answer_proba: float | None = share("its probability")
    rationale_pred_label: str | None = column("the answer to the rationale alone", scores="new_p")
    non_rationale_pred_label: str | None = column("the answer without it", scores="new_p")
    outcome: str | None = column('"answered", or why a model gave no answer')
    quotes: list[QuoteRecord] | None = column("a language model's quotes", scores="`quote_faithfulness`")
    asked_again: list[ConsistencyAnswer] | None = column("answers to changed questions")


@dataclass(kw_only=True)
class PairRecord:
    """Record of the perturbation benchmark, as scores read it; scores ignore further columns."""

    id: Id = column("its name; each one once", required=True)
    sample_type: str | None = column('"ori" or "disturb"', scores="map")
    rel_ids: list[str] | None = column("the perturbed records of an original one", scores="map")
    rationale_ids: list[list[list[int]]] | None = column("gold sets, per sequence", scores="token F1, IOU F1")
    label: int | None = column("the gold class", scores="accuracy")
    answer: str | None = column("the gold answer", scores="answer_f1")
    answers: list[str] | None = column("several of them", scores="answer_f1")
    has_gold: bool | None = column("whether the release has a gold rationale of it")


@dataclass(kw_only=True)
class FidelityRow(_RowIds):
    """Four probabilities of the class that is predicted on the full input."""

    p_full: float | None = share("on the full input", scores="all")
    p_rationale: float | None = share("on the rationale alone", scores="sufficiency")
    p_complement: float | None = share("on all but the rationale", scores="comprehensiveness")
    p_empty: float | None = share("on the empty input", scores="null_difference")
    occlusion_rate: float | None = share("the share of the rationale that is left out", scores="curves")
    trial: int | None = column("which of several draws this is", scores="curves")


@dataclass(kw_only=True)
class AnnotatorRow(_RowIds):
    """Marks of several annotators in one text, or of one annotator."""

    annotators: list[list[int]] | None = column("a list of 0 and 1 per annotator, one number a token", scores="all")
    annotator_names: list[str] | None = column("their names; by default 1, 2, ..")
    labels: list[Label] | None = column("their labels", scores="label_ ..")
    annotator: Id | None = column("in place of `annotators`: one of them, in a row of his own", scores="all")
    label: Label | None = column("his label", scores="label_ ..")
    rationale_positions: list[list[int]] | None = column("per document the tokens that he marks", scores="all")
    num_tokens: list[int] | None = column("per document the number of tokens", unit="tokens", low=0, scores="all")
    split: str | None = column("the split of the text")
    docids: list[str] | None = column("its documents; texts that share one are drawn together")


ANNOTATION = describe(AnnotationRecord)
PERTURBATION_ROW, PERTURBATION_RECORD = describe(PairRow), describe(PairRecord)
FIDELITY_ROW, ANNOTATOR_ROW = describe(FidelityRow), describe(AnnotatorRow)
# the fields that name a row, in the order of the search
ID_FIELDS = ("annotation_id", "id", "sent_id")
# the fields of a plain row, see `metrics.plain_rows`
PLAIN_FIELDS = (*ID_FIELDS, "rationale", "scores", "quotes", "text", "tokens", "label", "probabilities")
PROBABILITIES = ("pred_proba", "rationale_pred_proba", "non_rationale_pred_proba")
# answers (words) to the rest of the input, as `pred_label` is the answer to the whole
ERASED_ANSWERS = ("rationale_pred_label", "non_rationale_pred_label")
# where an ERASER instance holds the four probabilities that `normalized_fidelity` reads
FIDELITY_FIELDS = {
    "p_full": "classification_scores",
    "p_rationale": "sufficiency_classification_scores",
    "p_complement": "comprehensiveness_classification_scores",
    "p_empty": "null_classification_scores",
}
