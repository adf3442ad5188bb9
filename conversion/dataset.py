"""What each dataset's folder provides, and what its verbs give back.

A dataset is a folder in ``conversion/``: a `HubDataset` named ``DATASET`` in its ``__init__.py`` says what it is, and
`Verbs` named ``VERBS`` in its ``verbs.py``, which is imported when a verb is called, do the work.
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

from eraser_hub.records.errors import BusyError, DataError, DataErrors, raise_all, show
from eraser_hub.records.json_lines import parse_strict_object
from eraser_hub.records.lines import wrap_read_errors

from .typed import typed

if TYPE_CHECKING:
    from eraser_hub.records.tables import Tables

    from .checks import Report

RELEASE, CROISSANT, EVAL_YAML = "release.json", "croissant.json", "eval.yaml"
LICENSES = "licenses"  # the folder of the licence files that came with a release
FORMAT = 2
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a build goes about it; see `HubDataset.build`."""

    num_proc: int = 1
    progress: bool = False
    include_backup_records: bool = False


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did.

    Attributes:
        folder: the finished dataset folder.
        rows: config -> split (the dataset's names) -> number of rows.
        notes: lines for the user: files that were skipped and why, digests recorded, what the viewer will not like.
        failed: config -> why it could not be built; what stood there of it is as it was.
    """

    folder: Path
    rows: dict[str, dict[str, int]]
    notes: list[str] = field(default_factory=list)
    failed: dict[str, DataError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote: the files, and lines for the user."""

    folder: Path
    files: list[Path]
    notes: list[str] = field(default_factory=list)


class PartlyBuilt(DataErrors):
    """Some configurations could not be built; the others were.

    Attributes:
        result: what was built.
    """

    def __init__(self, result: BuildResult) -> None:
        super().__init__(list(result.failed.values()))
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.result,)


def each_of(names: Sequence[str], build: Callable[[str], T]) -> tuple[dict[str, T], dict[str, DataError]]:
    """What ``build`` makes of each configuration, and the errors of those that it cannot make.

    Raises:
        DataError: none could be built; BusyError when another build is at work.
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
    """Whether a folder is one that a build wrote, and holds no raw files."""
    return (folder / "README.md").is_file() and (folder / RELEASE).is_file()


class Verbs(ABC):
    """The work of a dataset's verbs; see those of `HubDataset`, which call them."""

    @abstractmethod
    def build(
        self, source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions
    ) -> BuildResult:
        """Build the configs into ``out/NAME``."""

    @abstractmethod
    def export(self, dataset: Path, configs: Sequence[str] | None, out: Path) -> ExportResult:
        """Write the raw files of a built folder back."""

    @abstractmethod
    def check(self, folder: Path, configs: Sequence[str] | None = None, leakage: bool = False) -> Report:
        """Return the integrity report of a built folder."""

    @abstractmethod
    def stats(self, folder: Path, configs: Sequence[str] | None = None, raw: Path | None = None) -> Tables:
        """Return the papers' tables of a built folder; ``raw`` is the folder that it was built from, if at hand."""

    def is_built(self, folder: Path) -> bool:
        """Return whether `check` and `stats` may look at a folder as it is; one with raw files is built aside first."""
        return is_built(folder)

    def further_configs(self, folder: Path) -> Collection[str]:
        """Return the configs in a folder, raw or built, beside the dataset's own."""
        return ()


class Headline(NamedTuple):
    """A score that a dataset's systems are ranked by.

    Attributes:
        name: in the task's id.
        key: of the score in a score file.
        lower: whether lower is better.
    """

    name: str
    key: str
    lower: bool = False


