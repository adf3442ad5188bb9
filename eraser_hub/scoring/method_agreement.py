"""Agreement of systems on the ranking of tokens: rank correlation, and overlap of the top tokens.

A figure is the mean over the instances that both systems score, with a bootstrap interval over the documents that these
share; of one system it is that of its own runs against one another (trained by other seeds).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.rank_correlation import top_overlap
from eraser_hub.schema.instance import SOFT_FIELDS

from .mask_leaks import compute_document_interval
from .settings import ScoreSettings

TOP_SHARE = 0.1  # of an instance's tokens
Docids = tuple[str, ...]
# instance -> its documents, and the soft scores of all of them
Rankings = Mapping[str, tuple[Docids, NDArray[np.float64]]]
Measure = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


class RankAgreement(NamedTuple):
    """Agreement of two systems.

    Attributes:
        mean: over the instances for which the measure is defined.
        interval: of the mean; None where none was asked for, or a single cluster leaves nothing to draw.
        instances: how many these are.
    """

    mean: float
    interval: tuple[float, float] | None
    instances: int


def collect_soft_scores(answers: Mapping[str, Mapping[str, Any]]) -> Rankings:
    """Return the soft scores of each instance that has some, its documents sorted by name."""
    field = SOFT_FIELDS["soft"].field
    scores = {}
    for identity, instance in answers.items():
        rationales = sorted(instance.get("rationales") or (), key=lambda one: str(one["docid"]))
        if rationales and all(one.get(field) is not None for one in rationales):
            values = np.concatenate([np.asarray(one[field], dtype=np.float64) for one in rationales])
            scores[identity] = tuple(str(one["docid"]) for one in rationales), values
    return scores


def compute_top_overlap(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the share of the top tenth of tokens that both rankings have in common."""
    return top_overlap(left, right, math.ceil(TOP_SHARE * len(left)))


def compute_pair_values(
    measure: Measure, pairs: Sequence[tuple[Rankings, Rankings]]
) -> tuple[list[float], list[Docids]]:
    """Return the measure of each instance that both have and its documents, where the measure is defined."""
    values, docids = list[float](), list[Docids]()
    for left, right in pairs:
        for identity, (documents, scores) in left.items():
            _, others = right.get(identity, ((), scores[:0]))
            if identity in right and len(scores) == len(others) and not math.isnan(value := measure(scores, others)):
                values.append(value)
                docids.append(documents)
    return values, docids


def compute_agreement(
    measure: Measure, first: Sequence[Rankings], second: Sequence[Rankings], settings: ScoreSettings
) -> RankAgreement | None:
    """Return the agreement of two systems, or of the runs of one; None if no instance has a value.

    Args:
        measure: a measure of two rankings of an instance's tokens; NaN if it is undefined.
        first: the runs of a system, of which the first one is compared.
        second: the runs of the other system; the same list compares the runs of one system with one another.
        settings: of the interval.
    """
    pairs = list(combinations(first, 2)) if first is second else [(first[0], second[0])]
    values, docids = compute_pair_values(measure, pairs)
    if not values:
        return None
    lowest = 0.0 if measure is compute_top_overlap else -1.0  # a correlation's
    interval = compute_document_interval(np.array(values), docids, settings, lowest)
    return RankAgreement(math.fsum(values) / len(values), interval, len(values))
