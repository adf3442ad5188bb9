"""The ERASER corpora, and corpora of one's own in their format: their files <-> annotations and documents <-> rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.built import RELEASE, BuiltDataset, describe_folder
from eraser_hub.conversion.card import SPAN_HEADLINES
from eraser_hub.conversion.checks import CheckResult
from eraser_hub.conversion.dataset import HubDataset, RawConfig, read_release
from eraser_hub.records.errors import DataError, UsageError, describe_choice, make_printable, show
from eraser_hub.records.places import dataset_split
from eraser_hub.records.tables import Tables

from .card import describe_config, make_card_parts
from .check import QUIRKS, check_config
from .configs import CONFIGS, CORPUS_YAML, DEFAULT_CONFIG, EraserConfig, get_annotators_path
from .corpus import find_backups, find_corpus, find_released, inspect_folder
from .corpus_yaml import find_own_corpora, list_own_folders, parse_corpus_yaml, read_corpus_yaml
from .documents import read_documents
from .export import export_config
from .human_agreement import read_annotators
from .rows import SplitRows
from .schema import SCHEMA
from .statistics import make_tables

log = logging.getLogger("eraser_hub")


class EraserDataset(HubDataset):
    """ERASER, or a corpus of one's own, which has one configuration of its name.

    Attributes:
        facts: config -> what is known of it.
    """

    schema = SCHEMA
    id_column = "annotation_id"
    required = tuple(name for name in SCHEMA.names if name != "query_type")
    headlines = SPAN_HEADLINES
    quirks = QUIRKS

    def __init__(self, name: str, facts: Mapping[str, EraserConfig], default_config: str) -> None:
        self.name, self.facts, self.default_config = name, facts, default_config
        self.configs = {config: describe_config(one) for config, one in facts.items()}

    @property
    def is_own(self) -> bool:
        """True for a corpus of one's own."""
        return bool(self.facts[self.default_config].corpus_yaml)

    def find(self, source: Path | None, configs: Sequence[str] | None) -> Mapping[str, Callable[[], RawConfig]]:
        """Find the corpora in a folder (see `corpus.find_corpus`), or those of the release."""
        if self.is_own:
            folder = find_own_corpora(source or Path())[self.name]
            return {self.name: partial(self._open, self.name, lambda: folder)}
        if source is None:
            chosen = self.choose(configs, self.configs)
        else:
            chosen = self.choose(configs, [name for name in CONFIGS if find_released(name, source, exact=True)])
            own = ", ".join(path.name for path in list_own_folders(source))
            hint = f"{own}: left out: `eraser-hub build own` makes a dataset of each corpus with a {CORPUS_YAML}"
            is_built = (source / RELEASE).is_file()
            if not chosen or is_built:
                found = "a built dataset (`eraser-hub export` writes its raw files)" if is_built else ""
                message = f"expected folders or archives named {', '.join(CONFIGS)}, found "
                raise DataError(message + (found or describe_folder(source) or "none"), file=source)
            if own and configs is None:
                log.warning(hint)
        return {config: partial(self._open, config, partial(find_corpus, config, source)) for config in chosen}

    def _open(self, config: str, find: Callable[[], Path]) -> RawConfig:
        folder, facts = find(), self.facts[config]
        corpus = inspect_folder(folder, facts)
        documents, others = read_documents(folder)
        splits = {split: SplitRows(path, facts, documents) for split, path in corpus.splits.items()}
        raw = RawConfig(splits)
        raw.notes += [f"{make_printable(str(path))}: skipped: {why}" for path, why in corpus.skipped.items()]
        raw.notes += [f"{path}: skipped: is no document file" for path in others]
        raw.split_facts = {split: rows.facts for split, rows in splits.items()}
        raw.facts = {"layout": "docs.jsonl" if documents.path.name == "docs.jsonl" else "docs/"}
        raw.sources = [
            *corpus.splits.values(),
            *(documents.path.iterdir() if documents.path.is_dir() else [documents.path]),
        ]
        if facts.corpus_yaml:
            raw.facts["corpus"] = facts.corpus_yaml
            people = get_annotators_path(config)
            others = [path for path in folder.glob("annotators/*") if path != folder / people]
            raw.notes += [f"{path}: skipped: is not {people}, the file of the corpus's name" for path in others]
            named = facts.comprehensive if isinstance(facts.comprehensive, tuple) else ()
            for split in named:
                if dataset_split(split) not in splits:
                    message = f"expected some of the splits {', '.join(splits)}, found {show(split)}"
                    raise DataError(message, file=folder / CORPUS_YAML, field="comprehensive")
            if os.path.lexists(folder / people):
                read_annotators(folder / people)  # which refuses a damaged file
                raw.beside[people] = folder / people

        def finish() -> Iterator[pa.Table]:
            for rows in splits.values():
                keys = ", ".join(f"{show(key)} (in {count:,})" for key, count in rows.unknown.most_common())
                words = f"{rows.path}: keys beyond the format are kept for export, and are no columns: {keys}"
                raw.notes.extend([words] if keys else [])
            raw.notes.extend(find_backups(corpus.skipped, {split: rows.ids for split, rows in splits.items()}))
            return documents.make_tables()

        raw.beside[f"documents/{config}.parquet"] = finish
        raw.beside[f"records/{config}.parquet"] = lambda: chain.from_iterable(
            rows.make_records() for rows in splits.values()
        )
        return raw

    def check_config(self, built: BuiltDataset, config: str, result: CheckResult) -> None:
        """Add what is wrong with spans, texts, derived columns and documents; see `check.check_config`."""
        check_config(self.facts[config], built, config, result)

    def make_tables(self, built: BuiltDataset, configs: Sequence[str], raw: Path | None = None) -> Tables:
        """Return the tables of the ERASER paper and of Carton, Rathore and Tan (2020); see `statistics.make_tables`."""
        return make_tables(self.facts, built, configs, raw)

    def make_card_parts(
        self, built: BuiltDataset, counts: Mapping[str, Mapping[str, int]]
    ) -> tuple[Mapping[str, Any], str, Mapping[str, str]]:
        """Return the card's metadata, its prose, and the texts of its marks."""
        facts = {config: self.facts[config] for config in counts}
        return make_card_parts(self.name, facts, counts, built.default_config, self.make_tables(built, list(counts)))

    def export_config(self, built: BuiltDataset, config: str, entry: Mapping[str, Any], folder: Path) -> None:
        """Write the corpus folder of a configuration; see `export.export_config`."""
        export_config(self.facts[config], built, entry, folder)


