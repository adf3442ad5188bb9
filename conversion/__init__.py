"""Raw files <-> records <-> rows <-> Parquet; here the Hub datasets that this project builds.

A dataset is a folder beside this file whose ``__init__.py`` has a ``DATASET``. Adding one changes no other file.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from eraser_hub.conversion.dataset import HubDataset


def _find_datasets() -> Iterator[HubDataset]:
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg and (dataset := getattr(importlib.import_module(f"{__name__}.{module.name}"), "DATASET", None)):
            yield dataset


# the one that the others are compared with stands first
HUB_DATASETS: dict[str, HubDataset] = {
    dataset.name: dataset for dataset in sorted(_find_datasets(), key=lambda each: (each.name != "eraser", each.name))
}
