"""Human-rationale corpora (SST, WikiAttack): their files <-> rows."""

from __future__ import annotations

from eraser_hub.conversion.dataset import HubDataset, Verbs

from .configs import CONFIGS, DEFAULT_CONFIG


def _verbs() -> Verbs:
    from .build import build_human_rationales, export_human_rationales
    from .check import check_human_rationales
    from .statistics import human_rationales_statistics

    return Verbs(build_human_rationales, export_human_rationales, check_human_rationales, human_rationales_statistics)


HUMAN_RATIONALES = HubDataset("human_rationales", tuple(CONFIGS), DEFAULT_CONFIG, _verbs)
