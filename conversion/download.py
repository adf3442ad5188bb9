"""Archives of the ERASER release, downloaded, verified and unpacked; and single files by their address.

    fetch_corpus("movies") -> ~/.cache/eraser-hub/unpacked/66e18d4e6c9df9e9/movies

`sources.json` has the digests that the release publishes. Where it publishes none, the first download records one in
``NAME.tar.gz.sha256`` beside the archive, in the form that ``sha256sum --check`` reads; later ones must match it.
The cache is ``$ERASER_HUB_CACHE``, else ``eraser-hub`` in ``$XDG_CACHE_HOME`` or ``~/.cache``; ``$ERASER_HUB_ARCHIVES``
is the address of a mirror of the archives, to which ``/NAME.tar.gz`` is added.
"""

from __future__ import annotations

import atexit
import errno
import gzip
import io
import json
import logging
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast
from urllib.parse import unquote, urljoin, urlsplit

from eraser_hub.metrics.errors import VERSION
from eraser_hub.records.errors import BusyError, DataError, UsageError, get_first_line, show
from eraser_hub.records.files import RUN_SUFFIX, atomic_write, compute_file_digest, hold_lock

log = logging.getLogger("eraser_hub")
REMOTE = ("https://", "http://", "hf://")  # the beginnings of addresses of files that must be downloaded
# of an address of the Hub, whose @ stands before a revision otherwise
_HUB_CREDENTIALS = re.compile(r":[^/@]*@|hf_[^/@]*@|[?&]\w*token=")
# address of the release; config -> archives that may hold it; archive -> published digest
SOURCES: dict[str, Any] = json.loads(Path(__file__).with_name("sources.json").read_bytes())
SPLIT_FILES = ("train.jsonl", "val.jsonl", "validation.jsonl", "test.jsonl")
BUSY = "another run is fetching or unpacking here (it holds {})"

# Downloads. The release's archives have a few hundred megabytes.
MAX_DOWNLOAD_BYTES = 4 << 30
MAX_SECONDS = 6 * 3600
TIMEOUT = 30  # seconds without a byte
RETRIES = 2

# Archives. The largest of the release (e-SNLI) unpacks to less than a tenth of this.
MAX_MEMBERS = 500_000
MAX_UNPACKED_BYTES = 8 << 30
MAX_RATIO = 200  # unpacked bytes per byte of the archive, beyond the first FREE_BYTES
FREE_BYTES = 64 << 20
MAX_HEADER_BYTES = 1 << 20  # that tarfile reads at once
MAX_DEPTH = 32  # folders in one another; a corpus has three
APPLE_DOUBLE = b"\x00\x05\x16\x07"  # the first bytes of the ``._NAME`` files that macOS adds to archives
# of a name that the file system refuses; gzip's errors have none
NAME_ERRORS = (None, errno.ENAMETOOLONG, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL)
# Python has the filter from 3.11.4 on; `_extract` refuses before what it refuses
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


class NotReleased(DataError):
    """Error: the server answers, but has no such file, or no archive contains the corpus."""


class Unreachable(DataError):
    """Error: no server answers under the address."""


