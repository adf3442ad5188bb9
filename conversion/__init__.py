"""Raw files <-> records <-> rows <-> Parquet; here the registry of the Hub datasets that this project builds.

The command line dispatches on `HUB_DATASETS` alone. To add a dataset: a folder beside these, its class in the folder's
``__init__.py``, and a line here.
"""

from __future__ import annotations

from .bilingual_perturbation import PerturbationHubDataset
from .dataset import HubDataset
from .eraser import EraserHubDataset
from .human_rationales import HumanRationalesHubDataset

HUB_DATASETS: dict[str, HubDataset] = {
    dataset.name: dataset for dataset in (EraserHubDataset(), PerturbationHubDataset(), HumanRationalesHubDataset())
}
