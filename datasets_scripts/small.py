"""Base class of the builders of datasets that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from eraser_hub.conversion.small_dataset import SmallDataset, compute_content_hash


class SmallBuilder(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Builder of a `SmallDataset`, which a subclass sets; its splits are those with files.

    Raises:
        DataError: on construction if ``data_dir`` lacks the configuration's files, on preparation at the first fault in
            a file.
    """

    dataset: SmallDataset

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        words = cls.dataset.words.items()
        cls.BUILDER_CONFIGS = [datasets.BuilderConfig(name=name, description=of.description) for name, of in words]
        cls.DEFAULT_CONFIG_NAME = cls.dataset.facts.default_config

    def __init__(self, config_name: str | None = None, *, data_dir: str | None = None, **options: Any) -> None:
        samples = Path(str(files_of("eraser_hub.samples"))) / self.dataset.facts.name
        self.source = Path(data_dir) if data_dir else samples
        name = config_name or self.dataset.facts.default_config
        if options.get("hash") is None and name in self.dataset.words:
            # the cache depends on this hash: a changed file needs another one
            sources = self.dataset.find(self.source, [name])
            options["hash"] = compute_content_hash([*sources.files[name].values(), *sources.beside.values()])
        super().__init__(config_name=config_name, data_dir=data_dir, **options)

    def _info(self) -> datasets.DatasetInfo:
        return self.dataset.words[self.config.name].make_dataset_info(self.dataset.schema)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        files = self.dataset.find(self.source, [self.config.name]).files[self.config.name]
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"source": str(self.source), "split": split})
            for split in self.dataset.splits(files)
        ]

    def _generate_tables(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, source: str, split: str
    ) -> Iterator[tuple[int, pa.Table]]:
        name = self.config.name
        splits = self.dataset.read(name, self.dataset.find(Path(source), [name]), []).splits
        yield 0, splits[split] if split in splits else self.dataset.schema.empty_table()
