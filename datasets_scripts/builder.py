"""Base class of the builders: from raw files to the rows of `load_dataset`, without a built folder in between."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from eraser_hub.conversion.dataset import HubDataset
from eraser_hub.records.places import dataset_split
from eraser_hub.samples import SAMPLES
from eraser_hub.version import __version__


class RationaleBuilder(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Builder of one configuration; rows are those of the published Parquet.

    Args:
        config_name: the configuration; by default the dataset's default one.
        data_dir: the folder of the raw files, as ``eraser-hub build --source`` takes it; without it the bundled samples
            are read, or the release is downloaded.
        options: further arguments of `datasets.DatasetBuilder`, such as ``cache_dir``.

    Attributes:
        dataset: the dataset, which a subclass names.
        from_samples: whether samples are read where there is no ``data_dir``.

    Raises:
        DataError: an unknown configuration; files are missing or at fault.
    """

    dataset: HubDataset
    from_samples: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.BUILDER_CONFIGS = [
            datasets.BuilderConfig(name=name, version=datasets.Version(__version__), description=info.description)
            for name, info in cls.dataset.configs.items()
        ]
        cls.DEFAULT_CONFIG_NAME = cls.dataset.default_config

    def __init__(self, config_name: str | None = None, *, data_dir: str | None = None, **options: Any) -> None:
        name = config_name or self.dataset.default_config
        default = SAMPLES / self.dataset.name if self.from_samples else None
        self.source = default if data_dir is None else Path(data_dir)
        self.dataset = self.choose_dataset(name)
        self.dataset.choose([name], ())
        if name not in type(self).builder_configs:
            self.BUILDER_CONFIGS: list[datasets.BuilderConfig] = []  # without this list datasets takes any name
        if self.source is not None:
            # the local cache depends on the hash, not on the files: changed files need another one
            digest = hashlib.sha256(str(options.get("hash")).encode())
            for path in self.dataset.open_raw(self.source, name).sources:
                digest.update(f"{path}\0{path.stat().st_size}\0{path.stat().st_mtime_ns}\0".encode())
            options["hash"] = digest.hexdigest()[:16]
        super().__init__(config_name=name, data_dir=None if data_dir is None else str(data_dir), **options)

    def choose_dataset(self, name: str) -> HubDataset:
        """Return the dataset that has a configuration; a subclass may look into ``self.source``."""
        return self.dataset

    def _info(self) -> datasets.DatasetInfo:
        info = self.dataset.configs[self.config.name]
        return datasets.DatasetInfo(
            description=info.description,
            features=self.dataset.make_features(self.config.name),
            homepage=info.homepage,
            license=info.license,
            citation=info.citation,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        splits = self.dataset.open_raw(self.source, self.config.name).splits
        return [datasets.SplitGenerator(name=split, gen_kwargs={"split": split}) for split in splits]

    def _generate_tables(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, split: str
    ) -> Iterator[tuple[int, pa.Table]]:
        yield from enumerate(self.dataset.open_raw(self.source, self.config.name).splits[split])

    def as_dataset(self, split: Any = None, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the split as in datasets; the release's split names (``val``) are accepted too."""
        return super().as_dataset(dataset_split(split) if isinstance(split, str) else split, **options)

    def as_streaming_dataset(self, split: str | None = None, base_path: str | None = None) -> Any:
        """Return the split as in datasets; the release's split names (``val``) are accepted too."""
        return super().as_streaming_dataset(None if split is None else dataset_split(split), base_path)
