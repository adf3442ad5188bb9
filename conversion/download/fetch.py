"""Download of a corpus of the ERASER release: resumable, and verified by digest.

`sources.json` has the address, size and SHA-256 of each archive. If the release publishes no digest, the first download
records one: ``NAME.tar.gz.sha256`` beside the archive, in the form that ``sha256sum --check`` reads.

    corpus_folder("movies", cache) -> cache/unpacked/66e18d4e6c9df9e9/movies

The cache is ``$ERASER_HUB_CACHE``, else ``~/.cache/eraser-hub``; ``$ERASER_HUB_ARCHIVES`` is the address of
a mirror of the archives, to which ``/NAME.tar.gz`` is added.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import BusyError, DataError, UsageError
from eraser_hub.records.files import atomic_write, compute_file_digest, hold_lock

from .http import FileNotOnServer, Retries, download
from .unpack import BUSY, DiskFull, find_corpus_folders, unpack

log = logging.getLogger("eraser_hub")


class NotReleased(DataError):
    """Error: the servers answer, but no archive contains the corpus."""


@dataclass(frozen=True, slots=True)
class Archive:
    """One archive of the release: name, address, and, if known, size in bytes and SHA-256."""

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None


@lru_cache(maxsize=1)
def read_sources() -> dict[str, Any]:
    """Return `sources.json`: ``configs`` (folder and archives of each) and ``archives`` (url, size, sha256 of each)."""
    path = files("eraser_hub.conversion.download").joinpath("sources.json")
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return known


def get_cache_folder() -> Path:
    """Return the download cache: ``$ERASER_HUB_CACHE``, else ``eraser-hub`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    if named := os.environ.get("ERASER_HUB_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eraser-hub"


def fetch_corpus(
    config: str,
    cache_dir: str | os.PathLike[str] | None = None,
    read: Callable[[Path], object] | None = None,
) -> Path:
    """Download, verify and unpack the release's archive of ``config``; files in the cache are not downloaded again.

    Args:
        config: a config of ``sources.json``, e.g. ``movies``.
        cache_dir: folder of archives and unpacked corpora; by default `get_cache_folder`.
        read: raises a DataError for an unreadable corpus folder; the archive's digest is then not recorded.

    Returns:
        the folder of the corpus' split files.

    Raises:
        DataError: the download failed, the digest is wrong, or the archive is refused.
        BusyError: another process downloads the same archive.
    """
    known = read_sources()["configs"]
    if config not in known:
        raise UsageError(f"no archive is known for {config!r}, expected one of {', '.join(known)}")
    cache = Path(cache_dir) if cache_dir is not None else get_cache_folder()
    missing: list[str] = []

    def look(unpacked: Path) -> None:
        corpus = find_corpus(unpacked, known[config]["folder"])
        if corpus is not None and read is not None:
            read(corpus)

    for name in known[config]["archives"]:
        try:
            facts, mirror = read_sources()["archives"][name], os.environ.get("ERASER_HUB_ARCHIVES")
            url = f"{mirror.rstrip('/')}/{name}.tar.gz" if mirror else facts["url"]
            archive = Archive(name, url, facts["size"], facts["sha256"])
            file = fetch_archive(archive, cache, read=look)
        except FileNotOnServer as error:
            missing.append(str(error))
            continue
        corpus = find_corpus(unpack_archive(file, cache), known[config]["folder"])
        if corpus is not None:
            return corpus
        missing.append(f"{file} holds no folder {known[config]['folder']!r} with split files")
    raise NotReleased(
        f"the release's {config} was not found: {'; '.join(missing)}. "
        "Download it by hand and give its folder with `source` DIR (DIR holds a folder or a .tar.gz per corpus)",
    )


def fetch_archive(
    archive: Archive,
    cache_dir: str | os.PathLike[str],
    retries: Retries | None = None,
    read: Callable[[Path], object] | None = None,
) -> Path:
    """Return the verified archive in ``cache_dir/archives``, downloaded if it is missing.

    Args:
        archive: the archive.
        cache_dir: as in `fetch_corpus`.
        retries: number of tries and waiting times.
        read: raises a DataError for an unreadable unpacked archive. A digest is recorded only after this: an error page
            in place of the archive must not become the reference.

    Raises:
        DataError: see `fetch_corpus`. A download with a wrong digest is removed, and so is an archive of unknown digest
            that cannot be unpacked.
    """
    folder = Path(cache_dir) / "archives"
    target, pin = folder / f"{archive.name}.tar.gz", folder / f"{archive.name}.tar.gz.sha256"
    lock = folder / f".{archive.name}.lock"
    with hold_lock(lock, BUSY.format(lock)):
        expected = archive.sha256 or _read_pinned_digest(pin)
        # the archive was verified before it got its name; it is verified again because the next steps trust it
        digest = compute_file_digest(target) if target.is_file() else None
        if digest is None or expected not in (None, digest):
            if digest is not None:
                log.warning(f"{target} is not what was expected (sha256 {digest}): it is downloaded again")
                target.unlink()
            part = folder / f"{archive.name}.tar.gz.part"
            digest = _download(archive, part, expected, pin, retries)
            part.replace(target)
            part.with_name(part.name + ".json").unlink(missing_ok=True)
        unpacked = _unpack_verified(target, Path(cache_dir), expected)
        if expected is None:
            try:
                (read or (lambda _: None))(unpacked)
            except DataError as error:
                raise DataError(f"{error}; {target} is kept, remove it to download it anew") from None
            atomic_write(pin, f"{digest}  {target.name}\n".encode())
            log.warning(f"{archive.name}: the release publishes no digest; sha256 {digest} is recorded in {pin}")
    return target


def _unpack_verified(target: Path, cache: Path, expected: str | None) -> Path:
    """Return the folder of the unpacked archive; remove a broken archive, unless its digest is known."""
    try:
        return unpack_archive(target, cache)
    except (BusyError, DiskFull):
        raise
    except DataError as error:
        if expected is not None:
            raise
        target.unlink()
        words = "it is removed: run again, or give what you have with `source` DIR"
        raise DataError(f"{error.message}; {words}", file=target) from None


def _download(archive: Archive, part: Path, expected: str | None, pin: Path, retries: Retries | None) -> str:
    """Download into ``part`` and return the digest; start again if a resumed download has a wrong one."""
    while True:
        resumed = download(archive.url, part, name=archive.name, size=archive.size, retries=retries)
        digest = compute_file_digest(part)
        if expected in (None, digest):
            return digest
        part.unlink()
        if not resumed:
            known, remedy = str(pin), f"if the release has really changed, remove {pin} and try again"
            if archive.sha256:
                known, remedy = "sources.json", "the release or the way to it has changed"
            mismatch = f"expected the sha256 {expected} (of {known}), found {digest}"
            raise DataError(f"{archive.url}: {mismatch}. The download is removed; {remedy}")
        log.warning(f"{archive.name}: the resumed download is not what was expected, it starts anew")


def unpack_archive(archive: str | os.PathLike[str], cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Unpack an archive once under ``cache_dir/unpacked``, in a folder named by its digest, and return that folder.

    This serves the user's archives (``--source DIR`` with ``DIR/movies.tar.gz``) and downloads.
    """
    archive = Path(archive)
    if not archive.is_file():
        raise DataError("expected an archive, found no such file", file=archive)
    cache = Path(cache_dir) if cache_dir is not None else get_cache_folder()
    folder = cache / "unpacked" / compute_file_digest(archive)[:16]
    if not folder.is_dir():
        unpack(archive, folder)
    return folder


def find_corpus(folder: Path, name: str) -> Path | None:
    """Return the folder of a corpus in an unpacked archive: the one with its name, else the only one, else None."""
    folders = find_corpus_folders(Path(folder))
    known = {facts["folder"] for facts in read_sources()["configs"].values()}
    for entry in folders:
        if entry.name == name:
            return entry
    return folders[0] if len(folders) == 1 and folders[0].name not in known else None


def _read_pinned_digest(pin: Path) -> str | None:
    if not pin.is_file():
        return None
    words = pin.read_text(encoding="utf-8", errors="replace").split()
    if not words or len(words[0]) != 64 or set(words[0]) - set("0123456789abcdef"):
        raise DataError("expected a line 'SHA-256  NAME', found something else", file=pin, line=1)
    return words[0]
