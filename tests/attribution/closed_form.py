"""Models whose scores are known: p is a function of the tokens that stand, as in the files of golden/beyond."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.inputs import ModelInput
from eraser_hub.attribution.models.model import Model
from eraser_hub.attribution.predictions import explain_instances
from eraser_hub.attribution.settings import build_settings

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "beyond"
EXACT = 1e-9
Worth = Callable[[Any], NDArray[np.float64]]


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a golden file (its source and definitions stand in it)."""
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]


def worth_of(case: dict[str, Any]) -> Worth:
    """p(target) of rows of masks, shape (rows, tokens), real numbers too."""

    def worth(masks: Any) -> NDArray[np.float64]:
        m = np.asarray(masks, dtype=np.float64)
        z = case["bias"] + m @ np.asarray(case["weights"])
        for i, j, v in case["pairs"]:
            z = z + v * m[..., i] * m[..., j]
        p = 1 / (1 + np.exp(-z))
        return p if case["target"] == 1 else 1 - p

    return worth


class MaskModel(Model):
    """p of the label "1" by which tokens stand; a text's tokens are their own positions."""

    label_names, description = ("0", "1"), "a function of masks"

    def __init__(self, worth: Worth, size: int) -> None:
        super().__init__()
        self.worth, self.size, self.asked = worth, size, 0

    def read(self, instance: Instance) -> Any:
        return SimpleNamespace(instance=instance)

    def cut(self, reading: Any, kept: NDArray[np.bool_], erase: str) -> Any:
        for flags in kept:
            mask = np.zeros(self.size, dtype=bool)
            mask[[int(token) for token in compress(reading.instance.tokens, flags)]] = True
            yield [ModelInput(mask.tobytes(), int(mask.sum()), mask)]

    def forward(self, inputs: Sequence[Any]) -> Any:
        self.asked += len(inputs)
        p = self.worth(np.stack(inputs))
        return np.stack([1 - p, p], axis=1)


def explain_masks(
    worth: Worth, size: int, method: str = "", scores: Any = None, sentences: tuple[int, ...] = (), **settings: Any
) -> tuple[dict[str, Any], MaskModel]:
    """The prediction for the text of all tokens, with "scores" of its tokens beside it, and the model."""
    model, tokens = MaskModel(worth, size), tuple(map(str, range(size)))
    given = None if scores is None else (tuple(scores),)
    text = Instance("0", (), ("d",), (tokens,), scores=given, sentences=(sentences,) if sentences else ())
    origin = {"scores": "instances"} if scores is not None else {"method": method}
    chosen = build_settings(**{"bins": (), "target": "1", **origin, **settings})
    (found,) = explain_instances(model, [text], chosen)
    return {**found, "scores": np.asarray(found["rationales"][0].get("soft_rationale_predictions", ()))}, model