def get_cache_folder() -> Path:
    """Return the folder of archives and unpacked corpora."""
    if named := os.environ.get("ERASER_HUB_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eraser-hub"


def fetch_corpus(
    config: str,
    cache_dir: str | os.PathLike[str] | None = None,
    read: Callable[[Path], object] | None = None,
) -> Path:
    """Download, verify and unpack the release's archive of a config; what is in the cache is not downloaded again.

    Args:
        config: a config of the release, for example ``movies``.
        cache_dir: the folder of archives and unpacked corpora; by default `get_cache_folder`.
        read: raises a DataError for an unreadable corpus folder. The archive's digest is recorded only after this: an
            error page in place of the archive must not become the reference.

    Returns:
        The folder of the corpus' split files.

    Raises:
        NotReleased: the server has no archive with the corpus.
        Unreachable: no server answers.
        DataError: the download fails, its digest is wrong, or the archive is refused.
        BusyError: another run downloads the same archive.
    """
    if config not in SOURCES["archives"]:
        raise UsageError(f"expected one of {', '.join(SOURCES['archives'])}, found {show(config)}", argument="config")
    cache = get_cache_folder() if cache_dir is None else Path(cache_dir)
    server = (os.environ.get("ERASER_HUB_ARCHIVES") or SOURCES["address"]).rstrip("/")
    missing = []
    for name in SOURCES["archives"][config]:
        archive, lock = cache / "archives" / f"{name}.tar.gz", cache / "archives" / f".{name}.lock"
        pin = archive.with_name(f"{archive.name}.sha256")
        with hold_lock(lock, BUSY.format(lock)):
            recorded = pin.read_text("utf-8", "replace").partition(" ")[0] if pin.is_file() else None
            expected = SOURCES["sha256"].get(name, recorded)
            try:
                download(f"{server}/{archive.name}", archive, expected)
                corpus = find_corpus(unpack_archive(archive, cache), config)
                if corpus is None:
                    raise NotReleased(f"holds no folder {config!r} with split files", file=archive)
                if read is not None and expected is None:
                    read(corpus)
            except NotReleased as error:
                missing.append(str(error))
                continue
            except BusyError:
                raise
            except DataError as error:
                if expected is None:
                    archive.unlink(missing_ok=True)
                elif expected == recorded:
                    error.message += f"; if the release has really changed, remove {pin}"
                error.message += "; run again, or give what you have with `source` DIR"
                raise
            if expected is None:
                digest = compute_file_digest(archive)
                atomic_write(pin, f"{digest}  {archive.name}\n".encode())
                log.warning(f"{name}: the release publishes no digest; sha256 {digest} is recorded in {pin}")
            return corpus
    raise NotReleased(
        f"the release's {config} was not found: {'; '.join(missing)}. "
        "Download it by hand and give its folder with `source` DIR (DIR holds a folder or a .tar.gz per corpus)"
    )


class _BoundedFile(io.BufferedWriter):
    """File that a server can fill for `MAX_SECONDS` and with `MAX_DOWNLOAD_BYTES` at most."""

    def __init__(self, path: str) -> None:
        super().__init__(io.FileIO(path, "w"))
        self.size, self.deadline = 0, time.monotonic() + MAX_SECONDS

    def write(self, data: Any) -> int:
        self.size += len(data)
        if self.size > MAX_DOWNLOAD_BYTES or time.monotonic() > self.deadline:
            raise PermissionError(f"expected at most {MAX_DOWNLOAD_BYTES} bytes in {MAX_SECONDS} s")
        return super().write(data)


def download(url: str, path: Path, sha256: str | None = None) -> None:
    """Download a file by HTTP, all at once, unless it is there with its digest.

    Args:
        url: http or https; redirects never lead from https to http.
        path: the file to make.
        sha256: its digest, if it is known.

    Raises:
        NotReleased: the server has no such file.
        Unreachable: no server answers, also after `RETRIES` further tries.
        DataError: another failure, or another digest.
    """
    import pooch
    import requests

    length = None

    def check(response: Any, **_: object) -> None:
        """Raise what no further try can change: an error that pooch does not catch."""
        nonlocal length
        code, target = response.status_code, urljoin(response.url, response.headers.get("Location", ""))
        if response.is_redirect:
            response.close()  # requests would read a body of any length
            if response.url.startswith("https:") and not target.lower().startswith("https:"):
                raise PermissionError(f"refused to follow a redirect away from https, to {target}")
        elif code in (404, 410):
            raise LookupError(f"the server has no such file ({code})")
        elif 400 <= code < 500 and code not in (408, 425, 429):
            raise PermissionError(f"the server answered {code} {response.reason}")
        # a file that is gzip by itself comes as it is, also where the server calls that its encoding
        response.raw.headers.pop("Content-Encoding", None)
        length = response.headers.get("Content-Length")

    def get(address: str, part: Any, _: object) -> None:
        headers = {"User-Agent": f"eraser-hub/{VERSION}", "Accept-Encoding": "identity"}
        bar = sys.stderr is not None and sys.stderr.isatty()
        send = pooch.HTTPDownloader(bar, timeout=TIMEOUT, headers=headers, hooks={"response": check})
        with _BoundedFile(part) as file:
            send(address, file, None)
        if length not in (None, str(file.size)):
            raise ValueError(f"the download was cut after {file.size} of {length} bytes")

    if not url.startswith(("https://", "http://")):
        raise UsageError(f"expected an http or https address, found {show(url)}")
    pooch.get_logger().setLevel("WARNING")  # its notes show the address, which may hold a password
    files = pooch.create(path.parent, "", registry={path.name: sha256}, urls={path.name: url}, retry_if_failed=RETRIES)
    try:
        files.fetch(path.name, downloader=cast(Any, get))
    except LookupError as error:
        raise NotReleased(get_first_line(error), file=url) from None
    except (requests.ConnectionError, requests.Timeout) as error:
        cause = error.args[0] if error.args else error
        reason = get_first_line(getattr(cause, "reason", cause))
        raise Unreachable(f"cannot be reached after {RETRIES + 1} tries ({reason})", file=url) from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be downloaded: {get_first_line(error)}", file=url) from None


class _BoundedTar(gzip.GzipFile):
    """The tar in an archive, from which tarfile can read a bounded number of bytes."""

    last = b""  # the last block read: at the end it should be the end mark

    def __init__(self, archive: Path) -> None:
        super().__init__(archive)
        self.most = get_max_unpacked_bytes(archive.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MAX_HEADER_BYTES or self.tell() > self.most:
            raise DataError(f"asks for {size} bytes at once, or unpacks to more than {self.most}")
        self.last = super().read(size)
        return self.last


def get_max_unpacked_bytes(packed: int) -> int:
    """Return the size to which an archive of ``packed`` bytes may unpack."""
    return min(MAX_UNPACKED_BYTES, FREE_BYTES + MAX_RATIO * packed)


def unpack_archive(archive: str | os.PathLike[str], cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of an unpacked ``.tar.gz``, named by its digest; it is unpacked once, complete or not at all.

    Args:
        archive: the archive, downloaded or the user's own.
        cache_dir: the folder is made in ``unpacked`` there; by default in `get_cache_folder`.

    Raises:
        DataError: the file is no archive, is cut, exceeds a limit, or has a member that is no file or folder below it.
        BusyError: another run unpacks it.
    """
    archive = Path(archive)
    if not archive.is_file():
        raise DataError("expected an archive, found no such file", file=archive)
    unpacked = (get_cache_folder() if cache_dir is None else Path(cache_dir)) / "unpacked"
    folder = unpacked / compute_file_digest(archive)[:16]
    staging, lock = unpacked / f".{folder.name}.unpacking", unpacked / f".{folder.name}.lock"
    with hold_lock(lock, BUSY.format(lock)):
        if folder.is_dir():
            return folder
        shutil.rmtree(staging, ignore_errors=True)  # left by a killed run
        staging.mkdir()
        try:
            with _BoundedTar(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
                _extract(tar, staging, stream.most)
                if stream.last != bytes(tarfile.BLOCKSIZE):  # tarfile takes a broken header for the end
                    raise DataError("is cut or damaged: there is no mark of its end")
                while stream.read(MAX_HEADER_BYTES):  # the checksum stands behind the padding
                    pass
            staging.rename(folder)
        except Exception as error:  # gzip, zlib and tarfile raise many types
            if isinstance(error, OSError) and error.errno not in NAME_ERRORS:
                raise
            reason = error.message if isinstance(error, DataError) else f"cannot be unpacked ({get_first_line(error)})"
            raise DataError(f"expected a .tar.gz of a corpus, found one that {reason}", file=archive) from None
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return folder


def _extract(tar: tarfile.TarFile, folder: Path, max_bytes: int) -> None:
    """Extract all members, each a folder or a new file below ``folder``."""
    names: set[PurePosixPath] = set()
    count = total = 0
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # tarfile keeps every header otherwise
        count, total = count + 1, total + member.size
        if count > MAX_MEMBERS or total > max_bytes:
            raise DataError(f"holds more than {MAX_MEMBERS} members or {max_bytes} bytes, which no corpus does")
        name, windows = PurePosixPath(member.name), PureWindowsPath(member.name)
        plain = (member.isdir() or member.isreg()) and not member.issparse()
        inside = not (windows.drive or windows.root or ".." in windows.parts or len(name.parts) > MAX_DEPTH)
        if not plain or not inside or (name in names and not member.isdir()):
            kinds = "a link, a device, a path that leads out or too deep, or a second file of a name"
            raise DataError(f"holds {show(member.name)}: {kinds}")
        names.add(name)
        content = tar.extractfile(member) if name.name.startswith("._") else None
        if content is None or content.read(len(APPLE_DOUBLE)) != APPLE_DOUBLE:
            tar.extract(member, folder, set_attrs=False, **_FILTER)
    if not names:
        raise DataError("holds nothing")


def find_corpus(folder: Path, name: str) -> Path | None:
    """Return the folder of a corpus in an unpacked archive: the one of its name, else the only one."""
    found: dict[str, Path] = {}
    for root, folders, names in os.walk(folder):
        folders.sort()
        if not set(SPLIT_FILES).isdisjoint(names):
            found.setdefault(os.path.basename(root), Path(root))
            folders.clear()
    if len(found) == 1 and found.keys().isdisjoint(SOURCES["archives"]):
        return next(iter(found.values()))
    return found.get(name)


def fetch_file(address: str) -> Path:
    """Return the path of the file at an address; download a remote one, with its ``.run.json`` if there is one.

    Args:
        address: a path, ``https://HOST/FILE``, or ``hf://datasets/ORG/NAME[@REVISION]/FILE`` (``hf://spaces/..``).

    Raises:
        DataError: the file cannot be downloaded; the message has the address.
    """
    if not address.startswith(REMOTE):
        return Path(address)
    if not address.startswith("hf://"):
        url, folder = urlsplit(address), Path(tempfile.mkdtemp(prefix="eraser-hub-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        name = Path(unquote(url.path)).name
        path = folder / (name if name.strip(".") else "file")
        download(address, path)
        with suppress(NotReleased):
            download(url._replace(path=url.path + RUN_SUFFIX).geturl(), path.with_name(path.name + RUN_SUFFIX))
        return path
    if _HUB_CREDENTIALS.search(address):
        message = "expected an address of the Hub without user name, password and token; a token comes from HF_TOKEN"
        raise DataError(message)
    from huggingface_hub import HfFileSystem, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        place: Any = HfFileSystem().resolve_path(address)  # a bucket has no repository: this raises below
        options = {"repo_type": place.repo_type, "revision": place.revision}
        path = Path(hf_hub_download(place.repo_id, place.path_in_repo, **options))
        with suppress(EntryNotFoundError):
            hf_hub_download(place.repo_id, place.path_in_repo + RUN_SUFFIX, **options)
    except Exception as error:  # huggingface_hub raises many types; their text names the cause
        raise DataError(f"cannot be fetched: {get_first_line(error)}", file=address) from None
    return path
