"""Clipped, null-normalised sufficiency and comprehensiveness, and fidelity curves under random occlusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import evaluate

from .fidelity import MIN_NULL_DIFFERENCE, fidelity_scores, measure_fidelity
from .module import RationaleMetric
from .statistics import Measured


class NormalizedFidelity(RationaleMetric, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Sufficiency and comprehensiveness of rationales, clipped to [0, 1] and normalised.

    The model's output on the empty input normalises them, so that models, classes and datasets compare. With scores at
    several occlusion rates also fidelity curves.

    Args:
        predictions: rows {p_full, p_rationale, p_complement, p_empty}: the probability of the class predicted on the
            full input, given the full input, the rationale alone, all but the rationale, the empty input. Optional:
            annotation_id (or id). For curves one row per instance, occlusion rate and trial, with annotation_id,
            occlusion_rate (0 among them) and trial. ERASER instances with classification, classification_scores,
            sufficiency_, comprehensiveness_ and null_classification_scores, and for curves occluded_scores, are
            accepted as they are.
        references: optional rows with the same ids, for their columns (by).
        smallest_null_difference: 1e-5; below it the normalised scores are 0.
        only_predicted: leave out references without an instance; the signature has the number of scored ones. By
            default they are an error.
        per_instance: adds the scores of each instance.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over clusters.
        cluster_by: the rows that are drawn together: "auto" (those that share documents), "none", or a column.
        by: a column of the rows; adds the scores per value of it.

    Returns:
        sufficiency, comprehensiveness, null_difference, normalized_sufficiency, normalized_comprehensiveness: means, in
        [0, 1], higher is better (null_difference is the model's, neither good nor bad); signature. With occlusion rates
        also occlusion_rates, sufficiency_curve, comprehensiveness_curve (of the normalised scores, a mean per rate),
        each with _std (spread over trials).

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("normalized_fidelity")
        >>> result = metric.compute(
        ...     predictions=[{"p_full": 0.9, "p_rationale": 0.8, "p_complement": 0.6, "p_empty": 0.5}])
        >>> round(result["normalized_sufficiency"], 6), round(result["null_difference"], 6)
        (0.75, 0.4)
    """

    CITATION = """\
@inproceedings{carton2020evaluating,
  title = {Evaluating and Characterizing Human Rationales},
  author = {Carton, Samuel and Rathore, Anirudh and Tan, Chenhao},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing (EMNLP)},
  year = {2020}
}
"""
    SCORES = fidelity_scores((0.0, 1.0))
    HEADLINE = ("normalized_sufficiency", "normalized_comprehensiveness")

    def measure(
        self,
        predictions: Sequence[Mapping[str, Any]] | None,
        references: Sequence[Mapping[str, Any]] | None,
        smallest_null_difference: float = MIN_NULL_DIFFERENCE,
        only_predicted: bool = False,
    ) -> Measured:
        """Measure the fidelity of all rows; see `measure_fidelity`."""
        return measure_fidelity(predictions or (), references, smallest_null_difference, only_predicted)
