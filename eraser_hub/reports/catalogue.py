"""Presentation of score keys: label, family, better direction, and what a score means, rewards and misses.

The scores themselves, and their exact definitions, belong to the metric modules. ``catalogue.json`` lists
family -> better direction -> key -> presentation. A key that is not listed is shown under its own name, without a
direction.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from eraser_hub.metrics.annotators import LABEL_SCORES, TOKEN_SCORES
from eraser_hub.metrics.erasure import ERASURE_SCORES
from eraser_hub.metrics.fidelity import fidelity_scores
from eraser_hub.metrics.map import MAP_SCORES
from eraser_hub.metrics.quotes import QUOTE_SCORES
from eraser_hub.metrics.ranking import AGREEMENT_SCORES
from eraser_hub.metrics.sets import SET_SCORES
from eraser_hub.metrics.statistics import Score

PERFORMANCE, AGREEMENT, FAITHFULNESS, QUOTES = "performance", "agreement", "faithfulness", "quotes"
FAMILIES = (AGREEMENT, FAITHFULNESS, PERFORMANCE, QUOTES)  # alphabetical, none by its merit
ARROWS = {"higher": "\u00a0↑", "lower": "\u00a0↓", "": ""}
_OVERLAP = re.compile(r"(token|sentence|exact|iou)_(micro|macro|matched)_(p|r|f1)")
_UNITS = {
    "token": "Overlap of selected and marked tokens.",
    "sentence": "Overlap of selected and marked sentences.",
    "exact": "Spans that are exactly those that people marked.",
    "iou": "Spans that overlap a marked span by at least half (intersection over union).",
}
_PARTS = {"p": "right / selected", "r": "found / marked", "f1": "2PR / (P + R)"}
_MEANS = {
    "micro": "over all texts together",
    "macro": "P and R of each text, their means over texts",
    "matched": "each span matched once, over all texts together",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """Presentation of one score key.

    Attributes:
        key: the key in score files.
        label: the column's title.
        family: one of FAMILIES, or ``"other"``.
        better: ``"higher"``, ``"lower"``, or ``""`` where neither is better as such.
        meaning, formula: in words; "" where only the documentation has them.
        rewards, misses: what a high score takes, and what it does not see.
    """

    key: str
    label: str
    family: str = "other"
    better: str = ""
    meaning: str = ""
    formula: str = ""
    rewards: str = ""
    misses: str = ""

    @property
    def head(self) -> str:
        """The label with an arrow for the better direction."""
        return self.label + ARROWS[self.better]

    @property
    def rank(self) -> tuple[int, str]:
        """Sort key of tables: family, then label."""
        return (FAMILIES.index(self.family) if self.family in FAMILIES else len(FAMILIES), self.label.lower())


def _read() -> dict[str, Metric]:
    content = json.loads((resources.files("eraser_hub.reports") / "catalogue.json").read_bytes())
    metrics = {}
    for family, directions in content.items():
        for better, entries in directions.items():
            for key, entry in entries.items():
                if overlap := _OVERLAP.fullmatch(key):
                    unit, mean, part = overlap.groups()
                    entry = {"meaning": _UNITS[unit], "formula": f"{_PARTS[part]}; {_MEANS[mean]}", **entry}
                metrics[key] = Metric(key, family=family, better=better, **entry)
    return metrics


METRICS = _read()


def metric(key: str) -> Metric:
    """Return the presentation of a key. Thresholds stay in it (``iou_micro_f1@0.1``); an unknown key is its label.

    >>> metric("iou_macro_f1@0.1").label, metric("auprc_random").label, metric("mine").label
    ('IOU F1 (macro) @ 0.1', 'AUPRC, shuffled scores', 'mine')
    """
    base, _, threshold = key.partition("@")
    shuffled = base not in METRICS and base.endswith("_random")
    known = METRICS.get(base.removesuffix("_random") if shuffled else base)
    if known is None:
        return Metric(key, key)
    label = known.label + ", shuffled scores" * shuffled + f" @ {threshold}" * bool(threshold)
    return replace(known, key=key, label=label, better="" if shuffled else known.better)


_OF_MODULES = (AGREEMENT_SCORES, ERASURE_SCORES, MAP_SCORES, SET_SCORES, QUOTE_SCORES, TOKEN_SCORES, LABEL_SCORES)
DECLARED: Sequence[Mapping[str, Score]] = (*_OF_MODULES, fidelity_scores((0.0, 1.0)))


def find_range(key: str) -> tuple[float, float]:
    """Return the lowest and the highest value of a score; infinite where there is no end or no declaration.

    A score of several metrics has the widest of their ranges.

    >>> find_range("auprc"), find_range("iou_macro_r@0.1"), find_range("sufficiency")
    ((0.0, 1.0), (0.0, inf), (-1.0, 1.0))
    """
    name = key.partition("@")[0]
    known = [scores[name] for scores in DECLARED if name in scores]
    lows = [-math.inf if score.low is None else score.low for score in known]
    highs = [math.inf if score.high is None else score.high for score in known]
    return min(lows, default=-math.inf), max(highs, default=math.inf)


def format_number(value: float | None, digits: int = 3) -> str:
    """Return a score with fixed digits, or ``–`` for none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def format_interval(interval: Sequence[float] | None, digits: int = 3) -> str:
    """Return an interval with fixed digits; "" for none, or one without ends."""
    if interval is None or all(map(math.isnan, interval)):
        return ""
    return f"[{format_number(interval[0], digits)}, {format_number(interval[1], digits)}]"
