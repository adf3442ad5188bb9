"""The bilingual perturbation benchmark: its files <-> rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eraser_hub.conversion.dataset import BuildOptions, BuildResult, ExportResult, HubDataset

from .configs import CONFIGS, DEFAULT_CONFIG

if TYPE_CHECKING:
    from eraser_hub.conversion.checks import Report
    from eraser_hub.conversion.paper_tables import PaperTables


class PerturbationHubDataset(HubDataset):
    """``bilingual_perturbation``: originals and perturbed examples of three tasks in two languages."""

    name = "bilingual_perturbation"
    configs = tuple(CONFIGS)
    default_config = DEFAULT_CONFIG

    def build_from(
        self, source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
    ) -> BuildResult:
        from .build import build_bilingual_perturbation

        return build_bilingual_perturbation(source, configs, out, options)

    def export(self, dataset: Path, configs: Sequence[str] | None, *, out: Path) -> ExportResult:
        from .build import export_bilingual_perturbation

        return export_bilingual_perturbation(Path(dataset), configs, out=Path(out))

    def check_built(self, folder: Path, configs: Sequence[str] | None, leakage: bool) -> Report:
        from .check import check_bilingual_perturbation

        return check_bilingual_perturbation(folder, configs, leakage=leakage)

    def stats_of_built(self, folder: Path, configs: Sequence[str] | None) -> PaperTables:
        from .statistics import bilingual_perturbation_statistics

        return bilingual_perturbation_statistics(folder, configs)
