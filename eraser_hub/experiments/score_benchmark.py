"""Which scores know the truth: planted texts, models that decide by them, true explanations against worse ones.

For every text, score and worse explanation: does the score put the true explanation first? ``auc`` is the share of
texts where it does, a tie counting half: 1 always, 0.5 as a coin does, 0 never. Texts that share their filler are one
cluster, which intervals resample. The verdict is "better" where the interval lies above 0.5, "worse" where it lies
below, else "tie".
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
from eraser_hub.metrics.pool import Pool
from eraser_hub.metrics.resampling import intervals
from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.samples.plant import KD, KINDS, LABELS
from eraser_hub.schema.instance import AOPC_BOUNDS
from eraser_hub.systems.recipe import Say
from eraser_hub.version import __version__

from .plans import BenchmarkPlan
from .planted import (
    CANDIDATES,
    LEARNED,
    PADDING,
    PERTURBED,
    TRUE,
    Learned,
    PlantedModel,
    deciding_of,
    learned,
    planted_instances,
    planted_rows,
    said_of,
    sensitivity,
    true,
)

# the scores that are asked, beside every one of eraser_faithfulness that has a direction
FIDELITY = ("normalized_sufficiency", "normalized_comprehensiveness")
AGREEMENT = ("auprc", "token_macro_f1")  # against the gold, which is the truth here: what a perfect judge gets
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
    """How much is done.

    Attributes:
        models: of :data:`MODELS`, whom the scores are asked about; the first judge where verdicts stand alone.
        kinds: of planting, some of :data:`samples.plant.KINDS`.
        size: texts of each kind, at least.
        beam, soft_draws, perturbations: see `explain`; perturbed inputs of infidelity and of the largest sensitivity.
        seed: of all that is drawn.
        confidence_level, n_resamples: of the intervals.
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
        """Every setting in one line."""
        return (
            f"benchmark-scores|models:{','.join(self.models)}|kinds:{','.join(self.kinds)}|texts:{self.size}|erase:mask|beam:{self.beam}|soft:{self.soft_draws}"
            f"|perturbations:{self.perturbations}|seed:{self.seed}|ci:{self.confidence_level:g},{self.n_resamples}"
            f"|clusters:filler|eraser-hub:{__version__}"
        )


FAST = BenchmarkSettings(size=16, beam=1, soft_draws=10, perturbations=10)


def settings_for_plan(plan: BenchmarkPlan) -> BenchmarkSettings:
    """Return how much a plan does."""
    return replace(FAST if plan.fast else BenchmarkSettings(), models=MODELS[plan.models], seed=plan.seed)


def benchmark(settings: BenchmarkSettings, say: Say = lambda line: None) -> dict[str, Any]:
    """The judgement of every score.

    Args:
        say: called with a line for each network that was trained.

    Returns:
        ``{"scores": [{"name", "better", "auc", "auc_ci", "verdicts": {explanation: verdict}, "explanations":
        {explanation: {"auc", "auc_ci"}}, "kinds": {kind: {"auc", "auc_ci", "verdicts"}}}, ..], "kinds": {kind:
        {"texts", "clusters"}}, "signature"}``, the scores by falling auc; null where a score is undefined for every
        text. With trained models ``"trained": {kind: {"model", "accuracy", "texts", "judges"}}``; beside closed-form
        ones each score's judgement by the trained stands under its ``"trained"``.

    Raises:
        DataError: packages of the extra ``explain`` are missing for trained models; none of these learned its rule.
    """
    networks: dict[str, Learned] = {}
    for kind in settings.kinds if TRAINED in settings.models else ():
        networks[kind] = learned(kind, settings.seed)
        say(f"{kind}: {said_of(networks[kind].facts)}")
    if networks and not any(network.judges for network in networks.values()):
        words = f"expected a network that tells {LEARNED:.0%} of the held-out texts, found none"
        told = "; ".join(f"{kind}: {one.accuracy:.3f}" for kind, one in networks.items())
        raise DataError(f"{words}: no judgement by trained models ({told})", rule="model")
    results = [_judgements(models, networks, settings) for models in settings.models]
    result = results[0]
    for other in results[1:]:
        by_name = {one.pop("name"): one for one in other["scores"]}
        for one in result["scores"]:
            one[TRAINED] = {key: value for key, value in by_name[one["name"]].items() if key != "better"}
    if networks:
        result[TRAINED] = {kind: network.facts for kind, network in networks.items()}
    return {**result, "signature": settings.signature()}


