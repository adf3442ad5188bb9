"""The one writer of files that a user names: what it refuses, and what it writes to.

It refuses an input of the same run, by whatever path; pipes, sockets, folders and block devices; and a file that no run
wrote, unless ``force`` is given. A run's file is recognised by the generator's mark in a page, a figure or a JSON file,
by the signature in a score file, or by the record beside predictions. Links are followed: what they lead to is
replaced, all at once. Character devices and open files (``/dev/fd/1``, ``/dev/stdout``) are written to, never replaced.
An empty file may be written.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from eraser_hub.version import __version__

from .atomic import replace_file
from .digests import compute_file_digest
from .errors import DataError
from .run_record import RUN_SUFFIX, read_run, run_path
from .seeds import find_seed_files

GENERATOR = f"eraser-hub {__version__}"
# how pages, JSON files and matplotlib's PNG, SVG and PDF files name their generator
_MARKS = (
    b'<meta name="generator" content="eraser-hub ',
    b'"generator": "eraser-hub ',
    b"Software\0eraser-hub ",
    b"<dc:title>eraser-hub ",
    b"/Creator (eraser-hub ",
)
_MARKED_BYTES = 1 << 16  # of a file's beginning and of its end, which hold the mark
_MOST_LINKS = 40
_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISBLK, "a disk"))

Place = str | os.PathLike[str]
IsOurs = Callable[[Path], bool]


def is_generated(path: Path) -> bool:
    """Return True if a page, a figure or a JSON file says that a run wrote it."""
    with path.open("rb") as file:
        text = file.read(_MARKED_BYTES)
        file.seek(max(0, path.stat().st_size - _MARKED_BYTES))
        if any(mark in part for part in (text, file.read()) for mark in _MARKS):
            return True
    if not text.startswith(b"{") or path.name.endswith(RUN_SUFFIX):
        return False
    try:
        signature = orjson.loads(path.read_bytes()).get("signature")
    except ValueError:
        return False
    lines = signature if isinstance(signature, list) else [signature]
    return any(isinstance(line, str) and "version:" in line for line in lines)


def is_recorded(path: Path) -> bool:
    """Return True if the record beside predictions is of a run that wrote them, and they are as it wrote them."""
    with suppress(DataError):
        return read_run(path).get("predictions_sha256", "") in ("", compute_file_digest(path)) and is_run_record(
            run_path(path)
        )
    return False


def is_run_record(path: Path) -> bool:
    """Return True if a file is the record of a run."""
    with suppress(OSError, ValueError):
        record = orjson.loads(path.read_bytes())
        return isinstance(record, dict) and ("signature" in record or "generator" in record)
    return False


def find_inputs(*arguments: Place | Sequence[Place] | None) -> tuple[Path, ...]:
    """Return the files and folders that arguments name (``FILE``, ``NAME=FILE,FILE,..``), and the files' records."""
    paths = []
    for argument in arguments:
        for value in [argument] if isinstance(argument, str | os.PathLike) else argument or ():
            whole = os.fspath(value)
            names = {whole, *whole.split(","), *whole.partition("=")[2].split(",")}
            files = [file for name in names if name for file in find_seed_files(Path(name))]
            paths += [*files, *(run_path(file) for file in files if file.name)]
    return tuple(path for path in paths if os.path.exists(path))


@dataclass(frozen=True, slots=True)
class OutputWriter:
    """The writer of the files of one run.

    Attributes:
        inputs: the files and folders that the run reads.
        force: replace files that no run wrote.
    """

    inputs: tuple[Path, ...] = ()
    force: bool = False

    def check(self, path: Path, is_ours: IsOurs = is_generated) -> Path | int:
        """Return what to write to: the file behind all links, a character device, or the number of an open file.

        Call it before the work starts as well, so that the work is not lost.

        Args:
            path: the path that the user names.
            is_ours: whether a run wrote the file that is there.

        Raises:
            DataError: the path leads to what may not be written.
        """
        try:
            target = _find_target(path)
            with suppress(FileNotFoundError):
                self._refuse(path, target, os.stat(target), is_ours)
        except OSError as error:
            words = f"cannot be written: {error.strerror or error}"
            raise DataError(words, file=path) from None
        return target

    def _refuse(self, path: Path, target: Path | int, status: os.stat_result, is_ours: IsOurs) -> None:
        """Refuse what is there: see `check`; an open file may be a pipe, and may hold what its opener wrote."""
        opened = isinstance(target, int)
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "")
        if kind and not (opened and kind != "a folder"):
            raise DataError(f"expected a file, found {kind}", file=path)
        if not stat.S_ISREG(status.st_mode):
            return
        ours = isinstance(target, int) or bool(status.st_size and is_ours(target))
        if self._reads(status, folders=not ours):
            words = "expected another file than the input of this run; it is not replaced"
            raise DataError(words, file=path)
        if status.st_size and not ours and not self.force:
            words = "expected no file, or one of an earlier run, found another; `force` replaces it"
            raise DataError(words, file=path)

    def _reads(self, status: os.stat_result, folders: bool) -> bool:
        """Return True if a file is an input; files in the folders of inputs are compared if ``folders``."""
        for place in self.inputs:
            with suppress(OSError):
                if os.path.samestat(status, os.stat(place)):
                    return True
            files = (os.path.join(root, name) for root, _, names in os.walk(place) for name in names) if folders else ()
            for file in files:
                with suppress(OSError):
                    if os.path.samestat(status, os.stat(file)):
                        return True
        return False

    @contextmanager
    def open(self, path: Path, is_ours: IsOurs = is_generated) -> Iterator[Path]:
        """Yield a temporary file, whose content goes to ``path`` when the block ends; after an error nothing does.

        Raises:
            DataError: as of `check`.
            OSError: of the block, or of the disk.
        """
        target = self.check(path, is_ours)
        if isinstance(target, Path) and not target.is_char_device():
            target.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(target) as beside:
                yield beside
            return
        with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
            beside = Path(aside) / path.name
            yield beside
            number = os.dup(target) if isinstance(target, int) else os.open(target, os.O_WRONLY)
            try:
                with beside.open("rb") as content, os.fdopen(number, "wb") as device:
                    shutil.copyfileobj(content, device)
            except BrokenPipeError:
                raise
            except OSError as error:  # it does not say where
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error

    def write(self, path: Path, data: bytes, is_ours: IsOurs = is_generated) -> None:
        """Write a file all at once; errors as of `open`."""
        with self.open(path, is_ours) as beside:
            beside.write_bytes(data)

    def check_predictions(self, out: Path, partial: Path) -> None:
        """Check the places of predictions, of their record and of the finished chunks, as `check` does.

        Args:
            out: the predictions.
            partial: the finished chunks; where they are, a run that was stopped before its record wrote ``out``.
        """
        stopped = partial.is_file()
        self.check(out, lambda path: stopped or is_recorded(path))
        self.check(run_path(out), is_run_record)
        self.check(partial, lambda path: True)  # its reader refuses what no run wrote


def _find_target(path: Path) -> Path | int:
    """Return the path behind all links, or the number of the open file that it names."""
    name, open_files = os.fspath(path), os.path.realpath("/dev/fd")
    if "\0" in name:
        raise DataError("expected a path, found one with NUL", file=path)
    for _ in range(_MOST_LINKS):
        folder, base = os.path.split(name)
        folder = os.path.realpath(folder)
        if folder == open_files and base.isdecimal():
            return int(base)
        name = os.path.join(folder, base)
        try:
            name = os.path.join(folder, os.readlink(name))
        except OSError:
            return Path(name)
    return path
