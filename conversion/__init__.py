"""Raw files <-> records <-> rows <-> Parquet; here the Hub datasets that this project builds.

A dataset is a folder beside this file whose ``__init__.py`` has a ``DATASET``. Adding one changes no other file.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eraser_hub.conversion.dataset import HubDataset

    HUB_DATASETS: dict[str, HubDataset]


def __getattr__(name: str) -> object:
    """Return ``HUB_DATASETS``, name -> dataset, which are found when they are first asked for: `score` needs none."""
    if name != "HUB_DATASETS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    folders = [
        importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__) if each.ispkg
    ]
    found: list[HubDataset] = [folder.DATASET for folder in folders if hasattr(folder, "DATASET")]
    # the one that the others are compared with stands first
    datasets = {each.name: each for each in sorted(found, key=lambda one: (one.name != "eraser", one.name))}
    globals()["HUB_DATASETS"] = datasets
    return datasets