def _judgements(models: str, networks: Mapping[str, Learned], settings: BenchmarkSettings) -> dict[str, Any]:
    """The scores' judgement by closed-form or by trained models, and the texts of each kind that they judged."""
    kinds = [kind for kind in settings.kinds if models == CLOSED or networks[kind].judges]
    wins: Wins = {}
    sizes: dict[str, dict[str, int]] = {}
    higher: dict[str, bool] = {}
    for kind in kinds:
        rows = planted_rows(kind, "test", settings.size, settings.seed)
        instances = planted_instances(rows)
        clusters = clusters_of(instances)
        sizes[kind] = {"texts": len(rows), "clusters": int(clusters.max()) + 1}
        adapter = networks[kind].adapter if models == TRAINED else closed_form(kind)
        predictions = explained(adapter, kind, TRUE, instances, settings)
        best = per_text(predictions, rows)
        higher |= {name: up for name, (_, up) in best.items()}
        # the bounds of all orders are the same whatever the explanation
        bounds = [(one[AOPC_BOUNDS]["lower"], one[AOPC_BOUNDS]["upper"]) for one in predictions]
        bounded = [replace(one, aopc_bounds=pair) for one, pair in zip(instances, bounds, strict=True)]
        for name in CANDIDATES:
            others = per_text(explained(adapter, kind, name, bounded, settings), rows)
            for score, (values, up) in best.items():
                wins[kind, score, name] = shares(values, others[score][0], up, clusters, TIES[models])
    scores = [judged(score, up, wins, kinds, settings) for score, up in higher.items()]
    scores.sort(key=lambda one: (-(one["auc"] if one["auc"] is not None else -1.0), one["name"]))
    return {"scores": scores, "kinds": sizes}


def clusters_of(instances: Sequence[Instance]) -> NDArray[np.int64]:
    """The cluster of each text: those with the same words but for the ones that decide."""
    numbers: dict[tuple[str, ...], int] = {}
    clusters = []
    for one in instances:
        words = tuple("" if mark else token for token, mark in zip(one.tokens, deciding_of(one), strict=True))
        clusters.append(numbers.setdefault(words, len(numbers)))
    return np.array(clusters, dtype=np.int64)


def closed_form(kind: str) -> Adapter:
    """The model in closed form of a kind of planting."""
    adapter = PlainModel(PlantedModel(kind))
    align_labels(adapter, LABELS)
    return adapter


