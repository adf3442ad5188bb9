"""The builder of ``bilingual_perturbation``: from the benchmark's own files to rows, without a folder in between.

    from eraser_hub.datasets_scripts.bilingual_perturbation import BilingualPerturbation

    builder = BilingualPerturbation("senti_ch", data_dir="luge")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="test")

``data_dir`` holds the files as ``eraser-hub build bilingual_perturbation --source`` takes them; without it the bundled
samples are read. With datasets before 4.0 this file is also a loading script:
``load_dataset("bilingual_perturbation.py", "senti_ch", data_dir="luge", trust_remote_code=True)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from eraser_hub.conversion.bilingual_perturbation.build import DATASET, SPLIT, load_examples
from eraser_hub.conversion.bilingual_perturbation.configs import CONFIGS, DEFAULT_CONFIG
from eraser_hub.conversion.bilingual_perturbation.pairs import map_references, pairs
from eraser_hub.conversion.bilingual_perturbation.rows import SCHEMA, label_names, row_of, table_of
from eraser_hub.conversion.bilingual_perturbation.sources import PerturbationSources, find_sources
from eraser_hub.conversion.features import features_of
from eraser_hub.conversion.small_dataset import content_hash

__all__ = ["BilingualPerturbation", "map_references", "pairs"]


SAMPLES = Path(str(files_of("eraser_hub.samples"))) / "bilingual_perturbation"


class BilingualPerturbation(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """One of the six configurations; its one split is ``test``.

    Raises:
        DataError: on construction where ``data_dir`` lacks the configuration's file, on preparation at the first
            offence in a file.
    """

    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets asks for a list in the class
        datasets.BuilderConfig(name=name, description=DATASET.descriptions[name]) for name in CONFIGS
    ]
    DEFAULT_CONFIG_NAME = DEFAULT_CONFIG

    def __init__(self, config_name: str | None = None, *, data_dir: str | None = None, **options: Any) -> None:
        self.source = Path(data_dir) if data_dir else SAMPLES
        name = config_name or DEFAULT_CONFIG
        if options.get("hash") is None and name in CONFIGS:
            # the cache goes by this hash, and must not serve the rows of a file that has changed since
            sources = self._sources(name)
            files = [sources.public, sources.gold]
            options["hash"] = content_hash(path for path in files if path is not None)
        super().__init__(config_name=config_name, data_dir=data_dir, **options)

    def _sources(self, name: str) -> PerturbationSources:
        return find_sources(self.source, [name]).sources[name]

    def _info(self) -> datasets.DatasetInfo:
        name = self.config.name
        return datasets.DatasetInfo(
            description=DATASET.descriptions[name],
            features=features_of(SCHEMA, label_names(CONFIGS[name])),
            homepage=DATASET.homepages[name],
            license=DATASET.licenses[name],
            citation=DATASET.citation,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        sources = self._sources(self.config.name)
        files = {
            kind: None if path is None else str(path)
            for kind, path in (("public", sources.public), ("gold", sources.gold))
        }
        return [datasets.SplitGenerator(name=SPLIT, gen_kwargs={"files": files})]

    def _generate_tables(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, files: dict[str, str | None]
    ) -> Iterator[tuple[int, pa.Table]]:
        public, gold = (None if files[kind] is None else Path(str(files[kind])) for kind in ("public", "gold"))
        config = CONFIGS[self.config.name]
        examples = load_examples(PerturbationSources(public, gold), config).examples
        yield 0, table_of([row_of(example, config) for example in examples])
