"""One score per word token, by any method.

Scores explain a label, by default the predicted one. They are signed where the method is (a token that speaks against
the label has a negative score and ranks last); gradient norms and attention are not. The same seed gives the same
scores, whatever the order or number of workers.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .adapter import Adapter, Notes
from .chunk import Chunk, Scores
from .method import METHODS

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

ALL_ZERO = "instances whose scores are all zero: nothing to normalise"


def supports(model: Adapter, name: str) -> bool:
    """Return whether a method can be computed for a model: by what it needs, or because the adapter says so."""
    return set(METHODS[name].needs) <= model.provides or model.supports(name)


def attribute(chunk: Chunk) -> list[NDArray[np.float64]]:
    """Return the scores of a chunk by the method of its settings, each of shape (tokens,).

    Raises:
        DataError: the model does not allow the method; scores that are not finite.
    """
    name, model = chunk.settings.method, chunk.model
    method = METHODS.find(name)
    if not supports(model, name):
        allowed = ", ".join(other for other in METHODS if supports(model, other))
        words = f"not possible with {model.description}; it allows {allowed}"
        raise DataError(f"`method` {name}: {words}", rule="unsupported")
    rows = method().scores(chunk)
    for one, scores in zip(chunk.instances, rows, strict=True):
        if not np.isfinite(scores).all():
            raise DataError(
                f"`method` {name}: {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} token scores are NaN or "
                "infinite",
                rule="model-output",
                instance=one.id,
            )
    normalised = chunk.settings.choices.normalise and method.normalised
    return [_shares(scores, model.notes) if normalised else scores for scores in rows]


def _shares(scores: Scores, notes: Notes) -> Scores:
    """Return scores divided by their sum; zeros stay zeros, and are counted (the authors' code divides 0 by 0)."""
    total = scores.sum()
    if total == 0:
        if len(scores):
            notes.count(ALL_ZERO)
        return scores
    return np.asarray(scores / total)


def one_thread(package: str) -> AbstractContextManager[Any]:
    """Return a block in which a package's linear algebra takes one thread.

    So small a system is solved fastest by one: several mostly wait for each other, on a busy machine ten times as long
    as the work takes; and the result is the same whatever the number of cores.
    """
    limits: AbstractContextManager[Any] = _thread_pools(package).limit(limits=1)
    return limits


@cache
def _thread_pools(package: str) -> ThreadpoolController:
    """Return the thread pools there are once a package is imported; to look for them takes long."""
    from threadpoolctl import ThreadpoolController

    importlib.import_module(package)
    return ThreadpoolController()
