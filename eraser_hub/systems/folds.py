"""Folds of the training split, by which baselines choose their size."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .system import Baseline

FOLDS = 5


def make_folds(labels: NDArray[np.str_], seed: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split positions into up to five stratified folds, each a pair (train, test).

    There are fewer folds if there are few instances, and none if only one label has two instances: a fold could then
        lack
    all labels but one.
    """
    from sklearn.model_selection import StratifiedKFold

    number = min(FOLDS, *sorted(Counter(labels.tolist()).values())[-2:])
    if number < 2:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels with fewer instances than folds: they are in some
        return list(StratifiedKFold(number, shuffle=True, random_state=seed).split(labels, labels))


def compute_accuracies(
    system: Baseline,
    counts: Any,
    labels: NDArray[np.str_],
    folds: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    seed: int,
) -> list[Fraction]:
    """Return the mean accuracy over the folds for each ascending size, as exact fractions: ties stay ties."""
    sums = [Fraction(0)] * len(system.sizes)
    for train, test in folds:
        estimator = system.estimator(system.sizes[0], seed, warm=True)
        train_counts, validation_counts = counts[train], counts[test]
        train_counts.sort_indices()  # once, and not in each fit
        for place, size in enumerate(system.sizes):
            estimator.set_params(**{system.size: size}).fit(train_counts, labels[train])
            hits = np.count_nonzero(estimator.predict(validation_counts) == labels[test])
            sums[place] += Fraction(int(hits), len(test) * len(folds))
    return sums