DATASET = EraserDataset("eraser", CONFIGS, DEFAULT_CONFIG)


def open_own(folder: Path, name: str | None = None) -> EraserDataset | None:
    """Return the dataset of a corpus of one's own; None where the folder holds none.

    Args:
        folder: a corpus folder with a corpus.yaml, the parent of such folders, or the dataset that was built of one.
        name: the corpus, where there are several.

    Raises:
        DataError: the corpus.yaml is at fault, or there are several corpora and none is named.
    """
    if os.path.lexists(folder / RELEASE):
        entries = read_release(folder)
        texts = {config: entry["facts"].get("corpus") for config, entry in entries.items()}
        own = {config: parse_corpus_yaml(text, folder / RELEASE) for config, text in texts.items() if text}
    else:
        folders = find_own_corpora(folder)
        if len(folders) > 1 and name is None:
            raise UsageError(f"expected one of {', '.join(folders)}, found none named", argument="config")
        if name is not None and folders and name not in folders:
            raise UsageError(describe_choice(name, list(folders)), argument="config")
        own = {one: read_corpus_yaml(path) for one, path in folders.items() if name in (None, one)}
    return next((EraserDataset(facts.name, {facts.name: facts}, facts.name) for facts in own.values()), None)


def read_own_facts(built: BuiltDataset, config: str) -> EraserConfig | None:
    """Return what the corpus.yaml of a built corpus of one's own says; None for other datasets."""
    if config in CONFIGS or not built.paths(RELEASE):
        return None
    own = open_own(built.folder)
    return own.facts.get(config) if own else None
