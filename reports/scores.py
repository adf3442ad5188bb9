"""The scores of one system, as the report and the board read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class SystemScores:
    """One system's scores on one split.

    Attributes:
        name: what the system is called.
        scores: key -> number, or a list of numbers (points, thresholds).
        intervals: key -> (low, high) of the confidence interval.
        point_intervals: key of a list -> (low, high) of each point.
        per_instance: key -> value per annotation, in the rows' order; None where an instance has none.
        by_class: gold label -> key -> number.
        chance: for comprehensiveness and sufficiency the test against random rationales, where there are any.
        statistics: the additive statistics behind the scores, by block, for the paired comparison.
        signatures: one per metric module that gave the scores.
        missing: for each part that could not be scored, why.
    """

    name: str
    scores: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    point_intervals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    per_instance: dict[str, Sequence[float | None]] = field(default_factory=dict)
    by_class: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    chance: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    statistics: dict[str, Any] = field(default_factory=dict)
    signatures: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def number(self, key: str) -> float | None:
        """The score; None where there is none, or a list, or a count (a whole number: pairs, documents)."""
        value = self.scores.get(key)
        return value if isinstance(value, float) else None
