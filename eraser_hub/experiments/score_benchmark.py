"""The benchmark of scores: planted texts, models that decide by them, and true explanations against worse ones.

For every text, score and worse explanation: does the score rank the true explanation first? ``auc`` is the share of
texts for which it does; a tie counts half. A score that is always right has 1, a coin 0.5, a score that is always wrong
0. Texts that share their filler form one cluster, and intervals resample clusters. The verdict is "better" if the
interval lies above 0.5, "worse" if it lies below, else "tie".
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, align_labels
from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import make_generator
from eraser_hub.attribution.external_rationales import attach_scores
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.settings import GIVEN, ExplainSettings
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.metrics.resampling import intervals
from eraser_hub.metrics.statistics_builder import StatisticsBuilder
from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.samples.plant import KD, KINDS, LABELS
from eraser_hub.schema.instance import AOPC_BOUNDS
from eraser_hub.systems.train_config import Say
from eraser_hub.version import __version__

from .configs import BenchmarkConfig
from .planted import (
    CANDIDATES,
    LEARNED,
    PADDING,
    PERTURBED,
    TRUE,
    PlantedModel,
    PlantedNetwork,
    compute_sensitivity,
    describe_network,
    find_deciding_tokens,
    make_planted_instances,
    make_planted_rows,
    train_planted_network,
    true,
)

# the scores that are asked, beside every one of eraser_faithfulness that has a direction
FIDELITY = ("normalized_sufficiency", "normalized_comprehensiveness")
AGREEMENT = ("auprc", "token_macro_f1")  # with the gold, which is the truth here: the scores of a perfect judge
NOT_OF_EXPLANATIONS = ("accuracy", "macro_f1")
CLOSED, TRAINED = "closed-form", "trained"
MODELS = {CLOSED: (CLOSED,), TRAINED: (TRAINED,), "all": (CLOSED, TRAINED)}
# values this close are equal: rounding of sums of probabilities in float64; and in float32, as networks' logits are
TIES = {CLOSED: 1e-9, TRAINED: 1e-5}
Row = dict[str, Any]
Values = dict[str, tuple[NDArray[np.float64], bool]]  # score -> a value for each text, whether higher is better
Wins = dict[tuple[str, str, str], NDArray[np.float64]]  # (kind, score, worse explanation) -> a share for each cluster


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """The sizes of the benchmark.

    Attributes:
        models: The models that judge, of :data:`MODELS`; the first one decides if only one verdict is given.
        kinds: Kinds of planting, some of :data:`samples.plant.KINDS`.
        size: Least number of texts of each kind.
        beam: See `explain`.
        soft_draws: See `explain`.
        perturbations: Perturbed inputs of infidelity and of the largest sensitivity.
        seed: Seed of all random draws.
        confidence_level: Confidence level of the intervals.
        n_resamples: Resamples of the intervals.
    """

    models: tuple[str, ...] = (CLOSED,)
    kinds: tuple[str, ...] = tuple(KINDS)
    size: int = 80
    beam: int = 2
    soft_draws: int = 50
    perturbations: int = 20
    seed: int = 1
    confidence_level: float = 0.95
    n_resamples: int = 2000

    def signature(self) -> str:
        """Return every setting in one line."""
        return (
            f"benchmark-scores|models:{','.join(self.models)}|kinds:{','.join(self.kinds)}|texts:{self.size}|erase:mask|beam:{self.beam}|soft:{self.soft_draws}"
            f"|perturbations:{self.perturbations}|seed:{self.seed}|ci:{self.confidence_level:g},{self.n_resamples}"
            f"|clusters:filler|eraser-hub:{__version__}"
        )


FAST = BenchmarkSettings(size=16, beam=1, soft_draws=10, perturbations=10)


def make_benchmark_settings(options: BenchmarkConfig) -> BenchmarkSettings:
    """Return the sizes that the options ask for."""
    return replace(FAST if options.fast else BenchmarkSettings(), models=MODELS[options.models], seed=options.seed)


def benchmark(settings: BenchmarkSettings, say: Say = lambda line: None) -> dict[str, Any]:
    """Judge every score.

    Args:
            settings: The sizes.
            say: Receives a line for each trained network.

    Returns:
        ``{"scores": [{"name", "better", "auc", "auc_ci", "verdicts": {explanation: verdict}, "explanations":
        {explanation: {"auc", "auc_ci"}}, "kinds": {kind: {"auc", "auc_ci", "verdicts"}}}, ..], "kinds": {kind:
        {"texts", "clusters"}}, "signature"}``, the scores by falling auc; null where a score is undefined for every
        text. With trained models ``"trained": {kind: {"model", "accuracy", "texts", "judges"}}``; beside closed-form
        ones, ``"trained"`` of each score is its judgement by trained models.

    Raises:
        DataError: packages of the extra ``explain`` are missing for trained models; none of these learned its rule.
    """
    networks: dict[str, PlantedNetwork] = {}
    for kind in settings.kinds if TRAINED in settings.models else ():
        networks[kind] = train_planted_network(kind, settings.seed)
        say(f"{kind}: {describe_network(networks[kind].facts)}")
    if networks and not any(network.judges for network in networks.values()):
        words = f"expected a network that predicts {LEARNED:.0%} of the held-out texts correctly, found none"
        accuracies = "; ".join(f"{kind}: {one.accuracy:.3f}" for kind, one in networks.items())
        raise DataError(f"{words}: no judgement by trained models ({accuracies})", rule="model")
    results = [_judge_scores(models, networks, settings) for models in settings.models]
    result = results[0]
    for other in results[1:]:
        by_name = {one.pop("name"): one for one in other["scores"]}
        for one in result["scores"]:
            one[TRAINED] = {key: value for key, value in by_name[one["name"]].items() if key != "better"}
    if networks:
        result[TRAINED] = {kind: network.facts for kind, network in networks.items()}
    return {**result, "signature": settings.signature()}


def _judge_scores(models: str, networks: Mapping[str, PlantedNetwork], settings: BenchmarkSettings) -> dict[str, Any]:
    """Judge the scores by closed-form or by trained models; return also the number of texts of each kind."""
    kinds = [kind for kind in settings.kinds if models == CLOSED or networks[kind].judges]
    wins: Wins = {}
    sizes: dict[str, dict[str, int]] = {}
    higher: dict[str, bool] = {}
    for kind in kinds:
        rows = make_planted_rows(kind, "test", settings.size, settings.seed)
        instances = make_planted_instances(rows)
        clusters = find_clusters(instances)
        sizes[kind] = {"texts": len(rows), "clusters": int(clusters.max()) + 1}
        adapter = networks[kind].adapter if models == TRAINED else make_closed_form_model(kind)
        predictions = explain_planted(adapter, kind, TRUE, instances, settings)
        best = compute_per_text(predictions, rows)
        higher |= {name: up for name, (_, up) in best.items()}
        # the bounds of all orders are the same whatever the explanation
        bounds = [(one[AOPC_BOUNDS]["lower"], one[AOPC_BOUNDS]["upper"]) for one in predictions]
        bounded = [replace(one, aopc_bounds=pair) for one, pair in zip(instances, bounds, strict=True)]
        for name in CANDIDATES:
            others = compute_per_text(explain_planted(adapter, kind, name, bounded, settings), rows)
            for score, (values, up) in best.items():
                wins[kind, score, name] = compute_shares(values, others[score][0], up, clusters, TIES[models])
    scores = [judge_score(score, up, wins, kinds, settings) for score, up in higher.items()]
    scores.sort(key=lambda one: (-(one["auc"] if one["auc"] is not None else -1.0), one["name"]))
    return {"scores": scores, "kinds": sizes}


def find_clusters(instances: Sequence[Instance]) -> NDArray[np.int64]:
    """Return the cluster of each text: texts that differ only in the deciding words share one."""
    numbers: dict[tuple[str, ...], int] = {}
    clusters = []
    for one in instances:
        words = tuple("" if mark else token for token, mark in zip(one.tokens, find_deciding_tokens(one), strict=True))
        clusters.append(numbers.setdefault(words, len(numbers)))
    return np.array(clusters, dtype=np.int64)


def make_closed_form_model(kind: str) -> Adapter:
    """Return the model in closed form of a kind of planting."""
    adapter = PlainModel(PlantedModel(kind))
    align_labels(adapter, LABELS)
    return adapter


def explain_planted(
    adapter: Adapter, kind: str, name: str, instances: Sequence[Instance], settings: BenchmarkSettings
) -> list[Row]:
    """Return a model's predictions with one explanation of every text."""
    maker = true if name == TRUE else CANDIDATES[name]
    scored_instances, sensitivities = [], []
    for one in instances:
        label, get_generator = str(one.label), partial(_make_generator, settings.seed, one.id, name)
        scores = maker(find_deciding_tokens(one), label, get_generator(""))
        scored_instances.append(attach_scores(one, [scores]))
        sensitivities.append(compute_sensitivity(maker, one, label, scores, settings.perturbations, get_generator))
    explain_settings = ExplainSettings(
        method=GIVEN,
        scores=name,
        erase="mask",
        seed=settings.seed,
        kd=(1 + PADDING if name == "longer" else 1) * KD[kind],
        aopc_bounds=True,
        beam=settings.beam,
        soft_draws=settings.soft_draws,
        leave_one_out=True,
        infidelity_draws=settings.perturbations,
        tokens_to_flip=True,
    )
    predictions = list(explain_instances(adapter, scored_instances, explain_settings))
    return [one | {"sensitivity_max": value} for one, value in zip(predictions, sensitivities, strict=True)]


