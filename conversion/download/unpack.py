"""Safe unpacking of corpus archives: nothing outside the folder, bounded size, complete or not at all.

Refused are absolute paths, ``..``, links, devices and pipes, sparse members, repeated names, and more members or bytes
than a corpus can have. The members are unpacked into a folder beside the destination, which is renamed at the end.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from eraser_hub.records.errors import DataError, get_first_line, show
from eraser_hub.records.files import hold_lock

APPLE_DOUBLE = b"\x00\x05\x16\x07"  # the first bytes of the ``._NAME`` files that macOS adds to archives
SPLIT_FILES = ("train.jsonl", "val.jsonl", "test.jsonl")
MAX_DEPTH = 32  # folders in one another; a corpus has three
# Python has the filter from 3.11.4 on; `_check_member_name` refuses whatever it refuses
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
_BAD_NAME_ERRORS = (errno.ENAMETOOLONG, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL)
BUSY = "another run is fetching or unpacking here (it holds {})"


class DiskFull(DataError):
    """Error: the disk is full."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an archive. The largest real one (e-SNLI) unpacks to far less than a tenth of these.

    Attributes:
        members: maximum number of files and folders.
        total_bytes: maximum bytes of the unpacked tar, headers included.
        ratio: maximum unpacked bytes per byte of archive, beyond the first ``free_bytes``.
        free_bytes: unpacked size up to which the ratio is not checked.
        header_bytes: maximum bytes that one header may request at once.
    """

    members: int = 500_000
    total_bytes: int = 8 << 30
    ratio: int = 200
    free_bytes: int = 64 << 20
    header_bytes: int = 1 << 20


class _BoundedStream(io.RawIOBase):
    """Stream of the decompressed tar that raises a DataError beyond the limits."""

    def __init__(self, raw: gzip.GzipFile, archive: Path, limits: Limits) -> None:
        self._raw, self._archive, self._limits = raw, archive, limits
        packed = archive.stat().st_size
        self._most = min(limits.total_bytes, limits.free_bytes + limits.ratio * packed)
        self.last = b""  # the last block read: at the end it should be the end mark

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or size > self._limits.header_bytes:
            message = f"a header asks for {size} bytes at once, expected at most {self._limits.header_bytes}"
            raise DataError(message, file=self._archive)
        self.last = self._raw.read(size)
        self._check(self._raw.tell())
        return self.last

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0:
            self._check(offset)
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def _check(self, position: int) -> None:
        if position > self._most:
            packed = self._archive.stat().st_size
            message = f"unpacks to more than {self._most} bytes, which no corpus does ({packed} packed)"
            raise DataError(message, file=self._archive)


def unpack(archive: str | os.PathLike[str], destination: str | os.PathLike[str], limits: Limits | None = None) -> Path:
    """Unpack a ``.tar.gz`` into ``destination``, which must not exist or be empty, and return the corpus's folder.

    Args:
        archive: the archive.
        destination: the new folder; it appears complete or not at all.
        limits: limits of members and bytes.

    Returns:
        the folder below ``destination`` with the split files; ``destination`` itself if there are none or several.

    Raises:
        DataError: the file is no archive, is cut, or has a refused member; the message names archive and member.
        BusyError: another process unpacks to the same folder.
    """
    archive, destination = Path(archive), Path(destination)
    if not archive.is_file():
        raise DataError("expected an archive, found no such file", file=archive)
    lock = destination.parent / f".{destination.name}.lock"
    with hold_lock(lock, BUSY.format(lock)):
        if destination.exists():
            if not destination.is_dir() or any(destination.iterdir()):
                message = "expected no such folder, found one: nothing is unpacked over it"
                raise DataError(message, file=destination)
            destination.rmdir()
        staging = destination.with_name(f".{destination.name}.unpacking")
        if staging.exists():
            shutil.rmtree(staging)  # left by a killed run: the lock shows that no other is active
        staging.mkdir()
        try:
            _unpack_into(archive, staging, limits or Limits())
            staging.rename(destination)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    folders = find_corpus_folders(destination)
    return folders[0] if len(folders) == 1 else destination


def find_corpus_folders(folder: Path, depth: int = 3) -> list[Path]:
    """Return the folders at or below ``folder`` with a split file (train, val or test), outermost first."""
    if any((folder / name).is_file() for name in SPLIT_FILES):
        return [folder]
    if depth == 0:
        return []
    below = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    return [corpus for entry in below for corpus in find_corpus_folders(entry, depth - 1)]


def _unpack_into(archive: Path, folder: Path, limits: Limits) -> None:
    try:
        with gzip.open(archive) as raw:
            bounded = _BoundedStream(raw, archive, limits)
            with tarfile.open(fileobj=bounded, mode="r:") as tar:
                _extract_all(tar, archive, folder, limits)
            if bounded.last != bytes(tarfile.BLOCKSIZE):  # tarfile treats a broken header as the end of the archive
                message = "the archive is cut or damaged (no mark of its end where one should be)"
                raise DataError(message, file=archive)
            while raw.read(1 << 20):  # read the padding after the last member: the checksum is at its end
                if raw.tell() > limits.total_bytes:
                    raise DataError(f"unpacks to more than {limits.total_bytes} bytes", file=archive)
    except DataError:
        raise
    except Exception as error:  # gzip, zlib and tarfile raise many types
        raise (_make_archive_error(error, archive, folder) or error) from None


def _make_archive_error(error: Exception, archive: Path, folder: Path) -> DataError | None:
    """Return the DataError for an error of unpacking; None if the archive is not its cause."""
    number = error.errno if isinstance(error, OSError) else None
    words, reason = get_first_line(error), getattr(error, "strerror", None)
    if number in (errno.ENOSPC, errno.EDQUOT):
        message = f"the disk is full: no room to unpack into {folder.parent}"
        return DiskFull(message, file=archive)
    header_errors = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
    kinds: tuple[tuple[Any, str], ...] = (
        (gzip.BadGzipFile, f"expected a gzip archive, found something else or a damaged one ({words})"),
        ((EOFError, zlib.error), f"the archive is cut or damaged ({words})"),
        (getattr(tarfile, "FilterError", ()), f"refused: {words}"),
        (tarfile.TarError, f"expected a tar archive, found something else or a damaged one ({words})"),
        (header_errors, f"the archive is damaged: a header cannot be understood ({words})"),
        (
            OSError if number in _BAD_NAME_ERRORS else (),
            f"a member's name cannot be a file here ({reason})",
        ),
    )
    return next((DataError(text, file=archive) for kind, text in kinds if isinstance(error, kind)), None)


def _extract_all(tar: tarfile.TarFile, archive: Path, folder: Path, limits: Limits) -> None:
    names: set[str] = set()
    count = total = 0
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # tarfile keeps every header otherwise
        count += 1
        total += member.size
        if count > limits.members:
            message = f"holds more than {limits.members} members, which no corpus does"
            raise DataError(message, file=archive)
        if total > limits.total_bytes:
            raise DataError(f"unpacks to more than {limits.total_bytes} bytes", file=archive)
        name = _check_member_name(member, archive)
        if name in names and not member.isdir():
            raise DataError(f"the member {show(member.name)} stands in it twice", file=archive)
        names.add(name)
        if member.isdir():
            (folder / name).mkdir(parents=True, exist_ok=True)
            continue
        content = tar.extractfile(member) if PurePosixPath(member.name).name.startswith("._") else None
        if content is not None and content.read(len(APPLE_DOUBLE)) == APPLE_DOUBLE:
            continue
        tar.extract(member, folder, set_attrs=False, **_FILTER)
    if not names:
        raise DataError("expected a corpus, found an empty archive", file=archive)


def _check_member_name(member: tarfile.TarInfo, archive: Path) -> str:
    """Return the member's path below the folder; tarfile's data filter, where there is one, repeats these checks."""
    name, path, windows = member.name, PurePosixPath(member.name), PureWindowsPath(member.name)
    for refused, why in (
        (member.issym() or member.islnk(), f"is a link (to {show(member.linkname)})"),
        (not (member.isdir() or member.isreg()), "is neither a file nor a folder"),
        (member.issparse(), "is a sparse member"),
        (not name or "\0" in name, "is no name"),
        (path.is_absolute() or windows.drive or windows.root, "is an absolute path"),
        (".." in path.parts or (os.name == "nt" and ".." in windows.parts), "leads out of the folder"),
        (len(path.parts) > MAX_DEPTH, f"lies {len(path.parts)} folders deep"),
    ):
        if refused:
            raise DataError(f"refused: {show(name)} {why}", file=archive)
    return str(path)
