"""Clusters: the annotations that intervals and tests draw together, because they are not independent.

Annotations that share a document share what a model makes of it. Their statistics are summed first, and the sums are
what the bootstrap draws, what the jackknife leaves out and what a paired test exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from .issues import InputError
from .statistics_builder import Statistics

AUTO, NONE = "auto", "none"


class Clusters(NamedTuple):
    """What annotations are drawn together.

    Attributes:
        kind: what a cluster is, as the signature says it: "documents", "original", a column's name, or "none".
        numbers: the cluster of each annotation, from 0 by first appearance: int64 (n,); None: each stands for itself.
    """

    kind: str
    numbers: np.ndarray | None = None


class AnnotationColumns(Protocol):
    """What a module knows of its annotations beside their scores."""

    def __call__(self, name: str, predicted: bool = False) -> Sequence[object]:
        """The values of a column, one per annotation.

        Args:
            predicted: of the predictions, where the references lack it.

        Raises:
            ValueError: not every annotation has it.
        """
        ...

    def clusters(self) -> Clusters:
        """The clusters of ``cluster_by="auto"``."""
        ...


def number_values(values: Iterable[object]) -> np.ndarray:
    """The number of each value, from 0 by first appearance: int64 (n,).

    >>> number_values(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def find_components(owner: np.ndarray, item: np.ndarray, n: int) -> np.ndarray | None:
    """The connected components of annotations that share items (documents), directly or through others.

    Args:
        owner, item: pairs of an annotation, in [0, n), and an item that it holds, from 0: int (m,).
        n: how many annotations there are; one without items stands for itself.

    Returns:
        The component of each, from 0 by first appearance: int64 (n,); None where no two annotations share an item.

    >>> find_components(np.array([0, 1, 1, 2, 3]), np.array([7, 8, 9, 7, 9]), 5).tolist()
    [0, 1, 0, 1, 2]
    """
    least = np.arange(n)
    while True:
        of_item = np.full(int(item.max(initial=-1)) + 1, n)
        np.minimum.at(of_item, item, least[owner])
        lower = least.copy()
        np.minimum.at(lower, owner, of_item[item])
        lower = lower[lower]  # a component's least annotation is in the component: this halves the way to it
        if (lower == least).all():
            break
        least = lower
    names, numbers = np.unique(least, return_inverse=True)
    return None if names.size == n else numbers


def cluster_by_items(kind: str, items: Sequence[Iterable[object]]) -> Clusters:
    """Clusters of annotations that share an item, see `connected`; ``items`` are those of each annotation."""
    pairs = [(row, item) for row, own in enumerate(items) for item in own]
    owner = np.array([row for row, _ in pairs], dtype=np.int64)
    return Clusters(kind, find_components(owner, number_values(item for _, item in pairs), len(items)))


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def add_clusters(statistics: Statistics, columns: AnnotationColumns, cluster_by: str = AUTO) -> Statistics:
    """The statistics, with their clusters.

    Args:
        statistics: of all annotations.
        columns: of the same annotations.
        cluster_by: "auto" (documents, where any repeats; originals, where perturbed records go with them), "none", or
            a column.

    Raises:
        ValueError: not every annotation has the column, or its values are lists.
    """
    if not isinstance(cluster_by, str):
        raise InputError(f"expected 'auto', 'none' or a column, found {cluster_by!r}", "option-value", "cluster_by")
    if cluster_by == AUTO:
        clusters = columns.clusters()
    elif cluster_by == NONE:
        clusters = Clusters(NONE)
    else:
        try:
            values = enumerate(columns(cluster_by, predicted=True))
            # who has no value stands for itself: a row's place is no value of a column of strings or numbers
            clusters = Clusters(
                cluster_by, number_values((row,) if _is_missing(value) else value for row, value in values)
            )
        except TypeError:
            raise InputError(
                f"expected a column of single values, found lists in {cluster_by!r}", "option-value", "cluster_by"
            ) from None
        except ValueError as error:
            rule = getattr(error, "rule", "option-value")
            raise InputError(str(error).removeprefix("by: "), rule, "cluster_by") from None
    return replace(statistics, clusters=clusters.numbers, clustering=clusters.kind)
