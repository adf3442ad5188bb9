"""What every dataset's integrity report is made of: tallies, findings, listed quirks, and the built folder's own card.

A dataset plugs in by handing `check_folder` its `Rules`: which columns to read, what to look at in each batch of rows, and
which findings are known quirks of the release. Memory is bounded by a batch, plus the ids of a configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from eraser_hub.records.errors import DataError, shown

from .parquet import yaml_values

Level = Literal["violation", "quirk", "note"]
MOST_EXAMPLES = 5
BATCH_ROWS = 400


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found.

    Attributes:
        check: its name, e.g. ``evidence text``.
        level: ``violation``; ``quirk`` when the release is known for it; ``note`` when it is worth knowing and no fault.
        count: how many records, spans or documents.
        examples: a few, in words.
        why: for a quirk or note, what is known about it.
    """

    check: str
    level: Level
    count: int
    examples: tuple[str, ...] = ()
    why: str = ""


@dataclass(slots=True)
class SplitReport:
    """The findings in one split (or, with split ``all``, across a configuration's splits)."""

    config: str
    split: str
    rows: int
    documents: int | None = None
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """A dataset's integrity report.

    Attributes:
        dataset: the dataset's name.
        folder: what was looked at.
        splits: one entry per configuration and split, and one per configuration for what spans splits.
        leakage: the lines of ``--leakage``: (config, kind, number, examples).
    """

    dataset: str
    folder: Path
    splits: list[SplitReport] = field(default_factory=list)
    leakage: list[Finding] = field(default_factory=list)

    @property
    def violations(self) -> int:
        """How many violations there are that no listed quirk explains."""
        return sum(found.count for split in self.splits for found in split.findings if found.level == "violation")

    @property
    def errors(self) -> list[DataError]:
        """One error for each kind of violation in a split; empty when all is well."""
        return [
            DataError(
                f"{found.check}: {found.count:,}" + (f" (e.g. {found.examples[0]})" if found.examples else ""),
                file=self.folder,
                field=f"{split.config}/{split.split}",
            )
            for split in self.splits
            for found in split.findings
            if found.level == "violation"
        ]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "dataset": self.dataset,
            "folder": str(self.folder),
            "violations": self.violations,
            "splits": [
                {
                    "config": split.config,
                    "split": split.split,
                    "rows": split.rows,
                    "documents": split.documents,
                    "findings": [_finding_as_dict(found) for found in split.findings],
                }
                for split in self.splits
            ],
            "leakage": [_finding_as_dict(found) for found in self.leakage],
        }


def _finding_as_dict(found: Finding) -> dict[str, Any]:
    return {
        "check": found.check,
        "level": found.level,
        "count": found.count,
        "why": found.why,
        "examples": list(found.examples),
    }


