"""Builder of ``human_rationales``: from tree files and CSVs to rows, without a folder in between.

    from eraser_hub.datasets_scripts.human_rationales import HumanRationales

    builder = HumanRationales("sst", data_dir="corpora")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="validation")

``data_dir`` holds the files as ``eraser-hub build human_rationales --source`` takes them; without it the bundled
samples are read. With datasets before 4.0 this file is also a loading script: ``load_dataset("human_rationales.py",
"sst", data_dir="corpora", trust_remote_code=True)``.
"""

from __future__ import annotations

from eraser_hub.conversion.human_rationales.verbs import VERBS
from eraser_hub.datasets_scripts.small import SmallBuilder

__all__ = ["HumanRationales"]


class HumanRationales(SmallBuilder):
    """``sst`` or ``wikiattack``; the splits are those whose files are there."""

    dataset = VERBS
