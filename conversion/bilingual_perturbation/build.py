"""``bilingual_perturbation``: the benchmark's files -> a Hub dataset folder -> the files again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.conversion.dataset import BuildOptions, BuildResult, ExportResult
from eraser_hub.conversion.small_dataset import (
    ConfigTables,
    SmallDataset,
    build_small,
    ends_of,
    export_files,
)
from eraser_hub.papers import paper
from eraser_hub.records.errors import DataError

from .configs import CONFIGS, DEFAULT_CONFIG, PerturbationConfig
from .format import read_gold, read_public
from .join import Example, Joined, join
from .rows import SCHEMA, label_names, row_of, table_of
from .sources import HOMEPAGE, PerturbationSources, find_sources
from .statistics import LANGUAGES, TASKS, card_tables

SPLIT = "test"
DATASET = SmallDataset(
    name="bilingual_perturbation",
    configs=tuple(CONFIGS),
    default=DEFAULT_CONFIG,
    schema=SCHEMA,
    descriptions={
        name: f"{TASKS[config.task].capitalize()} in {LANGUAGES[config.language]}: original and perturbed examples, "
        "with rationale sets of tokens where the gold file was at hand."
        for name, config in CONFIGS.items()
    },
    citation=paper("wang_2022").citation,
    licenses=dict.fromkeys(CONFIGS, "unknown"),
    homepages=dict.fromkeys(CONFIGS, HOMEPAGE),
    tables=card_tables,
)


def load_examples(sources: PerturbationSources, config: PerturbationConfig) -> Joined:
    """The examples of a configuration out of its files.

    Raises:
        DataError: an offence in a file, with its line; a file without a record.
    """
    public = None if sources.public is None else list(read_public(sources.public, config))
    gold = None if sources.gold is None else list(read_gold(sources.gold, config))
    for path, records in ((sources.public, public), (sources.gold, gold)):
        if records is not None and not records:
            raise DataError("expected a record a line, found an empty file", rule="empty", file=path, line=1)
    return join(public, gold, config, public_file=sources.public, gold_file=sources.gold)


def build_bilingual_perturbation(
    source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
) -> BuildResult:
    """Build ``out/bilingual_perturbation``; see `HubDataset.build`.

    The files are small: one process builds them in seconds, so these two options change nothing here.

    Raises:
        DataError: no ``source`` (the files are given out after registration, so nothing is downloaded), no file in it,
            or an offence in a file.
    """
    if source is None:
        raise DataError(
            f"expected --source DIR, a folder that holds {' '.join(CONFIGS)} (and gold files such as "
            f"senti_ch_golden.jsonl); their authors give them out at {HOMEPAGE}",
            rule="option-missing",
        )
    inputs = find_sources(source, configs)
    notes = [
        *inputs.notes,
        *(["--include-backup-records: this dataset has no backup files"] * options.include_backup_records),
    ]

    def tables_of(name: str) -> ConfigTables:
        joined = load_examples(inputs.sources[name], CONFIGS[name])
        notes.extend(f"{name}: {report}" for report in joined.reports)
        return _tables(joined.examples, inputs.sources[name], inputs.folder, CONFIGS[name])

    return build_small(DATASET, list(inputs.sources), tables_of, out, notes)


def _tables(
    examples: Sequence[Example], sources: PerturbationSources, folder: Path, config: PerturbationConfig
) -> ConfigTables:
    """Rows, and the files' lines as released: the same facts are spelled in many ways."""
    rows = [row_of(example, config) for example in examples]
    files: list[dict[str, Any]] = []
    records: list[tuple[str, int, str]] = []
    for kind, path in (("public", sources.public), ("gold", sources.gold)):
        if path is None:
            continue
        name = path.relative_to(folder).as_posix()
        lines = [record for example in examples if (record := getattr(example, kind)) is not None]
        files.append({"file": name, "kind": kind, **ends_of(path), "lines": len(lines)})
        records += sorted((name, record.line, record.text) for record in lines)
    return ConfigTables({SPLIT: table_of(rows)}, label_names(config), files, records)


def export_bilingual_perturbation(dataset: Path, configs: Sequence[str] | None, out: Path) -> ExportResult:
    """Write the public and gold files back into ``out``, under their own names, line for line.

    Raises:
        DataError: a configuration that is not there, a damaged folder, a file that stands in ``out`` already.
    """

    def lines_of(name: str, facts: Mapping[str, Any], kept: Mapping[int, str]) -> list[str]:
        if sorted(kept) != list(range(1, facts["lines"] + 1)):
            message = f"expected the {facts['lines']} lines of {facts['file']}, found {len(kept)}"
            raise DataError(message, rule="length", file=dataset / "records" / f"{name}.parquet")
        return [kept[number] for number in sorted(kept)]

    return ExportResult(out, export_files(dataset, configs or (), lambda name: out, lines_of))
