"""The golden cases of clustered inference: two systems, documents, and stored resamples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.metrics.clusters import number_values
from eraser_hub.metrics.statistics_builder import Finalize, Statistics, divide

CLASSES = 3


def clustered_cases(golden: Path) -> list[dict[str, Any]]:
    """The cases."""
    return json.loads((golden / "statistics" / "clustered.json").read_text())["cases"]


def statistics_of(case: Mapping[str, Any], side: str) -> Statistics:
    """One system's statistics, with the case's clusters."""
    if case["kind"] == "ratio":
        values = np.column_stack([case[side]["numerators"], case[side]["denominators"]])
        finalize: Finalize = lambda sums: {"value": divide(sums[..., 0], sums[..., 1])}  # noqa: E731
    else:
        gold, own = np.array(case["gold"]), np.array(case[side]["predicted"])
        pairs = [(gold == k, own == k) for k in range(CLASSES)]
        values = np.column_stack([column for g, p in pairs for column in (g & p, g, p)]).astype(float)
        finalize = lambda sums: {  # noqa: E731
            "value": sum(
                divide(2 * sums[..., 3 * k], sums[..., 3 * k + 1] + sums[..., 3 * k + 2]) for k in range(CLASSES)
            )
            / CLASSES
        }
    order = [*case["cluster_order"], *case["clusters"]]
    clusters = number_values(order)[len(case["cluster_order"]) :]
    return Statistics([f"i{at}" for at in range(len(values))], values, finalize, clusters=clusters)


def sums_of(case: Mapping[str, Any], side: str) -> tuple[np.ndarray, Finalize]:
    """Their sums per cluster, in the order of the stored resamples."""
    statistics = statistics_of(case, side)
    return statistics.cluster_sums(), statistics.finalize


def case_weights(case: Mapping[str, Any]) -> np.ndarray:
    """The stored resamples: how often each cluster is drawn."""
    n = len(case["cluster_order"])
    return np.array([np.bincount([int(digit) for digit in row], minlength=n) for row in case["index"]], dtype=float)