class Tally:
    """Counts offences by check, and keeps the first few of each in words."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}

    def add(self, check: str, count: int, examples: Iterable[str] = ()) -> None:
        """``count`` offences against ``check``; ``examples`` is only drawn from while some are wanted."""
        if count <= 0:
            return
        self.counts[check] += int(count)
        kept = self.examples.setdefault(check, [])
        for example in examples:
            if len(kept) >= MOST_EXAMPLES:
                return
            kept.append(example)


class SplitCheck(Protocol):
    """What a dataset looks at in one split."""

    rows: int
    documents: int | None

    def batch(self, rows: pa.Table, tally: Tally) -> None:
        """Look at the next rows of the split, in order."""

    def finish(self, tally: Tally) -> None:
        """Look at what only the whole split shows."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a dataset is checked.

    Attributes:
        dataset: its name.
        columns: the columns to read.
        split: makes the check of one (config, split).
        across: looks at all splits of a configuration: (config, its checks by split, a tally).
        quirks: (config, split, check) -> what is known; ``*`` stands for any config or split.
        notes: check -> what is known; a finding of these checks is no violation anywhere.
        batch_rows: rows in memory at a time.
        kinds: a schema that says of what kind the columns are; see `batches`.
    """

    dataset: str
    columns: tuple[str, ...]
    split: Callable[[str, str], SplitCheck]
    across: Callable[[str, Mapping[str, Any], Tally], None] | None = None
    quirks: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    batch_rows: int = BATCH_ROWS
    kinds: pa.Schema | None = None

    def findings(self, config: str, split: str, tally: Tally) -> list[Finding]:
        """The tally as findings, each with its level; violations first."""
        found = []
        for check, count in tally.counts.items():
            quirk = next(
                (
                    self.quirks[key]
                    for key in ((config, split, check), (config, "*", check), ("*", split, check), ("*", "*", check))
                    if key in self.quirks
                ),
                None,
            )
            level: Level = "quirk" if quirk else "note" if check in self.notes else "violation"
            why = quirk or self.notes.get(check, "")
            found.append(Finding(check, level, count, tuple(tally.examples.get(check, ())), why))
        return sorted(found, key=lambda item: ("violation", "quirk", "note").index(item.level))


def check_folder(
    folder: Path, rules: Rules, configs: Sequence[str] | None = None
) -> tuple[Report, dict[str, dict[str, Any]]]:
    """Check a built dataset folder by ``rules``, and its card against its Parquet files.

    Returns:
        the report, and config -> split -> the checks that looked at it (for what else is to be asked of them).

    Raises:
        DataError: the folder, its card or a Parquet file cannot be read; an unknown configuration.
    """
    card = read_card(folder)
    report = Report(rules.dataset, folder)
    seen: dict[str, dict[str, Any]] = {}
    for config in chosen_configs(card, configs, folder):
        checks: dict[str, Any] = {}
        for split, paths in split_files(card, config, folder).items():
            check, tally = rules.split(config, split), Tally()
            for batch in batches(paths, rules.columns, rules.batch_rows, rules.kinds):
                check.batch(batch, tally)
            check.finish(tally)
            checks[split] = check
            report.splits.append(
                SplitReport(config, split, check.rows, check.documents, rules.findings(config, split, tally))
            )
        tally = Tally()
        if rules.across is not None:
            rules.across(config, checks, tally)
        card_agrees(card, config, folder, tally)
        findings = rules.findings(config, "all", tally)
        if findings:
            report.splits.append(SplitReport(config, "all", sum(c.rows for c in checks.values()), None, findings))
        seen[config] = checks
    return report, seen


# ------------------------------------------------------------------------------------------------------ the built folder


def read_card(folder: Path) -> dict[str, Any]:
    """The YAML block of a built folder's README.md.

    Raises:
        DataError: no such file, no YAML block, or one that lists no configs.
    """
    path = Path(folder) / "README.md"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise DataError(f"expected a built dataset's card, found none that can be read ({error})", file=path) from None
    parts = text.split("---\n", 2)
    try:
        card = yaml_values(parts[1]) if len(parts) == 3 and not parts[0].strip() else None
    except yaml.YAMLError as error:
        raise DataError(f"the card's YAML cannot be read ({error})", file=path) from None
    if not isinstance(card, dict) or not isinstance(card.get("configs"), list):
        raise DataError("expected a YAML block with configs, found none", file=path)
    return card


def chosen_configs(card: Mapping[str, Any], configs: Sequence[str] | None, folder: Path) -> list[str]:
    """The card's configurations, or those of them that were asked for (an unknown one is a DataError)."""
    known = [entry["config_name"] for entry in card["configs"]]
    for name in configs or ():
        if name not in known:
            raise DataError(f"expected one of the configs {', '.join(known)}, found {shown(name)}", file=folder)
    return list(dict.fromkeys(configs)) if configs else known


def split_files(card: Mapping[str, Any], config: str, folder: Path) -> dict[str, list[Path]]:
    """Split -> Parquet files of a configuration, as the card names them.

    Raises:
        DataError: a split of which no file is there.
    """
    entry = next(entry for entry in card["configs"] if entry["config_name"] == config)
    files: dict[str, list[Path]] = {}
    for item in entry["data_files"]:
        patterns = item["path"] if isinstance(item["path"], list) else [item["path"]]
        paths = sorted(path for pattern in patterns for path in Path(folder).glob(pattern))
        if not paths:
            raise DataError(
                f"the card names {patterns[0]} for {config}/{item['split']}, found no such file", file=folder
            )
        files[item["split"]] = paths
    return files


