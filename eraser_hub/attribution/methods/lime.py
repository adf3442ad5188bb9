"""LIME."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ..erasure import count_tokens_at, limit_to_one_thread
from ..method import Kept, Method, Scores, Search
from ..text import Text

KERNEL_WIDTH = 25.0  # lime's own, for distances in hundredths
MAX_FORWARD = 6  # features that lime still selects one by one
MIN_NORM = 1e-12  # of a column that those chosen before do not hold already


@dataclass(frozen=True)
class Lime(Method):
    """LIME: the weights of a linear model of p over which tokens are present.

    Each sample erases a uniformly drawn number of tokens, as the lime package does; the text itself is a sample too.
    They are weighted by ``sqrt(exp(-d² / 25²))``, d the cosine distance to the text in hundredths, and fitted by ridge
    regression (alpha 1): lime's own kernel and fit. Which features are fitted: ``settings.choices.lime_features``. Of a
    pair, samples take turns to perturb one sequence and keep the other whole, as Wang et al. (2022) do.

    Ribeiro, Singh and Guestrin 2016.

    Attributes:
        samples: perturbed samples.
        tokens: tokens in each sample (Wang 2022, appendix B.2: 10); 0: a uniformly drawn number.
    """

    packages = ("sklearn",)
    normalised = True

    samples: Annotated[int, Meta(ge=2)] = 5000
    tokens: Annotated[int, Meta(ge=0)] = 0

    def search(self, text: Text) -> Search[Scores]:
        """Ask for the samples; return the weights of the tokens, those of a word alike where words are features."""
        if not text.tokens:
            return np.zeros(0)
        choice = text.settings.choices.lime_features
        features, bounds = find_features(text, words=choice == "words")
        sets = self.draw(text.random("lime"), bounds)
        answers = yield sets[:, features]
        fitted = 2 * count_tokens_at(text.settings.kd, text.tokens) if choice == "twice the rationale" else 0
        with limit_to_one_thread("sklearn.linear_model"):
            weights = fit_weights(sets.astype(np.float32), answers[:, text.label], min(text.tokens, fitted))
        return weights[features]

    def draw(self, random: np.random.Generator, bounds: list[int]) -> Kept:
        """Draw the features that each sample keeps, bool (samples, features); the first sample keeps all.

        Args:
            random: random generator.
            bounds: offsets of the sequences in the features, whose samples take turns.
        """
        sets = np.ones((self.samples, bounds[-1]), dtype=bool)
        sequences = [(start, end) for start, end in pairwise(bounds) if end > start]
        for turn, (start, end) in enumerate(sequences):
            size = end - start
            for row in sets[1 + turn :: len(sequences), start:end]:
                keep = self.tokens if 0 < self.tokens < size else size - int(random.integers(1, size + 1))
                row[:] = False
                row[random.choice(size, size=keep, replace=False)] = True
        return sets


def find_features(text: Text, words: bool) -> tuple[NDArray[np.int64], list[int]]:
    """Return the feature of each token (itself, or its word), and the offsets of what is perturbed by turns."""
    documents, bounds = text.instance.documents, text.instance.bounds
    if not words:
        return np.arange(text.tokens), bounds if text.by_sequence else [0, text.tokens]
    if not text.by_sequence:
        documents = (tuple(text.instance.tokens),)
    features: list[int] = []
    starts = [0]
    for tokens in documents:  # a word of one sequence is not the same word of the other
        numbers = {word: starts[-1] + number for number, word in enumerate(dict.fromkeys(tokens))}
        features += [numbers[token] for token in tokens]
        starts.append(starts[-1] + len(numbers))
    return np.asarray(features), starts


def fit_weights(present: NDArray[np.float32], values: NDArray[np.float64], fitted: int = 0) -> NDArray[np.float64]:
    """Fit LIME's linear model of values and return the weight of each feature, (features,).

    Args:
        present: flags of the features in each sample, (samples, features).
        values: p of the label for each sample, (samples,).
        fitted: so many features are selected as lime's "auto" does, all others weigh 0, and so do negative ones; 0:
            all features as they are.
    """
    from sklearn.linear_model import Ridge

    distance = 100 * (1 - np.sqrt(present.sum(axis=1, dtype=np.float64) / present.shape[1]))
    weights = np.sqrt(np.exp(-(distance**2) / KERNEL_WIDTH**2))
    used = np.arange(present.shape[1])
    if fitted > MAX_FORWARD:  # lime's "highest_weights"
        every = Ridge(alpha=0.01).fit(present, values, sample_weight=weights).coef_
        used = np.argsort(-np.abs(every), kind="stable")[:fitted]
    elif fitted:
        used = _select_forward(present.astype(np.float64), values, weights, fitted)
    scores = np.zeros(present.shape[1])
    scores[used] = Ridge(alpha=1.0).fit(present[:, used], values, sample_weight=weights).coef_
    return np.maximum(scores, 0.0) if fitted else scores


def _select_forward(
    present: NDArray[np.float64], values: NDArray[np.float64], weights: NDArray[np.float64], number: int
) -> NDArray[np.int64]:
    """Select the features that one by one leave the least weighted squared error (lime's "forward_selection").

    Least squares with an intercept: after weighting and centring, the feature whose part that is orthogonal to those
    chosen before explains most of what they leave.
    """
    root = np.sqrt(weights)
    columns = (present - np.average(present, axis=0, weights=weights)) * root[:, None]
    rest = (values - np.average(values, weights=weights)) * root
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
    return np.asarray(used)
