"""Summaries of what models judge: shares with intervals over new texts and new models, factors, agreement of methods.

Each model of a kind and family judges the same texts; :mod:`eraser_hub.scoring.uncertainty` takes both as random and
crossed. Kinds of planting are fixed: the variance of a mean over kinds is that of independent means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.rank_correlation import kendall_tau
from eraser_hub.records.errors import DataError
from eraser_hub.scoring.uncertainty.mixed_model import Components, DifferenceModel, fit_difference

from .explanations import CANDIDATES
from .planted_models import LEARNED
from .score_judgement import BUDGETS, DRAWN, TRUTH

NOTHING = 1e-12  # a variance, or a share of one, that is rounding
Row = dict[str, Any]
Wins = NDArray[np.float64]  # (texts, models)


def summarise(families: Sequence[str], kinds: Sequence[str], units: Sequence[Row], level: float = 0.95) -> Row:
    """Summarise the judgements of all models.

    Args:
        families: Families of models.
        kinds: Kinds of planting.
        units: The judgement of each model.
        level: Confidence level.

    Returns:
        - ``scores``: of each score ``name``, ``better``, and ``families``: family -> ``auc``, ``auc_ci``,
          ``networks_ci`` (these texts, new models), ``networks_share`` (of the squared standard error), ``verdicts``,
          ``explanations``, ``kinds``, ``erased_inputs`` (``with``, ``without``, ``difference``), ``agreement``
          (Kendall's tau with the truth over attribution methods). The first family's figures stand beside ``name``.
        - ``methods``: family -> method -> the mean of AUPRC with the truth, and its interval.
        - ``curves``: score -> draws -> the mean share.
        - ``confidence_level``: that of the intervals.
        - ``models``: the facts of each model; ``kinds``: family -> kind -> ``models`` and ``judges``.

    Raises:
        DataError: No model of a family has learned its rule.
    """
    scores: dict[str, Row] = {}
    judging = [unit for unit in units if unit["judges"]]
    higher = {name: up for unit in judging for name, up in unit["higher"].items()}
    for family in families:
        own = [unit for unit in judging if unit["family"] == family]
        if not own:
            accuracies = "; ".join(f"{u['kind']} {u['accuracy']:.3f}" for u in units if u["family"] == family)
            words = f"expected a {family} model that labels {LEARNED:.0%} of the held-out texts right, found none"
            raise DataError(f"{words} ({accuracies})", rule="model")
        for name in higher:
            better = "higher" if higher[name] else "lower"
            part = scores.setdefault(name, {"name": name, "better": better, "families": {}})
            part["families"][family] = _summarise_score(name, higher[name], own, kinds, level)
    first = families[0]
    found = [{**one, **one["families"][first]} for one in scores.values()]
    found.sort(key=lambda one: (-(one["auc"] if one["auc"] is not None else -1.0), one["name"]))
    facts = ("kind", "family", "number", "erased_inputs", "accuracy", "masked_accuracy", "digest", "judges")
    return {
        "scores": found,
        "methods": {family: _summarise_methods(family, judging, kinds, level) for family in families},
        "curves": _summarise_curves(judging),
        "confidence_level": level,
        "models": [{fact: unit[fact] for fact in facts} for unit in units],
        "kinds": {family: _count(units, family, kinds) for family in families},
    }


def _count(units: Sequence[Row], family: str, kinds: Sequence[str]) -> dict[str, dict[str, int]]:
    judges = {kind: [u["judges"] for u in units if (u["family"], u["kind"]) == (family, kind)] for kind in kinds}
    return {kind: {"models": len(own), "judges": sum(own)} for kind, own in judges.items() if own}


def _summarise_score(name: str, up: bool, units: Sequence[Row], kinds: Sequence[str], level: float) -> Row:
    by_kind = {kind: [unit for unit in units if unit["kind"] == kind] for kind in kinds}
    by_kind = {kind: some for kind, some in by_kind.items() if some}
    parts = list(by_kind.values())

    def estimate_share(parts: Sequence[Sequence[Row]], candidate: str = "") -> Row:
        return estimate([_stack(some, name, candidate) for some in parts], level)

    explanations = {candidate: estimate_share(parts, candidate) for candidate in CANDIDATES}
    judged: Row = {}
    for kind, some in by_kind.items():
        found, cells = estimate_share([some]), {one: estimate_share([some], one) for one in CANDIDATES}
        judged[kind] = {**found, "verdict": decide_verdict(found), "explanations": cells}
    whole = [one for one in (_stack(some, name) for some in parts) if one.size]
    several = [one.mean(axis=0)[:, None] for one in whole if one.shape[1] > 1]
    return {
        **estimate_share(parts),
        "networks_ci": estimate(several, level, fewest=2)["auc_ci"],
        "verdicts": {candidate: decide_verdict(one) for candidate, one in explanations.items()},
        "explanations": explanations,
        "kinds": judged,
        "erased_inputs": _compare_training(by_kind, name, level),
        "agreement": estimate_over_kinds([_agree(some, name, up) for some in parts], level, (-1.0, 1.0)),
    }


def _stack(units: Sequence[Row], score: str, candidate: str = "") -> Wins:
    """Return the wins of a score, (texts, models), of an explanation or the mean over all, where they are defined."""
    rows = []
    for unit in units:
        columns = unit["wins"].get(score, {})
        chosen = [columns[name] for name in columns if candidate in ("", name)]
        if not chosen:
            return np.zeros((0, 0))
        values = np.array(chosen, dtype=np.float64)
        defined = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            rows.append(np.where(defined, values, 0).sum(axis=0) / defined.sum(axis=0))
    stacked = np.stack(rows, axis=1)
    complete: Wins = stacked[~np.isnan(stacked).any(axis=1)]
    return complete


def estimate(
    parts: Sequence[Wins], level: float, ends: tuple[float, float] = (0.0, 1.0), fewest: int = 6
) -> dict[str, Any]:
    """Estimate the mean over strata of values of texts crossed with models, and its interval.

    Each stratum, a kind of planting, is fitted by itself; the variance of the mean is that of independent means. Where
    no text differs from another, the interval allows for texts of other values that so many texts need not show
    (Clopper and Pearson, 1934); where too few differ for Student's t, it is at least the normal one.

    Args:
        parts: Values of each stratum, (texts, models).
        level: Confidence level.
        ends: The least and the greatest value.
        fewest: Texts of all strata together that an interval needs.

    Returns:
        ``auc`` and ``auc_ci`` (None where nothing is defined; over new texts alone where each stratum has one model),
        and ``networks_share``, the share of the squared standard error that is due to the models, None of one model.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return {"auc": None, "auc_ci": None, "networks_share": None}
    mean = float(np.mean([part.mean() for part in parts]))
    texts = sum(map(len, parts))
    if texts < fewest:
        return {"auc": mean, "auc_ci": None, "networks_share": None}
    share, error, low, high = None, 0.0, math.nan, math.nan
    if all(len(part) > 1 for part in parts):
        model = pool([fit_difference(part, np.zeros((len(part), 1))) for part in parts])
        if float(model.components.total) > NOTHING:
            error = float(model.standard_error)
            low, high = model.interval(level)
            if any(part.shape[1] > 1 for part in parts):
                share = max(0.0, float(model.components.runs)) / error**2
                share = 0.0 if share < NOTHING else share
    if math.isnan(low):
        # at most this share of new texts differs from all of these, with probability (1 + level) / 2
        unseen = 1 - ((1 - level) / 2) ** (1 / texts)
        z = NormalDist().inv_cdf((1 + level) / 2)
        low = mean - max(z * error, unseen * (mean - ends[0]))
        high = mean + max(z * error, unseen * (ends[1] - mean))
    return {"auc": mean, "auc_ci": [max(ends[0], low), min(ends[1], high)], "networks_share": share}


def estimate_over_kinds(parts: Sequence[Wins], level: float, ends: tuple[float, float] = (0.0, 1.0)) -> dict[str, Any]:
    """Estimate the mean over kinds of planting, which are random here: an interval over new kinds, texts and models.

    Args:
        parts: A value of each model of a kind, (models,).
        level: Confidence level.
        ends: The least and the greatest value.
    """
    means = np.array([[part.mean()] for part in parts if len(part)])
    return estimate([means] if len(means) else [], level, ends)


def pool(models: Sequence[DifferenceModel]) -> DifferenceModel:
    """Return the mean of independent differences, with the uncertainty of all."""
    count = len(models)
    total = np.array([float(model.components.total) for model in models])
    names = ("documents", "runs", "interaction", "draws")
    components = Components(
        *(np.asarray(sum(float(getattr(model.components, name)) for model in models) / count**2) for name in names)
    )
    precision = sum((one / count**2) ** 2 / float(model.df) for one, model in zip(total, models, strict=True))
    squared = float(total.sum()) / count**2
    third = sum(float(m.skewness) * one**1.5 for one, m in zip(total, models, strict=True)) / count**3
    return DifferenceModel(
        np.asarray(np.mean([model.difference for model in models])),
        components,
        np.asarray(squared**2 / precision if precision > 0 else 0.0),
        np.asarray(sum(float(model.clusters) for model in models)),
        np.asarray(third / squared**1.5 if squared > 0 else 0.0),
        sum(model.n for model in models),
    )


def _compare_training(by_kind: Mapping[str, Sequence[Row]], score: str, level: float) -> Row | None:
    """Compare networks that were trained with masked texts and those that were not, over kinds with both."""
    pairs = []
    for units in by_kind.values():
        sides = [[unit for unit in units if unit["erased_inputs"] is erased] for erased in (True, False)]
        if all(sides):
            wins = _stack([*sides[0], *sides[1]], score)  # of the texts where all have one
            if len(wins):
                pairs.append((wins[:, : len(sides[0])], wins[:, len(sides[0]) :]))
    if not pairs:
        return None
    whole = pool([fit_difference(*pair) for pair in pairs])
    # the variance between networks needs two of each side
    several = all(side.shape[1] > 1 for pair in pairs for side in pair)
    low, high = whole.interval(level) if float(whole.components.total) > NOTHING else (0.0, 0.0)
    return {
        "kinds": len(pairs),
        "with": estimate([pair[0] for pair in pairs], level),
        "without": estimate([pair[1] for pair in pairs], level),
        "difference": {"value": float(whole.difference), "ci": None if math.isnan(low) or not several else [low, high]},
    }


def _agree(units: Sequence[Row], score: str, up: bool) -> Wins:
    """Return Kendall's tau of a score and the truth over attribution methods, (models,)."""
    taus = []
    for unit in units:
        methods = [one for one in unit["methods"].values() if score in one and TRUTH in one]
        if methods:
            sign = 1 if up else -1
            taus.append(kendall_tau([sign * one[score] for one in methods], [one[TRUTH] for one in methods]))
    return np.array([tau for tau in taus if not math.isnan(tau)])


def _summarise_methods(family: str, units: Sequence[Row], kinds: Sequence[str], level: float) -> Row:
    own, found = [unit for unit in units if unit["family"] == family], Row()
    for name in dict.fromkeys(name for unit in own for name in unit["methods"]):
        judged = [unit for unit in own if TRUTH in unit["methods"].get(name, {})]
        by_kind = {
            kind: np.array([[unit["methods"][name][TRUTH]] for unit in judged if unit["kind"] == kind])
            for kind in kinds
        }
        means = {kind: estimate_over_kinds([values], level)["auc"] for kind, values in by_kind.items()}
        found[name] = {**estimate_over_kinds(list(by_kind.values()), level), "kinds": means}
    return found


def _summarise_curves(units: Sequence[Row]) -> Row:
    curves: Row = {}
    for score, draws in product(DRAWN, map(str, BUDGETS)):
        found = [x for unit in units for x in unit["curves"].get(draws, {}).get(score, {}).values() if x is not None]
        if found:
            curves.setdefault(score, {})[draws] = float(np.mean(found))
    return curves


def decide_verdict(judgement: Mapping[str, Any]) -> str:
    """Compare an interval with 0.5: "better", "worse", "tie" or "undefined"."""
    if judgement["auc"] is None or judgement["auc_ci"] is None:
        return "undefined"
    low, high = judgement["auc_ci"]
    return "better" if low > 0.5 else "worse" if high < 0.5 else "tie"
