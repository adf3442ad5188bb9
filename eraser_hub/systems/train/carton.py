"""Paper 004's linear and forest models as its code fits them: TF-IDF over sub-words, chosen by the validation split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.subwords import Subwords
from eraser_hub.papers.presets import preset

from .baselines import text_of

PAPER = "carton2020"
Examples = tuple[Sequence[Instance], Sequence[str]]  # and their labels


def fit_carton(
    baseline: str, train: Examples, validation: Examples, subwords: Subwords, seed: int, say: Callable[[str], None]
) -> tuple[Any, dict[str, Any]]:
    """Fit every size of the code's grid on ``train``; the first of the best accuracy on ``validation`` is kept.

    TfidfVectorizer and estimators with scikit-learn's defaults, but for a seed of the forest, which the code has not.

    Returns:
        The fitted pipeline over sub-words, and the facts for ``model.json``.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    how, linear = preset(PAPER).training, baseline == "logistic-regression"
    vectoriser = TfidfVectorizer()
    seen = vectoriser.fit_transform(subwords([text_of(one) for one in train[0]]))
    vars(vectoriser).pop("_stop_words_id", None)  # a place in memory, see baselines
    unseen = vectoriser.transform(subwords([text_of(one) for one in validation[0]]))
    gold, best, size, kept = np.asarray(validation[1]), -1.0, 0.0, None
    with threadpool_limits(1):
        for value in how["C" if linear else "trees"]:
            if linear:
                estimator = LogisticRegression(C=value, max_iter=how["max_iter"], random_state=seed)
            else:
                estimator = RandomForestClassifier(value, random_state=seed)
            accuracy = float(np.mean(estimator.fit(seen, np.asarray(train[1])).predict(unseen) == gold))
            say(f"{'C' if linear else 'trees'} {value:g}: {accuracy:.3f} on the validation split")
            if accuracy > best:
                best, size, kept = accuracy, value, estimator
    facts = {"baseline": baseline, "size": size, "seed": seed, "features": "sub-words", "longest": subwords.longest}
    return make_pipeline(vectoriser, kept), facts
