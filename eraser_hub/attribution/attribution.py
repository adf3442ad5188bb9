"""One score per word token: the attribution methods.

Scores explain the model's predicted label. They are signed where the method is (a token that speaks against the label
has a negative score and ranks last); gradient norms and attention are not. The same seed gives the same scores,
whatever the order or number of workers.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from . import erasure
from .adapter import Encoded, Notes
from .games.play import games_of, played
from .games.shapley import kernel_shapley, permutation_shapley
from .runner import Runner
from .settings import GIVEN, METHODS, ExplainSettings

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

RANDOM_KEYS = 1_000_000  # that are drawn in one step
KERNEL_WIDTH = 25.0  # LIME's own, for distances in hundredths
MOST_FORWARD = 6  # features that lime still selects one by one
LEAST_NORM = 1e-12  # of a column that those chosen before do not hold already
NORMALISED = ("simple-gradient", "attention", "lime")
ALL_ZERO = "instances whose scores are all zero: nothing to normalise"


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
        by_sequence: LIME perturbs one sequence of a pair at a time and leaves the other whole (paper 002, appendix
            B.2).

    Raises:
        DataError: the model does not allow the method; scores that are not finite.
    """
    method, model = settings.method, runner.model
    if method == GIVEN:
        return [_scores_of(one) for one in encoded]
    if not model.supports(method):
        allowed = [name for name in METHODS if model.supports(name)]
        words = f"--method {method}: not possible with {model.description}; it allows {', '.join(allowed)}"
        raise DataError(words, rule="unsupported")
    if method == "random":
        rows = [
            erasure.generator(settings.seed, one.instance.id, "scores").random(one.instance.bounds[-1])
            for one in encoded
        ]
    elif method == "occlusion":
        rows = occlusion_scores(runner, encoded, predicted, probability)
    elif method == "lime":
        rows = lime_scores(runner, encoded, predicted, settings, by_sequence)
    elif method in ("shapley", "kernel-shap"):
        rows = shapley_scores(runner, encoded, predicted, probability, settings)
    else:
        model.choices, model.outputs = settings.choices, runner.results
        rows = model.scores(method, encoded, predicted, settings.steps)
    for one, scores in zip(encoded, rows, strict=True):
        if not np.isfinite(scores).all():
            raise DataError(
                f"--method {method}: {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} token scores are NaN or "
                "infinite",
                rule="model-output",
                instance=one.instance.id,
            )
    normalised = settings.choices.normalise and method in NORMALISED
    return [_shares(scores, model.notes) for scores in rows] if normalised else rows


def _shares(scores: NDArray[np.float64], notes: Notes) -> NDArray[np.float64]:
    """Scores divided by their sum; zeros stay zeros, and are counted (the authors' code divides 0 by 0)."""
    total = scores.sum()
    if total == 0:
        if len(scores):
            notes.count(ALL_ZERO)
        return scores
    return np.asarray(scores / total)


def _scores_of(one: Encoded) -> NDArray[np.float64]:
    """The scores that an instance comes with."""
    if one.instance.scores is None:
        words = "expected token scores with the instance, found none"
        raise DataError(words, rule="score-missing", instance=one.instance.id)
    return np.asarray([score for document in one.instance.scores for score in document], dtype=np.float64)


@cache
def points_of(steps: int, integral: str = "gauss-legendre") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights on [0, 1] of integrated gradients: Gauss-Legendre, or the trapezoid rule with both ends.

    Kept, since to find 300 of them takes longer than a small model's passes.
    """
    if integral == "trapezoid" and steps > 1:
        shares = np.full(steps, 1 / (steps - 1))
        shares[[0, -1]] /= 2
        return np.linspace(0, 1, steps), shares
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


def shapley_scores(
    runner: Runner,
    encoded: Sequence[Encoded],
    predicted: Sequence[int],
    probability: Sequence[float],
    settings: ExplainSettings,
) -> list[NDArray[np.float64]]:
    """Shapley values of the units (see :mod:`games.shapley`), each shared equally by its unit's tokens."""
    games = games_of(encoded, predicted, probability, settings.units)
    searches = []
    for game, one in zip(games, encoded, strict=True):
        random = erasure.generator(settings.seed, one.instance.id, settings.method)
        if settings.method == "shapley":
            searches.append(permutation_shapley(game.size, settings.shapley_draws, random))
        else:
            searches.append(kernel_shapley(game.size, settings.shap_samples, random, _least_squares))
    results = played(runner, encoded, games, searches, settings.choices.filler)
    for result in results:
        if result.standard_error > 0:
            runner.model.notes.largest("largest standard error of a Shapley value", result.standard_error)
    return [game.of_tokens(result.values) for game, result in zip(games, results, strict=True)]


