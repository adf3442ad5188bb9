"""The builder of ``human_rationales``: from tree files and CSVs to rows, without a folder in between.

    from eraser_hub.datasets_scripts.human_rationales import HumanRationales

    builder = HumanRationales("sst", data_dir="corpora")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="validation")

``data_dir`` holds the files as ``eraser-hub build human_rationales --source`` takes them; without it the bundled
samples are read. With datasets before 4.0 this file is also a loading script: ``load_dataset("human_rationales.py",
"sst", data_dir="corpora", trust_remote_code=True)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from eraser_hub.conversion.features import features_of
from eraser_hub.conversion.human_rationales.build import DATASET, load_rows
from eraser_hub.conversion.human_rationales.configs import CONFIGS
from eraser_hub.conversion.human_rationales.rows import LABEL_NAMES, SCHEMA
from eraser_hub.conversion.human_rationales.sources import find_human_rationales
from eraser_hub.conversion.small_dataset import content_hash

__all__ = ["HumanRationales"]


SAMPLES = Path(str(files_of("eraser_hub.samples"))) / "human_rationales"


class HumanRationales(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """``sst`` or ``wikiattack``; the splits are those whose files are there.

    Raises:
        DataError: on construction where ``data_dir`` lacks the configuration's files or one of them is at fault.
    """

    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets asks for a list in the class
        datasets.BuilderConfig(name=name, description=DATASET.descriptions[name]) for name in CONFIGS
    ]
    DEFAULT_CONFIG_NAME = DATASET.default

    def __init__(self, config_name: str | None = None, *, data_dir: str | None = None, **options: Any) -> None:
        self.source = Path(data_dir) if data_dir else SAMPLES
        name = config_name or DATASET.default
        if options.get("hash") is None and name in CONFIGS:
            # the cache goes by this hash, and must not serve the rows of a file that has changed since
            sources = find_human_rationales(self.source, [name])
            files = [*sources.sst.values(), *sources.wikiattack.values(), sources.comments, sources.annotations]
            options["hash"] = content_hash(path for path in files if path is not None)
        super().__init__(config_name=config_name, data_dir=data_dir, **options)

    def _info(self) -> datasets.DatasetInfo:
        name = self.config.name
        return datasets.DatasetInfo(
            description=DATASET.descriptions[name],
            features=features_of(SCHEMA, LABEL_NAMES[name]),
            homepage=DATASET.homepages[name],
            license=DATASET.licenses[name],
            citation=DATASET.citation,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        name = self.config.name
        sources = find_human_rationales(self.source, [name])
        files = sources.sst if name == "sst" else sources.wikiattack
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"source": str(self.source), "split": split})
            for split in files
        ]

    def _generate_tables(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, source: str, split: str
    ) -> Iterator[tuple[int, pa.Table]]:
        made = load_rows(find_human_rationales(Path(source), [self.config.name]), self.config.name)[split]
        yield 0, pa.Table.from_pylist(made.rows, schema=SCHEMA)
