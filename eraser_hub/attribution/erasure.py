"""From token scores to rationales, and the sets of tokens that are drawn at random.

A *ranking* lists token positions most important first; ties break by position. A *rate* is a share of an instance's
tokens (kd, an AOPC bin).
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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


def select_top(
    scores: NDArray[np.float64], rate: float, ties: str = "first", bounds: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return ascending positions of the tokens of the highest-scored units, as few as hold ``rate`` of all tokens.

    Args:
        scores: a score of each unit.
        rate: the share of tokens.
        ties: of equal scores the first of the text leads, or the last.
        bounds: the first token of each unit, and the number of all tokens; None where each unit is a token.

    >>> select_top(np.array([0.1, 0.5, 0.3]), 0.3, bounds=np.array([0, 3, 5, 9])).tolist()
    [3, 4, 5, 6, 7, 8]
    """
    order = rank_tokens(scores, ties)
    if bounds is None:
        return np.sort(order[: count_tokens_at(rate, len(scores))])
    sizes, tokens = np.diff(bounds), count_tokens_at(rate, int(bounds[-1]))
    count = int(np.searchsorted(np.cumsum(sizes[order]), tokens, side="left")) + 1
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[order[:count]] = tokens > 0
    return np.flatnonzero(np.repeat(chosen, sizes))


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
