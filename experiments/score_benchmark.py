"""Which scores know the truth: planted texts, models that decide by them, true explanations against worse ones.

For every text, score and worse explanation: does the score put the true explanation first? ``auc`` is the share of texts
where it does, a tie counting half: 1 always, 0.5 as a coin does, 0 never. Texts that share their filler are one cluster,
which intervals resample. The verdict is "better" where the interval lies above 0.5, "worse" where it lies below, else "tie".
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.explain.engine import explain_instances
from eraser_hub.explain.erasure import generator
from eraser_hub.explain.given import with_scores
from eraser_hub.explain.instances import Instance, instance_of_eraser
from eraser_hub.explain.labels import align_labels
from eraser_hub.explain.models.plain_model import PlainModel
from eraser_hub.explain.settings import GIVEN, ExplainSettings
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.metrics.pool import Pool
from eraser_hub.metrics.resampling import intervals
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.samples.plant import KD, KINDS, LABELS, planted
from eraser_hub.version import __version__

from .candidates import CANDIDATES, PADDING, TRUE, true
from .planted_models import PlantedModel

# the scores that are asked, beside every one of eraser_faithfulness that has a direction
FIDELITY = ("normalized_sufficiency", "normalized_comprehensiveness")
AGREEMENT = ("auprc", "token_macro_f1")  # against the gold, which is the truth here: what a perfect judge gets
NOT_OF_EXPLANATIONS = ("accuracy", "macro_f1")
Row = dict[str, Any]
Wins = dict[tuple[str, str, str], NDArray[np.float64]]  # (kind, score, worse explanation) -> a share for each cluster


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """How much is done.

    Attributes:
        kinds: of planting, some of :data:`samples.plant.KINDS`.
        size: texts of each kind, at least.
        beam, soft_draws, perturbations: see `explain`.
        seed: of all that is drawn.
        confidence_level, n_resamples: of the intervals.
    """

    kinds: tuple[str, ...] = tuple(KINDS)
    size: int = 80
    beam: int = 2
    soft_draws: int = 50
    perturbations: int = 20
    seed: int = 1
    confidence_level: float = 0.95
    n_resamples: int = 2000

    def signature(self) -> str:
        """Every setting in one line."""
        return (
            f"benchmark-scores|kinds:{','.join(self.kinds)}|texts:{self.size}|erase:mask|beam:{self.beam}|soft:{self.soft_draws}"
            f"|perturbations:{self.perturbations}|seed:{self.seed}|ci:{self.confidence_level:g},{self.n_resamples}"
            f"|clusters:filler|eraser-hub:{__version__}"
        )


FAST = BenchmarkSettings(size=16, beam=1, soft_draws=10, perturbations=10)


def benchmark(settings: BenchmarkSettings) -> dict[str, Any]:
    """The judgement of every score.

    Returns:
        ``{"scores": [{"name", "better", "auc", "auc_ci", "verdicts": {explanation: verdict}, "explanations": {explanation:
        {"auc", "auc_ci"}}, "kinds": {kind: {"auc", "auc_ci", "verdicts"}}}, ..], "kinds": {kind: {"texts", "clusters"}},
        "signature"}``, the scores by falling auc; null where a score is undefined for every text.
    """
    wins: Wins = {}
    sizes: dict[str, dict[str, int]] = {}
    higher: dict[str, bool] = {}
    for kind in settings.kinds:
        rows = planted_rows(kind, settings)
        clusters = clusters_of(rows)
        sizes[kind] = {"texts": len(rows), "clusters": int(clusters.max()) + 1}
        values = {name: values_of(kind, name, rows, settings) for name in (TRUE, *CANDIDATES)}
        higher |= {name: up for name, (_, up) in values[TRUE].items()}
        for score, (best, up) in values[TRUE].items():
            for name in CANDIDATES:
                wins[kind, score, name] = shares(best, values[name][score][0], up, clusters)
    scores = [judged(score, up, wins, settings) for score, up in higher.items()]
    scores.sort(key=lambda one: (-(one["auc"] if one["auc"] is not None else -1.0), one["name"]))
    return {"scores": scores, "kinds": sizes, "signature": settings.signature()}


def planted_rows(kind: str, settings: BenchmarkSettings) -> list[Row]:
    """Rows of the planted test split, as those of a built dataset."""
    rows = []
    for record, text in planted(kind, "test", settings.size, settings.seed):
        rows.append({**record, "documents": [{"docid": record["docids"][0], "text": text}]})
    return rows


def clusters_of(rows: Sequence[Row]) -> NDArray[np.int64]:
    """The cluster of each text: those with the same words but for the ones that decide."""
    numbers: dict[tuple[str, ...], int] = {}
    clusters = []
    for row in rows:
        one = instance_of_eraser(row, LABELS)
        words = tuple("" if mark else token for token, mark in zip(one.tokens, _deciding(one), strict=True))
        clusters.append(numbers.setdefault(words, len(numbers)))
    return np.array(clusters, dtype=np.int64)


def _deciding(one: Instance) -> NDArray[np.bool_]:
    """Which tokens decide."""
    return np.array([flag for document in one.rationale or () for flag in document], dtype=bool)


def values_of(
    kind: str, name: str, rows: Sequence[Row], settings: BenchmarkSettings
) -> dict[str, tuple[NDArray[np.float64], bool]]:
    """Each score of one explanation of every text, NaN where it is undefined, and whether higher is better."""
    maker = true if name == TRUE else CANDIDATES[name]
    instances = []
    for row in rows:
        one = instance_of_eraser(row, LABELS)
        scores = maker(_deciding(one), row["classification"], generator(settings.seed, one.id, name))
        instances.append(with_scores(one, [scores]))
    adapter = PlainModel(PlantedModel(kind))
    align_labels(adapter, LABELS)
    how = ExplainSettings(
        method=GIVEN, scores=name, erase="mask", seed=settings.seed, kd=KD[kind], aopc_bounds=True, beam=settings.beam,
        soft_draws=settings.soft_draws, leave_one_out=True, infidelity_draws=settings.perturbations, tokens_to_flip=True,
    )  # fmt: skip
    if name == "longer":
        how = replace(how, kd=(1 + PADDING) * KD[kind])
    return per_text(list(explain_instances(adapter, instances, how)), rows)


def per_text(predictions: Sequence[Row], rows: Sequence[Row]) -> dict[str, tuple[NDArray[np.float64], bool]]:
    """Each text's value of every score that has a direction."""
    values: dict[str, tuple[NDArray[np.float64], bool]] = {}
    for metric, chosen in (
        (EraserFaithfulness(keep_in_memory=True), None), (NormalizedFidelity(keep_in_memory=True), FIDELITY),
        (EraserAgreement(keep_in_memory=True), AGREEMENT),
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of scores that are not asked here
            options = {"label_names": LABELS, "per_instance": True}
            result = metric.compute(predictions=list(predictions), references=list(rows), **options) or {}
        columns = result["per_instance"]
        order = np.argsort([[row["annotation_id"] for row in rows].index(name) for name in columns["annotation_id"]])
        for key, up in metric.info.higher_is_better.items():
            wanted = key in chosen if chosen else key not in NOT_OF_EXPLANATIONS
            if up is None or not wanted or key not in columns or isinstance(columns[key][0], list):
                continue
            numbers = np.array([math.nan if value is None else value for value in columns[key]], dtype=np.float64)
            values[key] = numbers[order], up
    return values


def shares(
    best: NDArray[np.float64], other: NDArray[np.float64], up: bool, clusters: NDArray[np.int64]
) -> NDArray[np.float64]:
    """For each cluster the share of its texts where ``best`` scores better than ``other``, ties half; NaN for none."""
    difference = (best - other) * (1 if up else -1)
    defined = ~np.isnan(difference)
    win = np.where(np.abs(difference) <= TIE, 0.5, difference > 0)
    count = np.bincount(clusters[defined], minlength=int(clusters.max()) + 1)
    total = np.bincount(clusters[defined], weights=win[defined], minlength=len(count))
    return np.divide(total, count, out=np.full(len(count), math.nan), where=count > 0)


TIE = 1e-9  # values this close are equal: rounding of sums of probabilities


def judged(score: str, up: bool, wins: Wins, settings: BenchmarkSettings) -> Row:
    """One score's judgement, over all kinds, by explanation, by kind, and by both."""
    groups: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for kind in settings.kinds:
        columns = np.stack([wins[kind, score, name] for name in CANDIDATES])
        for key in ("all", f"kind {kind}"):
            groups[key].append(_mean(columns))
        for name, column in zip(CANDIDATES, columns, strict=True):
            groups[name].append(column)
            groups[f"{kind} {name}"].append(column)
    of = {key: _with_interval(np.concatenate(parts), settings) for key, parts in groups.items()}
    return {
        "name": score,
        "better": "higher" if up else "lower",
        **of["all"],
        "verdicts": {name: verdict(of[name]) for name in CANDIDATES},
        "explanations": {name: of[name] for name in CANDIDATES},
        "kinds": {
            kind: {**of[f"kind {kind}"], "verdicts": {name: verdict(of[f"{kind} {name}"]) for name in CANDIDATES}}
            for kind in settings.kinds
        },
    }


def _mean(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over explanations of each cluster, NaN where one is undefined for it."""
    return np.asarray(columns.mean(axis=0))


def _with_interval(values: NDArray[np.float64], settings: BenchmarkSettings) -> Row:
    """The mean over clusters, with its interval."""
    if np.isnan(values).all():
        return {"auc": None, "auc_ci": None}
    pool = Pool(len(values))
    pool.add_mean("auc", values)
    statistics = pool.statistics(list(map(str, range(len(values)))))
    bounds = intervals(statistics, settings.confidence_level, settings.n_resamples, settings.seed) or {}
    return {"auc": float(statistics.scores()["auc"]), "auc_ci": [float(end) for end in bounds["auc"]]}


def verdict(judgement: Mapping[str, Any]) -> str:
    """Whether the interval lies above a coin's throw, below it, or holds it."""
    if judgement["auc"] is None:
        return "undefined"
    low, high = judgement["auc_ci"]
    return "better" if low > 0.5 else "worse" if high < 0.5 else "tie"


def benchmark_tables(result: Mapping[str, Any]) -> Tables:
    """A table of all kinds, and one for each: how often each score puts the true explanation before each other one."""
    tables = Tables("benchmark-scores")
    texts = sum(one["texts"] for one in result["kinds"].values())
    first = Table("scores", f"All kinds, {texts} texts", ("score", "better"), ("all", *CANDIDATES))
    for one in result["scores"]:
        parts = {"all": one, **one["explanations"]}
        first.add(one["name"], one["better"], **{name: _cell(part) for name, part in parts.items()})
    first.notes.append(
        "The share of texts where a score puts the true explanation first, a tie half; brackets: 95 % interval; "
        "=: the interval holds a coin's 0.5, !: it lies below."
    )
    kinds = Table("kinds", "By kind of planting, over all explanations", ("score",), tuple(result["kinds"]))
    for one in result["scores"]:
        kinds.add(one["name"], **{kind: _cell(part) for kind, part in one["kinds"].items()})
    tables.tables += [first, kinds]
    return tables


def _cell(part: Mapping[str, Any]) -> Cell:
    low, high = part["auc_ci"] or (None, None)
    mark = {"tie": "=", "worse": "!"}.get(verdict(part), "")
    return Cell(part["auc"], digits=2, low=low, high=high, mark=mark)