def explained(
    adapter: Adapter, kind: str, name: str, instances: Sequence[Instance], settings: BenchmarkSettings
) -> list[Row]:
    """Predictions of a model beside one explanation of every text."""
    maker = true if name == TRUE else CANDIDATES[name]
    given, moved = [], []
    for one in instances:
        label, random_of = str(one.label), partial(_random, settings.seed, one.id, name)
        scores = maker(deciding_of(one), label, random_of(""))
        given.append(attach_scores(one, [scores]))
        moved.append(sensitivity(maker, one, label, scores, settings.perturbations, random_of))
    how = ExplainSettings(
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
    predictions = list(explain_instances(adapter, given, how))
    return [one | {"sensitivity_max": value} for one, value in zip(predictions, moved, strict=True)]


def _random(seed: int, identity: str, name: str, purpose: str) -> np.random.Generator:
    """Random numbers of an explanation of a text; of what is erased the same for all explanations."""
    return make_generator(seed, identity, purpose if purpose == PERTURBED else f"{name} {purpose}".strip())


def per_text(predictions: Sequence[Row], rows: Sequence[Row]) -> Values:
    """Each text's value of every score that has a direction, NaN where it is undefined."""
    values: Values = {}
    for made, chosen in ((EraserFaithfulness, None), (NormalizedFidelity, FIDELITY), (EraserAgreement, AGREEMENT)):
        metric = made(keep_in_memory=True)
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


def shares(
    best: NDArray[np.float64], other: NDArray[np.float64], up: bool, clusters: NDArray[np.int64], tie: float
) -> NDArray[np.float64]:
    """For each cluster the share of its texts where ``best`` scores better than ``other``, ties half; NaN for none."""
    difference = (best - other) * (1 if up else -1)
    defined = ~np.isnan(difference)
    win = np.where(np.abs(difference) <= tie, 0.5, difference > 0)
    count = np.bincount(clusters[defined], minlength=int(clusters.max()) + 1)
    total = np.bincount(clusters[defined], weights=win[defined], minlength=len(count))
    share = np.full(len(count), math.nan)
    np.divide(total, count, out=share, where=count > 0)
    return share


def judged(score: str, up: bool, wins: Wins, kinds: Sequence[str], settings: BenchmarkSettings) -> Row:
    """One score's judgement, over all kinds, by explanation, by kind, and by both."""
    groups: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for kind in kinds:
        columns = np.stack([wins[kind, score, name] for name in CANDIDATES])
        for key in ("all", f"kind {kind}"):
            groups[key].append(columns.mean(axis=0))  # over explanations, NaN where one is undefined
        for name, column in zip(CANDIDATES, columns, strict=True):
            groups[name].append(column)
            groups[f"{kind} {name}"].append(column)
    of = {key: _with_interval(np.concatenate(parts), settings) for key, parts in groups.items()}
    verdicts = {kind: {name: verdict(of[f"{kind} {name}"]) for name in CANDIDATES} for kind in kinds}
    return {
        "name": score,
        "better": "higher" if up else "lower",
        **of["all"],
        "verdicts": {name: verdict(of[name]) for name in CANDIDATES},
        "explanations": {name: of[name] for name in CANDIDATES},
        "kinds": {kind: {**of[f"kind {kind}"], "verdicts": verdicts[kind]} for kind in kinds},
    }


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
    """A table of all kinds, and one for each: how often each score puts the true explanation before each other one;
    both again by trained models where these judged beside closed-form ones."""
    tables = Tables("benchmark-scores")
    networks = result.get(TRAINED, {})
    alone = networks and TRAINED not in result["scores"][0]
    tables.tables += _tables_of(result["scores"], result["kinds"], "trained models" if alone else "")
    if networks and not alone:
        scores = [{"name": one["name"], "better": one["better"], **one[TRAINED]} for one in result["scores"]]
        kinds = {kind: result["kinds"][kind] for kind, facts in networks.items() if facts["judges"]}
        tables.tables += _tables_of(scores, kinds, "trained models", name=f"{TRAINED}_")
    tables.tables[-1].notes += [f"{kind}: {said_of(facts)}" for kind, facts in networks.items()]
    return tables


def _tables_of(
    scores: Sequence[Row], sizes: Mapping[str, Mapping[str, int]], models: str, name: str = ""
) -> list[Table]:
    texts, by = sum(one["texts"] for one in sizes.values()), f", {models}" if models else ""
    first = Table(f"{name}scores", f"All kinds, {texts} texts{by}", ("score", "better"), ("all", *CANDIDATES))
    for one in scores:
        parts = {"all": one, **one["explanations"]}
        first.add(one["name"], one["better"], **{name: _cell(part) for name, part in parts.items()})
    first.notes += [
        "The share of texts where a score puts the true explanation first, a tie half; brackets: 95 % interval; "
        "=: the interval holds a coin's 0.5, !: it lies below.",
        "sensitivity_max judges how explanations are made, each way run anew on erased inputs; it asks no model. "
        "It says that ways which draw are unstable: one that always says the same would be its best, whatever is true.",
    ]
    kinds = Table(f"{name}kinds", f"By kind of planting, over all explanations{by}", ("score",), tuple(sizes))
    for one in scores:
        kinds.add(one["name"], **{kind: _cell(part) for kind, part in one["kinds"].items()})
    return [first, kinds]


def _cell(part: Mapping[str, Any]) -> Cell:
    low, high = part["auc_ci"] or (None, None)
    mark = {"tie": "=", "worse": "!"}.get(verdict(part), "")
    return Cell(part["auc"], digits=2, low=low, high=high, mark=mark)
