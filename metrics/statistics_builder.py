"""Additive statistics: columns of numbers per annotation; their sums over any set of annotations give its scores.

`divide` is the one division of sums. A `StatisticsBuilder` gathers columns while a metric counts; `Statistics` is its
result. The sum of its rows, put through ``finalize``, is the score; sums over groups are the breakdown, and the
bootstrap resamples the rows. An average over keys (a macro average) is such a sum, too: the sum of the keys' values and
the number of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Finalize = Callable[[np.ndarray], Mapping[str, np.ndarray]]
Column = Callable[[str], np.ndarray]


def divide(numerator: npt.ArrayLike, denominator: npt.ArrayLike, empty: float = 0.0) -> np.ndarray:
    """Return ``numerator / denominator``, and ``empty`` where the denominator is 0, without a warning."""
    numerator, denominator = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    out = np.full(np.broadcast(numerator, denominator).shape, empty)
    with np.errstate(invalid="ignore"):
        np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


@dataclass(frozen=True)
class Statistics:
    """Additive statistics of one system on n instances.

    Attributes:
        ids: annotation ids, n strings, unique.
        values: float64 (n, k); the score is ``finalize(values.sum(axis=0))``.
        finalize: sums (..., k) to {key: scores (...)}; a key that is a list of T scores has shape (..., T). It works
            on any leading shape and gives NaN (or the metric's convention) where a count is 0, without warning.
        per_instance: {key: (n,) or (n, T)}, the instance's own scores; NaN where an instance has none.
        columns: the names of the k columns of ``values``, by which statistics of systems with other optional fields
            are compared; None if that never happens.
        clusters: the cluster of each instance, int (n,), every number from 0 to their largest; None: each instance
            is its own cluster. See `clusters`.
        clustering: the kind of clusters: "documents", "original", a column's name, or "none".
    """

    ids: Sequence[str]
    values: np.ndarray
    finalize: Finalize
    per_instance: Mapping[str, np.ndarray] = field(default_factory=dict)
    columns: Sequence[str] | None = None
    clusters: np.ndarray | None = None
    clustering: str = "none"

    @property
    def n_clusters(self) -> int:
        """Number of clusters: the rows that the bootstrap draws."""
        return len(self.ids) if self.clusters is None else int(self.clusters.max(initial=-1)) + 1

    def cluster_sums(self) -> np.ndarray:
        """Return the statistics summed per cluster: float64 (clusters, k)."""
        if self.clusters is None:
            return self.values
        sums = np.zeros((self.n_clusters, self.values.shape[1]))
        with np.errstate(invalid="ignore"):
            np.add.at(sums, self.clusters, self.values)
        return sums

    def scores(self) -> dict[str, np.ndarray]:
        """Return the scores over all instances: {key: 0-d array, or (T,)}."""
        with np.errstate(invalid="ignore"):
            return {key: np.asarray(value) for key, value in self.finalize(self.values.sum(axis=0)).items()}

    def take(self, rows: Sequence[int] | np.ndarray) -> Statistics:
        """Return the statistics of some instances, in the order of ``rows``."""
        rows = np.asarray(rows, dtype=np.int64)
        per_instance = {key: np.asarray(column)[rows] for key, column in self.per_instance.items()}
        clusters = None if self.clusters is None else np.unique(self.clusters[rows], return_inverse=True)[1]
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            values=self.values[rows],
            per_instance=per_instance,
            clusters=clusters,
        )


# key -> (higher is better, lowest, highest); None: no direction, no end
ScoreInfo = dict[str, tuple[bool | None, float | None, float | None]]


def make_info(scores: ScoreInfo) -> tuple[dict[str, bool | None], dict[str, tuple[float | None, float | None]]]:
    """Return per key whether higher is better, and its range."""
    return {key: up for key, (up, _, _) in scores.items()}, {key: (low, high) for key, (_, low, high) in scores.items()}


class Score(NamedTuple):
    """Scores computed from some columns of a `StatisticsBuilder`.

    Attributes:
        place: scores of a lower place come first in a result.
        compute: returns the scores {key: (...)}, or (..., T), of a function that returns a column's sums (...) by its
            name, and of the settings.
        settings: the other arguments of ``compute``.
    """

    place: int
    compute: Callable[..., dict[str, np.ndarray]]
    settings: tuple[object, ...] = ()


def compute_mean(column: Column, key: str) -> dict[str, np.ndarray]:
    """Return the mean ``KEY.sum / KEY.count``; NaN where the count is 0."""
    return {key: divide(column(f"{key}.sum"), column(f"{key}.count"), empty=np.nan)}


@dataclass
class StatisticsBuilder:
    """Collects columns of additive statistics, one row per annotation, and their scores.

    Args:
        n: the number of annotations.
        groups: the group of each annotation, int (n,): one row per group is kept, its sums; None: one per annotation.
        n_groups: the number of groups.
        columns: name -> the column, float64 (n,).
        scores: the scores computed from the columns.
        rows: the annotations that the next added values belong to: distinct rows, int64 (chunk,); None: all.
    """

    n: int
    groups: np.ndarray | None = None
    n_groups: int = 1
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)
    rows: np.ndarray | None = None

    def add(
        self, score: Score | None, columns: Mapping[str, np.ndarray], owner: np.ndarray | None = None, source: str = ""
    ) -> None:
        """Add a score and its columns; columns of several chunks are summed up.

        Args:
            score: the score; None if it is added later.
            columns: name -> a value per annotation of ``rows``, or per key (keys,).
            owner: the annotation of each key, as its place in the chunk: int (keys,).
            source: the prefix of the names, before a dot.
        """
        size = self.n if self.rows is None else self.rows.size
        n_rows = self.n if self.groups is None else self.n_groups
        for name, values in columns.items():
            name = f"{source}.{name}" if source else name
            if name not in self.columns:
                self.columns[name] = np.zeros(n_rows)
            column = self.columns[name]
            if self.groups is None:
                if owner is not None:
                    values = np.bincount(owner, weights=values, minlength=size)
                column[slice(None) if self.rows is None else self.rows] += values
            elif self.n_groups == 1:
                column += values.sum()
            else:
                group = self.groups if self.rows is None else self.groups[self.rows]
                group = group if owner is None else group[owner]
                for number in range(self.n_groups):
                    column[number] += values[group == number].sum()
        if score is not None and score not in self.scores:
            self.scores.append(score)

    def add_mean(self, key: str, values: np.ndarray, owner: np.ndarray | None = None) -> None:
        """Add the mean of one value per annotation (or key) without NaN values; NaN where none is left."""
        real = ~np.isnan(values)
        self.add(Score(2, compute_mean, (key,)), {"sum": np.where(real, values, 0.0), "count": real}, owner, key)

    def add_pairs(self, key: str, pairs: Sequence[tuple[float, float]]) -> None:
        """Add a mean of one (sum, count) per annotation."""
        total, count = np.array(pairs, dtype=float).reshape(-1, 2).T
        self.add(Score(2, compute_mean, (key,)), {"sum": total, "count": count}, source=key)

    def finalize(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of sums (..., columns): {key: (...)}, or (..., T)."""
        places = {name: place for place, name in enumerate(self.columns)}
        scores: dict[str, np.ndarray] = {}
        for score in sorted(self.scores, key=lambda score: score.place):
            scores |= score.compute(lambda name: sums[..., places[name]], *score.settings)
        return scores

    def values(self) -> np.ndarray:
        """Return the columns side by side: float64 (rows, columns)."""
        n_rows = self.n if self.groups is None else self.n_groups
        return np.column_stack([np.zeros((n_rows, 0)), *self.columns.values()])

    def statistics(self, ids: Sequence[str], per_instance: bool = True) -> Statistics:
        """Return the collected columns as `Statistics` of these annotations.

        Args:
            ids: the ids of the annotations.
            per_instance: add the scores of each annotation.
        """
        values = self.values()
        scores = self.finalize(values) if per_instance else {}
        return Statistics(ids, values, self.finalize, scores, list(self.columns))
