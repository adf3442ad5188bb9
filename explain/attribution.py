"""One score per word token: the eight attribution methods.

Scores explain the model's predicted label. They are signed where the method is (a token that speaks against the label
has a negative score and ranks last); gradient norms and attention are not. The same seed gives the same scores,
whatever the order or number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from . import erasure
from .adapter import Encoded
from .extras import need
from .runner import Runner
from .settings import GIVEN, METHODS, ExplainSettings

RANDOM_KEYS = 1_000_000  # that are drawn in one step
KERNEL_WIDTH = 25.0  # LIME's own, for distances in hundredths


def attribute(
    runner: Runner,
    encoded: Sequence[Encoded],
    predicted: Sequence[int],
    probability: Sequence[float],
    settings: ExplainSettings,
    by_sequence: bool = False,
) -> list[NDArray[np.float64]]:
    """Scores of every instance of a chunk by ``settings.method``, each of shape (tokens,).

    Args:
        predicted: each instance's predicted label, as an index.
        probability: p of that label on the full input.
        by_sequence: LIME perturbs one sequence of a pair at a time and leaves the other whole (paper 002, appendix B.2).

    Raises:
        DataError: the model does not allow the method; scores that are not finite.
    """
    method, model = settings.method, runner.model
    if method == GIVEN:
        return [_scores_of(one) for one in encoded]
    if not model.supports(method):
        allowed = [name for name in METHODS if model.supports(name)]
        raise DataError(f"--method {method}: not possible with {model.description}; it allows {', '.join(allowed)}")
    if method == "random":
        rows = [
            erasure.generator(settings.seed, one.instance.id, "scores").random(one.instance.bounds[-1])
            for one in encoded
        ]
    elif method == "occlusion":
        rows = occlusion_scores(runner, encoded, predicted, probability)
    elif method == "lime":
        rows = lime_scores(runner, encoded, predicted, settings, by_sequence)
    else:
        rows = model.scores(method, encoded, predicted, settings.steps)
    for one, scores in zip(encoded, rows, strict=True):
        if not np.isfinite(scores).all():
            raise DataError(
                f"--method {method}: {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} token scores are NaN or "
                "infinite",
                instance=one.instance.id,
            )
    return rows


def _scores_of(one: Encoded) -> NDArray[np.float64]:
    """The scores that an instance comes with."""
    if one.instance.scores is None:
        raise DataError("expected token scores with the instance, found none", instance=one.instance.id)
    return np.asarray([score for document in one.instance.scores for score in document], dtype=np.float64)


@cache
def points_of(steps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Legendre points and weights on [0, 1] of integrated gradients.

    Kept, since to find 300 of them takes longer than a small model's passes.
    """
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (1 + points) / 2, weights / 2


def occlusion_scores(
    runner: Runner, encoded: Sequence[Encoded], predicted: Sequence[int], probability: Sequence[float]
) -> list[NDArray[np.float64]]:
    """Leave one out: score of token t = p(x) - p(x without t), for the predicted label."""
    sizes = [one.instance.bounds[-1] for one in encoded]
    places = np.arange(max(sizes, default=0))
    erased = [
        erasure.Erased(number, places[place : place + 1], keep=False)
        for number, size in enumerate(sizes)
        for place in range(size)
    ]
    values = runner.run(encoded, erased)
    rows = np.split(values, np.cumsum(sizes)[:-1])
    return [p - row[:, label] for p, row, label in zip(probability, rows, predicted, strict=True)]


