"""Folds of the training split, by which baselines choose their size."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.metrics.statistics import find_components, number_values

from .system import Baseline
from .train_config import Say

FOLDS = 5
Folds = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]  # positions to train on and to test on


def make_folds(
    labels: NDArray[np.str_], seed: int, clusters: NDArray[np.int64] | None = None
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split positions into up to five stratified folds, each a pair (train, test).

    There are fewer folds if there are few instances or clusters, and none if only one label has two instances: a fold
    could then lack all labels but one. Folds of clusters that train on one label alone are left out.

    Args:
        labels: The label of each position.
        seed: Seed of the draw.
        clusters: The cluster of each position, which lies in one fold; None if each position is one of its own.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    number = min(FOLDS, *sorted(Counter(labels.tolist()).values())[-2:])
    number = number if clusters is None else min(number, len(set(clusters.tolist())))
    if number < 2:
        return []
    kind = StratifiedKFold if clusters is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels with fewer instances than folds: they are in some
        folds = list(kind(number, shuffle=True, random_state=seed).split(labels, labels, clusters))
    return [(train, test) for train, test in folds if len(test) and len(set(labels[train].tolist())) > 1]


def cluster_texts(instances: Sequence[Instance], by_name: bool) -> NDArray[np.int64] | None:
    """Return the number of each instance's cluster, int64 (instances,); None if no two share a document.

    Args:
        instances: The instances.
        by_name: Documents are equal if their ids are; otherwise if their tokens are.
    """
    items = [one.names if by_name else one.documents for one in instances]
    owner = np.repeat(np.arange(len(items)), [len(documents) for documents in items])
    return find_components(owner, number_values(chain.from_iterable(items)), len(items))


def choose_size(system: Baseline, counts: Any, labels: NDArray[Any], folds: Folds, seed: int, say: Say) -> float:
    """Return the size of the greatest mean accuracy over the folds; among equals the one of stronger regularisation.

    Args:
        system: The baseline.
        counts: Word counts of the instances, sparse (instances, words).
        labels: Their labels.
        folds: The folds; without any, the middle size is taken.
        seed: Seed of the estimators.
        say: Receives the accuracies.
    """
    grid = system.sizes
    if not folds:
        size = grid[len(grid) // 2]
        say(f"{system.words} {size:g}: too few instances of each label to choose by")
        return size
    sums = [Fraction(0)] * len(grid)  # exact: ties stay ties
    for train, test in folds:
        estimator = system.estimator(grid[0], seed, warm=True)
        train_counts, validation_counts = counts[train], counts[test]
        train_counts.sort_indices()  # once, and not in each fit
        for place, size in enumerate(grid):
            estimator.set_params(**{system.size: size}).fit(train_counts, labels[train])
            hits = np.count_nonzero(estimator.predict(validation_counts) == labels[test])
            sums[place] += Fraction(int(hits), len(test) * len(folds))
    for value, accuracy in zip(grid, sums, strict=True):
        say(f"{system.words} {value:g}: {float(accuracy):.3f}, the mean of {len(folds)} folds")
    return grid[sums.index(max(sums))]
