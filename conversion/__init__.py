"""Raw files <-> records <-> rows <-> Parquet; here the Hub datasets that this project builds.

A dataset is a folder beside this file whose ``__init__.py`` has a ``DATASET``. Adding one changes no other file.
"""

from __future__ import annotations

import importlib
import pkgutil

from eraser_hub.conversion.dataset import HubDataset

_FOLDERS = [importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__) if each.ispkg]
_DATASETS: list[HubDataset] = [folder.DATASET for folder in _FOLDERS if hasattr(folder, "DATASET")]
# the one that the others are compared with stands first
HUB_DATASETS = {each.name: each for each in sorted(_DATASETS, key=lambda one: (one.name != "eraser", one.name))}
