"""Faithfulness of rationales (ERASER): comprehensiveness, sufficiency, AOPC, entropy, KL, tokens to flip."""

from __future__ import annotations

from collections.abc import Sequence

import evaluate
import numpy as np

from eraser_hub.schema.instance import AOPC_THRESHOLDS, FAITHFULNESS_FIELDS, INSTANCE
from eraser_hub.schema.rows import ANNOTATION

from .batches import Measured
from .checks import check_rationales, name_labels
from .erasure import SCORE_INFO
from .faithfulness import Faithfulness
from .flat import Predictions, References
from .instances import InstanceBatches
from .issues import InputError, IssuesByRule
from .matching import DOCUMENTS, FIELDS, THRESHOLDS, Matcher, describe_left_out
from .sources import ERASER
from .statistics_builder import make_info


class EraserFaithfulness(InstanceBatches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Faithfulness of a model's rationales: how far it relied on them, as the ERASER benchmark measures it.

    The loss of the predicted class's probability when the rationale is erased (comprehensiveness), and when nothing but
    the rationale is left (sufficiency), at one rationale length and over several (AOPC).

    Args:
        predictions: ERASER instances (list of dicts, Dataset or Arrow table), in any order: {"annotation_id",
            "classification": label, "classification_scores": {label: p}, and of these what is to be scored:
            "comprehensiveness_classification_scores" (p without the rationale),
            "sufficiency_classification_scores" (p on the rationale alone), "thresholded_scores": [{"threshold",
            and the same two}], "tokens_to_flip": int, "random_rationales": [{the same two}], "aopc_bounds":
            {"lower", "upper", "sufficiency_lower", "sufficiency_upper", and the AOPC that they bound,
            "comprehensiveness", "sufficiency": without, the one over the thresholds}, "soft_scores":
            {"comprehensiveness", "sufficiency"}, "sensitivity_max",
            "infidelity", "infidelity_normalized"}. A
            field is in all instances or in none.
        references: optional; dataset rows with annotation_id, classification (for accuracy and macro F1),
            documents and evidences (for tokens_to_flip_ratio); ids are compared as strings.
        aopc_thresholds: the thresholds that every instance must have, by default 0.01 0.05 0.1 0.2 0.5.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
            By default they are an error.
        per_instance: adds per_instance: {key: [score per instance], "annotation_id": [..], "cluster": [..]}.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over clusters.
        cluster_by: the annotations that are drawn together: "auto" (those that share a document, directly or
            through others), "none", or a column of the references or of the predictions. Without references the
            documents of the rationales count.
        by: "classification" or another column of the references; adds by: {value: {key: score}}.
        label_names: the labels; also names of the integers in the references' classification.

    Returns:
        comprehensiveness (higher is better) and sufficiency (lower is better), both in [-1, 1]; *_entropy, the
        difference of entropies; *_kl, KL(erased || full) in nats; aopc_thresholds, *_aopc, *_aopc_points; with
        references accuracy, macro_f1, tokens_to_flip_ratio; naopc_comprehensiveness and soft_* (higher is better),
        naopc_sufficiency (lower is better), sensitivity_max and infidelity (lower is better); with random_rationales
        *_chance: p_value, win_rate, effect_size; signature.

    Raises:
        ValueError: wrong input; it names the instance and the field, at most ten issues, and their number.

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

    SOURCE = ERASER
    INPUTS = ((INSTANCE, FAITHFULNESS_FIELDS), (ANNOTATION, ()))
    HIGHER_IS_BETTER, RANGES = make_info(SCORE_INFO)

    REFERENCES_NEEDED = False

    def _measure(
        self,
        p: Predictions,
        r: References | None,
        label_names: Sequence[str] | None = None,
        aopc_thresholds: Sequence[float] = AOPC_THRESHOLDS,
        only_predicted: bool = False,
    ) -> Measured:
        if not len(aopc_thresholds) or not all(0 <= value <= 1 for value in aopc_thresholds):
            message = f"expected numbers in [0, 1], at least one, found {aopc_thresholds!r}"
            raise InputError(message, "option-value", "aopc_thresholds")
        rules = IssuesByRule(FIELDS, DOCUMENTS, THRESHOLDS)
        matcher = Matcher(r, rules, only_predicted=only_predicted)
        if r is not None:
            name_labels(r, label_names, rules["label names"])
        ids = p.ids if r is None else r.ids
        faithfulness = Faithfulness(matcher, len(ids), label_names, aopc_thresholds)
        part = matcher.match(p)
        # if the references have documents, those of rationales must be among them
        tokens = np.full(part.p.doc.size, np.iinfo(np.int64).max)
        if part.documents.tokens.size:
            tokens, _ = part.lengths
        check_rationales(part, tokens, rules["documents"])
        faithfulness.add(part)
        matcher.finish()
        faithfulness.finish()
        left_out = faithfulness.left_out()
        statistics = matcher.statistics(faithfulness.builder, ids, left_out)
        extra: dict[str, object] = (
            {"aopc_thresholds": faithfulness.thresholds} if "thresholds" in matcher.fields.used else {}
        )
        extra |= {f"{side}_chance": compared for side, compared in faithfulness.against_chance().items()}
        notes = [*describe_left_out(left_out), *matcher.plausibility.notes()]
        return Measured(statistics, None, faithfulness.signature_settings(), extra, notes)
