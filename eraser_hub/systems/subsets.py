"""Random subsets of texts, on which EVAL-X's evaluator is trained (Jethani et al. 2021, "Have We Learned to Explain?").

A model that has seen random subsets of tokens knows p(label | these tokens) of any of them, and no selector was trained
beside it: what it tells from a rationale is what the rationale says. The paper keeps each feature with probability 1/2;
rationales are a tenth of a text, so here the share itself is drawn, between none and all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.erasure import generator
from eraser_hub.attribution.instances import Instance

from .recipe import SUBSETS

SUBSETS_EACH = 10  # of each text; a network sees one of them in an epoch


def subsets_of(instances: Sequence[Instance], seed: int) -> list[Instance]:
    """:data:`SUBSETS_EACH` subsets of each text: the first of all, then the second of all, ..

    Each keeps a uniformly drawn share of the tokens, every token by itself, and one at least where there is any. What
    is drawn hangs on the seed and the instance's id alone.
    """
    rows = [_subsets(one, seed) for one in instances]
    return [row[number] for number in range(SUBSETS_EACH) for row in rows]


def _subsets(one: Instance, seed: int) -> list[Instance]:
    random, tokens = generator(seed, one.id, SUBSETS), one.bounds[-1]
    subsets = []
    for _ in range(SUBSETS_EACH):
        ranks = random.random(tokens)
        kept = ranks < random.random()
        if tokens and not kept.any():
            kept[ranks.argmin()] = True
        subsets.append(one.only(kept))
    return subsets


def in_turn(texts: int, copies: int) -> Callable[[int], NDArray[np.int64]] | None:
    """Which of the copies of each text an epoch trains on; None where there is one.

    Args:
        texts: how many there are; copy c of text i is number ``c * texts + i``.
    """
    if copies == 1:
        return None
    return lambda epoch: (epoch % copies) * texts + np.arange(texts)
