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
from .adapter import Adapter, Encoded, need
from .runner import Runner

METHODS = (
    "random", "occlusion", "gradient", "input-x-gradient", "integrated-gradients", "attention", "lime", "coefficients",
)  # fmt: skip
RANDOM_KEYS = 1_000_000  # that are drawn in one step
GIVEN = "given"  # no method of ours: the scores come with the instances
KERNEL_WIDTH = 25.0  # LIME's own, for distances in hundredths


def attribute(
    method: str,
    model: Adapter,
    runner: Runner,
    encoded: Sequence[Encoded],
    predicted: Sequence[int],
    probability: Sequence[float],
    *,
    seed: int = 1,
    steps: int = 300,
    lime_samples: int = 5000,
    lime_tokens: int = 10,
    by_sequence: bool = False,
) -> list[NDArray[np.float64]]:
    """Scores of every instance of a chunk, each of shape (tokens,); :data:`GIVEN` takes those that it comes with.

    Args:
        predicted: each instance's predicted label, as an index.
        probability: p of that label on the full input.
        steps: integration steps of integrated gradients.
        lime_samples: LIME's N, perturbed samples per instance.
        lime_tokens: LIME's K, tokens in each sample; 0 for LIME's own sampler (a uniformly drawn number of tokens).
        by_sequence: LIME perturbs one sequence of a pair at a time and leaves the other whole (paper 002, appendix B.2).

    Raises:
        DataError: the model does not allow the method; scores that are not finite.
    """
    if method == GIVEN:
        return [_given(one) for one in encoded]
    if method not in METHODS:
        raise DataError(f"--method: expected one of {', '.join(METHODS)}; found {method!r}")
    if not model.supports(method):
        allowed = [name for name in METHODS if model.supports(name)]
        raise DataError(f"--method {method}: not possible with {model.description}; it allows {', '.join(allowed)}")
    if method == "random":
        found = [
            erasure.generator(seed, one.instance.id, "scores").random(sum(map(len, one.instance.documents)))
            for one in encoded
        ]
    elif method == "occlusion":
        found = occlusion_scores(runner, encoded, predicted, probability)
    elif method == "lime":
        found = lime_scores(runner, encoded, predicted, seed, lime_samples, lime_tokens, by_sequence)
    else:
        found = model.scores(method, encoded, predicted, steps)
    for one, scores in zip(encoded, found, strict=True):
        if not np.isfinite(scores).all():
            raise DataError(
                f"--method {method}: {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} token scores are NaN or "
                "infinite",
                instance=one.instance.id,
            )
    return found


def _given(one: Encoded) -> NDArray[np.float64]:
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
    sizes = [sum(map(len, one.instance.documents)) for one in encoded]
    places = np.arange(max(sizes, default=0))
    erased = [
        erasure.Erased(number, places[place : place + 1], keep=False)
        for number, size in enumerate(sizes)
        for place in range(size)
    ]
    values = runner.run(encoded, erased)
    found, start = [], 0
    for number, size in enumerate(sizes):
        found.append(probability[number] - values[start : start + size, predicted[number]])
        start += size
    return found


def lime_scores(
    runner: Runner,
    encoded: Sequence[Encoded],
    predicted: Sequence[int],
    seed: int,
    samples: int,
    kept_tokens: int,
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
    from sklearn.linear_model import Ridge
    from threadpoolctl import ThreadpoolController

    threads = ThreadpoolController()
    found = []
    for number, one in enumerate(encoded):
        size = sum(map(len, one.instance.documents))
        if size == 0:
            found.append(np.zeros(0))
            continue
        random = erasure.generator(seed, one.instance.id, "lime")
        if by_sequence and len(one.instance.documents) > 1:
            sets = lime_sets_of_sequences(random, one.instance.bounds, samples, kept_tokens)
        else:
            sets = lime_sets(random, size, samples, kept_tokens)
        samples_of = [erasure.Erased(number, kept, keep=True) for kept in sets]
        values = runner.run(encoded, samples_of)[:, predicted[number]]
        present = erasure.kept_rows(samples_of, size).astype(np.float32)
        distance = 100 * (1 - np.sqrt(present.sum(axis=1, dtype=np.float64) / size))
        weights = np.sqrt(np.exp(-(distance**2) / KERNEL_WIDTH**2))
        # so small a system is solved fastest by one thread: several mostly wait for each other, on a busy machine
        # ten times as long as the work takes; and the result is the same whatever the number of cores
        with threads.limit(limits=1):
            fitted = Ridge(alpha=1.0, fit_intercept=True).fit(present, values, sample_weight=weights)
        found.append(np.asarray(fitted.coef_, dtype=np.float64))
    return found


def lime_sets(random: np.random.Generator, size: int, samples: int, kept_tokens: int) -> list[NDArray[np.int64]]:
    """Ascending positions that each sample keeps; the first sample is the whole text."""
    sets = [np.arange(size)]
    if 0 < kept_tokens < size:
        return [*sets, *sets_of_size(random, samples - 1, size, kept_tokens)]
    for _ in range(samples - 1):
        keep = size - int(random.integers(1, size + 1))
        chosen = random.choice(size, size=keep, replace=False)
        chosen.sort()
        sets.append(chosen)
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
    chosen = np.zeros((number, keep), dtype=np.int64)
    again = np.arange(number)
    while len(again):
        chosen[again] = np.sort(random.integers(size, size=(len(again), keep)), axis=1)
        again = again[(np.diff(chosen[again], axis=1) == 0).any(axis=1)]
    return chosen


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
        drawn = next(turns[number % len(spans)]) + start
        sets.append(np.concatenate([everything[:start], drawn, everything[end:]]))
    return sets
