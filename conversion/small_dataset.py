"""Datasets whose configurations fit in memory: build, check and export, out of how a dataset reads and spells files.

``eraser`` has verbs of its own; the bilingual benchmark and the human rationales are some thousand rows a
configuration. What a row cannot hold lies beside the data: the files' manner in ``release.json``, and lines as they
were released in ``records/CONFIG.parquet``; both serve `export` and are part of no configuration.
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

from eraser_hub.records.atomic import link_or_copy, rebuild_folder
from eraser_hub.records.built import BuiltDataset, open_built, read_card, read_rows
from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError

from .card import CARDS, ConfigWords, card_text, content_version, with_configs
from .checks import CheckRules, SplitCheck, Tally, UniqueStrings
from .dataset import (
    RELEASE,
    BuildOptions,
    BuildResult,
    ExportResult,
    HubDataset,
    Verbs,
    each_of,
    read_release,
    standing,
)
from .finish import finish_build
from .parquet import write_parquet

Row = Mapping[str, Any]
RECORDS = pa.schema([("file", pa.string()), ("line", pa.int32()), ("text", pa.string())])


class ReleasedFile(msgspec.Struct):
    """What ``release.json`` holds of a released file: its manner, its split or kind, and what was left out of it."""

    file: str
    byte_order_mark: bool
    final_newline: bool
    lines: int = 0
    split: str | None = None
    kind: str | None = None
    skipped: dict[str, int] = {}


class Entry(msgspec.Struct):
    """What ``release.json`` holds of a configuration."""

    files: list[ReleasedFile]


class Sources(NamedTuple):
    """The files in a user's folder.

    Attributes:
        files: config -> split, or kind of file -> its path; no entry for a config that is not there.
        root: config -> the folder that exported names are relative to.
        notes: a sentence for what is missing or left out.
        beside: further files that rows are made of, and that no export writes, by kind.
    """

    files: dict[str, dict[str, Path]]
    root: dict[str, Path]
    notes: list[str]
    beside: dict[str, Path] = {}  # noqa: RUF012 - never written to


class ConfigTables(NamedTuple):
    """One configuration, ready to be written.

    Attributes:
        splits: split -> its rows.
        files: of each released file what is constant in it: its name, ``byte_order_mark``, ``final_newline``, and what
            the dataset's export goes by.
        records: (file, 1-based line, text) of lines that rows and ``files`` do not give back.
    """

    splits: Mapping[str, pa.Table]
    files: Sequence[Mapping[str, Any]]
    records: Sequence[tuple[str, int, str]] = ()


class SmallDataset(CheckRules, Verbs):
    """A dataset whose configurations fit in memory: all of the verbs, out of how its files are read and spelled.

    Attributes: those of `CheckRules`, and
        facts: name and configurations; the card is ``datasets_scripts/cards/NAME.md``.
        words: config -> what the card says of it.
        wanted: which files a build wants, in an error.
        related: the columns of all rows that `look_at_rows` looks at.
    """

    facts: HubDataset
    words: Mapping[str, ConfigWords]
    wanted: str
    related: tuple[str, ...] = ()

    @abstractmethod
    def find(self, folder: Path, configs: Sequence[str] | None = None) -> Sources:
        """Look for the files of the configs, or of all that are there.

        Raises:
            DataError: no file is there, or one that was asked for is not.
        """

    @abstractmethod
    def read(self, config: str, sources: Sources, notes: list[str]) -> ConfigTables:
        """Read a configuration's files; ``notes`` receives lines for the user.

        Raises:
            DataError: an issue in a file, with its line.
        """

    @abstractmethod
    def lines(
        self, config: str, file: Mapping[str, Any], kept: Mapping[int, str], built: Callable[[], BuiltDataset]
    ) -> list[str]:
        """Return the lines of a released file.

        Args:
            config: the configuration.
            file: the file's part of release.json.
            kept: line -> text, of the lines that are kept whole.
            built: opens the built folder.

        Raises:
            DataError: what is kept does not make the file.
        """

    @abstractmethod
    def look_at_row(self, row: Row, config: str, tally: Tally) -> None:
        """Check one row."""

    @abstractmethod
    def card_tables(self, folder: Path) -> Mapping[str, str]:
        """Return the card's generated prose: marker -> markdown."""

    def look_at_rows(self, rows: Sequence[Row], tally: Tally) -> None:
        """Check what relates the rows of a split to one another."""

    def splits(self, files: Mapping[str, Path]) -> Iterable[str]:
        """Return the splits that a configuration's files make."""
        return files

    def exported(self, out: Path, config: str) -> Path:
        """Return the folder below ``out`` that the names of a configuration's files are relative to."""
        return out / config

    # -- build --------------------------------------------------------------------------------------------------------

    def build(
        self, source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
    ) -> BuildResult:
        """Build ``out/NAME``, others of its configurations are kept; one process does it in seconds.

        Raises:
            DataError: no ``source``, no file in it, or an issue in a file; BusyError when another build is at work.
        """
        if source is None:
            raise DataError(f"expected `source` {self.wanted}", rule="option-missing")
        sources = self.find(source, configs)
        no_backups = "`include_backup_records`: this dataset has no backup files"
        notes = [*sources.notes, *([no_backups] * options.include_backup_records)]
        target = Path(out) / self.facts.name
        standing(target, Entry)  # somebody else's folder is not replaced
        tables, failed = each_of(list(sources.files), lambda name: self.read(name, sources, notes))
        with rebuild_folder(target) as folder:
            release = standing(target, Entry)
            kept = {name: open_built(target).info(name) for name in release.keys() - tables.keys()}
            infos: list[Mapping[str, Any]] = []
            for name in self.facts.configs:
                if name in tables:
                    infos.append(self._write(name, tables[name], folder))
                    release[name] = {"files": [dict(file) for file in tables[name].files]}
                elif kept.get(name):
                    infos.append(kept[name])
                    for file in (*(target / name).glob("*.parquet"), *(target / "records").glob(f"{name}.parquet")):
                        link_or_copy(file, folder / file.relative_to(target))
            release = {info["config_name"]: release[info["config_name"]] for info in infos}
            folders = (*self.facts.configs, "records")
            finish_build(target, folder, self.schema, release, lambda: self._card(infos, folder), folders)
        rows = {name: {split: part.num_rows for split, part in of.splits.items()} for name, of in tables.items()}
        return BuildResult(target, rows, notes, failed)

    def _write(self, config: str, tables: ConfigTables, folder: Path) -> dict[str, Any]:
        """Write a configuration's files; its entry in the card's ``dataset_info``."""
        written = {
            split: write_parquet(folder / config / f"{split}-00000-of-00001.parquet", self.schema, [table])
            for split, table in tables.splits.items()
        }
        if tables.records:
            columns = list(zip(*tables.records, strict=True))
            records = pa.table([pa.array(c, t.type) for c, t in zip(columns, RECORDS, strict=True)], schema=RECORDS)
            write_parquet(folder / "records" / f"{config}.parquet", RECORDS, [records])
        return self.words[config].entry(
            config,
            self.schema,
            content_version(facts.sha256 for facts in written.values()),
            {split: (facts.num_bytes, facts.num_rows) for split, facts in written.items()},
            sum(facts.file_bytes for facts in written.values()),
        )

    def _card(self, infos: Sequence[Mapping[str, Any]], folder: Path) -> str:
        metadata, prose = read_card(CARDS / f"{self.facts.name}.md")
        metadata = with_configs(metadata, infos, self.facts.default_config, "{config}/{split}-*.parquet")
        # the tables are computed from the files, which are found through a card
        (folder / "README.md").write_text(card_text(metadata, prose), encoding="utf-8")
        for marker, markdown in self.card_tables(folder).items():
            prose = prose.replace(f"<!-- {marker} -->", markdown.strip())
        return card_text(metadata, prose)

    # -- check --------------------------------------------------------------------------------------------------------

    def split_check(self, built: BuiltDataset, config: str, leakage: bool) -> SplitCheck:
        """Return what looks at one split: row by row, for ids that are unique."""
        return _RowCheck(self, config)

    # -- the files again ----------------------------------------------------------------------------------------------

    def export(self, dataset: Path, configs: Sequence[str] | None, out: Path) -> ExportResult:
        """Write the released files of configurations back; nothing is written when one of them cannot be.

        Raises:
            DataError: a configuration that is not there, a damaged folder, a file that stands there already.
        """
        release = read_release(dataset, Entry)
        built = lru_cache(partial(open_built, dataset))
        contents: dict[Path, bytes] = {}
        for config in configs or release:
            if config not in release:
                message = f"expected one of the configs {', '.join(release)}, found {config!r}"
                raise DataError(message, rule="option-value", file=dataset)
            kept = _records(dataset, config)
            try:
                for file in release[config]["files"]:
                    target = _safe_target(self.exported(out, config), file["file"], dataset / RELEASE)
                    lines = self.lines(config, file, kept.get(file["file"], {}), built)
                    mark, newline = "\ufeff" * file["byte_order_mark"], "\n" * (file["final_newline"] and bool(lines))
                    contents[target] = (mark + "\n".join(lines) + newline).encode("utf-8")
            except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
                if isinstance(error, DataError):
                    raise error if error.file else error.at(file=dataset / "records" / f"{config}.parquet") from None
                message = f"cannot be understood ({error!r})"
                raise DataError(message, rule="input", file=dataset / RELEASE, field=config) from None
        for target, content in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return ExportResult(out, list(contents), self.export_notes(configs or list(release)))

    def export_notes(self, configs: Sequence[str]) -> list[str]:
        """Return lines for the user on what an export does not write."""
        return []


