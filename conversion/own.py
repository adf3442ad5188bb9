"""Datasets of one's own name: a custom corpus that is built into ``hub/NAME``, beside the datasets of this project."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.dataset import HubDataset, read_own_name
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.records.errors import DataError, UsageError, show

OWN, METRICS = "own", "metrics"  # what `build` takes beside the names of datasets
_TAKEN = {*HUB_DATASETS, *CONFIGS, OWN, METRICS}


def make_own_dataset(name: str) -> HubDataset:
    """Return the dataset of a custom corpus: ``eraser`` with one config, of the corpus's name."""
    return replace(HUB_DATASETS["eraser"], name=name, configs=(), default_config=name, tasks={}, package="eraser")


def is_own_dataset(folder: Path, name: str | None = None) -> bool:
    """Return True if ``build own`` wrote a folder as the dataset of this name.

    Args:
        folder: the folder.
        name: the dataset's name; by default the folder's.
    """
    return read_own_name(folder) == (folder.resolve().name if name is None else name)


def find_dataset(name: str, folder: Path) -> HubDataset | None:
    """Return the dataset of a built folder, by its name; None if it is none of this project's and none of one's own."""
    if name in HUB_DATASETS:
        return HUB_DATASETS[name]
    return make_own_dataset(name) if is_own_dataset(folder, name) else None


def list_own_datasets(hub: Path) -> list[str]:
    """Return the names of the folders in ``hub`` that ``build own`` wrote."""
    folders = sorted(hub.iterdir()) if hub.is_dir() else []
    return [folder.name for folder in folders if folder.is_dir() and is_own_dataset(folder)]


def choose_corpus(source: Path, configs: Sequence[str] | None) -> str:
    """Return the name of the corpus to build.

    Args:
        source: a corpus folder with a corpus.yaml, or the parent of such folders.
        configs: the name of the corpus, where there are several.

    Raises:
        DataError: there is none, or several and none is named, or a dataset of this project has its name.
    """
    from .eraser.corpus_yaml import find_custom_corpora

    names = list(find_custom_corpora(source))
    if not names:
        message = "expected a folder with a corpus.yaml, which `eraser-hub import` writes, found none"
        raise DataError(message, file=source)
    chosen = names if configs is None else list(configs)
    if len(chosen) != 1 or chosen[0] not in names:
        message = f"expected one of {', '.join(names)}, found {', '.join(configs or ()) or 'none named'}"
        raise UsageError(message, argument="config")
    (name,) = chosen
    if name in _TAKEN or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        message = f"expected a name that no dataset of this project has, found {show(name)}: change it in corpus.yaml"
        raise DataError(message, file=source)
    return name
