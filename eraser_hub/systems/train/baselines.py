"""Fit the papers' baselines: logistic regression and random forest over counted words, saved as skops files.

Hyperparameters are scanned as paper 004 does (appendix A: C in 0.001 .. 1000, 16 .. 512 trees), by five folds of the
training split, so that the validation split stays unseen.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.dataset import Split, stratified
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.sklearn_model import BLANK_SPLIT, save_pipeline
from eraser_hub.records.atomic import replacing
from eraser_hub.records.errors import DataError
from eraser_hub.version import __version__

C_VALUES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
SIZE_OF = {"logistic-regression": "C", "random-forest": "n_estimators"}  # the parameter that is chosen
BASELINES = tuple(SIZE_OF)
FOLDS = 5
TREES = (16, 32, 64, 128, 256, 512)
FEATURES = ("words", "characters")
LARGEST_SEED = 2**32 - 1  # scikit-learn's and numpy's


def examples(
    split: Split, *, rationale_only: bool = False, uses_query: bool = False, limit: int | None = None, seed: int = 1
) -> tuple[list[Instance], list[str]]:
    """Labelled instances of a split, and their labels; instances without a label are left out, and it must not be all.

    Args:
        rationale_only: the human rationale's tokens in place of the documents.
        uses_query: keep the query.
        limit: so many of them, each label's share as in the split (:func:`stratified`); None: all.
        seed: of that draw.

    Raises:
        DataError: no labels at all; an instance without rationale when ``rationale_only``.
    """
    rows = (one for one in split.instances() if one.label is not None)
    if limit is not None:
        # the labels alone first: the rows of a large split are not held to choose some of them
        chosen = stratified([str(one.label) for one in split.instances() if one.label is not None], limit, seed)
        rows = (one for place, one in enumerate(rows) if place in chosen)
    if rationale_only:
        rows = (one.rationale_only() for one in rows)
    if not uses_query:
        rows = (one.without_query() for one in rows)
    instances = list(rows)
    if not instances:
        words = "expected labelled instances, found none"
        raise DataError(words, rule="label-missing", file=split.name, field="classification")
    return instances, [str(one.label) for one in instances]


def text_of(one: Instance, joiner: str = " ") -> str:
    """What a pipeline reads: the query's tokens, then the documents'."""
    return joiner.join([*one.query, *one.tokens])


def pipeline_for(baseline: str, features: str, size: float, seed: int, warm: bool = False) -> Any:
    """An unfitted pipeline.

    Args:
        size: C for logistic regression, the number of trees for the random forest.
        warm: a further fit of its estimator goes on from the one before.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    if features == "words":
        counts = CountVectorizer(token_pattern=BLANK_SPLIT, min_df=1)
    else:
        counts = CountVectorizer(analyzer="char", ngram_range=(1, 2))
    if baseline == "logistic-regression":
        # few large steps: a third of the time that lbfgs takes on long sparse texts
        estimator = LogisticRegression(C=size, solver="newton-cg", max_iter=2000, random_state=seed, warm_start=warm)
    else:
        estimator = RandomForestClassifier(int(size), random_state=seed, n_jobs=1, warm_start=warm)
    return make_pipeline(counts, estimator)


def fit_baseline(
    baseline: str,
    instances: Sequence[Instance],
    labels: Sequence[str],
    *,
    features: str = "words",
    joiner: str = " ",
    seed: int = 1,
    say: Callable[[str], None] = lambda words: None,
    copies: int = 1,
) -> tuple[Any, dict[str, Any]]:
    """Choose the hyperparameter by the mean accuracy of five folds, then fit on everything.

    The same instances and seed give the same pipeline to the last bit, whatever the number of processors: one thread
    fits, and of equally accurate values the one of stronger regularisation (the smaller C, fewer trees) is taken.

    Args:
        copies: so many subsets of each text stand one after the other; a text's are in the same folds.

    Returns:
        The fitted pipeline and the facts for ``model.json``.

    Raises:
        DataError: unknown names, no text at all.
    """
    from threadpoolctl import threadpool_limits

    if baseline not in BASELINES:
        message = f"--model: expected one of {', '.join(BASELINES)} or a transformers model; found {baseline!r}"
        raise DataError(message, rule="option-value")
    if features not in FEATURES:
        raise DataError(f"--features: expected one of {', '.join(FEATURES)}; found {features!r}", rule="option-value")
    if not any(one.query or one.tokens for one in instances):
        message = f"expected text to train on, found none in {len(instances)} instances"
        raise DataError(message, rule="empty", field="documents")
    grid: Sequence[float] = C_VALUES if baseline == "logistic-regression" else TREES
    gold, pipeline = np.asarray(labels), pipeline_for(baseline, features, grid[0], seed)
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
            accuracies = accuracies_of(baseline, grid, counts, gold, folds, seed)
            size = grid[accuracies.index(max(accuracies))]
        pipeline[-1].set_params(**{SIZE_OF[baseline]: size}).fit(counts, gold)
    words = "C" if baseline == "logistic-regression" else "trees"
    for value, accuracy in zip(grid, accuracies if folds else (), strict=bool(folds)):
        say(f"{words} {value:g}: {float(accuracy):.3f}, the mean of {len(folds)} folds")
    if not folds:
        say(f"{words} {size:g}: too few instances of each label to choose by")
    return pipeline, {"baseline": baseline, "size": size, "features": features, "joiner": joiner, "seed": seed}


def _of_copies(places: NDArray[np.int64], texts: int, copies: int) -> NDArray[np.int64]:
    """The places of all copies of texts."""
    return (places + texts * np.arange(copies)[:, None]).ravel()


def folds_of(labels: NDArray[np.str_], seed: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Places to train on and to test on, five times, each label's share in each; fewer times for few instances.

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
    baseline: str,
    grid: Sequence[float],
    counts: Any,
    labels: NDArray[np.str_],
    folds: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    seed: int,
) -> list[Fraction]:
    """The mean accuracy over the folds for each size of an ascending grid, exact, so that ties are ties."""
    sums = [Fraction(0)] * len(grid)
    for train, test in folds:
        estimator = pipeline_for(baseline, "words", grid[0], seed, warm=True)[-1]
        seen, unseen = counts[train], counts[test]
        seen.sort_indices()  # once, and not in each fit
        for place, size in enumerate(grid):
            estimator.set_params(**{SIZE_OF[baseline]: size}).fit(seen, labels[train])
            hits = np.count_nonzero(estimator.predict(unseen) == labels[test])
            sums[place] += Fraction(int(hits), len(test) * len(folds))
    return sums


def save_baseline(model: Any, facts: dict[str, Any], out: Path) -> None:
    """Write ``model.skops`` and ``model.json`` into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / "model.skops") as beside:
        save_pipeline(model, beside)
    write_facts(facts, out)


def write_facts(facts: dict[str, Any], out: Path) -> None:
    """``model.json``: how the model was trained, which ``explain`` reads."""
    with replacing(out / "model.json") as beside:
        beside.write_text(
            json.dumps({"eraser_hub": __version__, **facts}, indent=2, ensure_ascii=False) + "\n", "utf-8"
        )
