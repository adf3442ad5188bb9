"""Builder of ``human_rationales``: from tree files and CSVs to rows, without a folder in between.

    from eraser_hub.datasets_scripts.human_rationales import HumanRationales

    builder = HumanRationales("sst", data_dir="corpora")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="validation")

With datasets before 4.0 this file is also a loading script: ``load_dataset("human_rationales.py", "sst",
data_dir="corpora", trust_remote_code=True)``.
"""

from __future__ import annotations

from eraser_hub.conversion.human_rationales.dataset import DATASET
from eraser_hub.datasets_scripts.builder import RationaleBuilder

__all__ = ["HumanRationales"]


class HumanRationales(RationaleBuilder):
    """``sst`` or ``wikiattack``; the splits are those whose files are there."""

    dataset = DATASET
