"""The scores of one system, as the report draws and the board reads them; the paired tests of several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.clusters import AUTO
from eraser_hub.metrics.resampling import DEFAULT_LEVEL, DEFAULT_RESAMPLES
from eraser_hub.records.hub import place_of
from eraser_hub.scoring.leaks import document_clusters, interval_of_share

from .report_inputs import ReportedSplit

# what stands behind a key where its spread over runs is told
SPREAD = "_spread"


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """How systems are scored.

    Attributes:
        confidence_level, n_resamples, seed: of the intervals, see `resampling.intervals`.
        only_predicted: leave out annotations that a system has no prediction for.
        cluster_by: what intervals and tests draw together, see `metrics.clusters.clustered`.
        paper: whose denominators the scores of pairs have, see `metrics.presets`.
    """

    confidence_level: float | None = DEFAULT_LEVEL
    n_resamples: int | None = None
    seed: int = 0
    only_predicted: bool = False
    cluster_by: str = AUTO
    paper: str | None = None

    @property
    def of_pairs(self) -> dict[str, Any]:
        """The keyword arguments that statistics of pairs depend on."""
        return self.part | ({"paper": self.paper} if self.paper else {})

    @property
    def part(self) -> dict[str, Any]:
        """The keyword arguments that statistics depend on: the clusters, and whether only a part is scored."""
        return {"cluster_by": self.cluster_by} | ({"only_predicted": True} if self.only_predicted else {})

    def as_options(self) -> dict[str, Any]:
        """As the keyword arguments common to all metric modules."""
        level = {"confidence_level": self.confidence_level, "n_resamples": self.n_resamples, "seed": self.seed}
        return level | self.part

    def clusters(self, docids: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """The cluster of each instance: those that share documents have one number, unless each stands for itself."""
        return document_clusters(docids) if self.cluster_by == AUTO else np.arange(len(docids))

    def interval_of_share(
        self, values: NDArray[np.bool_] | NDArray[np.float64], clusters: NDArray[np.int64]
    ) -> tuple[float, float] | None:
        """The interval of the values' mean over clusters; None where none is asked for."""
        return interval_of_share(values, clusters, self.confidence_level, self.n_resamples, self.seed)


@dataclass(slots=True)
class SystemScores:
    """One system's scores on one split.

    Attributes:
        name: what the system is called.
        scores: key -> number, or a list of numbers (points, thresholds).
        intervals: key -> (low, high) of the confidence interval.
        point_intervals: key of a list -> (low, high) of each point.
        per_instance: key -> value per annotation, in the rows' order; None where an instance has none.
        by_class: gold label -> key -> number.
        chance: for comprehensiveness and sufficiency the test against random rationales, where there are any.
        statistics: the additive statistics behind the scores, by block, for the paired comparison.
        signatures: one per metric module that gave the scores.
        missing: for each part that could not be scored, why.
        spread: of several runs, key -> standard deviation over them; their scores are means then.
        runs: the statistics of every run, the first one's among them.
    """

    name: str
    scores: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    point_intervals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    per_instance: dict[str, Sequence[float | None]] = field(default_factory=dict)
    by_class: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    chance: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    statistics: dict[str, Any] = field(default_factory=dict)
    signatures: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    spread: dict[str, float] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs = self.runs or [self.statistics]

    def number(self, key: str) -> float | None:
        """The score; None where there is none, or a list, or a count (a whole number: pairs, documents)."""
        value = self.scores.get(key)
        return value if isinstance(value, float) else None

    def add(self, result: Mapping[str, Any], ids: Sequence[str]) -> None:
        """Sort a metric's flat result into numbers, intervals, per-instance values and classes; earlier scores stay.

        So the clipped ``sufficiency`` and ``comprehensiveness`` of normalized_fidelity give way to those of
        eraser_faithfulness, which comes first and has them under the same keys.

        Args:
            result: what a metric module returned.
            ids: the rows' ids, which give the per-instance values their order.
        """
        taken = set(self.scores)
        for key, value in result.items():
            if key.removesuffix("_ci") in taken:
                continue
            if key == "signature":
                self.signatures.append(str(value))
            elif key == "per_instance":
                self._add_per_instance(value, ids)
            elif key == "by":
                for name, part in value.items():
                    self.by_class[name] = {**part, **self.by_class.get(name, {})}
            elif not key.endswith("_ci"):
                self.scores[key] = value
            elif len(value) == 2 and not isinstance(value[0], list):
                self.intervals[key.removesuffix("_ci")] = (float(value[0]), float(value[1]))
            else:
                points = [(float(low), float(high)) for low, high in value]
                self.point_intervals[key.removesuffix("_ci")] = points

    def _add_per_instance(self, columns: Mapping[str, Sequence[Any]], ids: Sequence[str]) -> None:
        where = {identity: place for place, identity in enumerate(map(str, columns["annotation_id"]))}
        for name, column in columns.items():
            # a value per threshold is drawn as a curve, not as a distribution
            if name not in ("annotation_id", "cluster") and not any(isinstance(value, list) for value in column):
                aligned = [_finite(column[where[identity]]) if identity in where else None for identity in ids]
                self.per_instance.setdefault(name, aligned)

    def as_json(self, split: ReportedSplit) -> dict[str, Any]:
        """A score file for `eraser-hub board`: flat keys, intervals, names, signatures; NaN is null."""
        content: dict[str, Any] = {
            "system": self.name,
            "dataset": place_of(split.folder).dataset,
            "config": split.config,
            "split": split.split,
        }
        bounds = {**self.intervals, **self.point_intervals}
        for key, value in self.scores.items():
            content[key] = _plain(value)
            if key in bounds:
                content[f"{key}_ci"] = _plain(bounds[key])
            if key in self.spread:
                content[f"{key}{SPREAD}"] = _plain(self.spread[key])
        if len(self.runs) > 1:
            content["runs"] = len(self.runs)
        content["signature"] = list(self.signatures)
        return content


