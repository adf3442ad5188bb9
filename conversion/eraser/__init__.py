"""The ERASER corpora: their files <-> annotations and documents <-> rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eraser_hub.conversion.dataset import BuildOptions, BuildResult, ExportResult, HubDataset

from .configs import CONFIGS, DEFAULT_CONFIG

if TYPE_CHECKING:
    from eraser_hub.conversion.checks import Report
    from eraser_hub.conversion.paper_tables import PaperTables


class EraserHubDataset(HubDataset):
    """``eraser``: the seven corpora of the release, and two that ship beside them."""

    name = "eraser"
    configs = tuple(CONFIGS)
    default_config = DEFAULT_CONFIG

    def build_from(
        self, source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
    ) -> BuildResult:
        from .build import build_eraser

        return build_eraser(source, configs, out, options)

    def export(self, dataset: Path, configs: Sequence[str] | None, *, out: Path) -> ExportResult:
        from .export import export_eraser

        return export_eraser(Path(dataset), configs, out=Path(out))

    def check_built(self, folder: Path, configs: Sequence[str] | None, leakage: bool) -> Report:
        from .check import check_eraser

        return check_eraser(folder, configs, leakage=leakage)

    def stats_of_built(self, folder: Path, configs: Sequence[str] | None) -> PaperTables:
        from .statistics import eraser_statistics

        return eraser_statistics(folder, configs)

    def is_built(self, folder: Path) -> bool:
        """Anything but raw files counts as built: the errors then say what is amiss with it."""
        from .sources import is_raw

        return not is_raw(folder)
