"""Power of a comparison: what a pilot's variance components say of other numbers of documents and runs.

The squared standard error with n documents and R runs of each system is

    documents / n + runs / R + interaction / (n R)

and a difference d is found with the power ``P(T > t - d / error)``, T and t of Student's distribution with
Satterthwaite's degrees of freedom: those of documents by the kurtosis of their differences, as in `mixed_model`, those
of runs in proportion to R - 1. With the pilot's own n and R both are the comparison's. Draws of a random method count
as runs. With one run of each system a comparison exchanges documents: the level is then the largest p-value of this
test that is at most the level asked for, see `mixed_model.find_attainable_level`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eraser_hub.metrics.intervals import MINIMUM_CLUSTERS
from eraser_hub.metrics.resampling import find_counted, jackknife
from eraser_hub.metrics.statistics_builder import Statistics
from eraser_hub.metrics.student import quantile, two_sided_p
from eraser_hub.records.errors import DataError, describe_choice

from .mixed_model import MINIMUM_EFFECTIVE, compute_influences, find_attainable_level, fit_difference, is_refused
from .verdicts import ALPHA

POWER = 0.8
MOST_DOCUMENTS = 1_000_000  # a plan for more says so
ENDLESS = 10**12  # documents, where degrees of freedom no longer change


@dataclass(frozen=True)
class Pilot:
    """Variances of the difference of two systems in a score, for one document and one run each.

    Attributes:
        documents: between documents.
        runs: between runs, of both systems together; 0 if the pilot has one run of each.
        interaction: of documents with runs, likewise.
        kurtosis: of the documents' differences; 3 leaves n - 1 degrees of freedom.
        run_df: degrees of freedom of the runs' variance for each run after the first; 2 where both systems' runs vary
            alike.
        own_runs: runs of each system of the pilot, the harmonic mean over the systems with several.
        differing: the share of documents in which the systems differ, which one run of each exchanges; None: the test
            with one run is that of the model.
    """

    documents: float
    runs: float = 0.0
    interaction: float = 0.0
    kurtosis: float = 3.0
    run_df: float = 2.0
    own_runs: float = 1.0
    differing: float | None = None

    def level(self, n: int, runs: float, alpha: float) -> float:
        """Return the level of the test that decides: at most ``alpha``, and 0.0 where no p-value is that small."""
        if self.differing is None or runs > 1:
            return alpha
        return find_attainable_level(math.floor(n * self.differing + 1e-9), alpha)

    def error(self, n: int, runs: float = 1) -> float:
        """Return the standard error of the difference with so many documents and runs."""
        return math.sqrt(self.documents / n + self.runs / runs + self.interaction / (n * runs))

    def document_df(self, n: int) -> float:
        """Return the degrees of freedom of the documents' variance, as `mixed_model.fit_difference` has them."""
        return min(n - 1.0, 2 / ((self.kurtosis - 1) / n + 2 / (n * (n - 1))))

    def df(self, n: int, runs: float = 1) -> float:
        """Return the degrees of freedom of that error."""
        by_document = (self.documents + self.interaction / runs) / n
        by_run = self.runs / runs if runs > 1 else 0.0
        precision = by_document**2 / self.document_df(n)
        precision += by_run**2 / (self.run_df * (runs - 1)) if by_run else 0.0
        return max(1.0, (by_document + by_run) ** 2 / precision) if precision > 0 else n - 1.0

    def is_refused(self, n: int) -> bool:
        """Return True if so few documents would give no interval and no test."""
        return bool(is_refused(n, self.document_df(n) + 1))

    def power(self, effect: float, n: int, runs: float = 1, alpha: float = ALPHA) -> float:
        """Return the probability that a test at ``alpha`` finds a difference of this size; 0 where none can."""
        level = self.level(n, runs, alpha)
        if self.is_refused(n) or not level:
            return 0.0
        return _find_power(effect, self.error(n, runs), self.df(n, runs), level)

    def lacks_runs(self, effect: float, runs: int = 1, power: float = POWER, alpha: float = ALPHA) -> bool:
        """Return True if the runs alone leave less than this power, with infinitely many documents."""
        return _find_power(effect, math.sqrt(self.runs / runs), self.df(ENDLESS, runs), alpha) < power

    def effect(self, n: int, runs: int = 1, power: float = POWER, alpha: float = ALPHA) -> float:
        """Return the difference that is found with this power of at least one half; NaN where no test can."""
        level = self.level(n, runs, alpha)
        if self.is_refused(n) or not level:
            return math.nan
        df = self.df(n, runs)
        return (quantile(1 - level / 2, df) + quantile(power, df)) * self.error(n, runs)

    def documents_for(self, effect: float, runs: int = 1, power: float = POWER, alpha: float = ALPHA) -> int | None:
        """Return the least number of documents with this power; None if `MOST_DOCUMENTS` lack it (`lacks_runs`)."""
        if self.power(effect, MOST_DOCUMENTS, runs, alpha) < power:
            return None
        low, high = 1, MINIMUM_CLUSTERS
        while self.power(effect, high, runs, alpha) < power:
            low, high = high, min(2 * high, MOST_DOCUMENTS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(effect, middle, runs, alpha) >= power else (middle, high)
        return high


def _find_power(effect: float, error: float, df: float, alpha: float) -> float:
    if error <= 0:
        return 1.0 if effect else alpha
    x = abs(effect) / error - quantile(1 - alpha / 2, df)
    tail = float(two_sided_p(x, df)) / 2
    return 1 - tail if x > 0 else tail


def make_pilot(result: Mapping[str, Any], key: str, pair: int = 0) -> Pilot:
    """Return the pilot that a comparison is for a later one.

    Args:
        result: what ``compare`` gave.
        key: the score.
        pair: the pair of systems, by its place.

    Raises:
        DataError: the systems do not share the score, nothing is known of its variance, or too few documents carry it.
    """
    comparison = result["comparisons"][pair]
    if key not in comparison["keys"]:
        raise DataError(describe_choice(key, comparison["keys"]), rule="option-value", argument="key")
    test = comparison["keys"][key]
    if (counted := test.get("clusters", result["clusters"])) < MINIMUM_CLUSTERS <= result["clusters"]:
        message = f"{key}: expected a score that counts {MINIMUM_CLUSTERS} documents or more, found {counted}"
        raise DataError(message, rule="score-missing")
    counts = [result["runs"][comparison[side]] for side in ("first", "second")]
    pilot = _make_pilot(key, test["components"], test["effective_clusters"], test["df"], result["clusters"], counts)
    return replace(pilot, differing=test["differing_clusters"] / result["clusters"])


def make_score_pilot(runs: Sequence[Statistics], key: str, trainings: Sequence[int] | None = None) -> Pilot:
    """Return the pilot that one system is for its difference from a fixed value, such as chance or a published score.

    Args:
        runs: the statistics of each run, on the same annotations.
        key: the score.
        trainings: the training of each run, see `same_model.number_trainings`.

    Raises:
        DataError: see `make_pilot`; or the statistics are sums over all annotations.
    """
    if len(runs[0].ids) < 2 or any(list(run.ids) != list(runs[0].ids) for run in runs):
        message = (
            f"{key}: expected statistics of each annotation, the same in all runs, found {len(runs[0].ids)}; `score` "
            "keeps them with `confidence_level`"
        )
        raise DataError(message, rule="score-missing")
    values = np.array([float(run.scores()[key]) for run in runs])
    rows = [(run.cluster_sums(), run.finalize) for run in runs]
    without = [jackknife(*own)[key] for own in rows]
    alone = [np.asarray(finalize(own)[key]) for own, finalize in rows]
    counted = int(np.any([find_counted(*own) for own in zip(values, without, alone, strict=True)], axis=0).sum())
    influences = compute_influences(values, np.stack(without, axis=-1))
    if counted < MINIMUM_CLUSTERS or not np.isfinite(influences).all():
        raise DataError(
            f"{key}: expected a pilot of {MINIMUM_CLUSTERS} documents or more, none of which alone decides the score, "
            f"found {counted}",
            rule="score-missing",
        )
    model = fit_difference(influences, np.zeros((len(influences), 1)), trainings)
    parts = model.components.as_dict()
    return _make_pilot(key, parts, float(model.clusters), float(model.df), model.n, [len(runs), 1])


def _make_pilot(
    key: str, parts: Mapping[str, float], effective: float, df: float, n: int, counts: Sequence[int]
) -> Pilot:
    """Return the pilot of a difference with these components; ``counts``: the runs of each side."""
    if any(value is None or math.isnan(value) for value in parts.values()):
        raise DataError(f"{key}: expected variance components, found none", rule="score-missing")
    if not sum(parts.values()) > 0:
        raise DataError(f"{key}: expected a score that varies between documents, found none", rule="score-missing")
    if is_refused(n, effective):
        least = f"{MINIMUM_CLUSTERS} documents or more, of which {MINIMUM_EFFECTIVE} or more carry the difference"
        found = f"{n}, of which about {effective:.0f} do"
        raise DataError(f"{key}: expected a pilot of {least}, found {found}", rule="score-missing")
    several = [count for count in counts if count > 1] or [1]
    runs = len(several) / sum(1 / count for count in several)
    document_df, by_run = effective - 1, parts["runs"] + parts["draws"]
    by_document = parts["documents"] + parts["interaction"]
    # what Satterthwaite's formula leaves for the runs, of the precision of the whole
    left = (by_document + by_run) ** 2 / df - by_document**2 / document_df
    is_known = runs > 1 and by_run > 0 and left > 0
    return Pilot(
        parts["documents"] * n,
        by_run * runs,
        parts["interaction"] * n * runs,
        1 + n * (2 / document_df - 2 / (n * (n - 1))),
        by_run**2 / left / (runs - 1) if is_known else 2.0,
        runs,
    )


def choose_run_counts(pilot_runs: int) -> tuple[int, ...]:
    """Return the numbers of runs of a plan where nobody names them; a pilot with one run knows nothing of more."""
    return (1, 3, 5, 10) if pilot_runs > 1 else (1,)


def describe_power(pilot: Pilot, n: int, effects: Sequence[float], runs: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row for each number of runs: the difference that n documents find, and documents needed for each effect.

    Args:
        pilot: the variances.
        n: number of documents at hand.
        effects: differences to find.
        runs: numbers of runs of each system.
    """
    return [
        {"runs": count, "detectable": pilot.effect(n, count)}
        | {f"documents for {effect:g}": pilot.documents_for(effect, count) for effect in effects}
        for count in runs
    ]
