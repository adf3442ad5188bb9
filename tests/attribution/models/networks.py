"""What tests of networks share: a model asked about erased inputs, and the scores of its tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from eraser_hub.attribution import build_settings, explain_instances
from eraser_hub.attribution.engine import Engine

STEPS = {"integrated-gradients": "integrated-gradients(steps=6)"}


def without(tokens: int, *erased: int) -> Any:
    """Flags of all tokens but these."""
    return ~np.isin(np.arange(tokens), erased)


def only(tokens: int, *kept: int) -> Any:
    """Flags of these tokens."""
    return np.isin(np.arange(tokens), kept)


def ask(model: Any, instances: Any, flags: Any, erase: str = "remove", batch_size: int = 8) -> list[Any]:
    """The probabilities of erased inputs, for each instance of its rows of flags."""
    engine = Engine(model, [model.read(one) for one in instances], erase, batch_size)
    return engine.proba(list(enumerate(map(np.asarray, flags))))


def scores(model: Any, instances: Any, method: str, **more: Any) -> list[Any]:
    """The scores of each instance's tokens."""
    settings = build_settings(method=STEPS.get(method, method), bins=(), **more)
    rows = explain_instances(model, instances, settings)
    return [np.concatenate([part["soft_rationale_predictions"] for part in row["rationales"]]) for row in rows]