def _least_squares(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least-squares solution of smallest norm, by one thread: the same on any number of processors."""
    with _thread_pools("numpy").limit(limits=1):
        return np.asarray(np.linalg.lstsq(left, right, rcond=None)[0], np.float64)


@cache
def _thread_pools(package: str) -> ThreadpoolController:
    """The thread pools there are once a package is imported; to look for them takes longer than a small system."""
    from threadpoolctl import ThreadpoolController

    importlib.import_module(package)
    return ThreadpoolController()


def lime_scores(
    runner: Runner,
    encoded: Sequence[Encoded],
    predicted: Sequence[int],
    settings: ExplainSettings,
    by_sequence: bool = False,
) -> list[NDArray[np.float64]]:
    """LIME (Ribeiro et al., 2016): weights of a linear model of p over which tokens are present.

    Each of N samples erases a uniformly drawn number of tokens, as the lime package does; with K above 0, and fewer
    than the text's tokens, it keeps K random ones (paper 002, appendix B.2: K = 10). The text itself is a sample too.
    Samples are weighted by ``sqrt(exp(-d² / 25²))``, d the cosine distance to the text in hundredths, and fitted by
    ridge regression (alpha 1): lime's own kernel and fit. Which features are fitted:
    ``settings.choices.lime_features``. ``by_sequence``: of a pair, samples take turns to perturb one sequence and keep
    the other whole, as the paper does.
    """
    need("sklearn")
    rows = []
    for number, one in enumerate(encoded):
        bounds = one.instance.bounds
        size = bounds[-1]
        if size == 0:
            rows.append(np.zeros(0))
            continue
        feature_of, bounds = _features(one.instance.documents, settings.choices.lime_features, by_sequence)
        random = erasure.generator(settings.seed, one.instance.id, "lime")
        if by_sequence and len(bounds) > 2:
            sets = lime_sets_of_sequences(random, bounds, settings.lime_samples, settings.lime_tokens)
        else:
            sets = lime_sets(random, bounds[-1], settings.lime_samples, settings.lime_tokens)
        kept = erasure.kept_rows([erasure.Erased(0, features, keep=True) for features in sets], bounds[-1])
        samples = [erasure.Erased(number, np.flatnonzero(row[feature_of]), keep=True) for row in kept]
        values = runner.run(encoded, samples)[:, predicted[number]]
        # so small a system is solved fastest by one thread: several mostly wait for each other, on a busy machine
        # ten times as long as the work takes; and the result is the same whatever the number of cores
        with _thread_pools("sklearn.linear_model").limit(limits=1):
            weights = _lime_weights(kept.astype(np.float32), values, _features_fitted(settings, size))
        rows.append(weights[feature_of])
    return rows


def _features(documents: Sequence[Sequence[str]], kind: str, by_sequence: bool) -> tuple[NDArray[np.int64], list[int]]:
    """LIME's feature of each token (itself, or its word), and the documents' offsets in features."""
    if kind != "words":
        sizes = [len(tokens) for tokens in documents]
        return np.arange(sum(sizes)), [0, *np.cumsum(sizes).tolist()]
    features: list[int] = []
    bounds, words = [0], dict[str, int]()
    for tokens in documents:
        if by_sequence:  # a word of one text is not the same word of the other
            words = {}
        start = bounds[-1] if by_sequence else 0
        features += [start + words.setdefault(token, len(words)) for token in tokens]
        bounds.append(start + len(words))
    return np.asarray(features, dtype=np.int64), bounds if by_sequence else [0, bounds[-1]]


def _features_fitted(settings: ExplainSettings, size: int) -> int:
    """How many features LIME selects before its fit; 0: it takes all."""
    if settings.choices.lime_features != "twice the rationale":
        return 0
    return min(size, 2 * erasure.tokens_at(settings.kd, size))


def _lime_weights(present: NDArray[np.float32], values: NDArray[np.float64], fitted: int = 0) -> NDArray[np.float64]:
    """The weight of each feature in LIME's fit of ``values`` to which of them are present, shape (samples, features).

    Args:
        fitted: so many features are selected as lime's "auto" does, all others weigh 0, and so do negative ones.
    """
    from sklearn.linear_model import Ridge

    distance = 100 * (1 - np.sqrt(present.sum(axis=1, dtype=np.float64) / present.shape[1]))
    weights = np.sqrt(np.exp(-(distance**2) / KERNEL_WIDTH**2))
    used = np.arange(present.shape[1])
    if fitted:
        select = _forward if fitted <= MOST_FORWARD else _heaviest
        used = select(present, values, weights, fitted)
    fit = Ridge(alpha=1.0, fit_intercept=True).fit(present[:, used], values, sample_weight=weights)
    scores = np.zeros(present.shape[1])
    scores[used] = fit.coef_
    return np.maximum(scores, 0.0) if fitted else scores


def _heaviest(
    present: NDArray[np.float32], values: NDArray[np.float64], weights: NDArray[np.float64], number: int
) -> NDArray[np.int64]:
    """The features of the largest absolute weights in a fit of all (lime's "highest_weights")."""
    from sklearn.linear_model import Ridge

    fit = Ridge(alpha=0.01, fit_intercept=True).fit(present, values, sample_weight=weights)
    return np.argsort(-np.abs(fit.coef_), kind="stable")[:number]


def _forward(
    present: NDArray[np.float32], values: NDArray[np.float64], weights: NDArray[np.float64], number: int
) -> NDArray[np.int64]:
    """Features that, one after the other, leave the least weighted squared error (lime's "forward_selection").

    Least squares with an intercept: after weighting and centring, the feature whose part that is orthogonal to those
    chosen before explains most of what they leave.
    """
    root = np.sqrt(weights)[:, None]
    data = present.astype(np.float64)
    columns = (data - np.average(data, axis=0, weights=weights)) * root
    rest = ((values - np.average(values, weights=weights))[:, None] * root)[:, 0]
    used: list[int] = []
    for _ in range(min(number, columns.shape[1])):
        norms = (columns**2).sum(axis=0)
        gains = np.divide((rest @ columns) ** 2, norms, out=np.zeros(len(norms)), where=norms > LEAST_NORM)
        gains[used] = -1.0
        best = int(gains.argmax())
        used.append(best)
        if norms[best] > LEAST_NORM:
            axis = columns[:, best] / np.sqrt(norms[best])
            rest = rest - axis * (axis @ rest)
            columns = columns - np.outer(axis, axis @ columns)
    return np.asarray(used, dtype=np.int64)


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
