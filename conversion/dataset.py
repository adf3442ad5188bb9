"""Interface of a dataset's folder, and the results of its verbs.

A dataset is a folder in ``conversion/``. Its ``__init__.py`` has a `HubDataset` named ``DATASET``, which describes it.
Its ``verbs.py`` has `Verbs` named ``VERBS``, which do the work and are imported when a verb is called.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from eraser_hub.conversion.errors import DataErrors, raise_all
from eraser_hub.conversion.readers import parse_strict_object
from eraser_hub.records.errors import BusyError, DataError, show
from eraser_hub.records.readers import wrap_read_errors

from .typed import convert_type

if TYPE_CHECKING:
    from eraser_hub.records.tables import Tables

    from .checks import Report

RELEASE, EVAL_YAML = "release.json", "eval.yaml"
LICENSES = "licenses"  # the folder of the licence files of a release
FORMAT = 2
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of a build; see `HubDataset.build`."""

    num_proc: int = 1
    name: str = ""  # of the folder; by default the dataset's own


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Result of a build.

    Attributes:
        folder: the finished dataset folder.
        rows: config -> split (the dataset's names) -> number of rows.
        notes: lines for the user, e.g. skipped files and recorded digests.
        failed: config -> the error of a config that could not be built; its earlier files are unchanged.
    """

    folder: Path
    rows: dict[str, dict[str, int]]
    notes: list[str] = field(default_factory=list)
    failed: dict[str, DataError] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = []
        for name, splits in self.rows.items():
            counts = ", ".join(f"{split} {rows:,}" for split, rows in splits.items())
            lines.append(f"{self.folder}: {name}: {counts}" if splits else str(self.folder / name))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Result of an export: the files that were written, and lines for the user."""

    folder: Path
    files: list[Path]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, self.files))


class PartlyBuilt(DataErrors):
    """Error of a build in which some configurations failed and the others were built.

    Attributes:
        result: the result for the configurations that were built.
    """

    def __init__(self, result: BuildResult) -> None:
        super().__init__(list(result.failed.values()))
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.result,)


def build_each(names: Sequence[str], build: Callable[[str], T]) -> tuple[dict[str, T], dict[str, DataError]]:
    """Call ``build`` with each name.

    Args:
        names: the configurations.
        build: name -> result; its DataErrors are collected.

    Returns:
        name -> result, and name -> error of the calls that failed.

    Raises:
        DataError: every call failed; BusyError if another build is running.
    """
    done: dict[str, T] = {}
    failed: dict[str, DataError] = {}
    for name in names:
        try:
            done[name] = build(name)
        except BusyError:
            raise
        except DataError as error:
            failed[name] = error
    if not done:
        raise_all(list(failed.values()))
    return done, failed


def is_built(folder: Path) -> bool:
    """Return True if a build wrote the folder."""
    return (folder / "README.md").is_file() and (folder / RELEASE).is_file()


class Verbs(ABC):
    """Base class of a dataset's verbs; the methods of `HubDataset` call them."""

    @abstractmethod
    def build(
        self, source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
    ) -> BuildResult:
        """Build the configs into ``out/NAME``."""

    @abstractmethod
    def export(self, dataset: Path, configs: Sequence[str] | None, out: Path, force: bool = False) -> ExportResult:
        """Write the raw files of a built folder back."""

    @abstractmethod
    def check(self, folder: Path, configs: Sequence[str] | None = None) -> Report:
        """Return the integrity report of a built folder."""

    @abstractmethod
    def stats(self, folder: Path, configs: Sequence[str] | None = None, raw: Path | None = None) -> Tables:
        """Return the papers' tables of a built folder; ``raw`` is the folder of its raw files, if available."""

    def is_built(self, folder: Path) -> bool:
        """Return True if `check` and `stats` can read the folder directly; raw files are built elsewhere first."""
        return is_built(folder)

    def further_configs(self, folder: Path) -> Collection[str]:
        """Return the configs of a folder, raw or built, that are not among the dataset's configs."""
        return ()


class Headline(NamedTuple):
    """A score by which systems are ranked on a dataset.

    Attributes:
        name: name of the score in the task's id.
        key: key of the score in a score file.
        lower: True if lower is better.
    """

    name: str
    key: str
    lower: bool = False


