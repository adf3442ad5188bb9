"""Integrity reports of datasets: tallies and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute

from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import Cell, Table, Tables

pc: Any = pyarrow.compute  # type checkers do not see its functions, which are made on import

Level = Literal["violation", "quirk", "note"]
MAX_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: how often it failed, and how bad that is.

    Attributes:
        check: name of the check, e.g. ``evidence text``.
        level: ``violation``; ``quirk`` if the release is known for it; ``note`` if it is no fault.
        count: number of records, spans or documents.
        why: explanation of a quirk or note.
        examples: short descriptions of a few of them.
    """

    check: str
    level: Level
    count: int
    why: str = field(default="", kw_only=True)
    examples: tuple[str, ...] = ()


@dataclass(slots=True)
class SplitReport:
    """The findings in one split; the split ``all`` stands for all splits of a configuration together."""

    config: str
    split: str
    rows: int
    documents: int | None = None
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """A dataset's integrity report.

    Attributes:
        dataset: name of the dataset.
        folder: the folder that was checked.
        splits: one entry per configuration and split, and one per configuration for checks across splits.
    """

    dataset: str
    folder: Path
    splits: list[SplitReport] = field(default_factory=list)

    @property
    def violations(self) -> int:
        """Number of violations that no known quirk explains."""
        return sum(finding.count for split in self.splits for finding in split.findings if finding.level == "violation")

    @property
    def errors(self) -> list[DataError]:
        """One error for each kind of violation in a split; empty if there is none."""
        return [
            DataError(
                f"{finding.check}: {finding.count:,}" + (f" (e.g. {finding.examples[0]})" if finding.examples else ""),
                file=self.folder,
                field=f"{split.config}/{split.split}",
            )
            for split in self.splits
            for finding in split.findings
            if finding.level == "violation"
        ]

    @property
    def failed(self) -> bool:
        """True if there is any violation."""
        return self.violations > 0

    def table(self, whole: bool = False) -> Tables:
        """Return a table of the splits, and if anything was found, one of the findings."""
        splits = Table("splits", f"{self.dataset}: {self.folder}", ("config", "split"), ("rows", "documents", "found"))
        findings = Table("findings", "Findings", ("level", "config", "split", "check"), ("count",))
        for split in self.splits:
            levels = Counter(finding.level for finding in split.findings)
            found = ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for level, count in levels.items())
            cells = {"rows": Cell(split.rows), "documents": Cell(split.documents), "found": Cell(found or "good")}
            splits.add(split.config, split.split, **cells)
            for finding in split.findings:
                findings.add(finding.level, split.config, split.split, finding.check, count=Cell(finding.count))
                if finding.why:
                    findings.notes.append(f"{finding.check}: {finding.why}")
                if finding.level == "violation" and finding.examples:
                    place = f"{finding.check} of {split.config}/{split.split}"
                    findings.notes.append(f"{place}: {', '.join(finding.examples)}")
        findings.notes = list(dict.fromkeys(findings.notes))
        splits.notes.append(f"{self.violations:,} violations" if self.violations else "no violation")
        return Tables(self.dataset, [splits, findings] if findings.rows else [splits])

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "dataset": self.dataset,
            "folder": str(self.folder),
            "violations": self.violations,
            "splits": [asdict(split) for split in self.splits],
        }


class Tally:
    """Counts of issues by check, with descriptions of the first few."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}
        self._repeats: Counter[str] = Counter()

    def add(self, check: str, count: int, examples: Iterable[str] = ()) -> None:
        """Add ``count`` issues of ``check``; ``examples`` is consumed only until `MAX_EXAMPLES` are stored."""
        if count <= 0:
            return
        self.counts[check] += int(count)
        kept = self.examples.setdefault(check, [])
        for example in examples:
            if example in kept:
                self._repeats[check] += 1
            elif len(kept) >= MAX_EXAMPLES:
                return
            else:
                kept.append(example)

    def describe(self, words: Mapping[str, str]) -> Iterator[str]:
        """Yield a line with count and examples for each check that has issues, in the order of ``words``."""
        for check, title in words.items():
            if count := self.counts[check]:
                examples = self.examples[check]
                more = count > len(examples) + self._repeats[check]
                yield f"{title}: {count:,} ({', '.join(examples)}{', ..' if more else ''})"


class UniqueStrings:
    """Collection of strings that should be unique: added batch by batch, counted at the end."""

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add the values of a batch."""
        values = values.cast(pa.string())
        self._chunks.extend(values.chunks if isinstance(values, pa.ChunkedArray) else [values])

    def find_repeated(self) -> list[tuple[str, int]]:
        """Return (value, count) of each value that occurs more than once."""
        if not self._chunks:
            return []
        counts = pc.value_counts(pa.chunked_array(self._chunks, pa.string()))
        often = counts.filter(pc.greater(counts.field("counts"), 1))
        return [(entry["values"], entry["counts"]) for entry in often.to_pylist()]
