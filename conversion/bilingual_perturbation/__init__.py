"""The bilingual perturbation benchmark: its files <-> rows."""

from __future__ import annotations

from eraser_hub.conversion.dataset import Headline, HubDataset

from .configs import CONFIGS

DATASET = HubDataset(
    "bilingual_perturbation",
    tuple(CONFIGS),
    "senti_en",
    (Headline("map", "map"), Headline("token_f1", "token_f1"), Headline("iou_f1", "iou_f1")),
    dict.fromkeys(("mrc_en", "mrc_ch"), "question-answering"),
)
