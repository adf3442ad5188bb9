"""Human-rationale corpora (SST, WikiAttack): their files <-> rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eraser_hub.conversion.dataset import BuildOptions, BuildResult, ExportResult, HubDataset

from .configs import CONFIGS, DEFAULT_CONFIG

if TYPE_CHECKING:
    from eraser_hub.conversion.checks import Report
    from eraser_hub.conversion.paper_tables import PaperTables


class HumanRationalesHubDataset(HubDataset):
    """``human_rationales``: sentiment trees, and personal attacks in comments."""

    name = "human_rationales"
    configs = tuple(CONFIGS)
    default_config = DEFAULT_CONFIG

    def build_from(
        self, source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
    ) -> BuildResult:
        from .build import build_human_rationales

        return build_human_rationales(source, configs, out, options)

    def export(self, dataset: Path, configs: Sequence[str] | None, *, out: Path) -> ExportResult:
        from .build import export_human_rationales

        return export_human_rationales(Path(dataset), configs, out=Path(out))

    def check_built(self, folder: Path, configs: Sequence[str] | None, leakage: bool) -> Report:
        from .check import check_human_rationales

        return check_human_rationales(folder, configs, leakage=leakage)

    def stats_of_built(self, folder: Path, configs: Sequence[str] | None) -> PaperTables:
        from .statistics import human_rationales_statistics

        return human_rationales_statistics(folder, configs)
