"""Builder of ``bilingual_perturbation``: from the benchmark's own files to rows, without a folder in between.

    from eraser_hub.datasets_scripts.bilingual_perturbation import BilingualPerturbation

    builder = BilingualPerturbation("senti_ch", data_dir="luge")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="test")

With datasets before 4.0 this file is also a loading script: ``load_dataset("bilingual_perturbation.py", "senti_ch",
data_dir="luge", trust_remote_code=True)``.
"""

from __future__ import annotations

from eraser_hub.conversion.bilingual_perturbation.dataset import DATASET
from eraser_hub.datasets_scripts.builder import RationaleBuilder

__all__ = ["BilingualPerturbation"]


class BilingualPerturbation(RationaleBuilder):
    """One of the six configurations; its one split is ``test``."""

    dataset = DATASET
