"""Builder of ERASER for the datasets library: from raw files to rows, without a folder in between.

    builder = Eraser("movies", data_dir="corpora")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="validation")

``data_dir`` contains the corpus folder (or archive), or is it; without it the release is downloaded. A folder with a
corpus.yaml is a corpus of one's own. With datasets before version 4, which still runs scripts, this file is also one:
``load_dataset("eraser.py", "movies", data_dir=.., trust_remote_code=True)``, where eraser-hub is installed. Published
folders hold Parquet and no script.
"""

from __future__ import annotations

from eraser_hub.conversion.dataset import HubDataset
from eraser_hub.conversion.eraser.dataset import DATASET, open_own
from eraser_hub.datasets_scripts.builder import RationaleBuilder


class Eraser(RationaleBuilder):
    """Builder of one configuration of ERASER, or of a corpus of one's own."""

    dataset = DATASET
    from_samples = False

    def choose_dataset(self, name: str) -> HubDataset:
        """Return the dataset of a corpus of one's own in ``data_dir`` that has the name, else ERASER."""
        if self.source is None or name in self.dataset.configs:
            return self.dataset
        return open_own(self.source, name) or self.dataset
