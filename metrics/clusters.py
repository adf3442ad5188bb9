"""Clusters: annotations that are not independent, and that intervals and tests therefore draw together.

A model's outputs for one document depend on each other. Statistics are summed per cluster first; the bootstrap draws
these sums, the jackknife leaves them out and a paired test exchanges them.
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
    """Clusters of annotations.

    Attributes:
        kind: the kind of clusters in the signature: "documents", "original", a column's name, or "none".
        numbers: the cluster of each annotation, from 0 by first appearance: int64 (n,); None: one annotation each.
    """

    kind: str
    numbers: np.ndarray | None = None


class AnnotationColumns(Protocol):
    """Columns of a module's annotations beside their scores."""

    def __call__(self, name: str, predicted: bool = False) -> Sequence[object]:
        """Return the values of a column, one per annotation.

        Args:
            name: the column.
            predicted: read the predictions, if the references lack the column.

        Raises:
            ValueError: not every annotation has it.
        """
        ...

    def clusters(self) -> Clusters:
        """Return the clusters of ``cluster_by="auto"``."""
        ...


def number_values(values: Iterable[object]) -> np.ndarray:
    """Return the number of each value, from 0 by first appearance: int64 (n,).

    >>> number_values(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def find_components(owner: np.ndarray, item: np.ndarray, n: int) -> np.ndarray | None:
    """Find the connected components of annotations that share items (documents), directly or through others.

    Args:
        owner: the annotation of each (annotation, item) pair, in [0, n): int (m,).
        item: the item of each pair, from 0: int (m,).
        n: the number of annotations; one without items is a component of its own.

    Returns:
        The component of each, from 0 by first appearance: int64 (n,); None if no two annotations share an item.

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
    """Return clusters of annotations that share an item, see `find_components`."""
    pairs = [(row, item) for row, own in enumerate(items) for item in own]
    owner = np.array([row for row, _ in pairs], dtype=np.int64)
    return Clusters(kind, find_components(owner, number_values(item for _, item in pairs), len(items)))


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def add_clusters(statistics: Statistics, columns: AnnotationColumns, cluster_by: str = AUTO) -> Statistics:
    """Return the statistics with their clusters.

    Args:
        statistics: the statistics of all annotations.
        columns: the columns of the same annotations.
        cluster_by: "auto" (documents, if any repeats; originals, if they have perturbed records), "none", or a column.

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
            # an annotation without a value is its own cluster: the tuple of its place equals no string or number
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
