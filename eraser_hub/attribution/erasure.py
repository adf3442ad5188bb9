"""From token scores to rationales, and the sets of tokens that are drawn at random.

A *ranking* lists token positions most important first; ties break by position. A *rate* is a share of an instance's
tokens (kd, an AOPC bin).
"""

from __future__ import annotations

import hashlib
import importlib
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.tokens import find_runs

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

NO_POSITIONS = np.zeros(0, dtype=np.int64)


def rank_tokens(scores: NDArray[np.float64], ties: str = "first") -> NDArray[np.int64]:
    """Return positions by falling score; of equal scores the first of the text leads, or the last (``ties``)."""
    if ties == "last":
        return np.argsort(np.asarray(scores, dtype=np.float64), kind="stable")[::-1]
    return np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")


def count_tokens_at(rate: float, tokens: int) -> int:
    """Return ``ceil(rate * tokens)`` in doubles, as the code of both papers counts.

    >>> count_tokens_at(0.1, 774), count_tokens_at(0.01, 20), count_tokens_at(0.5, 0)
    (78, 1, 0)
    """
    return min(tokens, math.ceil(rate * tokens))


def select_top(scores: NDArray[np.float64], rate: float, ties: str = "first") -> NDArray[np.int64]:
    """Return ascending positions of the highest-scored ``rate`` of the tokens."""
    return np.sort(rank_tokens(scores, ties)[: count_tokens_at(rate, len(scores))])


def select_top_units(
    values: NDArray[np.float64], bounds: NDArray[np.int64], rate: float, ties: str = "first"
) -> NDArray[np.int64]:
    """Return ascending positions of the highest-scored units, as many as hold ``rate`` of the tokens between them.

    Args:
        values: a score of each unit.
        bounds: the first token of each unit, and the number of all tokens.
        rate: the share of tokens.
        ties: of equal scores the first of the text leads, or the last.

    >>> select_top_units(np.array([0.1, 0.5, 0.3]), np.array([0, 3, 5, 9]), 0.3).tolist()
    [3, 4, 5, 6, 7, 8]
    """
    sizes = np.diff(bounds)
    order = rank_tokens(values, ties)
    count = int(np.searchsorted(np.cumsum(sizes[order]), count_tokens_at(rate, int(bounds[-1])), side="left")) + 1
    chosen = np.zeros(len(values), dtype=bool)
    chosen[order[:count]] = count_tokens_at(rate, int(bounds[-1])) > 0
    return np.flatnonzero(np.repeat(chosen, sizes))


def to_spans(positions: Iterable[int], bounds: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Convert flat positions to spans per document; neighbours within one document are merged.

    Args:
        positions: ascending flat positions.
        bounds: the documents' offsets, ``Instance.bounds``.

    Returns:
        For each document its (start_token, end_token) pairs, the end exclusive, counted within the document.

    >>> to_spans([0, 1, 4, 5, 6], [0, 5, 8])
    [[(0, 2), (4, 5)], [(0, 2)]]
    """
    ascending = list(map(int, positions))
    ends = pairwise(bisect_left(ascending, bound) for bound in bounds)
    return [find_runs(ascending[low:high], -start) for start, (low, high) in zip(bounds, ends, strict=False)]


def make_generator(seed: int, identity: str, purpose: str) -> np.random.Generator:
    """Return a random generator that depends on the seed, the instance's id and the purpose alone."""
    key = hashlib.blake2b(f"{purpose}\x1f{identity}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(key, "little")])


def draw_shifted_rationale(
    random: np.random.Generator, positions: NDArray[np.int64], bounds: Sequence[int]
) -> NDArray[np.int64]:
    """Move the rationale's spans along their document by one random distance, around its end.

    Number and (but for a span that meets the document's end) lengths of the spans stay as they are, so the draw
    differs from the rationale in place alone.
    """
    parts = []
    for start, end in pairwise(bounds):
        inside = positions[(positions >= start) & (positions < end)]
        length = end - start
        step = int(random.integers(1, length)) if length > 1 else 0
        parts.append((inside - start + step) % max(length, 1) + start)
    return np.sort(np.concatenate(parts)) if parts else NO_POSITIONS


def draw_occluded_rationale(
    random: np.random.Generator, positions: NDArray[np.int64], rate: float, each: bool = False
) -> NDArray[np.int64]:
    """Take a random ``rate`` of the tokens out of a rationale (Carton et al. (2020), section 5.2); ascending.

    Args:
        random: random generator.
        positions: ascending flat positions of the rationale.
        rate: share of its tokens that is erased.
        each: every token goes with that probability, by itself, as in the authors' code.
    """
    if each:
        return positions[random.random(len(positions)) >= rate]
    gone = math.floor(rate * len(positions) + 0.5)
    stay = random.permutation(len(positions))[gone:]
    return np.sort(positions[stay])


def limit_to_one_thread(package: str) -> AbstractContextManager[Any]:
    """Return a block in which a package's linear algebra takes one thread.

    So small a system is solved fastest by one: several mostly wait for each other, on a busy machine ten times as long
    as the work takes; and the result is the same whatever the number of cores.
    """
    limits: AbstractContextManager[Any] = _find_thread_pools(package).limit(limits=1)
    return limits


@cache
def _find_thread_pools(package: str) -> ThreadpoolController:
    """Return the thread pools there are once a package is imported; to look for them takes long."""
    from threadpoolctl import ThreadpoolController

    importlib.import_module(package)
    return ThreadpoolController()
