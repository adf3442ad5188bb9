"""Tests and variances of the difference of two systems on the same clusters (documents), and Holm's correction.

One run of each system: the systems change places in documents by chance (approximate randomisation, Noreen 1989). This
test is exact for documents, and says nothing of other runs.

Several runs of a system: documents are crossed with runs. The score of a run is made of what each document adds to it,

    y[i, r] = score + document[i] + run[r] + rest[i, r]

For a mean over documents y is the document's own value, for any other score the jackknife's pseudo-value. Variances
are estimated by the mean squares (MS) of this two-way table (ANOVA; Searle, Casella and McCulloch 1992). The variance
of the difference of two systems with R runs each on n documents is

    V = MS(documents' differences) / n + sum over both systems of max(0, MS(runs) - MS(rest)) / (n R)

and the test is Student's t with Satterthwaite's (1946) degrees of freedom, V^2 / sum((c MS)^2 / df). The textbook gives
the first mean square n - 1. This holds for normal differences alone: where a few documents carry the difference, its
intervals are too short (.91 of 95 % intervals hold the truth where one system has scores in 6 of 56 documents alone).
Here it has the degrees of freedom that follow from the variance of a mean square,
sigma^4 (2 / (n - 1) + (kurtosis - 3) / n), so

    df = min(n - 1, 2 / (2 / (n - 1) + (kurtosis - 3) / n))

with the larger of the kurtosis and its unbiased estimate. Intervals of one run each are those of this model without its
last term; BCa intervals of differences are too short (.91 to .95 with 56 documents, .85 to .93 with 20).
`python -m benchmarks.inference` measures tests and intervals.
"""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.statistics import CHUNK, NORMAL, TIE, Columns, Score

ALPHA = 0.05
POWER = 0.8
EXACT_CLUSTERS = 12  # all exchanges of so many clusters are taken, once
DRAWS = 10_000  # exchanges of more clusters
MIN_DF = 2  # of intervals of one run: `find_t_quantile` is rough below, and one document carries the difference
SMOOTH = 50  # the exchanges of so many clusters have p-values at every level


class ReadColumns(UserDict[str, np.ndarray]):
    """Columns that remember which of them a score reads."""

    def __init__(self, columns: Columns) -> None:
        self.names: list[str] = []
        super().__init__(columns)

    def __getitem__(self, name: str) -> np.ndarray:
        self.names.append(name)
        return super().__getitem__(name)


def find_columns(score: Score, sums: Columns) -> dict[str, tuple[int, ...]]:
    """Return the columns that a score is computed from, sorted, each with the shape of its sum."""
    columns = ReadColumns(sums)
    score.compute(columns)
    return {name: np.shape(sums[name]) for name in sorted({*columns.names})}