class _RowCheck:
    """Looks at a split row by row; ids are unique."""

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
        for identifier, times in self._ids.repeated():
            tally.add("repeated ids", 1, [f"id {identifier}: {times} times"])
        self.dataset.look_at_rows(self._related, tally)


def content_hash(files: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits that change with the contents of any of the files."""
    return hashlib.sha256("\n".join(compute_file_digest(path) for path in files).encode()).hexdigest()[:16]


def _records(folder: Path, config: str) -> dict[str, dict[int, str]]:
    """file -> line -> text, of the lines that are kept whole."""
    path = Path(folder) / "records" / f"{config}.parquet"
    kept: dict[str, dict[int, str]] = {}
    for rows in read_rows([path] if path.is_file() else [], RECORDS.names, kinds=RECORDS):
        for file, line, text in zip(*(rows[name].to_pylist() for name in RECORDS.names), strict=True):
            kept.setdefault(file, {})[line] = text
    return kept


def _safe_target(out: Path, name: str, release: Path) -> Path:
    """``out/name`` for a name out of a release.json, which is data: it stays below ``out``, where nothing may be."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
        raise DataError(f"expected the name of a file below the folder, found {name!r}", rule="file-name", file=release)
    target = out.joinpath(*parts)
    if target.exists():
        raise DataError("stands there already; nothing is overwritten", rule="file-exists", file=target)
    return target
