"""One model of uncertainty: scores of documents crossed with runs, and draws of a random method within runs.

The influence of document i on the score of file j (a run, or one draw of a run) is

    y_ij = score + document_i + run_r(j) + draw_j + interaction_ij

For a mean of equal documents y_ij is the document's own value. For any other score it is the jackknife pseudo-value,
moved so that its mean is the score: ``y_ij = s_j + (n - 1) (mean_i s_j(-i) - s_j(-i))``. Documents are clusters of
annotations, see `metrics.clusters`. Both systems of a pair share their documents. Their runs are independent, unless
both explain the same trainings: then the runs are paired as well.

Sources: Searle, Casella and McCulloch (1992) (ANOVA estimators, REML); Satterthwaite (1946); Efron and Stein (1981)
(the jackknife); Cameron, Gelbach and Miller (2011) (sums of variances of crossed clusters).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from eraser_hub.metrics.intervals import MINIMUM_CLUSTERS
from eraser_hub.metrics.student import compute_interval, measure_influences, quantile, two_sided_p
from eraser_hub.records.errors import DataError

from .reml import fit_reml

# an interval and a test that fewer effective clusters carry are refused; so are those of fewer than `MINIMUM_CLUSTERS`:
# 2^5 exchanges allow no p below 1/16
MINIMUM_EFFECTIVE = 3
SMOOTH = 50  # the exchanges of so many clusters have p-values at every level


def is_refused(clusters: int, effective: float | np.ndarray) -> np.ndarray:
    """Return True where too few clusters, or effective ones (NaN included), carry a difference for a test."""
    return ~(np.asarray(effective) >= MINIMUM_EFFECTIVE * (1 - 1e-9)) | (clusters < MINIMUM_CLUSTERS)


def find_attainable_level(exchanged: int, alpha: float) -> float:
    """Return the largest p-value of at most ``alpha`` that the exchange of so many clusters has; 0.0 for none.

    A share of the 2^n exchanges is a multiple of 2^(1 - n), because both systems may change places.

    >>> find_attainable_level(5, 0.05), find_attainable_level(6, 0.05), find_attainable_level(8, 0.05)
    (0.0, 0.03125, 0.046875)
    """
    if exchanged >= SMOOTH:
        return alpha
    least = 2.0 ** (1 - exchanged)
    return math.floor(alpha / least * (1 + 1e-9)) * least


@dataclass(frozen=True)
class Components:
    """Variance by source: of a score's single influence, or shares of a difference's squared standard error.

    Attributes:
        documents: between documents, for a pair of systems between the documents' differences.
        runs: between runs, such as seeds.
        interaction: of documents with runs and draws, and what no other source explains.
        draws: between draws of a random method within a run.
    """

    documents: np.ndarray
    runs: np.ndarray
    interaction: np.ndarray
    draws: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """The sum."""
        total: np.ndarray = self.documents + self.runs + self.interaction + self.draws
        return total

    def as_dict(self) -> dict[str, float]:
        """Return plain numbers by name."""
        return {each.name: float(getattr(self, each.name)) for each in fields(self)}


def compute_influences(scores: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """Return the jackknife influences of documents on scores.

    Args:
        scores: the score of each file, (..., files).
        left_out: the score without document i, (..., n, files).

    Returns:
        float64 (..., n, files); the mean over documents is the score.
    """
    n = left_out.shape[-2]
    with np.errstate(invalid="ignore"):
        shifts: np.ndarray = (n - 1) * (left_out.mean(axis=-2, keepdims=True) - left_out)
        influences: np.ndarray = scores[..., None, :] + shifts
    return influences


@dataclass(frozen=True)
class SystemModel:
    """Variance components of one system's influences, and what its runs add to the variance of its mean score.

    Attributes:
        components: variances of a single influence.
        level: variance of the mean score because of runs and draws.
        precision: ``level^2 / df`` of each mean square in it, for Satterthwaite's formula.
        interaction: variance of the mean score because of the interaction; 0 for one file, where it is part of
            documents.
        draws: the part of ``level`` because of draws.
    """

    components: Components
    level: np.ndarray
    precision: np.ndarray
    interaction: np.ndarray
    draws: np.ndarray


def fit_system(influences: np.ndarray, runs: Sequence[int] | None = None) -> SystemModel:
    """Estimate the variance components of one system.

    Balanced designs use ANOVA estimators; a negative one is 0. Where influences are missing (NaN) or runs have
    unequal numbers of draws, REML estimates them.

    Args:
        influences: float64 (..., n, files).
        runs: the run of each file; None: each file is a run.

    Raises:
        DataError: one document alone, or another number of runs than files.
    """
    n, files = influences.shape[-2:]
    run = np.unique(np.arange(files) if runs is None else np.asarray(runs), return_inverse=True)[1]
    if n < 2 or len(run) != files:
        message = f"expected two documents or more and {files} runs, found {n} and {len(run)}"
        raise DataError(message, rule="length")
    counts = np.bincount(run)
    if len(set(counts.tolist())) > 1 or np.isnan(influences).any():
        return _fit_unbalanced(influences, run)
    order = np.argsort(run, kind="stable")
    return _fit_balanced(influences[..., order].reshape(*influences.shape[:-1], len(counts), int(counts[0])))


def _mean(values: np.ndarray, *axes: int) -> np.ndarray:
    mean: np.ndarray = values.mean(axis=axes, keepdims=True)
    return mean


def _fit_balanced(y: np.ndarray) -> SystemModel:
    """Estimate by ANOVA: ``y`` is (..., n, runs, draws)."""
    n, runs, draws = y.shape[-3:]
    by_run, by_draw, by_cell = _mean(y, -3, -1), _mean(y, -3), _mean(y, -1)
    whole, by_document = _mean(y, -3, -2, -1), _mean(y, -2, -1)
    none = np.zeros(y.shape[:-3])

    def square(values: np.ndarray, weight: float, df: int) -> np.ndarray:
        """Return a mean square; 0 for a source without degrees of freedom."""
        total: np.ndarray = (values**2).sum(axis=(-3, -2, -1))
        return weight * total / df if df > 0 else none

    residual_df, cell_df = (n - 1) * runs * (draws - 1), (n - 1) * (runs - 1)
    residual = square(y - by_cell - by_draw + by_run, 1, residual_df)
    cell = square(by_cell - by_document - by_run + whole, draws, cell_df)
    draw = square(by_draw - by_run, n, runs * (draws - 1))
    run = square(by_run - whole, n * draws, runs - 1)
    if draws == 1:
        residual = cell
    documents = square(by_document - whole, runs * draws, n - 1)
    between = np.maximum(0, draw - residual) / n if draws > 1 else none
    crossed = np.maximum(0, cell - residual) / draws if runs > 1 else none
    top, low, top_df, low_df = (run, cell, runs - 1, cell_df) if runs > 1 else (draw, residual, draws - 1, residual_df)
    level = np.maximum(0, top - low) / (n * runs * draws)
    precision, size = none, n * runs * draws
    if top_df > 0:
        precision = (level > 0) * ((top / size) ** 2 / top_df + (low / size) ** 2 / low_df)
    own = np.minimum(level, between / (runs * draws))
    over_runs = np.maximum(0, level * runs - between / draws) if runs > 1 else none
    components = Components(
        np.maximum(0, documents - (cell if runs > 1 else residual)) / (runs * draws),
        over_runs,
        residual + crossed,
        between,
    )
    return SystemModel(components, level, precision, (cell if runs > 1 else residual) / size, own)


def _fit_unbalanced(y: np.ndarray, run: np.ndarray) -> SystemModel:
    """Estimate by REML: ``y`` is (..., n, files), NaN where missing."""
    shape, (n, files) = y.shape[:-2], y.shape[-2:]
    fits = np.array([fit_reml(one, run) for one in y.reshape(-1, n, files)]).reshape(*shape, 4)
    documents, runs, draws, residual = np.moveaxis(fits, -1, 0)
    counts = np.bincount(run)
    share = float((counts**2).sum()) / files**2  # 1 / effective number of runs
    own = draws / files if len(counts) < files else 0 * draws
    level = runs * share + own
    df = max(1.0, (1 / share if len(counts) > 1 else files) - 1)
    return SystemModel(Components(documents, runs, residual, draws), level, level**2 / df, residual / (n * files), own)


@dataclass(frozen=True)
class DifferenceModel:
    """The difference of two systems' scores and its uncertainty.

    Attributes:
        difference: first minus second.
        components: the parts of its squared standard error.
        df: Satterthwaite's degrees of freedom.
        clusters: effective number of clusters, in [1, n]: 1 + the degrees of freedom of the documents' variance; 0
            where no document differs.
        skewness: skewness of the difference's distribution, from that of the documents' differences.
        n: number of clusters that the score counts.
    """

    difference: np.ndarray
    components: Components
    df: np.ndarray
    clusters: np.ndarray
    skewness: np.ndarray
    n: int

    @property
    def standard_error(self) -> np.ndarray:
        """The standard error of the difference."""
        error: np.ndarray = np.sqrt(self.components.total)
        return error

    @property
    def is_refused(self) -> np.ndarray:
        """True where too few clusters carry the difference for an interval or a test."""
        return is_refused(self.n, self.clusters)

    def p_value(self) -> np.ndarray:
        """Return the two-sided p-value of the hypothesis that there is no difference; NaN where refused.

        It is the larger one of Student's t and of t after Hall's correction of skewness (1992).
        """
        d = self.difference
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(np.abs(d) <= 1e-12 * np.maximum(1, np.abs(d)), 0.0, d / self.standard_error)
            b = self.skewness
            corrected = t + b * t**2 / 3 + b**2 * t**3 / 27 + b / 6
        p = np.maximum(two_sided_p(t, self.df), two_sided_p(corrected, self.df))
        return np.where(self.is_refused, np.nan, p)

    def detectable(self, alpha: float = 0.05) -> float:
        """Return the difference that a test at ``alpha`` finds with power .8; NaN where refused or nothing varies."""
        error = float(self.standard_error)
        if self.is_refused or not error > 1e-12 or not alpha:
            return np.nan
        return (quantile(1 - alpha / 2, float(self.df)) + quantile(0.8, float(self.df))) * error

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval of a single difference; NaN where refused, or where nothing varies.

        It joins the intervals of Student's t and of t after Hall's correction, as `p_value` does.
        """
        if self.is_refused or not float(self.standard_error) > 0:
            return np.nan, np.nan
        figures = (self.difference, self.standard_error, self.df, self.skewness)
        centre, error, df, skewness = map(float, figures)
        return compute_interval(centre, error, df, skewness, level)


