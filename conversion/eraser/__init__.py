"""The ERASER corpora: their files <-> annotations and documents <-> rows."""

from __future__ import annotations

from pathlib import Path

from eraser_hub.conversion.dataset import HubDataset, Verbs

from .configs import CONFIGS, DEFAULT_CONFIG


def _verbs() -> Verbs:
    from eraser_hub.records.built import open_built

    from .build import build_eraser
    from .check import check_eraser
    from .export import export_eraser
    from .own import own_folders
    from .release import configs_of
    from .sources import is_raw
    from .statistics import eraser_statistics

    def is_built(folder: Path) -> bool:
        """Anything but raw files counts as built: the errors then say what is amiss with it."""
        return not is_raw(folder)

    def further_configs(folder: Path) -> list[str]:
        """The corpora of one's own in the folder."""
        if is_raw(folder):
            return list(own_folders(folder))
        return [name for name in configs_of(open_built(folder)) if name not in CONFIGS]

    return Verbs(build_eraser, export_eraser, check_eraser, eraser_statistics, is_built, further_configs)


ERASER = HubDataset("eraser", tuple(CONFIGS), DEFAULT_CONFIG, _verbs)
