"""The system of Jain et al. (2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eraser_hub.systems.hyper import Hyper, Size
from eraser_hub.systems.system import NetworkSystem


@dataclass(frozen=True, slots=True)
class FreshHyper(Hyper):
    """Hyper-parameters of the explainer and the classifier of Jain et al. (2020).

    Attributes:
        window: Sub-words that the encoder reads together.
        share: Share of a text's tokens that are extracted; 0: the config's average rationale length.
        extractor: ``top-k`` (single tokens) or ``contiguous`` (neighbours).
    """

    window: Size = 512
    share: float = 0.0
    extractor: Literal["top-k", "contiguous"] = "top-k"


class FreshSystem(NetworkSystem):
    """An explainer whose attention selects tokens, and a classifier of these alone."""

    hyper = FreshHyper(learning_rate=2e-5, epochs=20, patience=5, warmup_steps=50, linear_decay=True, clip=1.0)
    encoder = "required"
    trainer = "eraser_hub.systems.pipelines.training:train_pipeline"
    selects = True
    stages = ("explainer", "classifier")
