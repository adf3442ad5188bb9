"""Checks of scores that come from outside: each in the range that its metric declares, and within its interval."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from eraser_hub.metrics.annotators import LABEL_SCORES, TOKEN_SCORES
from eraser_hub.metrics.erasure import ERASURE_SCORES
from eraser_hub.metrics.fidelity import fidelity_scores
from eraser_hub.metrics.map import MAP_SCORES
from eraser_hub.metrics.quotes import QUOTE_SCORES
from eraser_hub.metrics.ranking import AGREEMENT_SCORES
from eraser_hub.metrics.sets import SET_SCORES
from eraser_hub.metrics.statistics import Score
from eraser_hub.records.errors import DataError

# a score is a sum of many rounded numbers
SLACK = 1e-9
# with lower levels than this the interval of a skewed score may lie beside it
MIN_LEVEL = 0.5
_LEVEL = re.compile(r"\|level:(\d*\.?\d+(?:e-\d+)?)")
_OF_MODULES = (AGREEMENT_SCORES, ERASURE_SCORES, MAP_SCORES, SET_SCORES, QUOTE_SCORES, TOKEN_SCORES, LABEL_SCORES)
SCORES: Sequence[Mapping[str, Score]] = (*_OF_MODULES, fidelity_scores((0.0, 1.0)))


def find_range(key: str) -> tuple[float, float]:
    """Return the lowest and the highest value of a score; infinite where there is no end or no declaration.

    A score of several metrics has the widest of their ranges.

    >>> find_range("auprc"), find_range("iou_macro_r@0.1"), find_range("sufficiency")
    ((0.0, 1.0), (0.0, inf), (-1.0, 1.0))
    """
    name = key.partition("@")[0]
    known = [scores[name] for scores in SCORES if name in scores]
    lows = [-math.inf if score.low is None else score.low for score in known]
    highs = [math.inf if score.high is None else score.high for score in known]
    return min(lows, default=-math.inf), max(highs, default=math.inf)


def check_scores(
    scores: Mapping[str, float | None],
    intervals: Mapping[str, tuple[float, float]],
    spread: Mapping[str, float],
    signatures: Sequence[str],
) -> None:
    """Refuse a score or an end of an interval outside its range, and an interval without its score.

    Args:
        scores: key -> score.
        intervals: key -> (low, high).
        spread: key -> standard deviation over runs.
        signatures: they state the level of the intervals.

    Raises:
        DataError: the first such score; names the key, what was expected and what was found.
    """
    levels = [float(level) for line in signatures for level in _LEVEL.findall(line)]
    holds = min(levels, default=1.0) >= MIN_LEVEL
    bounds = [(key, value, *find_range(key)) for key, value in scores.items() if value is not None]
    for key, (low, high) in intervals.items():
        least, greatest = find_range(key)
        score = scores[key] if holds else None
        bounds.append((f"{key}_ci[0]", low, least, high if score is None else min(high, score)))
        bounds.append((f"{key}_ci[1]", high, low if score is None else max(low, score), greatest))
    bounds += [(f"{key}_spread", value, 0.0, math.inf) for key, value in spread.items()]
    for field, value, low, high in bounds:
        if not low - SLACK <= value <= high + SLACK:
            ends = [f"at least {low:g}"] * math.isfinite(low) + [f"at most {high:g}"] * math.isfinite(high)
            raise DataError(f"expected {' and '.join(ends)}, found {value:g}", field=field)
