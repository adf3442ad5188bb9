"""Datasets whose configurations fit in memory: build, check and export from methods that read and write their files.

``eraser`` has its own verbs. The bilingual benchmark and the human rationales have some thousand rows per
configuration. Facts that a row cannot hold are stored beside the data: the format of the files in ``release.json``, and
released lines in ``records/CONFIG.parquet``. `export` reads both; neither is part of a configuration.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from eraser_hub.conversion.built import BuiltDataset, open_built, read_card, read_rows
from eraser_hub.conversion.files import link_or_copy, rebuild_folder, write_files
from eraser_hub.records.errors import DataError, UsageError
from eraser_hub.records.files import compute_file_digest

from .card import CARDS, ConfigWords, add_configs, compute_content_version, make_card_text
from .check_rules import CheckRules, SplitCheck
from .checks import Tally, UniqueStrings
from .dataset import (
    RELEASE,
    BuildOptions,
    BuildResult,
    ExportResult,
    HubDataset,
    Verbs,
    build_each,
    read_existing_release,
    read_release,
)
from .finish import finish_build
from .parquet import write_parquet
from .written_files import is_recorded

Row = Mapping[str, Any]
RECORDS = pa.schema([("file", pa.string()), ("line", pa.int32()), ("text", pa.string())])


class ReleasedFile(msgspec.Struct):
    """Entry of a released file in ``release.json``: its format, its split or kind, and counts of skipped lines."""

    file: str
    byte_order_mark: bool
    final_newline: bool
    lines: int = 0
    split: str | None = None
    kind: str | None = None
    skipped: dict[str, int] = {}


class SplitFacts(msgspec.Struct):
    """Entry of a split: its size, and name -> SHA-256 of its files."""

    files: dict[str, str]
    num_examples: int
    num_bytes: int


class Entry(msgspec.Struct):
    """Entry of a configuration in ``release.json``."""

    files: list[ReleasedFile]
    splits: dict[str, SplitFacts]
    digests: dict[str, str]  # path -> SHA-256 of files beside the rows
    version: str
    download_size: int


class Sources(NamedTuple):
    """The files in a user's folder.

    Attributes:
        files: config -> split (or kind of file) -> path; no entry for a missing config.
        root: config -> the folder to which exported names are relative.
        notes: one sentence per missing or skipped file.
        beside: kind -> path of further files with content of the rows, which no export writes.
    """

    files: dict[str, dict[str, Path]]
    root: dict[str, Path]
    notes: list[str]
    beside: dict[str, Path] = {}  # noqa: RUF012 - never written to


class ConfigTables(NamedTuple):
    """One configuration, ready to be written.

    Attributes:
        splits: split -> rows.
        files: facts of each released file: its name, ``byte_order_mark``, ``final_newline``, and other facts that the
            export needs.
        records: (file, 1-based line, text) of lines that rows and ``files`` cannot restore.
    """

    splits: Mapping[str, pa.Table]
    files: Sequence[Mapping[str, Any]]
    records: Sequence[tuple[str, int, str]] = ()


class SmallDataset(CheckRules, Verbs):
    """Base class of a dataset whose configurations fit in memory; subclasses read and write its files.

    Attributes:
        facts: name and configurations; the card is ``datasets_scripts/cards/NAME.md``.
        words: config -> its description for the card.
        wanted: the files that a build needs, for errors.
        related: the columns of all rows that `look_at_rows` checks.
        one_folder: the names of the files differ between configurations, and an export needs one folder for all.
    """

    facts: HubDataset
    words: Mapping[str, ConfigWords]
    wanted: str
    related: tuple[str, ...] = ()
    one_folder = False
    entry = Entry

    @abstractmethod
    def find(self, folder: Path, configs: Sequence[str] | None = None) -> Sources:
        """Find the files of the configs, or of all configs in the folder.

        Raises:
            DataError: there is no file, or none of a requested config.
        """

    @abstractmethod
    def read(self, config: str, sources: Sources, notes: list[str]) -> ConfigTables:
        """Read a configuration's files; ``notes`` receives lines for the user.

        Raises:
            DataError: an invalid file, with the line.
        """

    @abstractmethod
    def lines(
        self, config: str, file: Mapping[str, Any], kept: Mapping[int, str], built: Callable[[], BuiltDataset]
    ) -> list[str]:
        """Return the lines of a released file.

        Args:
            config: the configuration.
            file: the file's entry in release.json.
            kept: line -> text, of the lines that are stored as released.
            built: opens the built folder.

        Raises:
            DataError: the stored data do not make up the file.
        """

    @abstractmethod
    def look_at_row(self, row: Row, config: str, tally: Tally) -> None:
        """Check one row."""

    @abstractmethod
    def card_tables(self, folder: Path) -> Mapping[str, str]:
        """Return the card's generated prose: marker -> markdown."""

    def look_at_rows(self, rows: Sequence[Row], tally: Tally) -> None:
        """Check the relations between the rows of a split."""

    def splits(self, files: Mapping[str, Path]) -> Iterable[str]:
        """Return the splits that a configuration's files make."""
        return files

    # -- build --------------------------------------------------------------------------------------------------------

    def build(
        self, source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
    ) -> BuildResult:
        """Build ``out/NAME`` in this process, and keep its other configurations.

        Raises:
            DataError: there is no ``source``, no file in it, or an invalid file; BusyError if another build is running.
        """
        if source is None:
            raise UsageError(f"expected `source` {self.wanted}")
        sources = self.find(source, configs)
        notes = list(sources.notes)
        target = Path(out) / self.facts.name
        read_existing_release(target, Entry)  # refuses a folder that no build wrote
        tables, failed = build_each(list(sources.files), lambda name: self.read(name, sources, notes))
        with rebuild_folder(target) as folder:
            release = read_existing_release(target, Entry)
            kept = [name for name in release if name not in tables]
            release |= {name: self._write(name, tables[name], folder) for name in tables}
            for name in kept:
                for file in (*(target / name).glob("*.parquet"), *(target / "records").glob(f"{name}.parquet")):
                    if is_recorded(target, file.relative_to(target).as_posix()):
                        link_or_copy(file, folder / file.relative_to(target))
            release = {name: release[name] for name in self.facts.configs if name in tables or name in kept}
            folders = (*self.facts.configs, "records")
            finish_build(target, folder, self.schema, release, lambda: self.make_card(release, folder), folders)
        rows = {name: {split: part.num_rows for split, part in built.splits.items()} for name, built in tables.items()}
        return BuildResult(target, rows, notes, failed)

    def _write(self, config: str, tables: ConfigTables, folder: Path) -> dict[str, Any]:
        """Write a configuration's files and return its entry in release.json."""
        splits, digests = dict[str, dict[str, Any]](), dict[str, str]()
        written = {
            split: write_parquet(folder / config / f"{split}-00000-of-00001.parquet", self.schema, [table])
            for split, table in tables.splits.items()
        }
        if tables.records:
            columns = list(zip(*tables.records, strict=True))
            records = pa.table([pa.array(c, t.type) for c, t in zip(columns, RECORDS, strict=True)], schema=RECORDS)
            path = f"records/{config}.parquet"
            digests[path] = write_parquet(folder / path, RECORDS, [records]).sha256
        for split, facts in written.items():
            splits[split] = {
                "files": {f"{split}-00000-of-00001.parquet": facts.sha256},
                "num_examples": facts.num_rows,
                "num_bytes": facts.num_bytes,
            }
        return {
            "files": [dict(file) for file in tables.files],
            "splits": splits,
            "digests": digests,
            "version": compute_content_version(facts.sha256 for facts in written.values()),
            "download_size": sum(facts.file_bytes for facts in written.values()),
        }

    def make_card(self, release: Mapping[str, Any], folder: Path) -> str:
        """Return the card of the configurations in release.json, whose files are in ``folder``."""
        infos: list[Mapping[str, Any]] = []
        for name, entry in release.items():
            sizes = {split: (of["num_bytes"], of["num_examples"]) for split, of in entry["splits"].items()}
            words = self.words[name]
            infos.append(words.make_entry(name, self.schema, entry["version"], sizes, entry["download_size"]))
        metadata, prose = read_card(CARDS / f"{self.facts.name}.md")
        metadata = add_configs(metadata, infos, self.facts.default_config, "{config}/{split}-*.parquet")
        # the tables are computed from the files, and opening these needs a card
        (folder / "README.md").write_text(make_card_text(metadata, prose), encoding="utf-8")
        for marker, markdown in self.card_tables(folder).items():
            prose = prose.replace(f"<!-- {marker} -->", markdown.strip())
        return make_card_text(metadata, prose)

    # -- check --------------------------------------------------------------------------------------------------------

    def make_split_check(self, built: BuiltDataset, config: str) -> SplitCheck:
        """Return the checks of one split: row by row, and unique ids."""
        return _RowCheck(self, config)

    def get_label_names(self, built: BuiltDataset, config: str) -> Mapping[str, Sequence[str]]:
        """Return the label names of the configuration."""
        return self.words[config].label_names

    # -- export -------------------------------------------------------------------------------------------------------

    def export(self, dataset: Path, configs: Sequence[str] | None, out: Path, force: bool = False) -> ExportResult:
        """Write the released files of configurations: all of them, or none if one is damaged or cannot be written.

        Raises:
            DataError: an unknown configuration, a damaged folder, or a file that exists already.
        """
        release = read_release(dataset, Entry)
        built = lru_cache(partial(open_built, dataset))
        contents: dict[Path, bytes] = {}
        for config in configs or release:
            if config not in release:
                message = f"expected one of the configs {', '.join(release)}, found {config!r}"
                raise UsageError(message, file=dataset)
            kept = _read_records(dataset, config)
            try:
                for file in release[config]["files"]:
                    name = PurePosixPath(file["file"])
                    if not name.parts or name.is_absolute() or {"..", "\0", "\\"} & {*name.parts, *file["file"]}:
                        message = f"expected the name of a file below the folder, found {file['file']!r}"
                        raise DataError(message, file=dataset / RELEASE)
                    target = (out if self.one_folder else out / config) / name
                    lines = self.lines(config, file, kept.get(file["file"], {}), built)
                    mark, newline = "\ufeff" * file["byte_order_mark"], "\n" * (file["final_newline"] and bool(lines))
                    contents[target] = (mark + "\n".join(lines) + newline).encode("utf-8")
            except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
                if isinstance(error, DataError):
                    raise error if error.file else error.at(file=dataset / "records" / f"{config}.parquet") from None
                message = f"cannot be understood ({error!r})"
                raise DataError(message, file=dataset / RELEASE, field=config) from None
        write_files(contents, out / f".{self.facts.name}.exporting", force=force)
        return ExportResult(out, list(contents), self.describe_export(configs or list(release)))

    def describe_export(self, configs: Sequence[str]) -> list[str]:
        """Return lines for the user about files that an export does not write."""
        return []


