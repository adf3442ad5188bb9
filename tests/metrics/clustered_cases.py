"""The golden cases of clustered statistics: golden/statistics/clustered.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.metrics.statistics import Score, Statistics, divide, number_values

CLUSTERED = json.loads((Path(__file__).parents[1] / "golden" / "statistics" / "clustered.json").read_text())


def macro_f1(sums: Any) -> Any:
    return divide(2 * sums["hits"], sums["gold"] + sums["predicted"]).mean(axis=-1)


def read_case(case: Any, side: str) -> Statistics:
    """A golden case: a ratio of sums, or macro F1 of three classes."""
    clusters = number_values([*case["cluster_order"], *case["clusters"]])[len(case["cluster_order"]) :]
    if case["kind"] == "ratio":
        columns = {"sum": np.array(case[side]["numerators"]), "count": np.array(case[side]["denominators"])}
        score = Score(lambda sums: divide(sums["sum"], sums["count"]))
    else:
        gold, own = (np.array(codes)[:, None] == np.arange(3) for codes in (case["gold"], case[side]["predicted"]))
        columns, score = {"hits": gold & own, "gold": gold, "predicted": own}, Score(macro_f1)
    floats = {name: values.astype(float) for name, values in columns.items()}
    return Statistics(case["clusters"], floats, {"value": score}, clusters)
