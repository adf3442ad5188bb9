"""Agreement of annotators with each other (alpha, kappas) and with their majority (kappa, precision, recall, F1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import evaluate

from .annotators import LABEL_SCORES, TOKEN_SCORES, measure_annotators
from .module import DEYOUNG2020, RationaleMetric
from .statistics import Measured


class AnnotatorAgreement(RationaleMetric, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Agreement of human annotators on the tokens of a rationale, and on the label.

    Between annotators, corrected for chance: Krippendorff's alpha (nominal) and Fleiss' kappa. Each annotator against
    the majority of the others: F1, the score that a person would reach as a system. Against the majority that holds
    the annotator himself, as in Table 2 of the ERASER paper: Cohen's kappa, precision, recall and F1, with the standard
    deviation over all (text, annotator). This kappa is biased upwards: of 2, 3 and 5 annotators who mark a fifth of the
    tokens at random it is .29, .39 and .21; alpha is 0.

    Args:
        references: rows {annotation_id, annotators}; annotators holds one list of 0/1 per annotator, one number
            per token: [[0, 1, ..], ..], all of one length, null for an annotator without marks; labels (one per
            annotator, or null) and annotator_names may stand beside it, the names are 1, 2, .. without it. Or one
            row per text and person, {annotation_id, annotator, label, rationale_positions, num_tokens}: per
            document the positions of the marked tokens and the number of tokens, as an imported corpus has them in
            annotators/NAME.parquet. The rows may be given as predictions instead; if both are given, predictions
            hold the annotators and references further columns for by.
        only_predicted: leave out references without annotators; the signature has the number of scored ones.
            By default they are an error.
        per_instance: adds each text's scores.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over texts.
        cluster_by: the rows that are drawn together: "auto" (those that share docids), "none", or a column of the rows.
        by: a column of the rows; adds the scores per value of it.

    Returns:
        krippendorff_alpha, fleiss_kappa over all tokens; label_krippendorff_alpha, label_fleiss_kappa on labels, if
        there are any: at most 1, 0 by chance, NaN where only one code occurs. leave_one_out_f1: the mean over all
        (text, annotator) of F1 against the strict majority of the others, without those where neither marks a token.
        cohen_kappa in [-1, 1], p, r, f1 in [0, 1]: means over all (text, annotator), against the strict majority that
        holds the annotator; higher is better; cohen_kappa_std, p_std, r_std, f1_std: their standard deviations
        (population); comparisons: how many (text, annotator) there are; undefined_kappas: how many of them have no
        kappa, because annotator and majority both mark everything or both nothing (they are left out of cohen_kappa
        alone; p, r and f1 are 0 where a side is empty); signature.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("annotator_agreement")
        >>> result = metric.compute(references=[
        ...     {"annotation_id": "a", "annotators": [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]]},
        ...     {"annotation_id": "b", "annotators": [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]}])
        >>> round(result["krippendorff_alpha"], 4), round(result["leave_one_out_f1"], 4)
        (0.8203, 0.8333)
        >>> round(result["cohen_kappa"], 4), round(result["f1"], 4), round(result["f1_std"], 4)
        (0.9167, 0.9444, 0.1242)
    """

    CITATION = DEYOUNG2020
    SCORES: ClassVar = {**TOKEN_SCORES, **LABEL_SCORES}
    HEADLINE = ("krippendorff_alpha", "leave_one_out_f1")

    def measure(
        self,
        predictions: Sequence[Mapping[str, Any]] | None,
        references: Sequence[Mapping[str, Any]] | None,
        only_predicted: bool = False,
    ) -> Measured:
        """Measure agreement of all texts; see `measure_annotators`."""
        return measure_annotators(predictions or (), references or (), only_predicted)
