"""The verbs of ``eraser``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.dataset import Verbs

from .build import build_eraser
from .check import EraserRules
from .configs import CONFIGS
from .corpus import is_raw
from .corpus_yaml import find_custom_corpora
from .export import export_eraser
from .release import read_configs
from .statistics import compute_statistics


class EraserVerbs(EraserRules, Verbs):
    """The verbs; each is defined in its own module."""

    build = staticmethod(build_eraser)  # pyright: ignore[reportAssignmentType]
    export = staticmethod(export_eraser)  # pyright: ignore[reportAssignmentType]
    stats = staticmethod(compute_statistics)  # pyright: ignore[reportAssignmentType]

    def is_built(self, folder: Path) -> bool:
        """Return True unless the folder holds raw corpora; errors then describe its faults."""
        return not is_raw(folder)

    def further_configs(self, folder: Path) -> Collection[str]:
        """Return the names of the custom corpora in the folder."""
        if is_raw(folder):
            return list(find_custom_corpora(folder))
        return [name for name in read_configs(open_built(folder)) if name not in CONFIGS]


VERBS = EraserVerbs()
