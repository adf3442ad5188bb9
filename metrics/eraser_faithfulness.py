"""Faithfulness of rationales (ERASER): comprehensiveness, sufficiency, AOPC, entropy, KL, tokens to flip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate
import numpy as np

from .erasure import ERASURE_SCORES, describe_erasure, erasure_scores, measure_erasure
from .errors import DataError
from .gold import read_gold
from .match import Matcher
from .module import DEYOUNG2020, RationaleMetric
from .plain import to_instances
from .predictions import read_predictions
from .spans import match_rationales
from .statistics import Measured, Statistics, find_components, number_values


class EraserFaithfulness(RationaleMetric, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Faithfulness of a model's rationales: how far it relied on them, as the ERASER benchmark measures it.

    The loss of the predicted class's probability when the rationale is erased (comprehensiveness), and when nothing but
    the rationale is left (sufficiency), at one rationale length and over several (AOPC).

    Args:
        predictions: ERASER instances, in any order: {"annotation_id", "classification": label,
            "classification_scores": {label: p}, and of these what is to be scored:
            "comprehensiveness_classification_scores" (p without the rationale), "sufficiency_classification_scores" (p
            on the rationale alone), "thresholded_scores": [{"threshold", and the same two}], "tokens_to_flip": int,
            "aopc_bounds": {"lower", "upper", "sufficiency_lower", "sufficiency_upper", and the AOPC that they bound,
            "comprehensiveness", "sufficiency": without, the one over the thresholds}, "soft_scores":
            {"comprehensiveness", "sufficiency"}, "sensitivity_max", "infidelity", "infidelity_normalized"}. A field is
            in all instances or in none.
        references: optional; dataset rows with annotation_id, classification (for accuracy and macro F1), documents
            and evidences (for tokens_to_flip_ratio); ids are compared as strings.
        aopc_thresholds: the thresholds that every instance must have; by default those of the first instance.
        only_predicted: leave out references without an instance; the signature has the number of scored ones. By
            default they are an error.
        label_names: the labels; also names of the integers in the references' classification.
        per_instance: adds per_instance: {key: [score per instance], "annotation_id": [..], "cluster": [..]}.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over clusters.
        cluster_by: the annotations that are drawn together: "auto" (those that share a document, directly or through
            others), "none", or a column of the references or of the predictions. Without references the documents of
            the rationales count.
        by: "classification" or another column of the references; adds by: {value: {key: score}}.

    Returns:
        comprehensiveness (higher is better) and sufficiency (lower is better), both in [-1, 1]; *_entropy, the
        difference of entropies; *_kl, KL(erased || full) in nats; aopc_thresholds, *_aopc, *_aopc_points; with
        references accuracy, macro_f1, tokens_to_flip_ratio; naopc_comprehensiveness and soft_* (higher is better),
        naopc_sufficiency (lower is better), sensitivity_max and infidelity (lower is better); signature.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("eraser_faithfulness")
        >>> predictions = [{"annotation_id": "a1", "rationales": [], "classification": "POS",
        ...                 "classification_scores": {"NEG": .25, "POS": .75},
        ...                 "comprehensiveness_classification_scores": {"NEG": .75, "POS": .25},
        ...                 "sufficiency_classification_scores": {"NEG": .25, "POS": .75}}]
        >>> scores = metric.compute(predictions=predictions)
        >>> scores["comprehensiveness"], scores["sufficiency"], round(scores["comprehensiveness_kl"], 4)
        (0.5, 0.0, 0.5493)
        >>> references = [{"annotation_id": "a1", "classification": 1}]
        >>> metric.compute(predictions=predictions, references=references, label_names=["NEG", "POS"])["accuracy"]
        1.0
    """

    CITATION = DEYOUNG2020
    SCORES = ERASURE_SCORES
    HEADLINE = ("comprehensiveness_aopc", "sufficiency_aopc", "macro_f1")

    def measure(
        self,
        predictions: list[Any],
        references: list[Any] | None,
        aopc_thresholds: Sequence[float] | None = None,
        only_predicted: bool = False,
        label_names: Sequence[str] | None = None,
    ) -> Measured:
        """Return the faithfulness of all instances; see the class."""
        if not predictions:
            raise DataError("expected at least one instance, found none", argument="predictions")
        instances, rows, changes = to_instances(predictions, references)
        gold = None if rows is None else read_gold(rows, label_names)
        p = read_predictions(instances)
        matcher = Matcher(gold, only_predicted, label_names, aopc_thresholds)
        match = matcher.add(p)
        match_rationales(match)  # spans and soft scores are checked, as `score` does
        columns = measure_erasure(match)
        matcher.finish()
        scores = erasure_scores(columns)
        facts, extra, lacking = describe_erasure(scores, columns, matcher)
        if not scores:
            message = f"nothing to score: expected {' or '.join(lacking)}, found none of them"
            raise DataError(message, argument="predictions")
        words = [f"{', '.join(keys)} (no {field})" for field, keys in lacking.items()]
        notes = [f"left out: {'; '.join(words)}"] if words else []
        if gold is None:
            clusters = find_components(p.owner, number_values(p.docids), len(p.ids))
        elif (clusters := gold.clusters()) is not None:
            clusters = clusters[match.rows]
        clustering = "none" if clusters is None else "documents"
        statistics = Statistics(match.ids, columns, scores, clusters, clustering).take(np.argsort(match.rows))
        data = {} if gold is None else {"data": gold.digest()[:12]}
        return Measured(statistics, {**data, **facts, **matcher.facts()}, extra, [*changes, *notes, *matcher.notes()])
