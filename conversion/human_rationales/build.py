"""``human_rationales``: sentiment trees and WikiAttack's masks -> a Hub dataset folder -> the files again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.dataset import BuildOptions, BuildResult, ExportResult
from eraser_hub.conversion.small_dataset import (
    ConfigTables,
    SmallDataset,
    build_small,
    ends_of,
    export_files,
)
from eraser_hub.papers import paper
from eraser_hub.records.built import open_built
from eraser_hub.records.errors import DataError

from .configs import CONFIGS, DEFAULT_CONFIG
from .rows import LABEL_NAMES, SCHEMA, SplitRows, tree_rows, wikiattack_rows
from .sources import (
    RATIONALES_URL,
    SST_URL,
    HumanRationaleSources,
    find_human_rationales,
)
from .statistics import card_tables
from .wikiattack import RATIONALE_COLUMNS, format_rationale, read_attacks, read_comments, read_rationales

DATASET = SmallDataset(
    name="human_rationales",
    configs=CONFIGS,
    default=DEFAULT_CONFIG,
    schema=SCHEMA,
    descriptions={
        "sst": "English sentiment trees: a sentence's label, and as rationale the phrases that explain it.",
        "wikiattack": "English comments on Wikipedia talk pages, with what people highlighted as a personal attack.",
    },
    citation=paper("carton_2020").citation,
    licenses={"sst": "unknown", "wikiattack": "unknown"},
    homepages={"sst": "https://nlp.stanford.edu/sentiment/", "wikiattack": RATIONALES_URL},
    tables=card_tables,
)


def build_human_rationales(
    source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
) -> BuildResult:
    """Build ``out/human_rationales``; see `HubDataset.build`. One process does it in seconds.

    Raises:
        DataError: no ``source``, no file in it, or an offence in a file.
    """
    if source is None:
        raise DataError(
            f"expected --source DIR with sst/trees/train.txt dev.txt test.txt ({SST_URL}) or "
            f"wikiattack/wiki_attack_dev_rationale.csv wiki_attack_test_rationale.csv ({RATIONALES_URL})",
            rule="option-missing",
        )
    sources = find_human_rationales(source, configs)
    notes = [
        *sources.notes,
        *(["--include-backup-records: this dataset has no backup files"] * options.include_backup_records),
    ]
    paths = {name: files for name, files in (("sst", sources.sst), ("wikiattack", sources.wikiattack)) if files}

    def tables_of(name: str) -> ConfigTables:
        return _tables(name, load_rows(sources, name), paths[name], sources.root[name], notes)

    return build_small(DATASET, list(paths), tables_of, out, notes)


def load_rows(sources: HumanRationaleSources, config: str) -> dict[str, SplitRows]:
    """Split -> rows of a configuration, out of its files.

    Raises:
        DataError: an offence in a file, with its line.
    """
    if config == "sst":
        return {split: tree_rows(path) for split, path in sources.sst.items()}
    wanted = {record.comment_id for path in sources.wikiattack.values() for record in read_rationales(path)}
    comments = None if sources.comments is None else read_comments(sources.comments, wanted)
    attacks = None if sources.annotations is None else read_attacks(sources.annotations, wanted)
    return {
        split: wikiattack_rows(path, comments, attacks, sources.comments) for split, path in sources.wikiattack.items()
    }


def _tables(
    config: str, parts: Mapping[str, SplitRows], paths: Mapping[str, Path], root: Path, notes: list[str]
) -> ConfigTables:
    """Rows and what gives the files back; a split whose trees are all neutral has no rows and is told about."""
    files: list[dict[str, Any]] = []
    records: list[tuple[str, int, str]] = []
    splits: dict[str, pa.Table] = {}
    for split, part in parts.items():
        name = paths[split].relative_to(root).as_posix()
        facts: dict[str, Any] = {"file": name, "split": split, **ends_of(paths[split])}
        facts |= {"lines": part.lines, "skipped": part.skipped}
        files.append(facts)
        records += [(name, line, text) for line, text in part.records]
        notes += [f"{paths[split]}: {count} {reason}" for reason, count in part.skipped.items()]
        if part.rows:
            splits[split] = pa.Table.from_pylist(part.rows, schema=SCHEMA)
        else:
            facts["split"] = None
            notes.append(f"{paths[split]}: no row is left for the split {split}")
    if not splits:
        message = "expected a tree whose root is not neutral, found none"
        raise DataError(message, rule="empty", file=next(iter(paths.values())))
    return ConfigTables(splits, LABEL_NAMES[config], files, records)


def export_human_rationales(dataset: Path, configs: Sequence[str] | None, out: Path) -> ExportResult:
    """Write tree files below ``out/sst`` and rationale CSVs below ``out/wikiattack``, line for line.

    WikiAttack's comments come from another release and are not written back; the note says so.

    Raises:
        DataError: a configuration that is not there, a damaged folder, a file that stands in ``out`` already.
    """
    built = open_built(dataset)

    def lines_of(name: str, facts: Mapping[str, Any], kept: Mapping[int, str]) -> list[str]:
        rows = built.rows(name, facts["split"]) if facts["split"] else []
        return (_tree_lines if name == "sst" else _csv_lines)(rows, kept)

    files = export_files(dataset, configs or (), lambda name: out / name, lines_of)
    note = "wikiattack: masks alone; comments and annotations are files of another release"
    return ExportResult(out, files, [note] * ("wikiattack" in built.chosen(configs)))


def _tree_lines(rows: Sequence[Mapping[str, Any]], kept: Mapping[int, str]) -> list[str]:
    """Rows in order, with the kept lines (neutral trees) at their numbers."""
    lines: list[str] = []
    trees = iter(rows)
    for number in range(1, len(rows) + len(kept) + 1):
        lines.append(kept[number] if number in kept else next(trees)["tree"])
    return lines


def _csv_lines(rows: Sequence[Mapping[str, Any]], kept: Mapping[int, str]) -> list[str]:
    """The header, and a line a row; a record that was written otherwise is kept whole, at the row's line."""
    lines = [kept.get(1, ",".join(RATIONALE_COLUMNS))]
    number = 2
    for row in rows:
        text = kept.get(number, format_rationale(row["id"], row["rationale_mask"]))
        lines.append(text)
        number += text.count("\n") + 1
    return lines