def lime_scores(
    runner: Runner,
    encoded: Sequence[Encoded],
    predicted: Sequence[int],
    settings: ExplainSettings,
    by_sequence: bool = False,
) -> list[NDArray[np.float64]]:
    """LIME (Ribeiro et al., 2016): weights of a linear model of p over which tokens are present.

    Each of N samples keeps K random tokens (paper 002, appendix B.2: N = 5000, K = 10); with K = 0, or with no more than
    K tokens in the text, the number of erased tokens is drawn uniformly, as the lime package does. The text itself is a
    sample too. Samples are weighted by ``sqrt(exp(-d² / 25²))``, d the cosine distance to the text in hundredths, and
    fitted by ridge regression (alpha 1), which is lime's own kernel and fit without feature selection. ``by_sequence``:
    of a pair, samples take turns to perturb one sequence and keep the other whole, as the paper does for similarity.
    """
    need("sklearn")
    from threadpoolctl import ThreadpoolController

    threads = ThreadpoolController()
    rows = []
    for number, one in enumerate(encoded):
        bounds = one.instance.bounds
        size = bounds[-1]
        if size == 0:
            rows.append(np.zeros(0))
            continue
        random = erasure.generator(settings.seed, one.instance.id, "lime")
        if by_sequence and len(bounds) > 2:
            sets = lime_sets_of_sequences(random, bounds, settings.lime_samples, settings.lime_tokens)
        else:
            sets = lime_sets(random, size, settings.lime_samples, settings.lime_tokens)
        samples = [erasure.Erased(number, positions, keep=True) for positions in sets]
        values = runner.run(encoded, samples)[:, predicted[number]]
        # so small a system is solved fastest by one thread: several mostly wait for each other, on a busy machine
        # ten times as long as the work takes; and the result is the same whatever the number of cores
        with threads.limit(limits=1):
            rows.append(_lime_weights(erasure.kept_rows(samples, size).astype(np.float32), values))
    return rows


def _lime_weights(present: NDArray[np.float32], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of each token in LIME's fit of ``values`` to which tokens are present, shape (samples, tokens)."""
    from sklearn.linear_model import Ridge

    distance = 100 * (1 - np.sqrt(present.sum(axis=1, dtype=np.float64) / present.shape[1]))
    weights = np.sqrt(np.exp(-(distance**2) / KERNEL_WIDTH**2))
    fit = Ridge(alpha=1.0, fit_intercept=True).fit(present, values, sample_weight=weights)
    return np.asarray(fit.coef_, dtype=np.float64)


def lime_sets(random: np.random.Generator, size: int, samples: int, kept_tokens: int) -> list[NDArray[np.int64]]:
    """Ascending positions that each sample keeps; the first sample is the whole text."""
    sets = [np.arange(size)]
    if 0 < kept_tokens < size:
        return [*sets, *sets_of_size(random, samples - 1, size, kept_tokens)]
    for _ in range(samples - 1):
        keep = size - int(random.integers(1, size + 1))
        sets.append(np.sort(random.choice(size, size=keep, replace=False)))
    return sets


def sets_of_size(random: np.random.Generator, number: int, size: int, keep: int) -> NDArray[np.int64]:
    """``number`` sets of ``keep`` of ``size`` positions, each set equally likely; ascending, shape (number, keep)."""
    if keep**2 > size:
        rows = max(1, RANDOM_KEYS // size)
        parts = [
            random.random((min(rows, number - start), size)).argpartition(keep, axis=1)[:, :keep]
            for start in range(0, number, rows)
        ]
        return np.sort(np.concatenate([np.zeros((0, keep), dtype=np.int64), *parts]), axis=1)
    # few of many seldom meet: whole rows are drawn again until none holds a position twice
    sets = np.zeros((number, keep), dtype=np.int64)
    again = np.arange(number)
    while len(again):
        sets[again] = np.sort(random.integers(size, size=(len(again), keep)), axis=1)
        again = again[(np.diff(sets[again], axis=1) == 0).any(axis=1)]
    return sets


def lime_sets_of_sequences(
    random: np.random.Generator, bounds: Sequence[int], samples: int, kept_tokens: int
) -> list[NDArray[np.int64]]:
    """As :func:`lime_sets`, each sample perturbing one of the sequences that have tokens, in turn."""
    spans = [(start, end) for start, end in pairwise(bounds) if end > start]
    everything = np.arange(bounds[-1])
    turns = [
        iter(lime_sets(random, end - start, (samples - 1 + len(spans) - 1 - turn) // len(spans) + 1, kept_tokens)[1:])
        for turn, (start, end) in enumerate(spans)
    ]
    sets = [everything]
    for number in range(samples - 1):
        start, end = spans[number % len(spans)]
        sample = next(turns[number % len(spans)]) + start
        sets.append(np.concatenate([everything[:start], sample, everything[end:]]))
    return sets
