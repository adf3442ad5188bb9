"""Attribution for linear models over counted words or n-grams, in closed form.

With x the feature vector of the input and z_c = w_c · x + b_c, a token's coefficient score is its share of w_c · x:
each feature's contribution w_c,f x_f is divided equally over its occurrences, and within an n-gram over its tokens. For
single words without weighting that is w_c,t itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.papers.presets import Choices

from ..adapter import Notes
from ..instances import Instance
from ..methods.integrated_gradients import make_path_points

# steps behind the vectoriser that keep each feature in its column
SCALERS = ("TfidfTransformer", "MaxAbsScaler", "Normalizer", "StandardScaler")


@dataclass(frozen=True, slots=True)
class LinearPipeline:
    """A pipeline of a vectoriser and a linear estimator.

    Attributes:
        steps: the pipeline's steps: a fitted vectoriser first, an estimator with coefficients last.
        joiner: text between tokens.
        uses_query: whether the query is part of the input.
        choices: choices of a paper.
        notes: notes for the report.
    """

    steps: list[Any]
    joiner: str
    uses_query: bool
    choices: Choices
    notes: Notes


def split_at_blanks(tokens: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the words that a vectoriser finds in tokens joined by blanks, and the token of each, int64 (words,)."""
    pairs = [(place, word) for place, token in enumerate(tokens) for word in token.split(" ") if word]
    return np.asarray([place for place, _ in pairs], dtype=np.int64), [word for _, word in pairs]


def keeps_features_apart(steps: Sequence[Any]) -> bool:
    """Return True if a linear pipeline's weights can be traced to the tokens of a text.

    Its first step counts words (by a pattern) or characters of the text as it stands, in lower case or not. No later
    step mixes features or leaves some out.

    Args:
        steps: the pipeline's steps, fitted, the estimator last.
    """
    counts, between, estimator = steps[0], steps[1:-1], steps[-1]
    analyzer = getattr(counts, "analyzer", None)  # a vectoriser of the user's own may have none
    by_words = analyzer == "word"
    changes = ("strip_accents", "preprocessor", *["tokenizer"] * by_words)
    return (
        isinstance(getattr(estimator, "coef_", None), np.ndarray)
        and hasattr(counts, "vocabulary_")
        and (by_words or analyzer == "char")
        and all(getattr(counts, name, None) is None for name in changes)
        and all(type(step).__name__ in SCALERS for step in between)
    )