def batches(
    paths: Iterable[Path], columns: Sequence[str], rows: int = BATCH_ROWS, kinds: pa.Schema | None = None
) -> Iterator[pa.Table]:
    """The rows of Parquet files, some at a time; strings are known to be UTF-8 then.

    Args:
        paths: the files, one after another.
        columns: the columns to read.
        rows: most rows at a time.
        kinds: a schema; each column has to be of the same kind there (nested alike, or a string, an integer, a float).

    Raises:
        DataError: a file that is no Parquet, is damaged, or lacks a column, or a column of another kind.
    """
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                lacking = [name for name in columns if name not in file.schema_arrow.names]
                if lacking:
                    raise DataError(f"expected the column {lacking[0]}, found {file.schema_arrow.names}", file=path)
                wanted = {} if kinds is None else {name: kinds.field(name).type for name in columns}
                for name, expected in wanted.items():
                    there = file.schema_arrow.field(name).type
                    if not _same_kind(expected, there):
                        raise DataError(f"expected the column {name} as {expected}, found {there}", file=path)
                for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise DataError(f"cannot be read as Parquet ({str(error).splitlines()[0]})", file=path) from None


class UniqueStrings:
    """Strings that should all differ: collected batch by batch, counted once at the end."""

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Take up the values of a batch."""
        values = values.cast(pa.string())
        self._chunks.extend(values.chunks if isinstance(values, pa.ChunkedArray) else [values])

    def repeated(self) -> list[tuple[str, int]]:
        """The values that occur more than once, with how often."""
        if not self._chunks:
            return []
        counts = pc.value_counts(pa.chunked_array(self._chunks, pa.string()))
        often = counts.filter(pc.greater(counts.field("counts"), 1))
        return [(entry["values"], entry["counts"]) for entry in often.to_pylist()]


# ------------------------------------------------------------------------------------------------------------- the card


def card_agrees(card: Mapping[str, Any], config: str, folder: Path, tally: Tally) -> None:
    """Compare what the card says of a configuration with its Parquet files: columns and types, label names, counts, sizes.

    Readers believe the card: features given there override the file's, and a wrong count makes loading fail.
    """
    from datasets import Features

    infos = card.get("dataset_info")
    infos = infos if isinstance(infos, list) else [infos] if infos else []
    info = next((entry for entry in infos if entry.get("config_name", config) == config), None)
    files = split_files(card, config, folder)
    if info is None:
        tally.add("card", 1, [f"{config}: no dataset_info"])
        return
    try:
        features = Features._from_yaml_list(info["features"])
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        tally.add("card", 1, [f"{config}: its features cannot be read ({error})"])
        return
    declared = {entry["name"]: entry for entry in info.get("splits", [])}
    for split in sorted(declared.keys() ^ files.keys()):
        tally.add("card", 1, [f"{config}/{split}: in {'dataset_info' if split in declared else 'configs'} alone"])
    expected = features.arrow_schema.remove_metadata()
    for split, paths in files.items():
        rows = 0
        for path in paths:
            try:
                with pq.ParquetFile(path) as file:
                    rows += file.metadata.num_rows
                    found = file.schema_arrow
            except (pa.ArrowException, OSError, UnicodeError) as error:
                raise DataError(f"cannot be read as Parquet ({str(error).splitlines()[0]})", file=path) from None
            for line in _schema_differences(expected, found):
                tally.add("card", 1, [f"{path.name}: {line}"])
            if b"huggingface" in (found.metadata or {}):
                tally.add("card", 1, [f"{path.name}: metadata key 'huggingface', which older readers stumble over"])
        if split in declared and declared[split].get("num_examples") != rows:
            tally.add(
                "card", 1, [f"{config}/{split}: num_examples {declared[split].get('num_examples')}, {rows} rows there"]
            )


def _schema_differences(expected: pa.Schema, found: pa.Schema) -> Iterator[str]:
    for name in expected.names:
        if name not in found.names:
            yield f"expected the column {name}, found none"
        elif not _same_type(expected.field(name).type, found.field(name).type):
            yield f"column {name}: expected {expected.field(name).type}, found {found.field(name).type}"
    for name in found.names:
        if name not in expected.names:
            yield f"the column {name} is not in the card"


def _same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_nested(one):
        return _same_type(one, other)
    for kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean):
        if kind(one):
            return kind(other)
    return pa.types.is_string(other) or pa.types.is_large_string(other)


def _same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether types agree but for the names of list items and nullability, which Parquet spells in its own way."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same_type(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        if [f.name for f in one] != [f.name for f in other]:
            return False
        return all(_same_type(a.type, b.type) for a, b in zip(one, other, strict=True))
    return one == other