class _RowCheck:
    """Checks of a split row by row; ids must be unique."""

    documents: int | None = None

    def __init__(self, dataset: SmallDataset, config: str) -> None:
        self.dataset, self.config, self.rows = dataset, config, 0
        self._ids, self._related = UniqueStrings(), list[Row]()

    def batch(self, rows: pa.Table, tally: Tally) -> None:
        self.rows += rows.num_rows
        self._ids.add(rows["id"])
        for row in rows.to_pylist():
            self.dataset.look_at_row(row, self.config, tally)
        if self.dataset.related:
            self._related += rows.select(self.dataset.related).to_pylist()

    def finish(self, tally: Tally) -> None:
        for identifier, times in self._ids.find_repeated():
            tally.add("repeated ids", 1, [f"id {identifier}: {times} times"])
        self.dataset.look_at_rows(self._related, tally)


def compute_content_hash(files: Iterable[Path]) -> str:
    """Return sixteen hexadecimal digits that depend on the contents of the files."""
    return hashlib.sha256("\n".join(compute_file_digest(path) for path in files).encode()).hexdigest()[:16]


def _read_records(folder: Path, config: str) -> dict[str, dict[int, str]]:
    """Return file -> line -> text, of the lines that are stored as released."""
    path = Path(folder) / "records" / f"{config}.parquet"
    kept: dict[str, dict[int, str]] = {}
    for rows in read_rows([path] if path.is_file() else [], RECORDS.names, kinds=RECORDS):
        for file, line, text in zip(*(rows[name].to_pylist() for name in RECORDS.names), strict=True):
            kept.setdefault(file, {})[line] = text
    return kept
