"""LIME."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chunk import Chunk, Scores
from ..erasure import Erased, compute_kept_flags, count_tokens_at, limit_to_one_thread
from ..instances import Instance
from ..method import Method, Setting

RANDOM_KEYS = 1_000_000  # that are drawn in one step
KERNEL_WIDTH = 25.0  # LIME's own, for distances in hundredths
MAX_FORWARD = 6  # features that lime still selects one by one
MIN_NORM = 1e-12  # of a column that those chosen before do not hold already


class Lime(Method):
    """LIME: the weights of a linear model of p over which tokens are present.

    Each of N samples erases a uniformly drawn number of tokens, as the lime package does; with K above 0, and fewer
    than the text's tokens, it keeps K random ones (Wang 2022, appendix B.2: K = 10). The text itself is a sample too.
    Samples are weighted by ``sqrt(exp(-d² / 25²))``, d the cosine distance to the text in hundredths, and fitted by
    ridge regression (alpha 1): lime's own kernel and fit. Which features are fitted:
    ``settings.choices.lime_features``. Of a pair, samples take turns to perturb one sequence and keep the other whole,
    as Wang et al. (2022) does.
    """

    source = "Ribeiro, Singh and Guestrin 2016"
    packages = ("sklearn",)
    settings: ClassVar = {
        "samples": Setting(5000, "Perturbed samples, N.", 2, field="lime_samples"),
        "tokens": Setting(0, "Tokens in each sample, K; 0: a uniformly drawn number.", 0, field="lime_tokens"),
    }
    signature_format = "lime:N{0.lime_samples},K{0.lime_tokens}"
    normalised = sampled = True

    def scores(self, chunk: Chunk) -> list[Scores]:
        """Return the weights of each instance's tokens; those of a word weigh alike where words are the features."""
        settings, rows = chunk.settings, list[Scores]()
        for number, one in enumerate(chunk.instances):
            size = one.bounds[-1]
            if size == 0:
                rows.append(np.zeros(0))
                continue
            token_features, bounds = _find_features(one.documents, settings.choices.lime_features, chunk.pairs)
            random = chunk.make_generator(one, "lime")
            if chunk.pairs and len(bounds) > 2:
                sets = draw_pair_samples(random, bounds, settings.lime_samples, settings.lime_tokens)
            else:
                sets = draw_lime_samples(random, bounds[-1], settings.lime_samples, settings.lime_tokens)
            kept = compute_kept_flags([Erased(0, features, keep=True) for features in sets], bounds[-1])
            samples = [Erased(number, np.flatnonzero(row[token_features]), keep=True) for row in kept]
            values = chunk.runner.run(chunk.encoded, samples)[:, chunk.targets[number]]
            fitted = min(size, 2 * count_tokens_at(settings.kd, size))
            fitted = fitted if settings.choices.lime_features == "twice the rationale" else 0
            with limit_to_one_thread("sklearn.linear_model"):
                weights = _fit_weights(kept.astype(np.float32), values, fitted)
            rows.append(weights[token_features])
        return rows

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return one a sample."""
        return int(settings.lime_samples)


def _find_features(
    documents: Sequence[Sequence[str]], kind: str, by_sequence: bool
) -> tuple[NDArray[np.int64], list[int]]:
    """Return LIME's feature of each token (itself, or its word), and the documents' offsets in features."""
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


def _fit_weights(present: NDArray[np.float32], values: NDArray[np.float64], fitted: int = 0) -> NDArray[np.float64]:
    """Fit LIME's linear model of ``values`` and return the weight of each feature, shape (features,).

    Args:
        present: flags of the features in each sample, shape (samples, features).
        values: p of the label for each sample, shape (samples,).
        fitted: so many features are selected as lime's "auto" does, all others weigh 0, and so do negative ones.
    """
    from sklearn.linear_model import Ridge

    distance = 100 * (1 - np.sqrt(present.sum(axis=1, dtype=np.float64) / present.shape[1]))
    weights = np.sqrt(np.exp(-(distance**2) / KERNEL_WIDTH**2))
    used = np.arange(present.shape[1])
    if fitted:
        select = _select_forward if fitted <= MAX_FORWARD else _select_heaviest
        used = select(present, values, weights, fitted)
    fit = Ridge(alpha=1.0, fit_intercept=True).fit(present[:, used], values, sample_weight=weights)
    scores = np.zeros(present.shape[1])
    scores[used] = fit.coef_
    return np.maximum(scores, 0.0) if fitted else scores


def _select_heaviest(
    present: NDArray[np.float32], values: NDArray[np.float64], weights: NDArray[np.float64], number: int
) -> NDArray[np.int64]:
    """Select the features of the largest absolute weights in a fit of all (lime's "highest_weights")."""
    from sklearn.linear_model import Ridge

    fit = Ridge(alpha=0.01, fit_intercept=True).fit(present, values, sample_weight=weights)
    return np.argsort(-np.abs(fit.coef_), kind="stable")[:number]


def _select_forward(
    present: NDArray[np.float32], values: NDArray[np.float64], weights: NDArray[np.float64], number: int
) -> NDArray[np.int64]:
    """Select the features that one by one leave the least weighted squared error (lime's "forward_selection").

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
        gains = np.divide((rest @ columns) ** 2, norms, out=np.zeros(len(norms)), where=norms > MIN_NORM)
        gains[used] = -1.0
        best = int(gains.argmax())
        used.append(best)
        if norms[best] > MIN_NORM:
            axis = columns[:, best] / np.sqrt(norms[best])
            rest = rest - axis * (axis @ rest)
            columns = columns - np.outer(axis, axis @ columns)
    return np.asarray(used, dtype=np.int64)


def draw_lime_samples(
    random: np.random.Generator, size: int, samples: int, kept_tokens: int
) -> list[NDArray[np.int64]]:
    """Draw the ascending positions that each sample keeps; the first sample is the whole text."""
    sets = [np.arange(size)]
    if 0 < kept_tokens < size:
        return [*sets, *draw_position_sets(random, samples - 1, size, kept_tokens)]
    for _ in range(samples - 1):
        keep = size - int(random.integers(1, size + 1))
        sets.append(np.sort(random.choice(size, size=keep, replace=False)))
    return sets


def draw_position_sets(random: np.random.Generator, number: int, size: int, keep: int) -> NDArray[np.int64]:
    """Draw ``number`` sets of ``keep`` of ``size`` positions, all equally likely; ascending, (number, keep)."""
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


def draw_pair_samples(
    random: np.random.Generator, bounds: Sequence[int], samples: int, kept_tokens: int
) -> list[NDArray[np.int64]]:
    """Draw samples like :func:`draw_lime_samples`, each perturbing one of the sequences in turn."""
    spans = [(start, end) for start, end in pairwise(bounds) if end > start]
    everything = np.arange(bounds[-1])
    turns = [
        iter(
            draw_lime_samples(
                random, end - start, (samples - 1 + len(spans) - 1 - turn) // len(spans) + 1, kept_tokens
            )[1:]
        )
        for turn, (start, end) in enumerate(spans)
    ]
    sets = [everything]
    for number in range(samples - 1):
        start, end = spans[number % len(spans)]
        sample = next(turns[number % len(spans)]) + start
        sets.append(np.concatenate([everything[:start], sample, everything[end:]]))
    return sets