def compute_scores(scores: Mapping[str, Score], sums: Columns) -> dict[str, np.ndarray]:
    """Return these scores of sums of columns, as `Statistics.compute` does of all."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return {key: np.asarray(score.compute(sums), dtype=float) for key, score in scores.items()}


# ------------------------------------------------------------------------------------------------- exchange of clusters
def find_differing(first: Columns, second: Columns, names: Sequence[str]) -> np.ndarray:
    """Return the clusters in which any of these columns differs between two systems: bool (clusters,)."""
    differing = []
    for name in names:
        scale = np.maximum(1.0, np.abs(first[name]))
        apart = ~(np.abs(first[name] - second[name]) <= TIE * scale) & (first[name] != second[name])
        differing.append(apart.reshape(len(apart), -1).any(axis=1))
    found: np.ndarray = np.any(differing, axis=0)
    return found


def exchange_systems(
    first: Columns,
    second: Columns,
    scores: Mapping[str, Score],
    read: Mapping[str, Sequence[str]],
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, float]:
    """Test the difference of two systems by exchanging them within clusters.

    Clusters in which no column of a score differs change nothing. Of the others all 2^m exchanges are taken once if
    there are at most 12, and p is the share of those whose difference is as far from 0 as the observed one. Else
    ``draws`` exchanges are drawn, and ``p = (1 + hits) / (1 + draws)``.

    Args:
        first: the sums of one system's columns in each cluster: {name: (n,) or (n, T)}.
        second: likewise of the other.
        scores: key -> score, a single number.
        read: key -> the names of its columns, see `find_columns`.
        draws: the number of exchanges that are drawn.
        seed: of numpy's default generator.

    Returns:
        {key: two-sided p-value}; NaN where the difference is not a finite number, 1.0 where no cluster differs.
    """
    differing = {key: find_differing(first, second, read[key]) for key in scores}
    keys_of: dict[bytes, list[str]] = {}  # by their clusters, if these are few; b"": of more clusters
    for key, clusters in differing.items():
        if clusters.any():
            keys_of.setdefault(clusters.tobytes() if clusters.sum() <= EXACT_CLUSTERS else b"", []).append(key)
    p_values = dict.fromkeys(scores, 1.0)
    for few, keys in keys_of.items():
        clusters = np.flatnonzero(np.any([differing[key] for key in keys], axis=0))
        swaps = list_exchanges(len(clusters)) if few else draw_exchanges(len(clusters), draws, seed)
        columns = sorted({name for key in keys for name in read[key]})
        group, more = {key: scores[key] for key in keys}, 0 if few else 1
        for key, (hits, taken) in count_exchanges(first, second, group, columns, clusters, swaps).items():
            p_values[key] = (hits + more) / (taken + more) if taken else math.nan
    return p_values


def list_exchanges(n: int) -> Iterator[np.ndarray]:
    """Yield all exchanges of n clusters: 1 for each that changes places, float64 (2^n, n)."""
    yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)


def draw_exchanges(n: int, draws: int, seed: int) -> Iterator[np.ndarray]:
    """Yield exchanges of n clusters by chance, in parts of a bounded size: float64 (rows, n)."""
    random, rows = np.random.default_rng(seed), max(1, CHUNK // n)
    for start in range(0, draws, rows):
        yield random.integers(0, 2, (min(rows, draws - start), n), dtype=np.uint8).astype(float)


def count_exchanges(
    first: Columns,
    second: Columns,
    scores: Mapping[str, Score],
    names: Sequence[str],
    clusters: np.ndarray,
    swaps: Iterator[np.ndarray],
) -> dict[str, tuple[int, int]]:
    """Return how many exchanges have a difference as far from 0 as the observed one, and how many have one at all.

    Args:
        first: see `exchange_systems`.
        second: see `exchange_systems`.
        scores: see `exchange_systems`.
        names: the columns that the scores read.
        clusters: the numbers of the clusters that change places, one or more.
        swaps: parts of the exchanges of these clusters.

    Returns:
        {key: (hits, exchanges)}; (0, 0) where the difference is not a finite number.
    """
    shapes = [first[name].shape[1:] for name in names]
    places = np.cumsum([math.prod(shape) for shape in shapes])
    totals = [np.concatenate([own[name].sum(axis=0).ravel() for name in names])[:, None] for own in (first, second)]
    gaps = np.concatenate([(second[name] - first[name])[clusters].reshape(len(clusters), -1).T for name in names])
    moving = gaps.any(axis=1)

    def find_differences(moved: np.ndarray) -> dict[str, np.ndarray]:
        both = []
        for total in (totals[0] + moved, totals[1] - moved):
            columns = zip(names, shapes, np.split(total, places[:-1]), strict=True)
            sums = {name: np.moveaxis(part.reshape(*shape, -1), -1, 0) for name, shape, part in columns}
            both.append(compute_scores(scores, sums))
        return {key: both[0][key] - both[1][key] for key in scores}

    counts: dict[str, tuple[int, int]] = dict.fromkeys(scores, (0, 0))
    with np.errstate(invalid="ignore", divide="ignore"):  # scores of nothing, and sums of infinite numbers
        observed = {key: abs(float(value[0])) for key, value in find_differences(np.zeros((places[-1], 1))).items()}
        for swap in swaps:
            moved = np.zeros((places[-1], len(swap)))
            moved[moving] = gaps[moving] @ swap.T
            for key, values in find_differences(moved).items():
                if math.isfinite(observed[key]):
                    # sums in another order differ in their last bits: an equal difference must count as equal
                    hits = np.abs(values) >= observed[key] - TIE * max(1.0, observed[key])
                    earlier = counts[key]
                    counts[key] = earlier[0] + int(hits.sum()), earlier[1] + int((~np.isnan(values)).sum())
    return counts


def find_attainable_level(clusters: int, alpha: float = ALPHA) -> float:
    """Return the largest p-value of at most ``alpha`` that the exchange of so many clusters has; 0.0 for none.

    A share of the 2^n exchanges is a multiple of 2^(1 - n), because both systems may change places.

    >>> find_attainable_level(5), find_attainable_level(6), find_attainable_level(8)
    (0.0, 0.03125, 0.046875)
    """
    if clusters >= SMOOTH:
        return alpha
    least = 2.0 ** (1 - clusters)
    return math.floor(alpha / least * (1 + 1e-9)) * least


# -------------------------------------------------------------------------------------------------- documents and runs
class Difference(NamedTuple):
    """The difference of two systems' scores (first minus second) and its uncertainty; arrays (...) of any shape.

    Attributes:
        value: the difference.
        documents: variance because of documents.
        runs: variance because of runs.
        rest: variance because of documents' changes between runs.
        df: Satterthwaite's degrees of freedom of the sum of the three.
    """

    value: np.ndarray
    documents: np.ndarray
    runs: np.ndarray
    rest: np.ndarray
    df: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """The standard error."""
        error: np.ndarray = np.sqrt(self.documents + self.runs + self.rest)
        return error


def compute_influences(value: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """Return what each document adds to a score (jackknife pseudo-values, moved so that their mean is the score).

    Args:
        value: the score of each run: (runs,).
        left_out: the score without each document: (n, runs).

    Returns:
        float64 (n, runs).
    """
    influences: np.ndarray = value + (len(left_out) - 1) * (left_out.mean(axis=0) - left_out)
    return influences


def compute_mean_squares(influences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean squares of runs and of the rest in tables (..., n, runs) of documents and two runs or more."""
    n, runs = influences.shape[-2:]
    whole, by_run = influences.mean(axis=(-2, -1), keepdims=True), influences.mean(axis=-2, keepdims=True)
    rest = influences - influences.mean(axis=-1, keepdims=True) - by_run + whole
    between = n * ((by_run - whole) ** 2).sum(axis=(-2, -1)) / (runs - 1)
    return between, (rest**2).sum(axis=(-2, -1)) / ((n - 1) * (runs - 1))


