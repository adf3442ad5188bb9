"""Power of a comparison: what a pilot's variance components say of other numbers of documents and runs.

The squared standard error with n documents and R runs of each system is

    documents / n + runs / R + interaction / (n R)

and a difference d is found with the power ``P(T > t - d / error)``, T and t of Student's distribution with
Satterthwaite's degrees of freedom (n - 1 of documents, 2 (R - 1) of runs). Draws of a random method count as runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eraser_hub.records.errors import DataError, show

from .student import quantile, two_sided_p
from .verdicts import ALPHA

POWER = 0.8
MOST_DOCUMENTS = 1_000_000


@dataclass(frozen=True)
class Pilot:
    """Variances of the difference of two systems in a score, for one document and one run each.

    Attributes:
        documents: between documents.
        runs: between runs, of both systems together; 0 if the pilot has one run of each.
        interaction: of documents with runs, likewise.
    """

    documents: float
    runs: float = 0.0
    interaction: float = 0.0

    def error(self, n: int, runs: int = 1) -> float:
        """Return the standard error of the difference with so many documents and runs."""
        return math.sqrt(self.documents / n + self.runs / runs + self.interaction / (n * runs))

    def df(self, n: int, runs: int = 1) -> float:
        """Return the degrees of freedom of that error."""
        by_document = (self.documents + self.interaction / runs) / n
        by_run = self.runs / runs
        precision = by_document**2 / (n - 1) + (by_run**2 / (2 * (runs - 1)) if runs > 1 else 0.0)
        used = by_document + (by_run if runs > 1 else 0.0)
        return max(1.0, used**2 / precision) if precision > 0 else n - 1.0

    def power(self, effect: float, n: int, runs: int = 1) -> float:
        """Return the probability that a test at .05 finds a difference of this size."""
        error, df = self.error(n, runs), self.df(n, runs)
        if error <= 0:
            return 1.0 if effect else ALPHA
        x = abs(effect) / error - quantile(1 - ALPHA / 2, df)
        tail = float(two_sided_p(x, df)) / 2
        return 1 - tail if x > 0 else tail

    def effect(self, n: int, runs: int = 1, power: float = POWER) -> float:
        """Return the difference that is found with this power."""
        df = self.df(n, runs)
        return (quantile(1 - ALPHA / 2, df) + quantile(power, df)) * self.error(n, runs)

    def documents_for(self, effect: float, runs: int = 1, power: float = POWER) -> int | None:
        """Return the least number of documents with this power; None where no number has it: more runs are needed."""
        if self.power(effect, MOST_DOCUMENTS, runs) < power:
            return None
        low, high = 1, 2
        while self.power(effect, high, runs) < power:
            low, high = high, min(2 * high, MOST_DOCUMENTS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(effect, middle, runs) >= power else (middle, high)
        return high


def make_pilot(result: Mapping[str, Any], key: str, pair: int = 0) -> Pilot:
    """Return the pilot that a comparison is for a later one.

    Args:
        result: what ``compare`` gave.
        key: the score.
        pair: the pair of systems, by its place.

    Raises:
        DataError: the systems do not share the score, or nothing is known of its variance.
    """
    comparison = result["comparisons"][pair]
    if key not in comparison["keys"]:
        message = f"expected one of {', '.join(comparison['keys'])}, found {show(key)}"
        raise DataError(message, rule="option-value", argument="key")
    parts = comparison["keys"][key]["components"]
    if any(value is None or math.isnan(value) for value in parts.values()):
        raise DataError(f"{key}: expected variance components, found none", rule="score-missing")
    counts = [result["runs"][comparison[side]] for side in ("first", "second")]
    several = [count for count in counts if count > 1] or [1]
    runs, n = len(several) / sum(1 / count for count in several), result["clusters"]
    return Pilot(parts["documents"] * n, (parts["runs"] + parts["draws"]) * runs, parts["interaction"] * n * runs)


def describe_power(pilot: Pilot, n: int, effects: Sequence[float], runs: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row for each number of runs: the difference that n documents find, and documents needed for each effect.

    Args:
        pilot: the variances.
        n: number of documents at hand.
        effects: differences to find.
        runs: numbers of runs of each system.
    """
    return [
        {"runs": count, "detectable": pilot.effect(n, count)}
        | {f"documents for {effect:g}": pilot.documents_for(effect, count) for effect in effects}
        for count in runs
    ]
