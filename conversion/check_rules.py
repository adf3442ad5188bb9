"""Rules of a dataset's `check` verb: which splits to read, what to check, and which findings are no violations.

`check` compares the rows with each other, and the files with the digests that `build` recorded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec
import pyarrow as pa

from eraser_hub.conversion.built import BuiltDataset, open_built, read_rows
from eraser_hub.conversion.errors import DataErrors
from eraser_hub.records.errors import DataError

from .card import find_card_issues
from .checks import Finding, Level, Report, SplitReport, Tally
from .dataset import RELEASE, HubDataset, read_release
from .written_files import verify_digests


class Quirk(NamedTuple):
    """Explanation of a finding that is no violation, and the most records that it explains (None: any number)."""

    why: str
    most: int | None = None


class SplitCheck(Protocol):
    """Checks of one split, fed batch by batch."""

    rows: int
    documents: int | None

    def batch(self, rows: pa.Table, tally: Tally) -> None:
        """Check the next rows of the split, in order."""

    def finish(self, tally: Tally) -> None:
        """Run the checks that need the whole split."""


class CheckRules(ABC):
    """Base class of a dataset's `check` verb: the checks of its splits, and the findings that are no violations.

    Attributes:
        facts: name and configurations of the dataset.
        schema: schema of every file; its first column has the ids.
        entry: type of a config's entry in release.json.
        whole: the columns without nulls; see `records.places.read_rows`.
        quirks: (config, split, check) -> quirk; ``*`` stands for any config or split.
        notes: check -> explanation; a finding of these checks is no violation anywhere.
    """

    facts: HubDataset
    schema: pa.Schema
    entry: type[msgspec.Struct]
    whole: tuple[str, ...] = ()
    quirks: Mapping[tuple[str, str, str], Quirk] = MappingProxyType({})
    notes: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def make_split_check(self, built: BuiltDataset, config: str) -> SplitCheck:
        """Return the checks of one split."""

    @abstractmethod
    def get_label_names(self, built: BuiltDataset, config: str) -> Mapping[str, Sequence[str]]:
        """Return column -> label names of a configuration, in order."""

    def check_all(self, built: BuiltDataset, config: str, checks: Mapping[str, Any], tally: Tally) -> None:  # noqa: B027
        """Check all splits of a configuration together; ``checks`` maps each split to its finished checks."""

    def check(self, folder: Path, configs: Sequence[str] | None = None) -> Report:
        """Return the integrity report of a built folder, including the comparison of card and Parquet files.

        Raises:
            DataError: the folder, its card or a Parquet file cannot be read; an unknown configuration.
        """
        built = open_built(folder)
        report = Report(built.folder.name, folder)
        release, files = self._read_release(built)
        for config in built.chosen(configs):
            checks: dict[str, SplitCheck] = {}
            recorded = release.get(config, {}).get("splits", {})
            for split in built.splits(config):
                check, tally = self.make_split_check(built, config), Tally()
                self._check_split(built, config, split, check, recorded.get(split, {}), tally)
                checks[split] = check
                findings = self._make_findings(config, split, tally)
                report.splits.append(SplitReport(config, split, check.rows, check.documents, findings))
            tally = Tally()
            self.check_all(built, config, checks, tally)
            _check_card(built, config, self.get_label_names(built, config), tally)
            if release:
                missing = recorded.keys() ^ checks.keys()
                tally.add("splits", len(missing), (f"{name}: in {RELEASE} or on the card alone" for name in missing))
            if findings := self._make_findings(config, "all", tally):
                report.splits.append(SplitReport(config, "all", sum(c.rows for c in checks.values()), None, findings))
        if findings := self._make_findings("all", "files", files):
            report.splits.append(SplitReport("all", "files", 0, None, findings))
        return report

    def _read_release(self, built: BuiltDataset) -> tuple[dict[str, Any], Tally]:
        """Return the configs of release.json, and the findings about the files beside the rows."""
        tally = Tally()
        try:
            release = read_release(built.folder, self.entry)
        except DataError as error:
            tally.add(RELEASE, 1, [error.message])
            return {}, tally
        unknown = release.keys() ^ set(built.configs)
        tally.add("configs", len(unknown), (f"{name}: in {RELEASE} or on the card alone" for name in unknown))
        try:
            verify_digests(built.folder)
        except DataError as error:
            for each in error.errors if isinstance(error, DataErrors) else [error]:
                path = Path(each.file or built.folder).relative_to(built.folder).as_posix()
                tally.add("files", 1, [f"{path}: {each.message}"])
        return release, tally

    def _check_split(
        self, built: BuiltDataset, config: str, split: str, check: SplitCheck, recorded: Mapping[str, Any], tally: Tally
    ) -> None:
        """Check the rows of a split, and compare their number with that in release.json."""
        for batch in read_rows(built.splits(config)[split], self.schema.names, kinds=self.schema, whole=self.whole):
            check.batch(batch, tally)
        check.finish(tally)
        if recorded and recorded["num_examples"] != check.rows:
            words = f"build recorded {recorded['num_examples']:,}, found {check.rows:,}"
            tally.add("number of rows", 1, [words])

    def _make_findings(self, config: str, split: str, tally: Tally) -> list[Finding]:
        """Return the findings of a tally, violations first."""
        findings = []
        for check, count in tally.counts.items():
            keys = ((config, split, check), (config, "*", check), ("*", split, check), ("*", "*", check))
            quirk = next((self.quirks[key] for key in keys if key in self.quirks), None)
            level: Level = "note" if check in self.notes else "violation"
            why = self.notes.get(check, "")
            if quirk is not None:
                expected = quirk.most is None or count <= quirk.most
                level, why = ("quirk", quirk.why) if expected else ("violation", f"expected {quirk.most:,} at most")
            findings.append(Finding(check, level, count, tuple(tally.examples[check]), why=why))
        return sorted(findings, key=lambda item: ("violation", "quirk", "note").index(item.level))


def _check_card(built: BuiltDataset, config: str, label_names: Mapping[str, Sequence[str]], tally: Tally) -> None:
    """Compare the card's entry of a configuration (columns, types, counts, labels) with its Parquet files."""
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
    for fault in find_card_issues(built, config, schema):
        where = f"{config}/{fault.field}" if fault.file is None else Path(fault.file).name
        tally.add("card", 1, [f"{where}: {fault.message}"])
    found = built.class_labels(config)
    for column, names in label_names.items():
        if found.get(column) != tuple(names):
            words = f"expected the labels {list(names)}, found {list(found.get(column, ()))}"
            tally.add("card", 1, [f"{config}/{column}: {words}"])
