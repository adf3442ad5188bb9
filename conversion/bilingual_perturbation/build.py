"""``bilingual_perturbation``: the benchmark's files -> a Hub dataset folder -> the files again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.conversion.registry import BuildResult, ExportResult
from eraser_hub.conversion.small_dataset import (
    ConfigTables,
    SmallDataset,
    ends_of,
    export_files,
    read_release,
    write_dataset,
)
from eraser_hub.papers import paper
from eraser_hub.records.built import open_built
from eraser_hub.records.errors import DataError

from .configs import CONFIGS, DEFAULT_CONFIG, PerturbationConfig
from .format import Record, read_gold, read_public
from .join import Example, Joined, join
from .line_recipes import fit, fit_style, rebuilt
from .rows import DERIVED_INTEGERS, SCHEMA, label_names, row_of, table_of
from .sources import HOMEPAGE, PerturbationSources, find_sources
from .statistics import LANGUAGES, TASKS, card_tables

SPLIT = "test"
DATASET = SmallDataset(
    name="bilingual_perturbation",
    configs=tuple(CONFIGS),
    default=DEFAULT_CONFIG,
    schema=SCHEMA,
    nullable_integers=DERIVED_INTEGERS,
    descriptions={
        name: f"{TASKS[config.task].capitalize()} in {LANGUAGES[config.language]}: original and perturbed examples, with "
        "rationale sets of tokens where the gold file was at hand."
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
            raise DataError("expected a record a line, found an empty file", file=path, line=1)
    return join(public, gold, config, public_file=sources.public, gold_file=sources.gold)


def build_bilingual_perturbation(
    configs: Sequence[str] | None,
    *,
    out: Path,
    source: Path | None,
    num_proc: int = 1,
    progress: bool = False,
    include_backup_records: bool = False,
) -> BuildResult:
    """Build ``out/bilingual_perturbation``; see `HubDataset.build`.

    The files are small: one process builds them in seconds, so ``num_proc`` and ``progress`` change nothing here.

    Raises:
        DataError: no ``source`` (the files are given out after registration, so nothing is downloaded), no file in it,
            or an offence in a file.
    """
    if source is None:
        raise DataError(
            f"expected --source DIR, a folder that holds {' '.join(CONFIGS)} (and gold files such as "
            f"senti_ch_golden.jsonl); their authors give them out at {HOMEPAGE}"
        )
    found = find_sources(source, configs)
    notes = list(found.notes)
    if include_backup_records:
        notes.append("--include-backup-records: this dataset has no backup files")
    built = {}
    for name, sources in found.sources.items():
        config = CONFIGS[name]
        joined = load_examples(sources, config)
        notes += [f"{name}: {report}" for report in joined.reports]
        built[name] = config_tables(joined.examples, sources, found.folder, config)
    folder, written = write_dataset(DATASET, built, out)
    rows = {name: {SPLIT: tables.splits[SPLIT].num_rows} for name, tables in built.items()}
    return BuildResult(folder, rows, notes + written)


def config_tables(
    examples: Sequence[Example], sources: PerturbationSources, folder: Path, config: PerturbationConfig
) -> ConfigTables:
    """Rows, and what gives the released files back from them."""
    rows = [row_of(example, config) for example in examples]
    files: list[dict[str, Any]] = []
    records: list[tuple[str, int, str]] = []
    for kind, path in (("public", sources.public), ("gold", sources.gold)):
        if path is None:
            continue
        name = path.relative_to(folder).as_posix()
        lines = [
            (record, row)
            for record, row in zip((getattr(example, kind) for example in examples), rows, strict=True)
            if record is not None
        ]
        mark, newline = ends_of(path)
        facts: dict[str, Any] = {"file": name, "kind": kind, "byte_order_mark": mark, "final_newline": newline}
        facts["lines"] = len(lines)
        order = [record.line - 1 for record, _ in lines]
        if order != sorted(order):
            facts["order"] = order
        facts["style"], facts["recipes"] = _recipes(lines, config)
        files.append(facts)
        for record, row in lines:
            if _line(facts, row, config) != record.text:
                records.append((name, record.line, record.text))
    return ConfigTables({SPLIT: table_of(rows)}, label_names(config), {"files": files}, records)


def _recipes(
    lines: Sequence[tuple[Record, Mapping[str, Any]]], config: PerturbationConfig
) -> tuple[Any, dict[str, Any]]:
    """The file's style, and per sample type the recipe of the first record that has one."""
    style = next((found for record, _ in lines[:5] if (found := fit_style(record.fields, record.text))), None)
    recipes: dict[str, Any] = {}
    for record, row in lines:
        kind = row["sample_type"]
        if kind not in recipes and len(recipes) < 2:
            recipe = fit(record.fields, row, config.label_names, config.texts)
            if recipe is not None:
                recipes[kind] = recipe
    return style, recipes


def _line(facts: Mapping[str, Any], row: Mapping[str, Any], config: PerturbationConfig) -> str | None:
    return rebuilt(facts["recipes"].get(row["sample_type"]), facts["style"], row, config.label_names)


def export_bilingual_perturbation(dataset: Path, configs: Sequence[str] | None, *, out: Path) -> ExportResult:
    """Write the public and gold files back into ``out``, under their own names, line for line.

    Raises:
        DataError: a configuration that is not there, a damaged folder, a file that stands in ``out`` already.
    """
    chosen = list(configs) if configs else [name for name in CONFIGS if name in read_release(dataset)]
    rows: dict[str, list[dict[str, Any]]] = {}

    def lines_of(name: str, facts: Mapping[str, Any], kept: Mapping[int, str]) -> list[str]:
        if name not in rows:
            rows[name] = open_built(dataset).rows(name, SPLIT)
        return _lines(facts, rows[name], kept, CONFIGS[name], dataset)

    return ExportResult(out, export_files(dataset, chosen, lambda name: out, lines_of))


def _lines(
    facts: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    kept: Mapping[int, str],
    config: PerturbationConfig,
    dataset: Path,
) -> list[str]:
    """The lines of a released file, out of rows and the lines that were kept whole."""
    if facts["kind"] == "gold":
        own = [row for row in rows if row["has_gold"]]
    else:
        own = list(rows[: facts["lines"]])
    order = facts.get("order") or range(len(own))
    lines: dict[int, str] = {}
    for place, row in zip(order, own, strict=True):
        text = kept.get(place + 1, _line(facts, row, config))
        if text is None:
            message = f"line {place + 1} of {facts['file']} follows neither from its row nor from records/{config.name}"
            raise DataError(message, file=dataset, instance=row["id"])
        lines[place] = text
    return [lines[place] for place in sorted(lines)]
