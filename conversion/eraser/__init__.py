"""The ERASER corpora: their files <-> annotations and documents <-> rows."""

from __future__ import annotations

from eraser_hub.conversion.dataset import SPAN_HEADLINES, HubDataset

from .configs import CONFIGS, DEFAULT_CONFIG

DATASET = HubDataset(
    "eraser", tuple(CONFIGS), DEFAULT_CONFIG, SPAN_HEADLINES, {name: config.task for name, config in CONFIGS.items()}
)
