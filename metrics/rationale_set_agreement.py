"""Token-F1 and IOU-F1 against the best of several gold rationale sets; sufficiency, comprehensiveness and New-P."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import evaluate

from .map import WANG2022
from .module import RationaleMetric
from .sets import SET_SCORES, measure_sets
from .statistics import Measured


class RationaleSetAgreement(RationaleMetric, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Agreement of predicted rationales with human ones, if an input has several alternative gold sets of tokens.

    Token-F1 and IOU-F1 against the set, or union of sets, that fits the prediction best. With labels and probabilities
    also sufficiency, comprehensiveness and New-P; with answers also their F1.

    Args:
        predictions: rows {id, rationale}; rationale holds, per sequence of the input, the indices of the chosen
            tokens: [[index, ..], ..]. Optional, in all rows or in none: pred_label with pred_proba,
            rationale_pred_proba and non_rationale_pred_proba (a list of probabilities with a class number as
            label, or {label: probability}); answer (a string; "" for none; a pred_label that is a string,
            without probabilities, is one where the references have answers) with rationale_pred_label and
            non_rationale_pred_label, the answers to the rationale alone and to the rest, for new_p.
        references: rows {id, rationale_ids}; per sequence the alternative gold sets: [[[index, ..], ..], ..];
            with answers also answers (a list of strings) or answer; with labels also label. Rows of
            bilingual_perturbation are accepted as they are: those without rationale_ids are left out of token
            F1 and IOU F1, and counted.
        iou_threshold: 0.5.
        language: "en", "zh" or None (by the text), for answer_f1.
        only_predicted: leave out references without a prediction; by default they are an error.
        paper: "wang2022": New-P is a share of all references, as in the authors' code; one without a prediction
            is a miss.
        per_instance: adds the scores of each instance.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over instances.
        cluster_by: the rows that are drawn together: "auto" (an original with its perturbed records, where the
            references have rel_ids), "none", or a column of the rows.
        by: a column of the rows; adds the scores per value of it.

    Returns:
        token_f1, iou_f1: in [0, 1], higher is better; token_f1_single: token F1 against the best single set;
        sufficiency = p(full) - p(rationale), in [-1, 1], lower is better; comprehensiveness = p(full) -
        p(rest), in [-1, 1], higher is better; new_p: share of instances with label(rationale) = label(full) !=
        label(rest); accuracy_rationale, accuracy_no_rationale (Acc_r, Acc_nr): share of instances whose label
        on the rationale alone, or on the rest, is the gold one; answer_f1: in [0, 1]; signature.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("rationale_set_agreement")
        >>> result = metric.compute(predictions=[{"id": 1, "rationale": [[1, 2, 4]]}],
        ...                         references=[{"id": 1, "rationale_ids": [[["1", "2"], ["4", "5"], ["8"]]]}])
        >>> round(result["token_f1"], 4), result["iou_f1"]
        (0.8571, 1.0)
    """

    CITATION = WANG2022
    SCORES = SET_SCORES
    HEADLINE = ("token_f1",)

    def measure(
        self,
        predictions: Sequence[Mapping[str, Any]] | None,
        references: Sequence[Mapping[str, Any]] | None,
        iou_threshold: float = 0.5,
        language: str | None = None,
        only_predicted: bool = False,
        paper: str | None = None,
    ) -> Measured:
        """Measure all rows; see `measure_sets`."""
        return measure_sets(predictions or (), references or (), iou_threshold, language, only_predicted, paper)
