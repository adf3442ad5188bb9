"""One frame for all datasets: `build`, `check`, `stats` and `export`, over what a dataset declares.

A dataset is a subclass of `HubDataset`: its configurations and columns, where its raw files are (`find`), how they
become tables (also `find`), what may be wrong in a row (`check_config`), and its papers' tables (`make_tables`).
docs/add-a-dataset.md makes one.

    hub/NAME/README.md                            the card
    hub/NAME/CONFIG/SPLIT-00000-of-00001.parquet
    hub/NAME/release.json                         what the rows cannot hold, and the digests of the files
    hub/NAME/eval.yaml                            the scores that rank systems, see `leaderboard`
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
import pyarrow.compute
from tqdm import tqdm

from eraser_hub.records.errors import BusyError, DataError, UsageError, describe_choice, show
from eraser_hub.records.files import compute_file_digest
from eraser_hub.records.places import Place
from eraser_hub.records.readers import read_json_object
from eraser_hub.records.tables import Tables
from eraser_hub.version import __version__

from .built import RELEASE, BuiltDataset, describe_folder, open_built, read_card, read_rows
from .card import (
    CARDS,
    EVAL_YAML,
    ConfigInfo,
    Headline,
    compute_content_version,
    fill_prose,
    insert_picture,
    make_card_metadata,
    make_card_text,
    make_eval_yaml,
    make_features,
)
from .checks import ALL, CheckResult, Quirk
from .download import NotReleased, Unreachable
from .files import carry_over, link_or_copy, rebuild_folder
from .parquet import describe_feature, write_parquet
from .readers import convert_type

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers
log = logging.getLogger("eraser_hub")
FORMAT = 3  # of release.json
RECORDS = pa.schema([("file", pa.string()), ("content", pa.binary())])


class SplitEntry(msgspec.Struct):
    """Entry of a split in ``release.json``: its numbers, and what its rows cannot hold."""

    num_examples: int
    num_bytes: int
    facts: dict[str, Any] = {}


class ConfigEntry(msgspec.Struct):
    """Entry of a configuration: version, size, splits, path -> SHA-256 of its files, and what no split holds."""

    version: str
    download_size: int
    splits: dict[str, SplitEntry]
    files: dict[str, str]
    facts: dict[str, Any] = {}


@dataclass(slots=True)
class RawConfig:
    """The raw files of a configuration, found and ready to be read once.

    Attributes:
        splits: split -> its tables, which are read when they are asked for.
        beside: path in the dataset's folder -> a file to copy, or what makes tables after all splits were read
            (without any there is no file).
        facts: what rows cannot hold, as JSON; may be filled while the splits are read.
        split_facts: the same of a split.
        files: the released files, by the paths under which `export` writes them, where rows do not restore them.
        sources: all files whose change makes another dataset.
        notes: lines for the user; may grow while the splits are read.
    """

    splits: Mapping[str, Iterable[pa.Table]]
    beside: dict[str, Path | Callable[[], Iterable[pa.Table]]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    split_facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    sources: Sequence[Path] = ()
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Result of a build: the folder, config -> split -> number of rows, and lines for the user."""

    folder: Path
    rows: dict[str, dict[str, int]]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = []
        for name, splits in self.rows.items():
            counts = ", ".join(f"{split} {rows:,}" for split, rows in splits.items())
            lines.append(f"{self.folder}: {name}: {counts}" if splits else str(self.folder / name))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Result of an export: the files that were written."""

    folder: Path
    files: list[Path]

    def __str__(self) -> str:
        return "\n".join(map(str, self.files))


class HubDataset(ABC):
    """A dataset for the Hub: what it declares, and the four verbs over that.

    Attributes:
        name: of the dataset and its folder.
        configs: config -> its description, in the card's order.
        default_config: the configuration that a load without a name takes.
        schema: the columns of every configuration.
        id_column: the column of the ids, which are unique in a split.
        required: the columns without nulls at any depth; ``name[]`` may be null as a whole.
        headlines: the scores by which the Hub ranks systems; without any there is no ``eval.yaml``.
        quirks: (config, split, check) -> why a finding is no violation; ``*`` stands for any config or split.
    """

    name: str
    configs: Mapping[str, ConfigInfo]
    default_config: str
    schema: ClassVar[pa.Schema]
    id_column: ClassVar[str] = "id"
    required: ClassVar[Sequence[str]] = ()
    headlines: ClassVar[Sequence[Headline]] = ()
    quirks: ClassVar[Mapping[tuple[str, str, str], Quirk]] = {}

    @abstractmethod
    def find(self, source: Path | None, configs: Sequence[str] | None) -> Mapping[str, Callable[[], RawConfig]]:
        """Find the raw files of configurations.

        Args:
            source: the folder of the raw files; None downloads the releases.
            configs: the configurations, all known; None takes those that are there.

        Returns:
            config -> what opens its files; it raises a DataError where they are at fault.

        Raises:
            DataError: there is none.
        """

    @abstractmethod
    def check_config(self, built: BuiltDataset, config: str, result: CheckResult) -> None:
        """Add what is wrong in the rows of a configuration; columns, ids and labels have been checked before."""

    @abstractmethod
    def make_tables(self, built: BuiltDataset, configs: Sequence[str], raw: Path | None = None) -> Tables:
        """Return the papers' tables, computed from the rows.

        Args:
            built: the dataset.
            configs: some of its configurations.
            raw: the folder of the raw files from which it was built, where it is known.
        """

    def make_card_parts(
        self, built: BuiltDataset, counts: Mapping[str, Mapping[str, int]]
    ) -> tuple[Mapping[str, Any], str, Mapping[str, str]]:
        """Return the metadata and the prose of the card, and mark in the prose -> text; see `card.fill_prose`.

        Args:
            built: the dataset.
            counts: config -> split -> number of rows.
        """
        metadata, prose = read_card(CARDS / f"{self.name}.md")
        rows = {config: sum(splits.values()) for config, splits in counts.items()}
        parts = [
            f"`{config}` ({rows[config]:,} rows)" for config in rows if rows[config] < self.configs[config].min_rows
        ]
        extent = f"**A sample, or a part of the release**: {', '.join(parts)}." if parts else ""
        statistics = self.make_tables(built, built.configs).written("markdown")
        return metadata, prose, {"statistics": statistics, "extent": extent}

    def export_config(self, built: BuiltDataset, config: str, entry: Mapping[str, Any], folder: Path) -> None:
        """Write the raw files of a configuration into a folder: those that the build kept."""
        path = built.folder / "records" / f"{config}.parquet"
        for table in read_rows([path], RECORDS.names, kinds=RECORDS, whole=RECORDS.names):
            for file, content in zip(table["file"].to_pylist(), table["content"].to_pylist(), strict=True):
                name = PurePosixPath(file)
                if not name.parts or name.is_absolute() or {"..", "\0", "\\"} & {*name.parts, *file}:
                    message = f"expected the name of a file below the folder, found {show(file)}"
                    raise DataError(message, file=path)
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)

    def open_raw(self, source: Path | None, config: str) -> RawConfig:
        """Return the raw files of one configuration; errors as of `find`."""
        return self.find(source, [config])[config]()

    # -- build --------------------------------------------------------------------------------------------------------

    def build(self, configs: Sequence[str] | None, *, out: Path, source: Path | None = None) -> BuildResult:
        """Build ``out/NAME`` (card and Parquet) from raw files; other configurations in it are kept.

        Args:
            configs: names of configurations; None takes those in ``source``, or all of them without a source.
            out: the folder of the dataset folders.
            source: the folder of the raw files; None downloads the releases.

        Raises:
            DataError: bad input. Of several configurations the others are built first. BusyError: another build runs.
        """
        target, found, notes = Path(out) / self.name, self.find(source, configs), list[str]()
        _read_old(target)  # refuses a folder that no build wrote
        entries, failed = dict[str, dict[str, Any]](), dict[str, DataError]()
        with rebuild_folder(target) as folder:
            for config, open_config in found.items():
                try:
                    raw = open_config()
                    entries[config] = self._write_config(config, raw, folder)
                    notes += raw.notes
                    del raw  # its documents, before those of the next one or of the statistics are read
                    pa.default_memory_pool().release_unused()
                except BusyError:
                    raise
                except DataError as error:
                    if isinstance(error, NotReleased) and not configs:
                        notes.append(f"{config}: left out: {error}")
                        continue
                    failed[config] = error
                    shutil.rmtree(folder / config, ignore_errors=True)
                    if isinstance(error, Unreachable):
                        break
            if not entries:
                raise next(
                    iter(failed.values()), DataError("expected a configuration to build, found none", file=target)
                )
            counts = _count_examples(entries)
            old = _read_old(target)  # under the lock: another build may have finished meanwhile
            for config in old.keys() - entries.keys():
                for fault in self.find_faults(target, config, old[config]):
                    raise DataError(f"{fault}: build {config} again, or remove the folder", file=target)
                entries[config] = old[config]
                for path in old[config]["files"]:
                    link_or_copy(target / path, folder / path)
            entries = {name: entries[name] for name in self.choose(None, entries)}
            self._write_card(folder, target.name, entries)
            written = {path for entry in old.values() for path in entry["files"]} | {RELEASE, EVAL_YAML, "README.md"}
            carry_over(target, folder, lambda path: path.as_posix() in written)
        result = BuildResult(target, counts, notes)
        if failed:
            first, *others = failed.items()
            told = [*notes, *str(result).splitlines(), *(f"{config}: not built: {error}" for config, error in others)]
            for line in (*told, f"{', '.join(failed)}: not built; what stood there stays"):
                log.warning(line)
            raise first[1]
        return result

    def _write_config(self, config: str, raw: RawConfig, folder: Path) -> dict[str, Any]:
        """Write a configuration's files and return its entry in ``release.json``."""
        splits, paths, labels = dict[str, dict[str, Any]](), list[str](), self.configs[config].label_names
        for split, tables in raw.splits.items():
            path = f"{config}/{split}-00000-of-00001.parquet"
            with tqdm(desc=f"{config}/{split}", unit=" rows", delay=2, leave=False, disable=None) as bar:
                written = write_parquet(folder / path, self.schema, _count_rows(tables, bar), labels)
            splits[split] = {**written._asdict(), "facts": raw.split_facts.get(split, {})}
            paths.append(path)
        if raw.files:
            contents = [pa.array(raw.files, pa.string()), pa.array([p.read_bytes() for p in raw.files.values()])]
            raw.beside[f"records/{config}.parquet"] = lambda: [pa.Table.from_arrays(contents, schema=RECORDS)]
        for path, content in raw.beside.items():
            if isinstance(content, Path):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(content, folder / path)
            else:
                tables = iter(content())
                if (first := next(tables, None)) is None:
                    continue
                write_parquet(folder / path, first.schema, chain([first], tables))
            paths.append(path)
        files = {path: compute_file_digest(folder / path) for path in paths}
        size = sum((folder / path).stat().st_size for path in files if path.startswith(f"{config}/"))
        entry = {"version": "", "download_size": size, "splits": splits, "files": files, "facts": raw.facts}
        return {**entry, "version": self.compute_version(config, entry)}

    def compute_version(self, config: str, entry: Mapping[str, Any]) -> str:
        """Return the version that follows from the content of a configuration's entry in ``release.json``."""
        labels = self.configs[config].label_names
        columns = {field.name: describe_feature(field, labels) for field in self.schema}
        return compute_content_version([json.dumps([columns, *(entry[key] for key in ("splits", "files", "facts"))])])

    def find_faults(self, folder: Path, config: str, entry: Mapping[str, Any]) -> Iterator[str]:
        """Yield what of a configuration is not as a build wrote it: its files, or its entry in ``release.json``."""
        for path, digest in entry["files"].items():
            if not (folder / path).is_file():
                yield f"{path}: no such file"
            elif compute_file_digest(folder / path) != digest:
                yield f"{path}: is not what build wrote"
        if self.compute_version(config, entry).rpartition(".")[2] != entry["version"].rpartition(".")[2]:
            yield f"{RELEASE}: what it says of {config} does not give the version {entry['version']}"

    def _write_card(self, folder: Path, name: str, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Write ``release.json``, the card and ``eval.yaml`` of a folder that has all of its Parquet."""
        from huggingface_hub import DatasetCard

        facts = {"format": FORMAT, "version": __version__, "dataset": self.name, "configs": entries}
        (folder / RELEASE).write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        infos = {config: self.configs[config] for config in entries}

        def describe(metadata: Mapping[str, Any]) -> dict[str, Any]:
            return make_card_metadata(metadata, self.schema, infos, entries, self.default_config)

        built = BuiltDataset(folder, describe({}), "", Place(str(folder), None, None))
        metadata, prose, parts = self.make_card_parts(built, _count_examples(entries))
        text = str(DatasetCard(make_card_text(describe(metadata), fill_prose(prose, parts))).content)
        (folder / "README.md").write_text(insert_picture(text, name, folder), encoding="utf-8")
        if self.headlines:
            splits = {config: entry["splits"] for config, entry in entries.items()}
            text = make_eval_yaml(self.name, self.headlines, splits)
            (folder / EVAL_YAML).write_text(text, encoding="utf-8")

    # -- check, stats, export -----------------------------------------------------------------------------------------

    def check(self, folder: Path, configs: Sequence[str] | None = None) -> CheckResult:
        """Check a built folder, or one with raw files, which are built in a temporary folder first.

        Args:
            folder: the folder.
            configs: names of configurations; None takes all in the folder.

        Raises:
            DataError: there is nothing to check, or a file cannot be read.
        """
        with self.open(folder, configs) as built:
            result = CheckResult(self.name, Path(folder), quirks=self.quirks)
            entries = read_release(built.folder)
            for config in entries.keys() ^ set(built.configs):
                result.add(config, ALL, "configs", [f"is on the card or in {RELEASE} alone"])
            for config in (name for name in built.chosen(configs) if name in entries):
                result.add(config, ALL, "files", self.find_faults(built.folder, config, entries[config]))
                self._check_card(built, config, entries[config], result)
                self._check_columns(built, config, result)
                self.check_config(built, config, result)
        return result

    def _check_card(self, built: BuiltDataset, config: str, entry: Mapping[str, Any], result: CheckResult) -> None:
        """Compare what the card says of a configuration with ``release.json``."""
        (listed,) = (item for item in built.card["configs"] if item["config_name"] == config)
        splits = {split["name"]: split.get("num_examples") for split in built.info(config).get("splits") or ()}
        labels = {column: tuple(names) for column, names in self.configs[config].label_names.items()}
        for what, found, expected in (
            ("version", listed.get("version"), entry["version"]),
            ("splits", list(built.splits(config)), list(entry["splits"])),
            ("rows", splits, {split: facts["num_examples"] for split, facts in entry["splits"].items()}),
            ("columns", built.columns(config), self.schema.names),
            ("labels", built.class_labels(config), labels),
        ):
            result.add(config, ALL, "card", [f"{what}: expected {expected}, found {found}"] * (found != expected))

    def _check_columns(self, built: BuiltDataset, config: str, result: CheckResult) -> None:
        """Check the numbers of rows, the ids and the labels of each split; nulls end the check."""
        for split, paths in built.splits(config).items():
            rows, ids = 0, list[pa.ChunkedArray]()
            for table in read_rows(paths, self.schema.names, kinds=self.schema, whole=self.required):
                rows += table.num_rows
                ids.append(table[self.id_column].cast(pa.string()))
                for column, names in self.configs[config].label_names.items():
                    values, least = table[column], 0 if column in self.required else -1
                    bad = pc.fill_null(pc.or_(pc.less(values, least), pc.greater_equal(values, len(names))), False)
                    unknown = values.filter(bad).to_pylist()
                    result.add(config, split, "labels", (f"{column} {value}" for value in unknown))
            result.rows[config, split] = rows
            told = next((item["num_examples"] for item in built.info(config)["splits"] if item["name"] == split), None)
            result.add(config, split, "rows", [f"expected {told}, found {rows}"] * (told != rows))
            counts = pc.value_counts(pa.chunked_array([chunk for one in ids for chunk in one.chunks], pa.string()))
            often = counts.filter(pc.greater(counts.field("counts"), 1)).to_pylist()
            result.add(config, split, "ids", (f"{show(one['values'])} {one['counts']} times" for one in often))

    def stats(self, folder: Path, configs: Sequence[str] | None = None) -> Tables:
        """Return the papers' tables, computed from a folder, built or with raw files (see `check`).

        Raises:
            DataError: the folder cannot be read, or a file in it is at fault.
        """
        with self.open(folder, configs) as built:
            return self.make_tables(built, built.chosen(configs), None if built.folder == folder else Path(folder))

    def export(self, dataset: Path, configs: Sequence[str] | None, *, out: Path, force: bool = False) -> ExportResult:
        """Write the raw files of a built folder into ``out/CONFIG``.

        Args:
            dataset: the built folder.
            configs: names of configurations; None takes all.
            out: the folder of the corpus folders.
            force: replace files that are there, and folders such as docs/ whole; others in ``out/CONFIG`` are kept.

        Raises:
            DataError: the folder is not as a build wrote it; there are files already, and ``force`` is not set; a file
                that is kept would be read with those that are written.
        """
        entries, built = read_release(dataset), open_built(dataset)
        for config in entries.keys() ^ set(built.configs):
            message = f"expected each configuration on the card and in {RELEASE}, found {config} in one alone"
            raise DataError(message, file=dataset)
        chosen, files = built.chosen(configs), list[Path]()
        for config in chosen:
            for fault in self.find_faults(dataset, config, entries[config]):
                raise DataError(fault, file=dataset)
            target = out / config
            if target.resolve().is_relative_to(dataset.resolve()):
                raise DataError(f"expected a folder outside the dataset {dataset}, found {target}", argument="out")
            if not force and target.exists() and not (target.is_dir() and not any(target.iterdir())):
                message = "expected no such folder yet, or an empty one; it is replaced with `force` alone"
                raise DataError(message, file=target)
        for config in chosen:
            with rebuild_folder(out / config) as folder:
                self.export_config(built, config, entries[config], folder)
                written = {path.name for path in folder.iterdir()}
                carry_over(out / config, folder, lambda path, written=written: path.parts[0] in written)  # type: ignore[misc]
                for path in folder.iterdir():
                    if path.name not in written and (path.suffix == ".jsonl" or path.name == "docs"):
                        message = "expected no such file beside those of the export, with which it would be read"
                        raise DataError(message, file=out / config / path.name)
            files += [out / config / name for name in sorted(written)]
        return ExportResult(out, files)

    def is_raw(self, folder: Path) -> bool:
        """Return True for raw files, whose README.md, if there is one, is no card of a build."""
        card = folder / "README.md"
        is_card = card.is_file() and b"\ndataset_info:" in card.read_bytes()
        return not is_card and not os.path.lexists(folder / RELEASE)

    @contextmanager
    def open(self, folder: Path, configs: Sequence[str] | None = None) -> Iterator[BuiltDataset]:
        """Open a built folder; one with raw files is built in a temporary folder first.

        Raises:
            DataError: the folder cannot be read; the card names a configuration that the dataset does not have.
        """
        if self.is_raw(folder):
            with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
                yield open_built(self.build(configs, out=Path(aside), source=folder).folder)
            return
        built = open_built(folder)
        for name in built.configs:
            if name not in self.configs:
                expected = f"expected configs of {self.name} ({', '.join(self.configs)}), found {show(name)}"
                raise DataError(expected, file=folder / "README.md")
        yield built

    def make_features(self, config: str) -> Any:
        """Return the columns of a configuration as `datasets.Features`."""
        return make_features(self.schema, self.configs[config].label_names)

    def choose(self, configs: Sequence[str] | None, there: Iterable[str]) -> list[str]:
        """Return these configurations in the dataset's order; those that are there where none is named.

        Raises:
            DataError: an unknown configuration.
        """
        for name in configs or ():
            if name not in self.configs:
                raise UsageError(describe_choice(name, list(self.configs)), argument="config")
        wanted = set(configs or there)
        return [name for name in self.configs if name in wanted]

    def choose_found(
        self,
        configs: Sequence[str] | None,
        found: Collection[str],
        source: Path,
        wanted: Mapping[str, str],
        where: str = "",
    ) -> list[str]:
        """Return the configurations to build of those that were found; a line names the others where none is named.

        Args:
            configs: those that are asked for; None takes all that were found.
            found: those whose files are there.
            source: the folder in which they were looked for.
            wanted: config -> its files, in words.
            where: the address that has them all.

        Raises:
            DataError: one that is asked for is not there, or none is.
        """
        chosen = self.choose(configs, found)
        if missing := [wanted[name] for name in chosen or self.configs if name not in found]:
            raise DataError(f"expected {' or '.join(missing)}{where and f' of {where}'}, found none", file=source)
        if left_out := [wanted[name] for name in self.configs if not configs and name not in found]:
            log.warning(f"{source}: left out, since their files are not there: {', '.join(left_out)}")
        return chosen


def _count_examples(entries: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return config -> split -> number of rows, of entries in ``release.json``."""
    return {
        config: {split: facts["num_examples"] for split, facts in entry["splits"].items()}
        for config, entry in entries.items()
    }


def _count_rows(tables: Iterable[pa.Table], bar: Any) -> Iterator[pa.Table]:
    for table in tables:
        yield table
        bar.update(table.num_rows)


def _read_old(target: Path) -> dict[str, Any]:
    """Return the configs of the folder that a build is going to replace; none where it is missing or empty.

    Raises:
        DataError: the folder has files that no build wrote, and must not be replaced.
    """
    if not target.is_dir() or not any(target.iterdir()):
        return {}
    if not (target / RELEASE).exists():
        message = f"expected a folder that `eraser-hub build` wrote, found no {RELEASE}"
        raise DataError(f"{message}; what stands there is not replaced: take another `out`", file=target)
    return read_release(target)


def read_release(folder: Path) -> dict[str, Any]:
    """Return the configs of a built folder's ``release.json``; see `ConfigEntry`.

    Raises:
        DataError: the file is missing, damaged or incomplete, or another version of this project wrote it.
    """
    path = folder / RELEASE
    if not os.path.lexists(path):
        found = describe_folder(folder) or f"one without {RELEASE}"
        raise DataError(f"expected a folder that `eraser-hub build` wrote, found {found}", file=folder)
    release = read_json_object(path)
    if release.get("format") != FORMAT:
        message = f"expected the format {FORMAT}, found {show(release.get('format'))}, which another version wrote"
        raise DataError(f"{message}; remove the folder and build it anew", file=path)
    configs = release.get("configs")
    if not isinstance(configs, dict):
        raise DataError("expected an object with configs, found none", file=path)
    for name, facts in configs.items():
        convert_type(facts, ConfigEntry, name, file=path)
        for file in facts["files"]:
            if not re.fullmatch(r"[^/\\\0]+/[^/\\\0]+", file) or ".." in file.split("/"):
                message = f"expected the path of a file in a folder of the dataset, found {show(file)}"
                raise DataError(message, file=path, field=name)
    return configs
