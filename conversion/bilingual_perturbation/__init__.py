"""The bilingual perturbation benchmark: its files <-> rows."""

from __future__ import annotations

from eraser_hub.conversion.dataset import HubDataset, Verbs

from .configs import CONFIGS, DEFAULT_CONFIG


def _verbs() -> Verbs:
    from .build import build_bilingual_perturbation, export_bilingual_perturbation
    from .check import check_bilingual_perturbation
    from .statistics import bilingual_perturbation_statistics

    return Verbs(
        build_bilingual_perturbation,
        export_bilingual_perturbation,
        check_bilingual_perturbation,
        bilingual_perturbation_statistics,
    )


BILINGUAL_PERTURBATION = HubDataset("bilingual_perturbation", tuple(CONFIGS), DEFAULT_CONFIG, _verbs)
