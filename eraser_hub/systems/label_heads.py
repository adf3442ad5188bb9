"""Fit baselines whose labels are no single classes: an estimator for each label of a text, or one of a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError, show
from eraser_hub.schema.label_tasks import MULTI_LABEL, PRESENT

from .folds import FOLDS, choose_size, make_folds
from .system import Baseline
from .train_config import Say

UNKNOWN = -1  # the label of a text that no annotation names


def group_texts(
    instances: Sequence[Instance], labels: Sequence[str], names: Sequence[str]
) -> tuple[list[Instance], NDArray[np.int64]]:
    """Group annotations of a multi-label corpus by their texts.

    Args:
        instances: A text and a label each; the query is the label.
        labels: present or absent.
        names: The labels of the corpus.

    Returns:
        An instance of each text, in order of appearance, and its labels, int (texts, labels): 1, 0, or `UNKNOWN`.

    Raises:
        DataError: A label that is none of these.
    """
    columns = {name: column for column, name in enumerate(names)}
    places: dict[tuple[tuple[str, ...], ...], int] = {}
    texts: list[Instance] = []
    rows: list[NDArray[np.int64]] = []
    for one, label in zip(instances, labels, strict=True):
        place = places.setdefault(one.documents, len(texts))
        if place == len(texts):
            texts.append(one)
            rows.append(np.full(len(names), UNKNOWN))
        name = " ".join(one.query)
        if name not in columns:
            words = f"expected one of the labels of the training split, {', '.join(names)}, found {show(name)}"
            raise DataError(words, rule="label-unknown", instance=one.id)
        rows[place][columns[name]] = int(label == PRESENT)
    return texts, np.stack(rows)


def fit_labels(
    system: Baseline,
    counts: Any,
    gold: NDArray[np.int64],
    names: Sequence[str],
    seed: int,
    say: Say,
    clusters: NDArray[np.int64] | None = None,
) -> tuple[Any, float]:
    """Fit an estimator for each label, all of one size, chosen by the mean accuracy of five folds and all labels.

    Args:
        system: The baseline.
        counts: Word counts of the texts, sparse (texts, words).
        gold: As `group_texts` gives it.
        names: The labels.
        seed: Seed of the folds and the estimators.
        say: Receives lines of progress.
        clusters: Clusters of texts, each in one fold; None if each text is one of its own.

    Returns:
        A fitted OneVsRestClassifier, and the size.

    Raises:
        DataError: A label that no text has, or every text.
    """
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import LabelBinarizer

    constant = [name for name, column in zip(names, gold.T, strict=True) if not {0, 1} <= set(column.tolist())]
    if constant or len(names) < 2:
        words = f"expected texts with and without each of at least two labels for the task {MULTI_LABEL}"
        found = f"one of both alone of {', '.join(constant[:10])}" if constant else ", ".join(names)
        raise DataError(f"{words}, found {found}", rule="label-missing")
    parts = []
    for column in gold.T:
        known = np.flatnonzero(column != UNKNOWN)
        folds = make_folds(column[known].astype(str), seed, None if clusters is None else clusters[known])
        parts.append((counts[known], column[known], folds))
    folded = sum(1 for *_, folds in parts if folds)
    size = choose_size(system, parts, seed, say, f"the folds of {folded} labels", "texts")
    estimators = [system.estimator(size, seed).fit(own, column) for own, column, _ in parts]
    whole = OneVsRestClassifier(system.estimator(size, seed))
    whole.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(np.maximum(gold, 0))
    whole.estimators_ = estimators
    return whole, size


def fit_number(
    system: Baseline,
    counts: Any,
    gold: NDArray[np.float64],
    seed: int,
    say: Say,
    clusters: NDArray[np.int64] | None = None,
) -> tuple[Any, float]:
    """Fit an estimator of a number, its size chosen by the mean squared error of five folds; see `fit_labels`.

    Among equally good values the one of stronger regularisation wins; texts of one cluster leave nothing to choose by,
    and the middle value is taken.

    Returns:
        The fitted estimator, and the size.
    """
    from sklearn.model_selection import KFold

    grid, errors = system.sizes, np.zeros(len(system.sizes))
    clusters = np.arange(len(gold)) if clusters is None else clusters
    names = np.unique(clusters)
    number = min(FOLDS, len(names))
    if number < 2:
        size = grid[len(grid) // 2]
        say(f"{system.words} {size:g}: too few texts apart from each other to choose by")
        return system.estimator(size, seed).fit(counts, gold), size
    for _, chosen in KFold(number, shuffle=True, random_state=seed).split(names):
        in_fold = np.isin(clusters, names[chosen])
        train, test = np.flatnonzero(~in_fold), np.flatnonzero(in_fold)
        for place, size in enumerate(grid):
            guesses = system.estimator(size, seed).fit(counts[train], gold[train]).predict(counts[test])
            errors[place] += float(np.square(guesses - gold[test]).sum()) / len(gold)
    for value, error in zip(grid, errors, strict=True):
        say(f"{system.words} {value:g}: mean squared error {error:.4g}, of {number} folds")
    size = grid[int(np.flatnonzero(errors <= errors.min() * (1 + 1e-9))[0])]
    return system.estimator(size, seed).fit(counts, gold), size
