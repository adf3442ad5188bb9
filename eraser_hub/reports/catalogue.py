"""Presentation of score keys in tables: label, family and better direction.

The scores themselves, and their exact definitions, belong to the metric modules. ``catalogue.json`` lists
family -> better direction -> key -> label. A key that is not listed is shown under its own name, without a direction.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

_PART = re.compile(r"(micro|macro|matched)_(p|r)(@|$)")
PERFORMANCE, AGREEMENT, FAITHFULNESS = "performance", "agreement", "faithfulness"
QUOTES = "quotes"
FAMILIES = (AGREEMENT, FAITHFULNESS, PERFORMANCE, QUOTES)  # alphabetical, none by its merit


@dataclass(frozen=True, slots=True)
class Metric:
    """Presentation of one score key.

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


_FILE = resources.files("eraser_hub.reports") / "catalogue.json"
METRICS = {
    key: Metric(key, label, family, better)
    for family, directions in json.loads(_FILE.read_bytes()).items()
    for better, labels in directions.items()
    for key, label in labels.items()
}


def metric(key: str) -> Metric:
    """Return the presentation of a key. Thresholds stay in it (``iou_micro_f1@0.1``); an unknown key is its label."""
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


def is_precision_or_recall(key: str) -> bool:
    """Return True if a score is the precision or the recall behind an F1, which tables fold away."""
    return _PART.search(key) is not None


def format_number(value: float | None, digits: int = 3) -> str:
    """Return a score with fixed digits, or ``–`` for none."""
    if value is None or value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def format_small_print(
    interval: Sequence[float] | None,
    spread: float | None,
    chance: float | None = None,
    counted: int | None = None,
) -> str:
    """Return the small print of a score: its interval, or its spread over runs, and what else is known.

    Args:
        interval: (low, high).
        spread: over runs.
        chance: score of random rationales.
        counted: number of annotations that the score counts; None: all.
    """
    parts = [format_interval(interval) or ("" if spread is None else f"±{format_number(spread)}")]
    parts += [] if counted is None else [f"n\u00a0{counted}"]
    parts += [] if chance is None else [f"chance\u00a0{format_number(chance)}"]
    return " · ".join(filter(None, parts))


def format_interval(interval: Sequence[float] | None) -> str:
    """Return an interval with fixed digits; "" for none, or one without ends."""
    if interval is None or all(map(math.isnan, interval)):
        return ""
    return f"[{format_number(interval[0])}, {format_number(interval[1])}]"
