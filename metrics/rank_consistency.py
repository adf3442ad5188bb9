"""Consistency of the ranking of an input's tokens under perturbation of the input: mean average precision.

Both forms take two lists of tokens, the most important first, and are linear in their length: with ``r(x)`` the first
rank of token ``x`` in the original list, token ``j`` of the perturbed list counts in every prefix ``i`` from
``max(j, r(x_j))`` on, so that counting where tokens enter and summing along gives each prefix its hits.

Source: Wang et al. (2022), "A Fine-grained Interpretability Evaluation Benchmark for Neural NLP", equation 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from .statistics_builder import ScoreInfo

SCORES: ScoreInfo = dict.fromkeys(("map", "map_prefix_hits", "map_full_ranking"), (True, 0.0, 1.0))
_NEVER = 2**62


def find_first_ranks(original: Sequence[str], perturbed: Sequence[str]) -> np.ndarray:
    """Return the first rank (from 1) in ``original`` of each token of ``perturbed``; 2**62 if it is absent."""
    # backwards, so that the first of several equal tokens stays
    ranks = dict(zip(reversed(original), range(len(original), 0, -1), strict=True))
    return np.fromiter(map(ranks.get, perturbed, repeat(_NEVER)), dtype=np.int64, count=len(perturbed))


def average_precision(original: Sequence[str], perturbed: Sequence[str]) -> tuple[float, float]:
    """Compute both forms of average precision of one pair of ranked token lists.

    ``map`` = (1/n) sum_i #{j <= i : x_j in original[1..i]} / i, with n = len(perturbed) and repeated tokens each
    counting. ``map_prefix_hits`` = (1/n) sum_i #{j <= i : x_j in original[1..j]} / i.

    Args:
        original: tokens of the original input, most important first.
        perturbed: tokens of the perturbed input, most important first.

    Returns:
        (map, map_prefix_hits), each in [0, 1]; 0 for an empty ``perturbed``.

    >>> average_precision(["good", "film"], ["good", "movie"])
    (0.75, 0.75)
    """
    n = len(perturbed)
    if n == 0:
        return 0.0, 0.0
    ranks = find_first_ranks(original, perturbed)
    prefixes = np.arange(1, n + 1)
    enters = np.maximum(ranks, prefixes)
    # position n + 1 counts the tokens that enter no prefix
    hits = np.cumsum(np.bincount(np.minimum(enters, n + 1), minlength=n + 2)[1 : n + 1])
    prefix_hits = np.cumsum(ranks <= prefixes)
    return float((hits / prefixes).mean()), float((prefix_hits / prefixes).mean())
