"""Builder class of ERASER for the datasets library: from raw files to datasets.

    Eraser("movies", data_dir="corpora").as_streaming_dataset("train")
    builder = Eraser("cose", data_dir="corpora"); builder.download_and_prepare(); builder.as_dataset("validation")

``data_dir`` contains the corpus folder (or archive), or is it; without it the release is downloaded. With datasets
before version 4, which still runs scripts, this file is also one: ``load_dataset("eraser.py", "movies", data_dir=...,
trust_remote_code=True)``, where eraser-hub is installed. Published folders hold Parquet and no script.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from eraser_hub.conversion.card import compute_content_version
from eraser_hub.conversion.eraser.card import describe_config
from eraser_hub.conversion.eraser.configs import CONFIGS, DEFAULT_CONFIG, EraserConfig
from eraser_hub.conversion.eraser.corpus import CorpusFolder, find_corpus, get_config, hash_files, inspect_folder
from eraser_hub.conversion.eraser.corpus_yaml import find_custom_corpora
from eraser_hub.conversion.eraser.documents import read_documents
from eraser_hub.conversion.eraser.rows import make_full_rows
from eraser_hub.conversion.eraser.schema import SCHEMA
from eraser_hub.conversion.eraser.splits import read_split
from eraser_hub.records.errors import UsageError, show
from eraser_hub.records.places import dataset_split
from eraser_hub.version import __version__


class Eraser(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Builder of one configuration of ERASER; rows are those of the published Parquet, in the order of the raw files.

    Args:
        config_name: one of `CONFIGS`, or a custom corpus in ``data_dir`` (a folder with a corpus.yaml).
        data_dir: a folder with the corpus folder or archive, or the corpus folder; None downloads the release.
        cache_dir: the cache of datasets for the results of `download_and_prepare`.
    """

    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets wants a plain list here
        datasets.BuilderConfig(name=name, version=datasets.Version(__version__), description=facts.title)
        for name, facts in CONFIGS.items()
    ]
    DEFAULT_CONFIG_NAME = DEFAULT_CONFIG

    def __init__(self, config_name: str | None = None, data_dir: str | None = None, **settings: Any) -> None:
        # datasets passes keywords; users call Eraser("movies", data_dir=..)
        cache_dir = settings.pop("cache_dir", None)
        name = config_name or DEFAULT_CONFIG
        custom = find_custom_corpora(Path(data_dir)) if data_dir is not None else {}
        if name not in CONFIGS and name not in custom:
            message = f"expected one of the configs {', '.join((*CONFIGS, *custom))}, found {show(name)}"
            raise UsageError(message)
        if name not in CONFIGS:
            self.BUILDER_CONFIGS = []  # without this list datasets accepts any name
        self._corpus: CorpusFolder | None = None
        version = settings.pop("version", None)
        if data_dir is not None and version is None:
            # the cache depends on the version, not on the files: changed files need another version
            self._corpus = _find_corpus(name, Path(data_dir))
            version = compute_content_version([name, hash_files(self._corpus.folder)])
        settings |= {"version": datasets.Version(version)} if isinstance(version, str) else {}
        folder = None if data_dir is None else str(data_dir)
        super().__init__(cache_dir=cache_dir, config_name=name, data_dir=folder, **settings)

    def _info(self) -> datasets.DatasetInfo:
        facts = self._corpus.config if self._corpus is not None else CONFIGS[self.config.name]
        return describe_config(facts).make_dataset_info(SCHEMA, version=self.config.version)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        if self._corpus is None:
            source = None if self.config.data_dir is None else Path(self.config.data_dir)
            self._corpus = _find_corpus(self.config.name, source)
        return [
            datasets.SplitGenerator(
                name=file.split,
                gen_kwargs={"config": self._corpus.config, "folder": str(self._corpus.folder), "path": str(file.path)},
            )
            for file in self._corpus.splits
        ]

    def _generate_tables(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, config: EraserConfig, folder: str, path: str
    ) -> Iterator[tuple[int, pa.Table]]:
        documents = read_documents(Path(folder))
        for number, rows in enumerate(read_split(Path(path), config, documents)):
            yield number, make_full_rows(rows.table, documents)

    def as_streaming_dataset(self, split: str | None = None, base_path: str | None = None) -> Any:
        """Return the split as in datasets; the release's split names (``val``) are accepted too."""
        return super().as_streaming_dataset(None if split is None else dataset_split(split), base_path)

    def as_dataset(self, split: Any = None, **more: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the split as in datasets; the release's split names (``val``) are accepted too."""
        return super().as_dataset(dataset_split(split) if isinstance(split, str) else split, **more)


def _find_corpus(name: str, source: Path | None) -> CorpusFolder:
    folder = find_corpus(name, source)
    return inspect_folder(folder, get_config(name, folder))