def find_occurrences(vectoriser: Any, tokens: Sequence[str], joiner: str) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield each counted feature of the text with the token positions that it covers.

    Args:
        vectoriser: a fitted CountVectorizer or TfidfVectorizer, see :func:`keeps_features_apart`.
        tokens: tokens of the text.
        joiner: text between tokens.
    """
    low, high = vectoriser.ngram_range
    lowered = [token.lower() if vectoriser.lowercase else token for token in tokens]
    text = joiner.join(lowered)
    # the token of each character; the joiner belongs to the token before it
    owner = np.repeat(np.arange(len(lowered)), [len(token) + len(joiner) for token in lowered])[: len(text)].tolist()
    if vectoriser.analyzer == "word":
        pattern, stop_words = re.compile(vectoriser.token_pattern), vectoriser.get_stop_words() or ()
        group = min(pattern.groups, 1)
        words = [found for found in pattern.finditer(text) if found[group] not in stop_words]
        pieces, between = [found[group] or "" for found in words], " "
        places = [list(dict.fromkeys(owner[slice(*found.span(group))])) for found in words]
    else:
        # the analyzer folds runs of white space into one blank
        keep = [at for at, character in enumerate(text) if not (character.isspace() and at and text[at - 1].isspace())]
        pieces, between = [" " if text[at].isspace() else text[at] for at in keep], ""
        places = [[owner[at]] for at in keep]
    for size in range(low, high + 1):
        for start in range(len(pieces) - size + 1):
            feature = vectoriser.vocabulary_.get(between.join(pieces[start : start + size]))
            if feature is not None:
                yield feature, [place for piece in places[start : start + size] for place in piece]


def get_weights(model: LinearPipeline, column: int) -> NDArray[np.float64]:
    """Return w_c of an output column; a binary model has one row of coefficients, for its second class."""
    coefficients = np.asarray(model.steps[-1].coef_, dtype=np.float64)
    row: NDArray[np.float64] = coefficients[0 if len(coefficients) == 1 else column]
    return -row if len(coefficients) == 1 and column != 1 else row


def token_scores(
    model: LinearPipeline, instance: Instance, column: int, method: str, steps: int
) -> NDArray[np.float64]:
    """Score each document token for an output column, shape (tokens,): the gains of its features, in equal parts.

    A feature's gain by ``coefficients`` is its w_c,f x_f, divided over its occurrences. By the gradient methods, where
    each token is one unit of its word's count, it is d p_c / d x_f: ``input-x-gradient`` equals ``gradient`` up to sign
    (a token's own input is 1; ``gradient`` is its magnitude). Integrated gradients follow the straight line from no
    tokens to all with ``steps`` Gauss-Legendre points (Sundararajan et al., 2017, equation 1); the baseline is the
    all-zero count vector, the query's words included. The convergence delta, the difference between their sum and
    p(x) - p(baseline), is kept in the model's notes.
    """
    query = list(instance.query) if model.uses_query else []
    tokens = [*query, *instance.tokens]
    row, scores = model.steps[0].transform([model.joiner.join(tokens)]), np.zeros(len(tokens))
    features = list(find_occurrences(model.steps[0], tokens, model.joiner))
    change = None
    if method == "coefficients":
        for step in model.steps[1:-1]:
            row = step.transform(row)
        weights, row = get_weights(model, column), row.tocsr()
        value = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        counts = Counter(feature for feature, _ in features)
        gains = {feature: weights[feature] * value.get(feature, 0.0) / count for feature, count in counts.items()}
    else:
        slopes, change = compute_slopes(model, row, column, method, steps)
        gains = {feature: float(slopes[feature]) for feature, _ in features}
    for feature, places in features:
        for place in places:
            scores[place] += gains[feature] / len(places)
    if change is not None:
        model.notes.largest("largest convergence delta", abs(float(scores.sum() - change)))
    scores = scores[len(query) :]
    return np.abs(scores) if method == "gradient" else scores


def compute_slopes(
    model: LinearPipeline, row: Any, column: int, method: str, steps: int
) -> tuple[NDArray[np.float64], float | None]:
    """Return d p_c / d x_f of each feature, averaged over the path for integrated gradients, and p's change on it."""
    estimator = model.steps[-1]
    weights = np.stack([get_weights(model, c) for c in range(len(estimator.classes_))])
    raw = np.asarray(estimator.decision_function(row), dtype=np.float64).reshape(-1)
    bias = np.asarray(estimator.intercept_, dtype=np.float64).reshape(-1)
    if len(raw) == 1:  # one logit z for two classes: probabilities sigmoid(-z), sigmoid(z) = softmax(0, z)
        weights = np.stack([np.zeros_like(weights[1]), weights[1]])
        raw, bias = np.array([0.0, raw[0]]), np.array([0.0, bias[0]])

    def probabilities(at: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = bias + at[:, None] * (raw - bias)
        exp = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(exp / exp.sum(axis=1, keepdims=True))

    integrated = method == "integrated-gradients"
    at, shares = make_path_points(steps, model.choices.integral) if integrated else (np.ones(1), np.ones(1))
    p = probabilities(at)
    # d p_c / d z_j = p_c ([c = j] - p_j)
    slopes = shares @ (p[:, [column]] * ((np.arange(p.shape[1]) == column) - p)) @ weights
    start, end = probabilities(np.asarray([0.0, 1.0]))[:, column]
    return slopes, float(end - start) if integrated else None