# the scores that the papers' tables of systems print
HEADLINES_OF_SPANS = (
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
        name: the dataset, and its folder's name.
        configs: its configurations, in the card's order.
        default_config: the one that a bare load takes.
        headlines: the scores that the Hub ranks systems by; none where there is to be no ``eval.yaml``.
        tasks: config -> the Hub's task category, where it is not ``text-classification``.
    """

    name: str
    configs: tuple[str, ...]
    default_config: str
    headlines: tuple[Headline, ...] = ()
    tasks: Mapping[str, str] = field(default_factory=dict)

    def verbs(self) -> Verbs:
        """Import the dataset's work, which no other part of the command line should wait for."""
        verbs: Verbs = importlib.import_module(f"{__package__}.{self.name}.verbs").VERBS
        return verbs

    def known_configs(self, folder: Path | None) -> tuple[str, ...]:
        """The configs that may be asked for: the dataset's own, and those that a folder (raw or built) holds besides.

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
        progress: bool = False,
        include_backup_records: bool = False,
    ) -> BuildResult:
        """Build ``out/NAME`` (card and Parquet) from raw files.

        Args:
            configs: which configurations; None takes those that ``source`` holds (all of them without a source).
            out: the folder that holds the dataset folders; the configs that stand there already are kept.
            source: a folder with one folder (or .tar.gz) per corpus; None downloads the releases.
            num_proc: processes at most; where there is little to do, no other one starts.
            progress: show progress on stderr.
            include_backup_records: take up records that a backup file alone holds (movies' test.jsonl.bak).

        Raises:
            DataError: bad input; BusyError when another build is at work in ``out/NAME``; PartlyBuilt when some
                configurations could be built, and are, and others not.
        """
        options = BuildOptions(num_proc, progress, include_backup_records)
        result = self.verbs().build(None if source is None else Path(source), configs, Path(out), options)
        if result.failed:
            result.notes.extend(f"{name}: not built, for the error below" for name in result.failed)
            raise PartlyBuilt(result)
        return result

    def export(self, dataset: Path, configs: Sequence[str] | None, *, out: Path) -> ExportResult:
        """Write the raw files of a built dataset folder back, below ``out/CONFIG``; nothing is overwritten."""
        return self.verbs().export(Path(dataset), configs, Path(out))

    def check(self, folder: Path, configs: Sequence[str] | None = None, *, leakage: bool = False) -> Report:
        """The integrity report of a built folder, or of one with raw files, which is built aside first.

        Args:
            folder: the folder.
            configs: which configurations; None takes all that are there.
            leakage: also list what stands there several times, and evidence that a search by text would misplace.

        Raises:
            DataError: nothing to check there, or a file that cannot be read.
        """
        with self._built(Path(folder), configs) as built:
            report = self.verbs().check(built, configs, leakage)
        report.dataset, report.folder = self.name, Path(folder)
        return report

    def stats(self, folder: Path, configs: Sequence[str] | None = None) -> Tables:
        """The paper's tables, recomputed from a built folder, or from one with raw files, which is built aside first.

        Raises:
            DataError: the folder cannot be read, or a file in it is at fault.
        """
        with self._built(Path(folder), configs) as built:
            return self.verbs().stats(built, configs, None if built == Path(folder) else Path(folder))

    @contextmanager
    def _built(self, folder: Path, configs: Sequence[str] | None) -> Iterator[Path]:
        if self.verbs().is_built(folder):
            from eraser_hub.records.built import open_built  # with Arrow, which not every verb should wait for

            known = self.known_configs(folder)
            for name in open_built(folder).configs:
                if name not in known:
                    expected = f"expected configs of {self.name} ({', '.join(known)}), found {show(name)}"
                    raise DataError(expected, rule="choice", file=folder / "README.md")
            yield folder
            return
        with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
            yield self.build(configs, out=Path(aside), source=folder).folder


def standing(target: Path, entry: type[msgspec.Struct]) -> dict[str, Any]:
    """``release.json`` of the folder that a build is to replace; nothing where there is none, or an empty one.

    Args:
        target: the folder.
        entry: as in `read_release`.

    Raises:
        DataError: a folder that no build wrote: it holds somebody's files, and is not replaced.
    """
    if not target.is_dir() or not any(target.iterdir()):
        return {}
    try:
        return read_release(target, entry)
    except DataError as error:
        if (target / RELEASE).exists():
            raise
        message = f"{error.message}; what stands there is not replaced: take another `out`"
        raise DataError(message, rule="file-exists", file=target) from None


def read_release(folder: Path, entry: type[msgspec.Struct]) -> dict[str, Any]:
    """What a build wrote there: config -> what its rows cannot hold.

    Args:
        folder: the built folder.
        entry: what has to stand there of each config.

    Raises:
        DataError: the file is missing or damaged, lacks something, or another version of this project wrote it.
    """
    path = folder / RELEASE
    if not os.path.lexists(path):
        message = f"expected a folder that `eraser-hub build` wrote, found no {RELEASE}"
        raise DataError(message, rule="file-missing", file=folder)
    with wrap_read_errors(path):
        release = parse_strict_object(path.read_bytes().removeprefix(BOM_UTF8), file=path, number=1)
    configs = release.get("configs")
    if not isinstance(configs, dict):
        raise DataError("expected an object with configs, found none", rule="type", file=path)
    if release.get("format") != FORMAT:
        message = f"expected the format {FORMAT}, found {show(release.get('format'))}, which another version wrote"
        raise DataError(f"{message}; remove the folder and build it anew", rule="file-version", file=path)
    for name, held in configs.items():
        typed(held, entry, name, file=path)
    return configs


def ends_of(path: Path) -> dict[str, bool]:
    """Whether a file begins with a byte order mark, and whether it ends with a newline."""
    with path.open("rb") as file:
        mark = file.read(3) == b"\xef\xbb\xbf"
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return {"byte_order_mark": mark, "final_newline": not size or file.read(1) == b"\n"}
