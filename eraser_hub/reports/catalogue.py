"""What each score key is called in a table, which family it belongs to, and which way is better.

Presentation alone: the scores themselves, and their exact definitions, belong to the metric modules. A key that is not
listed is shown under its own name, without a direction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PART = re.compile(r"(micro|macro|matched)_(p|r)(@|$)")
PERFORMANCE, AGREEMENT, FAITHFULNESS, QUOTES = "performance", "agreement", "faithfulness", "quotes"
FAMILIES = (AGREEMENT, FAITHFULNESS, PERFORMANCE, QUOTES)  # alphabetical: no family comes first for its merit


@dataclass(frozen=True, slots=True)
class Metric:
    """How one score key is presented.

    Attributes:
        key: the key in score files.
        label: the column's title.
        family: one of FAMILIES, or ``"other"``.
        better: ``"higher"``, ``"lower"``, or ``""`` where neither is better as such.
    """

    key: str
    label: str
    family: str = "other"
    better: str = ""


def _span_metrics() -> list[Metric]:
    names = {"exact": "Exact match", "token": "Token", "iou": "IOU", "sentence": "Sentence"}
    parts = {"p": "precision", "r": "recall", "f1": "F1"}
    return [
        Metric(f"{kind}_{average}_{part}", f"{name} {word} ({average})", AGREEMENT, "higher")
        for kind, name in names.items()
        for average in ("macro", "micro")
        for part, word in parts.items()
    ]


METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in [
        *_span_metrics(),
        *(
            Metric(f"iou_matched_{part}", f"IOU {word} (one-to-one)", AGREEMENT, "higher")
            for part, word in {"p": "precision", "r": "recall", "f1": "F1"}.items()
        ),
        Metric("auprc", "AUPRC", AGREEMENT, "higher"),
        Metric("average_precision", "Average precision", AGREEMENT, "higher"),
        Metric("roc_auc_score", "ROC-AUC", AGREEMENT, "higher"),
        Metric("sentence_auprc", "Sentence AUPRC", AGREEMENT, "higher"),
        Metric("sentence_average_precision", "Sentence average precision", AGREEMENT, "higher"),
        Metric("sentence_roc_auc_score", "Sentence ROC-AUC", AGREEMENT, "higher"),
        Metric("any_group_coverage", "Some evidence group covered", AGREEMENT, "higher"),
        Metric("best_group_recall", "Recall of the best evidence group", AGREEMENT, "higher"),
        Metric("answer_f1", "Answer F1", PERFORMANCE, "higher"),
        Metric("token_f1", "Token F1 (best set)", AGREEMENT, "higher"),
        Metric("iou_f1", "IOU F1 (best set)", AGREEMENT, "higher"),
        Metric("token_f1_single", "Token F1 (single set)", AGREEMENT, "higher"),
        Metric("cohen_kappa", "Cohen's kappa", AGREEMENT, "higher"),
        *(
            Metric(part, f"{word} against the majority", AGREEMENT, "higher")
            for part, word in {"p": "Precision", "r": "Recall", "f1": "F1"}.items()
        ),
        Metric("comprehensiveness", "Comprehensiveness", FAITHFULNESS, "higher"),
        Metric("sufficiency", "Sufficiency", FAITHFULNESS, "lower"),
        Metric("comprehensiveness_aopc", "Comprehensiveness (AOPC)", FAITHFULNESS, "higher"),
        Metric("sufficiency_aopc", "Sufficiency (AOPC)", FAITHFULNESS, "lower"),
        Metric("comprehensiveness_entropy", "Comprehensiveness (entropy)", FAITHFULNESS),
        Metric("sufficiency_entropy", "Sufficiency (entropy)", FAITHFULNESS),
        Metric("comprehensiveness_kl", "Comprehensiveness (KL)", FAITHFULNESS, "higher"),
        Metric("sufficiency_kl", "Sufficiency (KL)", FAITHFULNESS, "lower"),
        Metric("normalized_comprehensiveness", "Normalised comprehensiveness", FAITHFULNESS, "higher"),
        # Carton et al. (2020) turns sufficiency round: 1 minus the difference, so that higher is better
        Metric("normalized_sufficiency", "Normalised sufficiency", FAITHFULNESS, "higher"),
        Metric("sufficiency_slope", "Fidelity curve slope, sufficiency", FAITHFULNESS),
        Metric("comprehensiveness_slope", "Fidelity curve slope, comprehensiveness", FAITHFULNESS),
        Metric("null_difference", "Null difference", FAITHFULNESS),
        Metric("tokens_to_flip_ratio", "Tokens to flip (share)", FAITHFULNESS, "lower"),
        Metric("naopc_comprehensiveness", "Comprehensiveness (normalised AOPC)", FAITHFULNESS, "higher"),
        Metric("naopc_sufficiency", "Sufficiency (normalised AOPC)", FAITHFULNESS, "lower"),
        Metric("soft_comprehensiveness", "Soft comprehensiveness", FAITHFULNESS, "higher"),
        Metric("soft_sufficiency", "Soft sufficiency", FAITHFULNESS, "higher"),
        Metric("tau_loo", "Rank correlation with leave-one-out", FAITHFULNESS, "higher"),
        Metric("infidelity", "Infidelity", FAITHFULNESS, "lower"),
        Metric("infidelity_normalized", "Infidelity (scores at their best scale)", FAITHFULNESS, "lower"),
        Metric("sensitivity_max", "Largest sensitivity", FAITHFULNESS, "lower"),
        *(
            Metric(f"{key}_{of}", f"{words}, {input_}", FAITHFULNESS)
            for key, words in (("distance", "Distance from training texts"), ("entropy", "Predictive entropy"))
            for of, input_ in (
                ("whole", "whole input"),
                ("comprehensiveness", "without the rationale"),
                ("sufficiency", "rationale alone"),
            )
        ),
        Metric("mask_leak", "Label told by the mask's shape", FAITHFULNESS, "lower"),
        Metric("mask_leak_chance", "Label told by chance", FAITHFULNESS),
        Metric("eval_x", "EVAL-X: gold label told from the rationale", FAITHFULNESS, "higher"),
        Metric("map", "MAP", FAITHFULNESS, "higher"),
        Metric("map_prefix_hits", "MAP (formula two)", FAITHFULNESS, "higher"),
        Metric("map_full_ranking", "MAP (full ranking)", FAITHFULNESS, "higher"),
        Metric("new_p", "New-P", FAITHFULNESS, "higher"),
        Metric("accuracy_rationale", "Accuracy on the rationale", FAITHFULNESS, "higher"),
        Metric("accuracy_no_rationale", "Accuracy without the rationale", FAITHFULNESS, "lower"),
        Metric("accuracy", "Accuracy", PERFORMANCE, "higher"),
        Metric("macro_f1", "Macro F1", PERFORMANCE, "higher"),
        Metric("answered", "Answered", PERFORMANCE, "higher"),
        Metric("in_text", "Quotes in the text", QUOTES, "higher"),
        Metric("exact", "Quotes word for word", QUOTES, "higher"),
        Metric("normalised", "Quotes but for case, blanks, marks", QUOTES),
        Metric("fuzzy", "Quotes nearly in the text", QUOTES),
        Metric("ambiguous", "Quotes in several places", QUOTES),
        Metric("invented", "Invented quotes", QUOTES, "lower"),
        Metric("instances_with_invented", "Instances with an invented quote", QUOTES, "lower"),
        Metric("quotes_per_instance", "Quotes an instance", QUOTES),
        Metric("quote_length", "Tokens a quote", QUOTES),
        Metric("coverage", "Tokens quoted (share)", QUOTES),
        Metric("label_flip_redacted", "Label flips, quotes redacted", FAITHFULNESS, "higher"),
        Metric("label_flip_removed", "Label flips, quotes removed", FAITHFULNESS, "higher"),
        Metric("label_flip_random", "Label flips, random spans redacted", FAITHFULNESS),
        Metric("label_kept_alone", "Label kept by the quotes alone", FAITHFULNESS, "higher"),
        Metric("simulatability", "Simulatability", FAITHFULNESS, "higher"),
    ]
}


def metric(key: str) -> Metric:
    """The presentation of a key; thresholds keep theirs (``iou_micro_f1@0.1``), unknown keys their own name."""
    if key in METRICS:
        return METRICS[key]
    if key.endswith("_random"):  # the papers' baseline beside a soft score: shuffled scores
        known = metric(key.removesuffix("_random"))
        return Metric(key, f"{known.label}, shuffled scores", known.family)
    base, at, threshold = key.partition("@")
    if at and base in METRICS:
        known = METRICS[base]
        return Metric(key, f"{known.label} @ {threshold}", known.family, known.better)
    return Metric(key, key)


def is_part(key: str) -> bool:
    """Whether a score is the precision or the recall behind an F1: tables fold those away."""
    return _PART.search(key) is not None


def number(value: float | None, digits: int = 3) -> str:
    """A score as it is printed everywhere: fixed digits, a real minus sign left to the browser, ``–`` for none."""
    if value is None or value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def small_print(interval: Sequence[float] | None, spread: float | None) -> str:
    """What stands in small print beside a score: its interval, or its spread over runs; nothing for neither."""
    return interval_text(interval) or ("" if spread is None else f"±{number(spread)}")


def interval_text(interval: Sequence[float] | None) -> str:
    """An interval as it is printed everywhere; nothing for none."""
    return "" if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"
