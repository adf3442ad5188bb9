"""Attribution for linear models over counted words or n-grams, in closed form.

With x the feature vector of the input and z_c = w_c · x + b_c, a token's coefficient score is its share of w_c · x:
each feature's contribution w_c,f x_f is divided equally over its occurrences, and within an n-gram over its tokens. For
single words without weighting that is w_c,t itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .inputs import Notes

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from eraser_hub.attribution.method import Method, Scores
    from eraser_hub.attribution.text import Text

# steps behind the vectoriser that keep each feature in its column
SCALERS = ("TfidfTransformer", "MaxAbsScaler", "Normalizer", "StandardScaler")


def keeps_features_apart(steps: Sequence[Any]) -> bool:
    """Return True if a linear pipeline's weights can be traced to the tokens of a text.

    Its first step counts words (by a pattern) or characters of the text as it stands, in lower case or not. No later
    step mixes features or leaves some out.

    Args:
        steps: the pipeline's steps, fitted, the estimator last.
    """
    counts, between, estimator = steps[0], steps[1:-1], steps[-1]
    analyzer = getattr(counts, "analyzer", None)  # a vectoriser of the user's own may have none
    changes = ("strip_accents", "preprocessor", *(["tokenizer"] if analyzer == "word" else []))
    return (
        isinstance(getattr(estimator, "coef_", None), np.ndarray)
        and hasattr(counts, "vocabulary_")
        and analyzer in ("word", "char")
        and all(getattr(counts, name, None) is None for name in changes)
        and all(type(step).__name__ in SCALERS for step in between)
    )


def is_softmax_of_counts(steps: Sequence[Any]) -> bool:
    """Return True if probabilities are the softmax of a linear function of counts, with no weighting between."""
    if [type(step).__name__ for step in steps] != ["CountVectorizer", "LogisticRegression"] or steps[0].binary:
        return False
    estimator = steps[-1]
    p = estimator.predict_proba(np.zeros((1, estimator.coef_.shape[1])))  # labels against the rest are no softmax
    return bool(np.allclose(p, _softmax(_get_logits(estimator.intercept_)[None])))


def share_features(vectoriser: Any, tokens: Sequence[str], joiner: str) -> csr_matrix:
    """Return how many times each counted feature occurs at each token, sparse (tokens, features).

    An occurrence that covers several tokens is divided equally.

    Args:
        vectoriser: a fitted CountVectorizer or TfidfVectorizer, see :func:`keeps_features_apart`.
        tokens: tokens of the text.
        joiner: text between tokens.
    """
    from scipy.sparse import csr_matrix

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
        keep = [at for at, sign in enumerate(text) if not (sign.isspace() and at and text[at - 1].isspace())]
        pieces, between = [" " if text[at].isspace() else text[at] for at in keep], ""
        places = [[owner[at]] for at in keep]
    low, high = vectoriser.ngram_range
    found: list[tuple[float, int, int]] = []
    for size in range(low, high + 1):
        for start in range(len(pieces) - size + 1):
            feature = vectoriser.vocabulary_.get(between.join(pieces[start : start + size]))
            if feature is not None:
                covered = [place for piece in places[start : start + size] for place in piece]
                found += [(1 / len(covered), place, feature) for place in covered]
    data, rows, columns = zip(*found, strict=True) if found else ((), (), ())
    return csr_matrix((data, (rows, columns)), shape=(len(tokens), len(vectoriser.vocabulary_)), dtype=np.float64)


def compute_coefficients(steps: Sequence[Any], tokens: Sequence[str], start: int, joiner: str, column: int) -> Scores:
    """Return scores of the tokens from ``start`` on for an output column: their features' w_c,f x_f, in equal parts."""
    row = steps[0].transform([joiner.join(tokens)])
    for step in steps[1:-1]:
        row = step.transform(row)
    shares = share_features(steps[0], tokens, joiner)
    counts = np.asarray(shares.sum(axis=0)).ravel()
    gains = row.toarray()[0] * get_weights(steps[-1])[column] / np.where(counts > 0, counts, 1)
    return np.asarray(shares @ gains)[start:]


def compute_gradients(
    steps: Sequence[Any],
    tokens: Sequence[str],
    start: int,
    joiner: str,
    column: int,
    method: Any,
    text: Text,
    notes: Notes,
) -> Scores:
    """Return the scores of the tokens from ``start`` on by a gradient method: d p_c / d x_f of their features.

    Each token is one unit of its word's count, so that its own input is 1, and ``gradient`` is the magnitude of
    ``input-x-gradient``. Integrated gradients follow the straight line from no tokens, the query's included, to all
    (Sundararajan et al., 2017, equation 1); the convergence delta, the difference between their sum and p(x) -
    p(baseline), is noted.
    """
    kind, estimator = find_gradient(type(method)), steps[-1]
    shares = share_features(steps[0], tokens, joiner)
    bias = _get_logits(estimator.intercept_)
    change = _get_logits(estimator.decision_function(steps[0].transform([joiner.join(tokens)])).ravel()) - bias
    integrated = kind == "integrated"
    at, parts = make_path(method.steps, text.settings.choices.integral) if integrated else (np.ones(1), np.ones(1))
    p = _softmax(bias + at[:, None] * change)
    # d p_c / d z_j = p_c ([c = j] - p_j)
    slopes = parts @ (p[:, [column]] * ((np.arange(p.shape[1]) == column) - p))
    weights = get_weights(estimator)
    # of two labels the logits are 0 and z
    slopes = slopes @ weights if len(bias) > 2 else slopes[1] * weights[1]
    scores = np.asarray(shares @ slopes)
    if integrated:
        ends = _softmax(np.stack([bias, bias + change]))[:, column]
        notes.keep_largest("largest convergence delta", abs(float(scores.sum() - (ends[1] - ends[0]))))
    return np.abs(scores[start:]) if kind == "length" else scores[start:]


def find_gradient(method: type[Method]) -> str | None:
    """Return how a gradient method uses the gradient; None for another method."""
    from eraser_hub.attribution.methods.gradient import Gradient
    from eraser_hub.attribution.methods.input_x_gradient import InputXGradient
    from eraser_hub.attribution.methods.integrated_gradients import IntegratedGradients

    kinds: dict[type[Method], str]
    kinds = {Gradient: "length", InputXGradient: "product", IntegratedGradients: "integrated"}
    return kinds.get(method)


def get_weights(estimator: Any) -> NDArray[np.float64]:
    """Return w_c of each output column; a binary model has one row of coefficients, for its second class."""
    weights = np.asarray(estimator.coef_, dtype=np.float64)
    return np.concatenate([-weights, weights]) if len(weights) == 1 else weights


@cache
def make_path(steps: int, integral: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights on [0, 1]: Gauss-Legendre, or the trapezoid rule with both ends.

    Kept, since to find 300 of them takes longer than a small model's passes.
    """
    if integral == "trapezoid" and steps > 1:
        shares = np.full(steps, 1 / (steps - 1))
        shares[[0, -1]] /= 2
        return np.linspace(0, 1, steps), shares
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (1 + points) / 2, weights / 2


def _get_logits(values: Any) -> NDArray[np.float64]:
    """Return logits of all labels; of the one that a model of two labels has: 0 and that."""
    logits = np.asarray(values, dtype=np.float64)
    return np.concatenate([[0.0], logits]) if len(logits) == 1 else logits


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exp / exp.sum(axis=1, keepdims=True))