def of_runs(runs: Sequence[SystemScores]) -> SystemScores:
    """Several runs of one system as one: the mean of each score and its spread; what belongs to single instances is the
    first run's, which is said."""
    first = runs[0]
    scores, spread = dict(first.scores), {}
    for key in [key for key in scores if all(run.number(key) is not None for run in runs)]:
        values = [run.scores[key] for run in runs]
        scores[key], spread[key] = fmean(values), stdev(values)
    for key, value in first.scores.items():
        columns = [run.scores.get(key) for run in runs]
        if isinstance(value, list) and all(isinstance(one, list) and len(one) == len(value) for one in columns):
            scores[key] = [fmean(points) for points in zip(*columns, strict=True)]
    signatures = list(dict.fromkeys(line for run in runs for line in run.signatures))
    words = f"classes, distributions and documents show the first of {len(runs)} runs; scores are means, ± their spread"
    return replace(
        first,
        scores=scores,
        spread=spread,
        intervals={},
        point_intervals={},
        signatures=[f"mean of {len(runs)} runs", *signatures],
        missing=[*first.missing, words],
        runs=[run.statistics for run in runs],
    )


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return _finite(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def compare_ways(ways: Mapping[str, Sequence[SystemScores]], settings: ReportSettings) -> dict[str, dict[str, Any]]:
    """`compare_systems` for each way of erasing; {} where systems share no block."""
    results = {way: compare_systems(systems, settings) for way, systems in ways.items()}
    return {way: result for way, result in results.items() if result is not None}


def compare_systems(systems: Sequence[SystemScores], settings: ReportSettings) -> dict[str, Any] | None:
    """Paired comparison of all pairs of systems, as `eraser-hub compare` makes it; None where they share no block.

    A block of scores enters where every system has it with the same optional fields, and, of systems that answer a part
    of the annotations, with the annotations that all of them answer.
    """
    from eraser_hub.scoring.comparison import Inference, compare_named

    runs = [run for system in systems for run in system.runs]
    alike = [
        block
        for block in systems[0].statistics
        if all(block in run for run in runs) and len({run[block].values.shape[1] for run in runs}) == 1
    ]
    return compare_named(
        {system.name: [{block: run[block] for block in alike} for run in system.runs] for system in systems},
        Inference(settings.n_resamples or DEFAULT_RESAMPLES, settings.seed, settings.confidence_level or DEFAULT_LEVEL),
        settings.only_predicted,
    )
