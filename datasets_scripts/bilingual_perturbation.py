"""Builder of ``bilingual_perturbation``: from the benchmark's own files to rows, without a folder in between.

    from eraser_hub.datasets_scripts.bilingual_perturbation import BilingualPerturbation

    builder = BilingualPerturbation("senti_ch", data_dir="luge")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="test")

``data_dir`` holds the files as ``eraser-hub build bilingual_perturbation --source`` takes them; without it the bundled
samples are read. With datasets before 4.0 this file is also a loading script:
``load_dataset("bilingual_perturbation.py", "senti_ch", data_dir="luge", trust_remote_code=True)``.
"""

from __future__ import annotations

from eraser_hub.conversion.bilingual_perturbation.pairs import map_references, pairs
from eraser_hub.conversion.bilingual_perturbation.verbs import VERBS
from eraser_hub.datasets_scripts.small import SmallBuilder

__all__ = ["BilingualPerturbation", "map_references", "pairs"]


class BilingualPerturbation(SmallBuilder):
    """One of the six configurations; its one split is ``test``."""

    dataset = VERBS