def _make_generator(seed: int, identity: str, name: str, purpose: str) -> np.random.Generator:
    """Return the random numbers of a text's explanation; those of erasing are equal for all explanations."""
    return make_generator(seed, identity, purpose if purpose == PERTURBED else f"{name} {purpose}".strip())


def compute_per_text(predictions: Sequence[Row], rows: Sequence[Row]) -> Values:
    """Return each text's value of every score that has a direction; NaN if it is undefined."""
    values: Values = {}
    for kind, chosen in ((EraserFaithfulness, None), (NormalizedFidelity, FIDELITY), (EraserAgreement, AGREEMENT)):
        metric = kind(keep_in_memory=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of scores that are not asked here
            options = {"label_names": LABELS, "per_instance": True}
            result = metric.compute(predictions=list(predictions), references=list(rows), **options) or {}
        columns = result["per_instance"]
        order = np.argsort([[row["annotation_id"] for row in rows].index(name) for name in columns["annotation_id"]])
        directions: Mapping[str, bool | None] = vars(metric.info)["higher_is_better"]
        for key, up in directions.items():
            wanted = key in chosen if chosen else key not in NOT_OF_EXPLANATIONS
            if up is None or not wanted or key not in columns or isinstance(columns[key][0], list):
                continue
            numbers = np.array([math.nan if value is None else value for value in columns[key]], dtype=np.float64)
            values[key] = numbers[order], up
    return values


def compute_shares(
    best: NDArray[np.float64], other: NDArray[np.float64], up: bool, clusters: NDArray[np.int64], tie: float
) -> NDArray[np.float64]:
    """Return for each cluster the share of texts where ``best`` beats ``other``, ties half; NaN without texts."""
    difference = (best - other) * (1 if up else -1)
    defined = ~np.isnan(difference)
    win = np.where(np.abs(difference) <= tie, 0.5, difference > 0)
    count = np.bincount(clusters[defined], minlength=int(clusters.max()) + 1)
    total = np.bincount(clusters[defined], weights=win[defined], minlength=len(count))
    share = np.full(len(count), math.nan)
    np.divide(total, count, out=share, where=count > 0)
    return share


def judge_score(score: str, up: bool, wins: Wins, kinds: Sequence[str], settings: BenchmarkSettings) -> Row:
    """Return one score's judgement: over all kinds, by explanation, by kind, and by both."""
    groups: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for kind in kinds:
        columns = np.stack([wins[kind, score, name] for name in CANDIDATES])
        for key in ("all", f"kind {kind}"):
            groups[key].append(columns.mean(axis=0))  # over explanations, NaN where one is undefined
        for name, column in zip(CANDIDATES, columns, strict=True):
            groups[name].append(column)
            groups[f"{kind} {name}"].append(column)
    results = {key: _compute_interval(np.concatenate(parts), settings) for key, parts in groups.items()}
    verdicts = {kind: {name: decide_verdict(results[f"{kind} {name}"]) for name in CANDIDATES} for kind in kinds}
    return {
        "name": score,
        "better": "higher" if up else "lower",
        **results["all"],
        "verdicts": {name: decide_verdict(results[name]) for name in CANDIDATES},
        "explanations": {name: results[name] for name in CANDIDATES},
        "kinds": {kind: {**results[f"kind {kind}"], "verdicts": verdicts[kind]} for kind in kinds},
    }


def _compute_interval(values: NDArray[np.float64], settings: BenchmarkSettings) -> Row:
    """Return the mean over clusters and its interval."""
    if np.isnan(values).all():
        return {"auc": None, "auc_ci": None}
    builder = StatisticsBuilder(len(values))
    builder.add_mean("auc", values)
    statistics = builder.statistics(list(map(str, range(len(values)))))
    bounds = intervals(statistics, settings.confidence_level, settings.n_resamples, settings.seed) or {}
    return {"auc": float(statistics.scores()["auc"]), "auc_ci": [float(end) for end in bounds["auc"]]}


def decide_verdict(judgement: Mapping[str, Any]) -> str:
    """Compare an interval with 0.5: "better", "worse", "tie" or "undefined"."""
    if judgement["auc"] is None:
        return "undefined"
    low, high = judgement["auc_ci"]
    return "better" if low > 0.5 else "worse" if high < 0.5 else "tie"


def make_benchmark_tables(result: Mapping[str, Any]) -> Tables:
    """Return a table over all kinds and one by kind: how often each score ranks the true explanation first.

    There are two more tables if trained models judged beside closed-form ones.
    """
    tables = Tables("benchmark-scores")
    networks = result.get(TRAINED, {})
    alone = networks and TRAINED not in result["scores"][0]
    tables.tables += _make_tables(result["scores"], result["kinds"], "trained models" if alone else "")
    if networks and not alone:
        scores = [{"name": one["name"], "better": one["better"], **one[TRAINED]} for one in result["scores"]]
        kinds = {kind: result["kinds"][kind] for kind, facts in networks.items() if facts["judges"]}
        tables.tables += _make_tables(scores, kinds, "trained models", name=f"{TRAINED}_")
    tables.tables[-1].notes += [f"{kind}: {describe_network(facts)}" for kind, facts in networks.items()]
    return tables


def _make_tables(
    scores: Sequence[Row], sizes: Mapping[str, Mapping[str, int]], models: str, name: str = ""
) -> list[Table]:
    texts, by = sum(one["texts"] for one in sizes.values()), f", {models}" if models else ""
    first = Table(f"{name}scores", f"All kinds, {texts} texts{by}", ("score", "better"), ("all", *CANDIDATES))
    for one in scores:
        parts = {"all": one, **one["explanations"]}
        first.add(one["name"], one["better"], **{name: _make_cell(part) for name, part in parts.items()})
    first.notes += [
        "The share of texts where a score puts the true explanation first, a tie half; brackets: 95 % interval; "
        "=: the interval holds a coin's 0.5, !: it lies below.",
        "sensitivity_max judges how explanations are made, each way run anew on erased inputs; it asks no model. "
        "It says that ways which draw are unstable: one that always says the same would be its best, whatever is true.",
    ]
    kinds = Table(f"{name}kinds", f"By kind of planting, over all explanations{by}", ("score",), tuple(sizes))
    for one in scores:
        kinds.add(one["name"], **{kind: _make_cell(part) for kind, part in one["kinds"].items()})
    return [first, kinds]


def _make_cell(part: Mapping[str, Any]) -> Cell:
    low, high = part["auc_ci"] or (None, None)
    mark = {"tie": "=", "worse": "!"}.get(decide_verdict(part), "")
    return Cell(part["auc"], digits=2, low=low, high=high, mark=mark)