def _average_draws(influences: np.ndarray, runs: Sequence[int] | None) -> np.ndarray:
    """Return the mean influences of each run, (..., n, runs), in the order of their numbers."""
    run = np.arange(influences.shape[-1]) if runs is None else np.asarray(runs)
    return np.stack([influences[..., run == number].mean(axis=-1) for number in np.unique(run)], axis=-1)


def make_unknown_difference(difference: np.ndarray, n: int) -> DifferenceModel:
    """Return the model of a difference of which nothing is known: one document, or influences that are not finite."""
    unknown = np.full(np.shape(difference), np.nan)
    parts = Components(unknown, unknown, unknown, unknown)
    return DifferenceModel(difference, parts, unknown, np.ones(unknown.shape), unknown, n)


def fit_difference(
    first: np.ndarray,
    second: np.ndarray,
    first_runs: Sequence[int] | None = None,
    second_runs: Sequence[int] | None = None,
    shared: bool = False,
) -> DifferenceModel:
    """Fit the model to the influences of two systems on the same documents.

    The variance of the difference is that of the documents' differences, ``MS / n``, plus what the runs of either
    system add, ``(MS_runs - MS_interaction) / (n runs)``. The degrees of freedom of MS are ``n - 1``, and fewer where a
    few documents carry the difference: ``2 / ((kurtosis - 1) / n + 2 / (n (n - 1)))``, with the unbiased kurtosis where
    that is larger.

    Args:
        first: influences of the first system, float64 (..., n, files), see `compute_influences`.
        second: likewise of the second.
        first_runs: the run of each file of the first system, see `fit_system`.
        second_runs: likewise of the second.
        shared: runs of the same number are one training that both systems explain: what moves both alike is no
            uncertainty of their difference. The runs' part is that of the differences of each training, with R - 1
            degrees of freedom.
    """
    models = [fit_system(first, first_runs), fit_system(second, second_runs)]
    draws = models[0].draws + models[1].draws
    if shared:
        models = [fit_system(_average_draws(first, first_runs) - _average_draws(second, second_runs))]
    differences = np.nanmean(first, axis=-1) - np.nanmean(second, axis=-1)
    n = differences.shape[-1]
    difference = differences.mean(axis=-1)
    centred = differences - difference[..., None]
    noise = 1e-12 * np.maximum(1.0, np.abs(differences).max(axis=-1))
    square = np.where(np.abs(centred).max(axis=-1) <= noise, 0.0, (centred**2).sum(axis=-1) / (n - 1))
    document_df, skewness = measure_influences(differences)
    alike = np.where(np.abs(difference) <= noise, 0.0, n - 1)  # documents that are all equal say nothing of others
    document_df = np.where(square > 0, document_df, np.where(np.isnan(difference), np.nan, alike))
    clusters = np.where((square > 0) | (alike > 0), document_df + 1, 0.0)
    document_df = np.where(document_df > 0, document_df, 1.0)
    level, variance = np.asarray(sum(one.level for one in models)), square / n
    precision = variance**2 / document_df + sum(one.precision for one in models)
    total = variance + level
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(precision > 0, total**2 / precision, document_df)
    interaction = np.minimum(variance, np.asarray(sum(one.interaction for one in models)))
    draws = np.minimum(draws, level)
    components = Components(variance - interaction, level - draws, interaction, draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(square > 0, skewness * (variance / total) ** 1.5, 0.0)
    return DifferenceModel(difference, components, np.maximum(1.0, df), clusters, skewness, n)