# the scores in the papers' tables of systems
SPAN_HEADLINES = (
    Headline("token_f1", "token_macro_f1"),
    Headline("iou_f1", "iou_macro_f1"),
    Headline("auprc", "auprc"),
    Headline("comprehensiveness", "comprehensiveness"),
    Headline("sufficiency", "sufficiency", lower=True),
    Headline("macro_f1", "macro_f1"),
)


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A dataset with its four verbs.

    Attributes:
        name: name of the dataset and of its folder.
        configs: its configurations, in the order of the card.
        default_config: the configuration that a load without a name takes.
        headlines: the scores by which the Hub ranks systems; without them there is no ``eval.yaml``.
        tasks: config -> the Hub's task category, if it is not ``text-classification``.
        package: the folder of its verbs; by default that of its name.
    """

    name: str
    configs: tuple[str, ...]
    default_config: str
    headlines: tuple[Headline, ...] = ()
    tasks: Mapping[str, str] = field(default_factory=dict)
    package: str = ""

    def verbs(self) -> Verbs:
        """Import and return the dataset's verbs; the import is slow, so it happens on the first call."""
        verbs: Verbs = importlib.import_module(f"{__package__}.{self.package or self.name}.verbs").VERBS
        return verbs

    def known_configs(self, folder: Path | None) -> tuple[str, ...]:
        """Return the valid configs: those of the dataset, and further ones in a folder (raw or built).

        Raises:
            DataError: the folder cannot be read.
        """
        return (*self.configs, *(self.verbs().further_configs(Path(folder)) if folder is not None else ()))

    def build(
        self,
        configs: Sequence[str] | None,
        *,
        out: Path,
        source: Path | None = None,
        num_proc: int = 1,
    ) -> BuildResult:
        """Build ``out/NAME`` (card and Parquet) from raw files.

        Args:
            configs: names of configurations; None takes those in ``source``, or all of them without a source.
            out: the folder of the dataset folders; other configs in ``out/NAME`` are kept.
            source: a folder with one folder (or .tar.gz) per corpus; None downloads the releases.
            num_proc: maximum number of processes; small builds use one.

        Returns:
            the folder, its numbers of rows, and notes.

        Raises:
            DataError: bad input; BusyError if another build is running in ``out/NAME``; PartlyBuilt if some
                configurations were built and others failed.
        """
        options = BuildOptions(num_proc, self.name)
        result = self.verbs().build(None if source is None else Path(source), configs, Path(out), options)
        if result.failed:
            result.notes.extend(f"{name}: not built, for the error below" for name in result.failed)
            raise PartlyBuilt(result)
        return result

    def export(self, dataset: Path, configs: Sequence[str] | None, *, out: Path, force: bool = False) -> ExportResult:
        """Write the raw files of a built dataset folder below ``out/CONFIG``.

        Raises:
            DataError: a file is at fault, or files are there already and ``force`` is not set.
        """
        return self.verbs().export(Path(dataset), configs, Path(out), force)

    def check(self, folder: Path, configs: Sequence[str] | None = None) -> Report:
        """Return the integrity report of a folder.

        Args:
            folder: a built folder, or one with raw files, which are built in a temporary folder first.
            configs: names of configurations; None takes all in the folder.

        Raises:
            DataError: there is nothing to check, or a file cannot be read.
        """
        with self._built(Path(folder), configs) as built:
            report = self.verbs().check(built, configs)
        report.dataset, report.folder = self.name, Path(folder)
        return report

    def stats(self, folder: Path, configs: Sequence[str] | None = None) -> Tables:
        """Return the paper's tables, recomputed from a folder, built or with raw files (see `check`).

        Raises:
            DataError: the folder cannot be read, or a file in it is at fault.
        """
        with self._built(Path(folder), configs) as built:
            return self.verbs().stats(built, configs, None if built == Path(folder) else Path(folder))

    @contextmanager
    def _built(self, folder: Path, configs: Sequence[str] | None) -> Iterator[Path]:
        if self.verbs().is_built(folder):
            from eraser_hub.conversion.built import open_built

            known = self.known_configs(folder)
            for name in open_built(folder).configs:
                if name not in known:
                    expected = f"expected configs of {self.name} ({', '.join(known)}), found {show(name)}"
                    raise DataError(expected, file=folder / "README.md")
            yield folder
            return
        with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
            yield self.build(configs, out=Path(aside), source=folder).folder


def read_existing_release(target: Path, entry: type[msgspec.Struct]) -> dict[str, Any]:
    """Return ``release.json`` of the folder that a build is going to replace.

    Args:
        target: the folder.
        entry: as in `read_release`.

    Returns:
        the configs of the file; an empty dict if the folder is missing or empty.

    Raises:
        DataError: the folder has files that no build wrote, and must not be replaced.
    """
    if not target.is_dir() or not any(target.iterdir()):
        return {}
    try:
        return read_release(target, entry)
    except DataError as error:
        if (target / RELEASE).exists():
            raise
        message = f"{error.message}; what stands there is not replaced: take another `out`"
        raise DataError(message, file=target) from None


def read_release(folder: Path, entry: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the configs of a built folder's ``release.json``: config -> facts that its rows cannot hold.

    Args:
        folder: the built folder.
        entry: the type of each config's entry.

    Raises:
        DataError: the file is missing, damaged or incomplete, or another version of this project wrote it.
    """
    path, release = folder / RELEASE, parse_release(folder)
    configs = release.get("configs")
    if not isinstance(configs, dict):
        raise DataError("expected an object with configs, found none", file=path)
    if release.get("format") != FORMAT:
        message = f"expected the format {FORMAT}, found {show(release.get('format'))}, which another version wrote"
        raise DataError(f"{message}; remove the folder and build it anew", file=path)
    for name, facts in configs.items():
        convert_type(facts, entry, name, file=path)
    return configs


def read_build_version(folder: Path) -> str | None:
    """Return the version of this project that built a folder, if it says one."""
    version = parse_release(folder).get("version")
    return version if isinstance(version, str) else None


def read_own_name(folder: Path) -> str | None:
    """Return the name of a dataset that ``build own`` wrote; None for one of this project's, or no built folder."""
    try:
        name = parse_release(folder).get("dataset")
    except DataError:
        return None
    return name if isinstance(name, str) else None


def parse_release(folder: Path) -> dict[str, Any]:
    """Return the content of a built folder's ``release.json``, unchecked.

    Raises:
        DataError: the file is missing, or holds no JSON object.
    """
    path = folder / RELEASE
    if not os.path.lexists(path):
        message = f"expected a folder that `eraser-hub build` wrote, found no {RELEASE}"
        raise DataError(message, file=folder)
    with wrap_read_errors(path):
        return parse_strict_object(path.read_bytes().removeprefix(BOM_UTF8), file=path, number=1)


def read_file_ends(path: Path) -> dict[str, bool]:
    """Return True or False for ``byte_order_mark`` (at the start of a file) and ``final_newline`` (at its end)."""
    with path.open("rb") as file:
        has_mark = file.read(3) == BOM_UTF8
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return {"byte_order_mark": has_mark, "final_newline": not size or file.read(1) == b"\n"}
