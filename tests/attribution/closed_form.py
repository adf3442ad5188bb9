"""The models of golden/beyond: a logistic function of the tokens that stand, and of pairs; searches played on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.chunk import CoalitionSearch

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "beyond"
EXACT = 1e-9


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a golden file (its source and definitions stand in it)."""
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]


def worth_of(case: dict[str, Any]) -> Callable[[Any], NDArray[np.float64]]:
    """p(target) of rows of masks, shape (rows, tokens), real numbers too."""

    def worth(coalitions: Any) -> NDArray[np.float64]:
        m = np.asarray(coalitions, dtype=np.float64)
        z = case["bias"] + m @ np.asarray(case["weights"])
        for i, j, v in case["pairs"]:
            z = z + v * m[..., i] * m[..., j]
        p = 1 / (1 + np.exp(-z))
        return p if case["target"] == 1 else 1 - p

    return worth


def full_of(case: dict[str, Any]) -> float:
    """The worth of all tokens."""
    return float(worth_of(case)(np.ones(case["tokens"])))


def result_of(search: CoalitionSearch[Any], worth: Callable[[Any], NDArray[np.float64]]) -> tuple[Any, int]:
    """What a search gives in the end, and how many different inputs it asked for."""
    asked: set[bytes] = set()
    try:
        sets = next(search)
        while True:
            asked |= {row.tobytes() for row in sets}
            sets = search.send(worth(sets))
    except StopIteration as end:
        return end.value, len(asked)
