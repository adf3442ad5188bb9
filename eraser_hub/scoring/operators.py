"""Sensitivity of comparisons to the operator that erases tokens: verdicts by operator, and Kendall's W of rankings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.erasure import SCORE_INFO
from eraser_hub.metrics.statistics_builder import make_info

UNDECIDED = "–"
SAME = 1e-12  # scores this close are tied: rounding of the same sums


def kendalls_w(ranked: Sequence[Sequence[float]] | NDArray[np.float64]) -> float:
    """Return Kendall's coefficient of concordance of m judges who rank n items, corrected for ties.

    ``W = 12 S / (m^2 (n^3 - n) - m sum_j T_j)``, S the sum of squared deviations of the items' rank sums from their
    mean, ``T_j`` the sum of ``t^3 - t`` over judge j's groups of t tied items. 1: all rank alike; 0: not at all.
    Kendall and Babington Smith (1939).

    Args:
        ranked: the rating of each item by each judge, shape (m, n).

    Returns:
        W; NaN for fewer than two judges or items, or where every judge ties all.

    >>> kendalls_w([[3, 2, 1], [9, 5, 4]]), kendalls_w([[1, 2], [2, 1]])
    (1.0, 0.0)
    """
    values = np.asarray(ranked, dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2 or np.isnan(values).any():
        return math.nan
    judges, n_items = values.shape
    ranks, ties = rank_items(values)
    correction = float((ties**2 - 1).sum())  # t things of a group of t: t (t^2 - 1)
    spread = float(((ranks.sum(axis=0) - judges * (n_items + 1) / 2) ** 2).sum())
    possible = judges**2 * (n_items**3 - n_items) - judges * correction
    return 12 * spread / possible if possible > 0 else math.nan


def rank_items(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the rank of each item by each judge, from 1 for the lowest value, and how many items it is tied with.

    Tied items share the mean of their ranks; an item counts among those that it is tied with.

    Args:
        values: float64 (m, n), a row for each judge.
    """
    close = np.abs(values[:, :, None] - values[:, None, :]) <= SAME
    ties = close.sum(axis=2)
    below = ((values[:, :, None] > values[:, None, :]) & ~close).sum(axis=2)
    return below + (ties + 1) / 2, ties


def compute_operator_sensitivity(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Find out which results of a comparison depend on how tokens are erased.

    Args:
        results: {operator: result of ``compare_scores``}, of the same systems.

    Returns:
        ``names``: the operators; ``scores``: for each score that has a direction and differs between operators
        {``better``: "higher" or "lower", ``values``: {operator: {system: score}}, ``kendall_w``: of the systems'
        rankings, with an operator as a judge, ``pairs``: [{``first``, ``second``, ``verdicts``: {operator:
        {``difference``, ``ci``, ``better``: the system with the better score if the interval excludes 0, else None}},
        ``flips``: True if one operator prefers the first system and another the second}]}.
    """
    operators = list(results)
    directions, _ = make_info(SCORE_INFO)
    first = results[operators[0]]
    scores: dict[str, Any] = {}
    for key in first["comparisons"][0]["keys"]:
        up = directions.get(key)
        if up is None or any(key not in pair["keys"] for one in results.values() for pair in one["comparisons"]):
            continue
        values = {
            operator: {name: own[key] for name, own in one["scores"].items()} for operator, one in results.items()
        }
        if all(has_same_scores(values[operator], values[operators[0]]) for operator in operators):
            continue
        pairs = [_verdicts(results, at, key, up) for at in range(len(first["comparisons"]))]
        w = kendalls_w([list(own.values()) for own in values.values()])
        better, kendall = "higher" if up else "lower", None if math.isnan(w) else w
        scores[key] = {"better": better, "values": values, "kendall_w": kendall, "pairs": pairs}
    return {"names": operators, "scores": scores}


def has_same_scores(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    """Return True if the systems have equal scores; NaN equals NaN."""
    return all(abs(first[name] - second[name]) <= SAME or first[name] != first[name] for name in first)


def _verdicts(results: Mapping[str, Mapping[str, Any]], at: int, key: str, up: bool) -> dict[str, Any]:
    """Return the verdict of each operator on one pair of systems."""
    verdicts: dict[str, Any] = {}
    for operator, one in results.items():
        pair = one["comparisons"][at]
        difference, (low, high) = pair["keys"][key]["difference"], pair["keys"][key]["ci"]
        names = (pair["first"], pair["second"]) if up else (pair["second"], pair["first"])
        better = names[0] if low > 0 else names[1] if high < 0 else None
        verdicts[operator] = {"difference": difference, "ci": [low, high], "better": better}
    pair = next(iter(results.values()))["comparisons"][at]
    decided = {one["better"] for one in verdicts.values()} - {None}
    return {"first": pair["first"], "second": pair["second"], "verdicts": verdicts, "flips": len(decided) > 1}


def describe_better_system(pair: Mapping[str, Any]) -> str:
    """Return the better system of a pair, or which system is better by which operators."""
    by_name: dict[str, list[str]] = {}
    for operator, one in pair["verdicts"].items():
        by_name.setdefault(one["better"] or UNDECIDED, []).append(operator)
    if len(by_name) == 1:
        return next(iter(by_name))
    return "; ".join(f"{name} by {', '.join(operators)}" for name, operators in by_name.items())


def describe_flips(sensitivity: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each verdict that flips, and one that counts verdicts that only some operators give.

    Args:
        sensitivity: result of :func:`compute_operator_sensitivity`.
    """
    lines, partly = [], 0
    for key, score in sensitivity["scores"].items():
        for pair in score["pairs"]:
            if pair["flips"]:
                better = describe_better_system(pair)
                lines.append(f"{key} flips with the way of erasing, so it favours neither system: better is {better}")
            partly += not pair["flips"] and len({one["better"] for one in pair["verdicts"].values()}) > 1
    if not sensitivity["scores"]:
        lines.append(f"no score depends on the way of erasing: {', '.join(sensitivity['names'])} give the same")
    if partly:
        lines.append(
            f"{partly} verdicts hold by some ways of erasing and are undecided by others: see the table of ways"
        )
    return lines
