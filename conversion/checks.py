"""What `check` found in a dataset: counts by kind with an example, and the kinds that are no violation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import Cell, Table, Tables

ALL = "all"  # in place of a split: a finding about several splits, or files beside them


class Quirk(NamedTuple):
    """Why a finding is no violation, and how many the release is known for (None: any number)."""

    why: str
    most: int | None = None


@dataclass(slots=True)
class Finding:
    """A kind of finding in a split: how often, the first example, and why it is no violation ("" for one)."""

    config: str
    split: str
    kind: str
    count: int
    example: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.config}/{self.split}: {self.kind}: {self.count:,}" + (
            f" (e.g. {self.example})" * bool(self.example)
        )


@dataclass(slots=True)
class CheckResult:
    """The findings of `check`.

    Attributes:
        dataset: the name of the dataset.
        folder: the folder that was checked.
        rows: (config, split) -> number of rows.
        findings: by config, split and kind, in the order of the checks.
        quirks: (config, split, kind) -> what explains it; ``*`` stands for any config or split.
    """

    dataset: str
    folder: Path
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    quirks: Mapping[tuple[str, str, str], Quirk] = field(default_factory=dict, repr=False)

    def add(self, config: str, split: str, kind: str, examples: Iterable[str], count: int | None = None) -> None:
        """Add findings of a kind; none where there is no example.

        Args:
            config: the configuration.
            split: the split, or `ALL`.
            kind: the name of the check, for example ``evidence text``.
            examples: a description of each; of many the first is taken where ``count`` says how many there are.
            count: how many there are.
        """
        examples = iter(examples)
        example = next(examples, None)
        if example is None:
            return
        count = 1 + sum(1 for _ in examples) if count is None else count
        for found in self.findings:
            if (found.config, found.split, found.kind) == (config, split, kind):
                found.count += count
                break
        else:
            found = Finding(config, split, kind, count, example)
            self.findings.append(found)
        keys = ((config, split, kind), (config, "*", kind), ("*", "*", kind))
        quirk = next((self.quirks[key] for key in keys if key in self.quirks), None)
        known = quirk is not None and (quirk.most is None or found.count <= quirk.most)
        found.why = quirk.why if quirk is not None and known else ""

    @property
    def errors(self) -> list[DataError]:
        """A violation each; empty for a dataset in order."""
        return [DataError(str(found), file=self.folder) for found in self.findings if not found.why]

    @property
    def failed(self) -> bool:
        """True if there is a violation."""
        return any(not found.why for found in self.findings)

    def table(self, whole: bool = False) -> Tables:
        """Return a table of the splits, and of the findings if there are any."""
        splits = Table("splits", f"{self.dataset}: {self.folder}", ("config", "split"), ("rows", "violations"))
        for (config, split), rows in self.rows.items():
            here = [one for one in self.findings if (one.config, one.split) == (config, split) and not one.why]
            splits.add(config, split, rows=Cell(rows), violations=Cell(sum(one.count for one in here)))
        findings = Table("findings", "Findings", ("level", "config", "split", "check"), ("count",))
        for found in sorted(self.findings, key=lambda one: bool(one.why)):
            level = "known" if found.why else "violation"
            findings.add(level, found.config, found.split, found.kind, count=Cell(found.count))
            findings.notes.append(f"{found.kind}: {found.why}" if found.why else str(found))
        findings.notes = list(dict.fromkeys(findings.notes))
        total = sum(found.count for found in self.findings if not found.why)
        splits.notes.append(f"{total:,} violation{'s' * (total > 1)}" if total else "no violation")
        return Tables(self.dataset, [splits, findings] if findings.rows else [splits])

    def as_json(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        return {
            "dataset": self.dataset,
            "folder": str(self.folder),
            "rows": [{"config": config, "split": split, "rows": rows} for (config, split), rows in self.rows.items()],
            "findings": [asdict(found) for found in self.findings],
        }
