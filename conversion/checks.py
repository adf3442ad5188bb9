"""What every dataset's integrity report is made of: tallies, findings, listed quirks, and the built folder's own card.

A dataset's verbs are `CheckRules`: which columns to read, what to look at in each batch of rows, and which findings are
known quirks of the release. Memory is bounded by a batch, plus the ids of a configuration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.compute

from eraser_hub.records.built import BuiltDataset, open_built, read_rows
from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import Cell, Table

from .card import card_faults

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers

Level = Literal["violation", "quirk", "note"]
MOST_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found.

    Attributes:
        check: its name, e.g. ``evidence text``.
        level: ``violation``; ``quirk`` when the release is known for it; ``note`` when it is no fault.
        count: how many records, spans or documents.
        why: for a quirk or note, what is known about it.
        examples: a few, in words.
    """

    check: str
    level: Level
    count: int
    why: str = field(default="", kw_only=True)
    examples: tuple[str, ...] = ()


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
        return sum(finding.count for split in self.splits for finding in split.findings if finding.level == "violation")

    @property
    def errors(self) -> list[DataError]:
        """One error for each kind of violation in a split; empty when all is well."""
        return [
            DataError(
                f"{finding.check}: {finding.count:,}" + (f" (e.g. {finding.examples[0]})" if finding.examples else ""),
                rule="check",
                file=self.folder,
                field=f"{split.config}/{split.split}",
            )
            for split in self.splits
            for finding in split.findings
            if finding.level == "violation"
        ]

    def table(self) -> Table:
        """The report as a table: a row a split, with its findings in words; a row a line of ``--leakage``."""
        table = Table("check", f"{self.dataset}: {self.folder}", ("config", "split"), ("rows", "documents", "found"))
        for split in self.splits:
            words = "; ".join(f"{finding.level} {finding.check}: {finding.count:,}" for finding in split.findings)
            cells = {"rows": Cell(split.rows), "documents": Cell(split.documents), "found": Cell(words or "good")}
            table.add(split.config, split.split, **cells)
        table.notes += [f"{finding.check}: {finding.count:,} {finding.why}".rstrip() for finding in self.leakage]
        table.notes.append(f"{self.violations:,} violations" if self.violations else "no violation")
        return table

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "dataset": self.dataset,
            "folder": str(self.folder),
            "violations": self.violations,
            "splits": [asdict(split) for split in self.splits],
            "leakage": [asdict(finding) for finding in self.leakage],
        }


class Tally:
    """Counts issues by check, and keeps the first few of each in words."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}

    def add(self, check: str, count: int, examples: Iterable[str] = ()) -> None:
        """``count`` issues against ``check``; ``examples`` is only drawn from while some are wanted."""
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


class CheckRules(ABC):
    """The `check` of a dataset's verbs: what is looked at in its splits, and which findings are no violations.

    Attributes:
        schema: of every file.
        columns: the columns to read; all by default.
        whole: those that hold no null; see `records.built.batches`.
        quirks: (config, split, check) -> what is known; ``*`` stands for any config or split.
        notes: check -> what is known; a finding of these checks is no violation anywhere.
    """

    schema: pa.Schema
    columns: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    quirks: Mapping[tuple[str, str, str], str] = MappingProxyType({})
    notes: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def split_check(self, built: BuiltDataset, config: str, leakage: bool) -> SplitCheck:
        """Return what looks at one split of a configuration; ``leakage``: `leaks` will be asked."""

    def across(self, built: BuiltDataset, config: str, checks: Mapping[str, Any], tally: Tally) -> None:  # noqa: B027
        """Look at all splits of a configuration: ``checks`` are those that looked at each."""

    def leaks(self, built: BuiltDataset, config: str, splits: Mapping[str, Any]) -> Iterable[Finding]:
        """Return what stands several times; see `repeated`."""
        return ()

    def check(self, folder: Path, configs: Sequence[str] | None = None, leakage: bool = False) -> Report:
        """Return the integrity report of a built folder, its card against its Parquet files included.

        Raises:
            DataError: the folder, its card or a Parquet file cannot be read; an unknown configuration.
        """
        built = open_built(folder)
        report = Report(built.folder.name, folder)
        for config in built.chosen(configs):
            checks: dict[str, SplitCheck] = {}
            for split, paths in built.splits(config).items():
                check, tally = self.split_check(built, config, leakage), Tally()
                for batch in read_rows(paths, self.columns or self.schema.names, kinds=self.schema, whole=self.whole):
                    check.batch(batch, tally)
                check.finish(tally)
                checks[split] = check
                findings = self._findings(config, split, tally)
                report.splits.append(SplitReport(config, split, check.rows, check.documents, findings))
            tally = Tally()
            self.across(built, config, checks, tally)
            _card_agrees(built, config, tally)
            if findings := self._findings(config, "all", tally):
                report.splits.append(SplitReport(config, "all", sum(c.rows for c in checks.values()), None, findings))
            report.leakage += self.leaks(built, config, checks) if leakage else ()
        return report

    def _findings(self, config: str, split: str, tally: Tally) -> list[Finding]:
        """The tally as findings, each with its level; violations first."""
        findings = []
        for check, count in tally.counts.items():
            keys = ((config, split, check), (config, "*", check), ("*", split, check), ("*", "*", check))
            quirk = next((self.quirks[key] for key in keys if key in self.quirks), "")
            level: Level = "quirk" if quirk else "note" if check in self.notes else "violation"
            why = quirk or self.notes.get(check, "")
            findings.append(Finding(check, level, count, tuple(tally.examples[check]), why=why))
        return sorted(findings, key=lambda item: ("violation", "quirk", "note").index(item.level))


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


def repeated(check: str, keys_and_places: Iterable[tuple[object, str]]) -> list[Finding]:
    """A note that something stands in several places, named together; none where each stands in one.

    Args:
        check: the note's name.
        keys_and_places: what is to stand once (hashable), and the words for where it stands.
    """
    places: dict[object, list[str]] = {}
    for key, place in keys_and_places:
        places.setdefault(key, []).append(place)
    groups = [group for group in places.values() if len(group) > 1]
    examples = tuple(", ".join(group) for group in groups[:MOST_EXAMPLES])
    return [Finding(check, "note", len(groups), examples)] if groups else []


def _card_agrees(built: BuiltDataset, config: str, tally: Tally) -> None:
    """Compare what the card says of a configuration (columns and types, counts, sizes) with its Parquet files."""
    from datasets import Features

    info = built.info(config)
    if not info:
        tally.add("card", 1, [f"{config}: no dataset_info"])
        return
    try:
        schema = Features._from_yaml_list(info["features"]).arrow_schema.remove_metadata()
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        tally.add("card", 1, [f"{config}: its features cannot be read ({error})"])
        return
    for fault in card_faults(built, config, schema):
        where = f"{config}/{fault.field}" if fault.file is None else Path(fault.file).name
        tally.add("card", 1, [f"{where}: {fault.message}"])
