"""Fit the papers' baselines: logistic regression and random forest over counted words, saved as skops files.

Hyperparameters are scanned as Carton 2020 does (appendix A: C in 0.001 .. 1000, 16 .. 512 trees), by five folds of the
training split, so that the validation split stays unseen.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapters.scikit_learn import BLANK_SPLIT, Subwords, open_subwords, save_pipeline
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import TOKENIZER
from eraser_hub.papers.presets import preset
from eraser_hub.records.atomic import replacing
from eraser_hub.records.errors import DataError

from .data import Labelled, Training, silent
from .folder import saving, write_facts
from .recipe import Say
from .system import CARTON, Baseline

FOLDS = 5
FEATURES = ("words", "characters")


def text_of(one: Instance, joiner: str = " ") -> str:
    """Return what a pipeline reads: the query's tokens, then the documents'."""
    return joiner.join([*one.query, *one.tokens])


def train_baseline(system: Baseline, training: Training) -> None:
    """Fit a baseline, as its paper's code does where that is asked for, and save it."""
    recipe, data, say = training.recipe, training.data, training.say
    subwords = None
    if recipe.paper == CARTON:
        if not data.validation[0]:
            words = f"`paper` {CARTON}: expected a validation split with labels to choose by; `eval_split` names one"
            raise DataError(words, rule="option-missing", file=recipe.dataset)
        theirs = preset(CARTON).training["tokenizer"]
        subwords = open_subwords(recipe.tokenizer or theirs, preset(CARTON).training["pieces"])
        notes = f", the paper's are {theirs}'s" if recipe.tokenizer else ""
        say(f"sub-words by {recipe.tokenizer or theirs}{notes}")
        model, facts = fit_carton(system, data.train, data.validation, subwords, recipe.seed, say)
    else:
        joiner = recipe.joiner if recipe.joiner is not None else "" if recipe.features == "characters" else " "
        how: dict[str, Any] = {"features": recipe.features, "joiner": joiner, "copies": data.copies}
        model, facts = fit_baseline(system, *data.train, seed=recipe.seed, say=say, **how)
    out = training.out
    with saving(out):
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / "model.skops") as beside:
            save_pipeline(model, beside)
        write_facts({**training.facts, "baseline": recipe.model, **facts}, out)
        if subwords is not None:
            subwords.tokenizer.save_pretrained(out / TOKENIZER)


