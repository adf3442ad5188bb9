"""Raw files <-> records <-> rows <-> Parquet; here the registry of the Hub datasets that this project builds.

The command line dispatches on `HUB_DATASETS` alone. To add a dataset: a folder beside these, the dataset in the
folder's ``__init__.py``, and its name here.
"""

from __future__ import annotations

from eraser_hub.conversion.dataset import HubDataset

from .bilingual_perturbation import BILINGUAL_PERTURBATION
from .eraser import ERASER
from .human_rationales import HUMAN_RATIONALES

HUB_DATASETS: dict[str, HubDataset] = {
    dataset.name: dataset for dataset in (ERASER, BILINGUAL_PERTURBATION, HUMAN_RATIONALES)
}
