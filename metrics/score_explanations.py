"""Headline scores in words: the direction, what a score rewards and misses.

The values come from the modules; nothing here computes a score. A Space holds this file beside its app.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Scores = Mapping[str, Any]
ARROWS = {"higher": "↑", "lower": "↓", "": ""}
DIRECTIONS = {"higher": "higher is better", "lower": "lower is better", "": "neither is better"}


@dataclass(frozen=True)
class Explanation:
    """A headline score as a page shows it.

    Attributes:
        key: The key in the result.
        label: The name for people.
        value: The module's value.
        better: ``higher``, ``lower``, or empty where neither is better.
        range: Least and greatest value; None for no bound.
        rewards: A sentence on good values.
        misses: A sentence on its blind spot.
        chance: The score of random rationales of the same size; None where it is not known.
    """

    key: str
    label: str
    value: float
    better: str
    range: tuple[float | None, float | None]
    rewards: str = ""
    misses: str = ""
    chance: float | None = None


def explain_scores(
    module: str,
    scores: Scores,
    *,
    ranges: Mapping[str, tuple[float | None, float | None]] | None = None,
    headline: Iterable[str] = (),
) -> list[Explanation]:
    """Return the headline scores of a result, in the order of `HEADLINES`.

    Args:
        module: The module's name, e.g. ``eraser_faithfulness``.
        scores: Its result.
        ranges: Key -> least and greatest value, as the module declares them (``RANGES``).
        headline: The scores of a module that `HEADLINES` does not list.
    """
    labels = read_labels()
    shown = []
    for key in HEADLINES.get(module, tuple(headline)):
        value = scores.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        rewards, misses = TEXTS.get(key, ("", ""))
        label, better = labels.get(key, (key, ""))
        chance = (scores.get("chance") or {}).get(key)
        bounds = (ranges or {}).get(key, (None, None))
        shown.append(Explanation(key, label, value, better, bounds, rewards, misses, chance))
    return shown


def read_labels() -> dict[str, tuple[str, str]]:
    """Return key -> (name for people, better direction) of every score in ``catalogue.json``."""
    families = json.loads((Path(__file__).resolve().parent / "catalogue.json").read_text(encoding="utf-8"))
    return {
        key: (label, better)
        for directions in families.values()
        for better, labels in directions.items()
        for key, label in labels.items()
    }


def format_value(value: float) -> str:
    """Format a score for people: two digits, a minus sign, and a dash where it is undefined."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{value:.2f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


HEADLINES: dict[str, tuple[str, ...]] = {
    "eraser_agreement": ("token_macro_f1", "iou_macro_f1", "auprc", "sentence_macro_f1"),
    "eraser_faithfulness": ("comprehensiveness", "sufficiency", "comprehensiveness_aopc", "sufficiency_aopc"),
    "perturbation_map": ("map",),
    "rationale_set_agreement": ("token_f1", "iou_f1"),
    "normalized_fidelity": ("normalized_sufficiency", "normalized_comprehensiveness"),
    "annotator_agreement": ("krippendorff_alpha", "pairwise_kappa", "cohen_kappa"),
    "quote_faithfulness": ("in_text", "invented", "coverage"),
}
# key -> what it rewards, what it misses
TEXTS: dict[str, tuple[str, str]] = {
    "token_macro_f1": (
        "Rewards marking the tokens that people marked, and no others.",
        "It does not ask whether the model used them, and it counts a token beside the evidence as wrong.",
    ),
    "iou_macro_f1": (
        "Rewards spans that overlap a gold span by half or more; exact ends are not needed.",
        "A span of which a little less than half overlaps counts nothing.",
    ),
    "auprc": (
        "Rewards soft scores that put gold tokens before all others; no threshold is needed.",
        "The size of the scores does not count, only their order.",
    ),
    "sentence_macro_f1": (
        "Rewards choosing the sentences that hold the evidence.",
        "One token is enough to choose a sentence.",
    ),
    "token_f1": (
        "Rewards agreement with one of several gold sets, the best one.",
        "The other gold sets count nothing.",
    ),
    "iou_f1": (
        "Rewards spans that overlap a gold span by half or more.",
        "A span of which a little less than half overlaps counts nothing.",
    ),
    "comprehensiveness": (
        "Rewards tokens that the model needs: without them it loses its confidence.",
        "A long rationale takes much away and scores high; an erased text is unlike any that the model has seen.",
    ),
    "sufficiency": (
        "Rewards tokens that are enough: on them alone the model keeps its confidence.",
        "The whole text as a rationale scores a perfect 0.",
    ),
    "comprehensiveness_aopc": (
        "Rewards soft scores that put the tokens first that the model needs, at several lengths.",
        "It depends on the model: values of two models are not comparable.",
    ),
    "sufficiency_aopc": (
        "Rewards soft scores that put the tokens first that are enough, at several lengths.",
        "It depends on the model: values of two models are not comparable.",
    ),
    "normalized_sufficiency": (
        "Rewards a rationale that keeps the confidence which the empty text loses.",
        "Texts whose confidence does not drop without any text say nothing.",
    ),
    "normalized_comprehensiveness": (
        "Rewards a rationale that takes away the confidence which the empty text loses.",
        "Values above 1 count as 1.",
    ),
    "map": (
        "Rewards a ranking that stays when the text is changed and its meaning is not.",
        "A ranking that is always wrong in the same way scores 1.",
    ),
    "krippendorff_alpha": (
        "Rewards agreement of all annotators beyond chance, token by token.",
        "A span that is one token too long counts as little as a stray token.",
    ),
    "pairwise_kappa": (
        "Rewards agreement of two people beyond what their shares of marked tokens give by chance.",
        "It is low where marks are rare, even if most tokens agree.",
    ),
    "cohen_kappa": (
        "Rewards agreement with the majority of the annotators.",
        "Each annotator is part of that majority, so chance is above 0.",
    ),
    "in_text": (
        "Rewards quotes that stand in the text, word for word or but for case, blanks and marks.",
        "A true quote may be beside the point.",
    ),
    "invented": (
        "Counts quotes that stand nowhere in the text.",
        "A model without quotes invents none.",
    ),
    "coverage": (
        "Tells how much of the text is quoted.",
        "Neither much nor little is better.",
    ),
}