def find_document_df(differences: np.ndarray) -> np.ndarray:
    """Return the degrees of freedom of the variance of documents' differences (..., n), by their kurtosis; n >= 6."""
    n = differences.shape[-1]
    centred = differences - differences.mean(axis=-1, keepdims=True)
    kurtosis = (centred**4).mean(axis=-1) / np.maximum((centred**2).mean(axis=-1) ** 2, 1e-300)
    unbiased = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (kurtosis - 3) + 6)
    df: np.ndarray = np.minimum(n - 1, 2 / (2 / (n - 1) + (np.maximum(kurtosis, unbiased) - 3) / n))
    return df


def fit_difference(first: np.ndarray, second: np.ndarray, paired: bool = False) -> Difference:
    """Fit the model of documents crossed with runs, see the module's docstring.

    Args:
        first: the influences of one system's runs: (..., n, runs).
        second: likewise of the other.
        paired: run r of both systems is one training, which both explain: what moves both alike is no uncertainty of
            their difference, so that the runs' part is that of each training's difference.
    """
    differences = first.mean(axis=-1) - second.mean(axis=-1)
    n = differences.shape[-1]
    noise = TIE * np.maximum(1.0, np.abs(differences).max(axis=-1))
    variance = np.where(np.ptp(differences, axis=-1) <= noise, 0.0, differences.var(axis=-1, ddof=1) / n)
    precision = variance**2 / find_document_df(differences)
    rest, runs = np.zeros_like(variance), np.zeros_like(variance)
    for influences in [first - second] if paired else [first, second]:
        size = influences.shape[-2] * influences.shape[-1]
        if influences.shape[-1] > 1:
            between, within = compute_mean_squares(influences)
            part = np.maximum(0.0, between - within) / size
            degrees = (between / size) ** 2 / (influences.shape[-1] - 1)
            degrees += (within / size) ** 2 / ((n - 1) * (influences.shape[-1] - 1))
            runs, rest, precision = runs + part, rest + within / size, precision + (part > 0) * degrees
    rest = np.minimum(rest, variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.maximum(1.0, (variance + runs) ** 2 / precision)
    return Difference(differences.mean(axis=-1), variance - rest, runs, rest, df)


def compute_p_value(difference: Difference, truth: float = 0.0) -> np.ndarray:
    """Return the two-sided p-value of Student's t for a true difference; NaN where nothing varies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(difference.value - truth) / difference.error
    p: np.ndarray = np.where(difference.error > 0, 2 * import_scipy().stdtr(difference.df, -t), np.nan)
    return p


def import_scipy() -> Any:
    """Return ``scipy.special``, which a comparison of several runs alone needs."""
    try:
        from scipy import special
    except ModuleNotFoundError:
        raise DataError("several runs need scipy: install  pip install 'eraser-hub[stats]'") from None
    return special


def find_t_quantile(df: float, p: float) -> float:
    """Return a quantile of Student's t without scipy (Abramowitz and Stegun 26.7.5): to .1 % from 3 degrees on.

    >>> [round(find_t_quantile(df, 0.975), 2) for df in (2, 3, 9)]  # exact: 4.30, 3.18, 2.26
    [4.27, 3.18, 2.26]
    """
    z = NORMAL.inv_cdf(p)
    terms = [
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    ]
    return sum(term / df**power for power, term in enumerate(terms))


# --------------------------------------------------------------------------------------------------------- corrections
def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method (1979), which controls the family-wise error; NaN stays NaN.

    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return [float(p) for p in adjusted]
