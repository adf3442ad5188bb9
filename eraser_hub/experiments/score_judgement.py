"""One model judges scores: by explanations of its texts whose truth is known, and by attribution methods.

The unit of work of the study. For every text and worse explanation: 1 if a score puts the true explanation first, 0.5
for a tie, 0 if it puts the worse one first, NaN if the score or the explanation is undefined. For every method: the
mean of each score over the texts, and of AUPRC, which compares with the truth.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.engine import explain_chunk
from eraser_hub.attribution.erasure import make_generator
from eraser_hub.attribution.external_rationales import attach_scores
from eraser_hub.attribution.method import METHODS, supports
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import GIVEN, ExplainSettings
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.records.extras import list_missing
from eraser_hub.samples.plant import LABELS
from eraser_hub.schema.instance import AOPC_BOUNDS

from .configs import CLOSED, ENCODER, RECURRENT, TRANSFORMER
from .explanations import CANDIDATES, TRUE, WIDE, make_explanations
from .plantings import PlantedText

# the scores that are asked, beside every one of eraser_faithfulness that has a direction
FIDELITY = ("normalized_sufficiency", "normalized_comprehensiveness")
AGREEMENT = ("auprc", "token_macro_f1")  # with the gold, which is the truth here: the scores of a perfect judge
NOT_OF_EXPLANATIONS = ("accuracy", "macro_f1", "brier", "ece")
TRUTH = "auprc"
BUDGETS = (5, 10, 20, 40, 80)  # draws of masks and perturbations of the budget curves
DRAWN = ("soft_comprehensiveness", "soft_sufficiency", "infidelity", "infidelity_normalized")
# values this close are equal: rounding of sums of probabilities in float64; and in float32, as networks' logits are
TIES = {CLOSED: 1e-9, RECURRENT: 1e-5, TRANSFORMER: 1e-5, ENCODER: 1e-5}
ANY_BOUNDS = (-1.0, 1.0)  # of AOPC: normalised AOPC ranks a text's explanations alike, whatever the bounds
METHODS_JUDGED = (
    *("random", "occlusion", "lime", "kernel-shap", "shapley"),
    *("attention", "simple-gradient", "gradient", "input-x-gradient", "integrated-gradients"),
)
Values = dict[str, tuple[NDArray[np.float64], bool]]  # score -> a value for each text, whether higher is better
Wins = dict[str, dict[str, list[float]]]  # score -> worse explanation -> a value for each text


def make_settings(seed: int, soft_draws: int, perturbations: int, **more: Any) -> ExplainSettings:
    """Return the settings of `explain` that every score of the study needs."""
    return ExplainSettings(
        erase="mask",
        seed=seed,
        aopc_bounds=True,
        soft_draws=soft_draws,
        infidelity_draws=perturbations,
        tokens_to_flip=True,
        **more,
    )


def compare_explanations(
    adapter: Adapter, texts: Sequence[PlantedText], settings: ExplainSettings, tie: float
) -> tuple[Wins, dict[str, bool]]:
    """Compare the true explanation of each text with the worse ones, by every score.

    Args:
        adapter: The model.
        texts: The texts.
        settings: The settings of :func:`make_settings`.
        tie: Values this close are equal.

    Returns:
        The wins of the true explanation, and for each score whether higher values are better.
    """
    predictions: dict[str, list[dict[str, Any]]] = {}
    for one in texts:
        for name, prediction in explain_candidates(adapter, one, settings).items():
            predictions.setdefault(name, []).append(prediction)
    values = {name: compute_per_text(some, texts) for name, some in predictions.items()}
    directions = {score: up for score, (_, up) in values[TRUE].items()}
    wins: Wins = {score: {} for score in directions}
    for name, partner in CANDIDATES.items():
        if name not in values:
            continue
        for score, up in directions.items():
            pair = values[partner][score][0], values[name][score][0]
            wins[score][name] = compute_wins(*pair, up, tie).tolist()
    return wins, directions


def explain_candidates(adapter: Adapter, one: PlantedText, settings: ExplainSettings) -> dict[str, dict[str, Any]]:
    """Return a model's prediction with each explanation of a text, by name.

    Explanations of one budget go through the model together: what they share is computed once.
    """
    found = make_explanations(one, make_generator(settings.seed, one.instance.id, "explanations"))
    predictions, ends = dict[str, dict[str, Any]](), one.instance.bounds[1:-1]
    for wide in (False, True):
        names = [name for name in found if (name in WIDE) == wide]
        bounded = replace(one.instance, aopc_bounds=ANY_BOUNDS)
        instances = [attach_scores(bounded, np.split(found[name].scores, ends)) for name in names]
        kd = make_share(found[names[0]].budget, len(one.importance))
        chunk_settings = replace(settings, method=GIVEN, scores="planted", kd=kd)
        made = explain_chunk(Runner(adapter, settings.erase, settings.batch_size), instances, chunk_settings)
        predictions |= dict(zip(names, made, strict=True))
    return predictions


def make_share(budget: int, tokens: int) -> float:
    """Return the share of tokens of which :func:`erasure.count_tokens_at` makes exactly ``budget``."""
    return (budget - 0.5) / tokens


def compute_per_text(predictions: Sequence[Mapping[str, Any]], texts: Sequence[PlantedText]) -> Values:
    """Return each text's value of every score that has a direction; NaN if it is undefined or not predicted.

    Args:
        predictions: At most one prediction of each text.
        texts: The texts, in the order of the values.
    """
    values: Values = {}
    place = {str(one.row["annotation_id"]): number for number, one in enumerate(texts)}
    references = [dict(texts[place[one["annotation_id"]]].row) for one in predictions]
    for kind, chosen in ((EraserFaithfulness, None), (NormalizedFidelity, FIDELITY), (EraserAgreement, AGREEMENT)):
        metric = kind(keep_in_memory=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of scores that are not asked here
            options = {"label_names": LABELS, "per_instance": True}
            result = metric.compute(predictions=list(predictions), references=references, **options) or {}
        columns = result["per_instance"]
        places = [place[name] for name in columns["annotation_id"]]
        directions: Mapping[str, bool | None] = vars(metric.info)["higher_is_better"]
        for key, up in directions.items():
            wanted = key in chosen if chosen else key not in NOT_OF_EXPLANATIONS
            if up is None or not wanted or key not in columns or isinstance(columns[key][0], list):
                continue
            numbers = np.full(len(texts), math.nan)
            numbers[places] = [math.nan if value is None else value for value in columns[key]]
            values[key] = numbers, up
    return values


def compute_wins(best: NDArray[np.float64], other: NDArray[np.float64], up: bool, tie: float) -> NDArray[np.float64]:
    """Return for each text 1 if ``best`` is better, 0.5 for a tie, 0 if it is worse, NaN if one is undefined."""
    better = (best - other) * (1 if up else -1)
    wins = np.where(np.abs(better) <= tie, 0.5, (better > 0).astype(np.float64))
    return np.where(np.isnan(better), np.nan, wins)


def judge_methods(
    adapter: Adapter, texts: Sequence[PlantedText], settings: ExplainSettings
) -> tuple[dict[str, dict[str, float]], dict[str, bool]]:
    """Judge attribution methods by every score and by the truth.

    Methods that the model does not support, or whose packages are not installed, are left out.

    Args:
        adapter: The model.
        texts: The texts.
        settings: The settings of :func:`make_settings`, with those of the methods.

    Returns:
        The mean of each score over the texts by method, and for each score whether higher values are better.
    """
    names = [name for name in METHODS_JUDGED if supports(adapter, name) and not list_missing(METHODS[name].packages)]
    predictions: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for one in texts:
        instance = one.instance
        kd = make_share(int(one.supporting.sum()), len(one.importance))
        for name in names:
            chunk_settings = replace(settings, method=name, kd=kd)
            (made,) = explain_chunk(Runner(adapter, settings.erase, settings.batch_size), [instance], chunk_settings)
            bounds = made[AOPC_BOUNDS]
            instance = replace(instance, aopc_bounds=(bounds["lower"], bounds["upper"]))
            predictions[name].append(made)
    values = {name: compute_per_text(some, texts) for name, some in predictions.items()}
    directions = {score: up for one in values.values() for score, (_, up) in one.items()}
    means = {
        name: {score: float(np.nanmean(own)) for score, (own, _) in one.items() if not np.isnan(own).all()}
        for name, one in values.items()
    }
    return means, directions
