"""Raw files <-> records <-> rows <-> Parquet; here the Hub datasets that this project builds.

A dataset is a folder beside this file whose ``dataset.py`` has a ``DATASET``. Adding one changes no other file.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eraser_hub.conversion.dataset import HubDataset


@lru_cache(maxsize=1)
def list_datasets() -> tuple[str, ...]:
    """Return the names of the datasets, ``eraser`` first; nothing is imported."""
    names = sorted(path.parent.name for path in Path(__file__).parent.glob("*/dataset.py"))
    return tuple(sorted(names, key=lambda name: name != "eraser"))


def get_dataset(name: str) -> HubDataset:
    """Return a dataset of `list_datasets`, which is imported when it is first asked for."""
    dataset: HubDataset = importlib.import_module(f"{__name__}.{name}.dataset").DATASET
    return dataset