def pipeline_for(system: Baseline, features: str, size: float, seed: int) -> Any:
    """Return an unfitted pipeline: a counter of words or characters, and the estimator of that size."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    if features == "words":
        counts = CountVectorizer(token_pattern=BLANK_SPLIT, min_df=1)
    else:
        counts = CountVectorizer(analyzer="char", ngram_range=(1, 2))
    return make_pipeline(counts, system.estimator(size, seed))


def fit_baseline(
    system: Baseline,
    instances: Sequence[Instance],
    labels: Sequence[str],
    *,
    features: str = "words",
    joiner: str = " ",
    seed: int = 1,
    say: Say = silent,
    copies: int = 1,
) -> tuple[Any, dict[str, Any]]:
    """Choose the size by the mean accuracy of five folds, then fit on everything.

    The same instances and seed give the same pipeline to the last bit, whatever the number of processors: one thread
    fits, and of equally accurate values the one of stronger regularisation (the smaller C, fewer trees) is taken.

    Args:
        copies: so many subsets of each text stand one after the other; a text's are in the same folds.

    Returns:
        The fitted pipeline and the facts for ``model.json``.

    Raises:
        DataError: unknown features, no text at all.
    """
    from threadpoolctl import threadpool_limits

    if features not in FEATURES:
        words = f"expected one of {', '.join(FEATURES)}; found {features!r}"
        raise DataError(words, rule="option-value", argument="features")
    if not any(one.query or one.tokens for one in instances):
        message = f"expected text to train on, found none in {len(instances)} instances"
        raise DataError(message, rule="empty", field="documents")
    grid, gold = system.sizes, np.asarray(labels)
    pipeline = pipeline_for(system, features, grid[0], seed)
    counts = pipeline[0].fit_transform([text_of(one, joiner) for one in instances])
    vars(pipeline[0]).pop("_stop_words_id", None)  # a place in memory, by which it knows stop words that it has checked
    with threadpool_limits(1):
        texts = len(gold) // copies
        folds = [
            (_of_copies(train, texts, copies), _of_copies(test, texts, copies))
            for train, test in folds_of(gold[:texts], seed)
        ]
        size, accuracies = grid[len(grid) // 2], [Fraction(0)] * len(grid)
        if folds:
            accuracies = accuracies_of(system, counts, gold, folds, seed)
            size = grid[accuracies.index(max(accuracies))]
        pipeline[-1].set_params(**{system.size: size}).fit(counts, gold)
    for value, accuracy in zip(grid, accuracies if folds else (), strict=bool(folds)):
        say(f"{system.words} {value:g}: {float(accuracy):.3f}, the mean of {len(folds)} folds")
    if not folds:
        say(f"{system.words} {size:g}: too few instances of each label to choose by")
    return pipeline, {"size": size, "features": features, "joiner": joiner, "seed": seed}


def fit_carton(
    system: Baseline, train: Labelled, validation: Labelled, subwords: Subwords, seed: int, say: Say
) -> tuple[Any, dict[str, Any]]:
    """Fit every size of Carton 2020's code on ``train``; the first of the best accuracy on ``validation`` is kept.

    TfidfVectorizer and estimators with scikit-learn's defaults, but for a seed of the forest, which the code has not.

    Returns:
        The fitted pipeline over sub-words, and the facts for ``model.json``.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    vectoriser = TfidfVectorizer()
    seen = vectoriser.fit_transform(subwords([text_of(one) for one in train[0]]))
    unseen = vectoriser.transform(subwords([text_of(one) for one in validation[0]]))
    vars(vectoriser).pop("_stop_words_id", None)  # as above; `transform` sets it, too
    gold, best, size, kept = np.asarray(validation[1]), -1.0, 0.0, None
    with threadpool_limits(1):
        for value in preset(CARTON).training[system.words]:
            estimator = system.paper_estimator(value, seed)
            accuracy = float(np.mean(estimator.fit(seen, np.asarray(train[1])).predict(unseen) == gold))
            say(f"{system.words} {value:g}: {accuracy:.3f} on the validation split")
            if accuracy > best:
                best, size, kept = accuracy, value, estimator
    facts = {"size": size, "seed": seed, "features": "sub-words", "longest": subwords.longest}
    return make_pipeline(vectoriser, kept), facts


def _of_copies(places: NDArray[np.int64], texts: int, copies: int) -> NDArray[np.int64]:
    """Return the places of all copies of texts."""
    return (places + texts * np.arange(copies)[:, None]).ravel()


def folds_of(labels: NDArray[np.str_], seed: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return places to train on and to test on, five times, each label's share in each; fewer times for few instances.

    None where only one label has two instances: then a fold could lack all but one label.
    """
    from sklearn.model_selection import StratifiedKFold

    number = min(FOLDS, *sorted(Counter(labels.tolist()).values())[-2:])
    if number < 2:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels with fewer instances than folds: they are in some
        return list(StratifiedKFold(number, shuffle=True, random_state=seed).split(labels, labels))


def accuracies_of(
    system: Baseline,
    counts: Any,
    labels: NDArray[np.str_],
    folds: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    seed: int,
) -> list[Fraction]:
    """Return the mean accuracy over the folds for each of the ascending sizes, exact, so that ties are ties."""
    sums = [Fraction(0)] * len(system.sizes)
    for train, test in folds:
        estimator = system.estimator(system.sizes[0], seed, warm=True)
        seen, unseen = counts[train], counts[test]
        seen.sort_indices()  # once, and not in each fit
        for place, size in enumerate(system.sizes):
            estimator.set_params(**{system.size: size}).fit(seen, labels[train])
            hits = np.count_nonzero(estimator.predict(unseen) == labels[test])
            sums[place] += Fraction(int(hits), len(test) * len(folds))
    return sums
