"""The ERASER corpora: their files <-> annotations and documents <-> rows."""

from __future__ import annotations

from pathlib import Path

from eraser_hub.conversion.dataset import HubDataset, Verbs

from .configs import CONFIGS, DEFAULT_CONFIG


def _verbs() -> Verbs:
    from .build import build_eraser
    from .check import check_eraser
    from .export import export_eraser
    from .sources import is_raw
    from .statistics import eraser_statistics

    def is_built(folder: Path) -> bool:
        """Anything but raw files counts as built: the errors then say what is amiss with it."""
        return not is_raw(folder)

    return Verbs(build_eraser, export_eraser, check_eraser, eraser_statistics, is_built)


ERASER = HubDataset("eraser", tuple(CONFIGS), DEFAULT_CONFIG, _verbs)
