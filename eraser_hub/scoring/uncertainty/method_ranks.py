"""Ranks of methods within each model: a comparison that is fair between different models.

Unnormalised faithfulness grows with a model's confidence, so it does not compare between models (`same_model`). The
order of methods that explain one model does, and models may agree on it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from eraser_hub.metrics.results import HEADLINE
from eraser_hub.records.run_record import read_signature

from ..operators import SAME, kendalls_w, rank_items
from ..scores import Scores
from .same_model import NORMALISED, group_by_model
from .tied_rankings import TIED, UNTIED, find_tied_systems
from .verdicts import find_direction

METHOD = "method:"  # in a run's signature


def find_method(system: Scores) -> str:
    """Return the method that all files of a system record; "" where there is none, or several."""
    parts = {part for path in system.files for part in read_signature(path).split("|") if part.startswith(METHOD)}
    return parts.pop().removeprefix(METHOD) if len(parts) == 1 else ""


def rank_methods(systems: Mapping[str, Scores]) -> dict[str, Any]:
    """Rank the methods within each model by each headline score.

    Args:
        systems: {name: its scores}.

    Returns:
        ``models``: {a model, by `_name_model`: {method: system}}; ``scores``: {key: {``ranks``: {method: the rank in
        each model, in their order, from 1 for the best; ties share their mean}, ``mean``: {method: mean rank},
        ``kendall_w``: agreement of the models' ranks, in [0, 1], 1 where all are alike}}. Empty with fewer than two
        models, or two methods that all models share, or where a model has a method twice. Scores that no method moves
        in any model, such as accuracy, are left out.
    """
    models: dict[str, dict[str, str]] = {}
    for group in group_by_model(systems):
        named = {name: method for name in group if (method := find_method(systems[name]))}
        if len(set(named.values())) < len(named):
            return {}
        if named:
            models[_name_model(named, models)] = {method: name for name, method in named.items()}
    shared = [method for method in next(iter(models.values()), {}) if all(method in own for own in models.values())]
    if len(models) < 2 or len(shared) < 2:
        return {}
    scores, headline = {}, [key for own in HEADLINE.values() for key in own]
    if find_tied_systems(systems):
        headline = [UNTIED if key == TIED else key for key in headline]
    for key in (*headline, *NORMALISED):
        values = [[systems[own[method]].number(key) for method in shared] for own in models.values()]
        if any(value is None or value != value for row in values for value in row) or not find_direction(key):
            continue
        oriented = -find_direction(key) * np.array(values, dtype=float)
        if np.ptp(oriented, axis=1).max() > SAME:
            ranks, _ = rank_items(oriented)
            columns = dict(zip(shared, ranks.T.tolist(), strict=True))
            means = {method: fmean(column) for method, column in columns.items()}
            scores[key] = {"ranks": columns, "mean": means, "kendall_w": kendalls_w(oriented)}
    return {"models": models, "scores": scores} if scores else {}


def _name_model(methods: Mapping[str, str], taken: Container[str]) -> str:
    """Return what the names of a model's systems have before their methods, else "model of" the first system."""
    starts = {name.removesuffix(method).rstrip(" ,:-_./") for name, method in methods.items()}
    start = starts.pop()
    return start if start and not starts and start not in taken else f"model of {next(iter(methods))}"
