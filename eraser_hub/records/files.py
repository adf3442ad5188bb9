"""Files that change all at once, locks, digests, and what the outputs of a run may replace.

out/NAME                 what readers see: the old file or the new one, never a mix
out/.NAME.PID.tmp        a new file while it grows; gone after an error, and removed by the next run after a kill
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.metrics.errors import VERSION

from .errors import BusyError, DataError
from .readers import FILE_KINDS, JSON_ERRORS

GENERATOR = f"eraser-hub {VERSION}"
# how pages, JSON files and matplotlib's PNG, SVG and PDF files name their generator
MARKS = (
    b'<meta name="generator" content="eraser-hub ',
    b'"generator": "eraser-hub ',
    b"Software\0eraser-hub ",
    b"<dc:title>eraser-hub ",
    b"/Creator (eraser-hub ",
)
MARKED_BYTES = 1 << 16  # of a file's beginning and of its end, which hold the mark
RUN_SUFFIX = ".run.json"  # of the record beside predictions
MAX_NAME_BYTES = 255 - len("..4194304.tmp")  # of a name that its temporary file holds; systems allow 255
SHOWN_DIGITS = 12


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file that takes the name ``path`` when the block ends, and is removed on an error.

    Raises:
        OSError: of the block or the renaming; it names ``path`` where it names no file (writing to a full disk).
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, "expected a file's name, found a folder", str(path))
    encoded = os.fsencode(path.name)
    name = path.name if len(encoded) <= MAX_NAME_BYTES else f"{zlib.crc32(encoded):08x}"
    remove_leftovers(path.parent, name)
    beside = path.with_name(f".{name}.{os.getpid()}.tmp")
    try:
        yield beside
        os.replace(beside, path)
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        beside.unlink(missing_ok=True)


def remove_leftovers(folder: Path, name: str) -> None:
    """Remove the temporary files of ``name`` whose runs were killed."""
    if os.name != "posix":  # elsewhere os.kill ends the process that it asks about
        return
    for path in folder.glob(f".{glob.escape(name)}.*.tmp"):
        process = path.name.split(".")[-2]
        with suppress(OSError):
            try:
                if process.isdecimal():
                    os.kill(int(process), 0)
            except (ProcessLookupError, OverflowError):
                path.unlink()


def atomic_write(path: Path, data: bytes) -> None:
    """Write a file all at once."""
    with replace_file(path) as beside:
        beside.write_bytes(data)


def to_json_bytes(content: Any) -> bytes:
    """Return JSON as files hold it: indented by two blanks, ending in a newline; NaN and infinity become null."""
    return msgspec.json.format(msgspec.json.encode(content, enc_hook=_to_builtin), indent=2) + b"\n"


def _to_builtin(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"expected a value of JSON or numpy, found a {type(value).__name__}")


@contextmanager
def hold_lock(lock: Path, busy: str, file: str | PathLike[str] | None = None) -> Iterator[None]:
    """Hold the file ``lock`` during the block.

    Args:
        lock: the lock file; its folder is made where it is missing.
        busy: what to say where another run holds it.
        file: what the message is about.

    Raises:
        BusyError: another run holds it; this one does not wait.
    """
    from filelock import FileLock, Timeout  # takes a twentieth of a second

    lock.parent.mkdir(parents=True, exist_ok=True)
    file_lock = FileLock(lock, timeout=0)
    try:
        file_lock.acquire()
    except Timeout:
        raise BusyError(busy, file=file) from None
    try:
        yield
    finally:
        with suppress(OSError):  # not everywhere may an open file be removed
            lock.unlink()
        file_lock.release()


def compute_file_digest(file: str | PathLike[str], digest: hashlib._Hash | hashlib.blake2b | None = None) -> str:
    """Return the SHA-256 of a file in hexadecimal digits, read in blocks, or the digest that ``digest`` continues."""
    digest = digest or hashlib.sha256()
    with Path(file).open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def shorten_digest(digest: str) -> str:
    """Return the digits of a digest that signatures and tables show; "none" if there is no digest."""
    return digest[:SHOWN_DIGITS] or "none"


MAX_SCORES_BYTES = 1 << 28  # no score file is larger


def is_generated(path: Path) -> bool:
    """Return True if a page, a figure or a JSON file says that a run wrote it."""
    with path.open("rb") as file:
        start = file.read(MARKED_BYTES)
        file.seek(max(0, path.stat().st_size - MARKED_BYTES))
        end = file.read()
    if any(mark in text for text in (start, end) for mark in MARKS):
        return True
    if not start.startswith(b"{") or path.name.endswith(RUN_SUFFIX):
        return False
    if path.stat().st_size > MAX_SCORES_BYTES:
        return False
    try:
        signature = msgspec.json.decode(path.read_bytes()).get("signature")
    except JSON_ERRORS:
        return False
    lines = signature if isinstance(signature, list) else [signature]
    return any(isinstance(line, str) and "version:" in line for line in lines)


@dataclass(frozen=True, slots=True)
class OutputWriter:
    """The writer of the files of one run.

    It refuses an input of the same run, by whatever path; pipes, sockets, folders and disks; and a file that no run
    wrote, unless ``force`` is given. Links are followed: what they lead to is replaced, all at once. Character devices
    (``/dev/null``, a terminal) are written to. An empty file may be replaced.

    Attributes:
        inputs: the files and folders that the run reads.
        force: replace files that no run wrote.
    """

    inputs: tuple[Path, ...] = ()
    force: bool = False

    def check(self, path: Path, is_ours: Callable[[Path], bool] = is_generated) -> Path:
        """Return the file behind all links.

        Call it before the work starts as well, so that the work is not lost.

        Args:
            path: the path that the user names.
            is_ours: whether a run wrote the file that is there.

        Raises:
            DataError: the path leads to what may not be written.
        """
        if "\0" in os.fspath(path):
            raise DataError("expected a path, found one with NUL", file=path)
        try:
            found = os.stat(path)
            kind = stat.S_IFMT(found.st_mode)
            is_open = kind == stat.S_IFREG and os.fspath(path).startswith(("/dev/fd/", "/dev/std"))
            if is_open or kind not in (stat.S_IFREG, stat.S_IFCHR):
                raise DataError(f"expected a file, found {FILE_KINDS.get(kind, 'an open one')}", file=path)
            ours = kind == stat.S_IFCHR or (found.st_size > 0 and is_ours(path))
            if self._is_input(found, with_folders=not ours):
                raise DataError("expected another file than the input of this run; it is not replaced", file=path)
            if found.st_size and not ours and not self.force:
                message = "expected no file, or one of an earlier run, found another; `force` replaces it"
                raise DataError(message, file=path)
        except FileNotFoundError:
            pass
        except NotADirectoryError:
            above = next(folder for folder in path.parents if folder.exists())
            raise DataError("expected a folder, found a file", file=above) from None
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror or error}", file=path) from None
        return Path(os.path.realpath(path))

    def _is_input(self, found: os.stat_result, with_folders: bool) -> bool:
        """Return True if a file is an input, or stands in the folder of one if ``with_folders``."""
        for given in self.inputs:
            below = (os.path.join(root, name) for root, _, names in os.walk(given) for name in names)
            for file in (given, *(below if with_folders else ())):
                with suppress(OSError):
                    if os.path.samestat(found, os.stat(file)):
                        return True
        return False

    @contextmanager
    def open(self, path: Path, is_ours: Callable[[Path], bool] = is_generated) -> Iterator[Path]:
        """Yield a temporary file, whose content goes to ``path`` when the block ends; after an error nothing does.

        Raises:
            DataError: as of `check`.
            OSError: of the block, or of the disk.
        """
        target = self.check(path, is_ours)
        if target.is_char_device():
            yield target
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(target) as beside:
            yield beside

    def write(self, path: Path, data: bytes, is_ours: Callable[[Path], bool] = is_generated) -> None:
        """Write a file all at once; errors as of `open`."""
        with self.open(path, is_ours) as beside:
            beside.write_bytes(data)
