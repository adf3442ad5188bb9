"""One file over HTTP: resumed where it stopped, tried again where that may help, explained where it does not."""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit, urlunsplit

from tqdm import tqdm

from eraser_hub.records.errors import DataError, shown
from eraser_hub.version import __version__

BLOCK = 1 << 16
MOST_TRIES = 100  # a server that cuts after every few bytes is given up on, too
MOST_BYTES = 4 << 30  # no archive of the release comes near


@dataclass(frozen=True, slots=True)
class Retries:
    """How patiently to download.

    Args:
        attempts: tries in a row that bring nothing new before giving up.
        wait: seconds before the second try; doubled each time, up to ``most_wait``.
        most_wait: longest wait, also for a server's ``Retry-After``.
        timeout: seconds without a byte after which a connection counts as cut.
    """

    attempts: int = 4
    wait: float = 1.0
    most_wait: float = 30.0
    timeout: float = 60.0


class NotThere(DataError):
    """The server says that there is no such file (404 or 410)."""


class _Again(Exception):
    """A failure that a further try may mend; ``wait`` is what the server asks for."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class _NoAnswer(_Again):
    """The server cannot be reached."""


class Unreachable(DataError):
    """No server answers under the address, also after several tries."""


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Redirects are followed to http and https alone, and from https to https alone, which nobody else can read."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        target, authorization = _without_password(newurl)
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            message = f"{req.full_url}: refused to follow a redirect away from https, to {target}"
            raise DataError(message, rule="network")
        if authorization or not newurl.startswith(("https:", "http:")):
            message = f"{req.full_url}: refused to follow a redirect to {target}, which is no http or https address"
            raise DataError(message, rule="network")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _without_password(url: str) -> tuple[str, str | None]:
    """The address without user and password, which no message and no file may show, and what to send in their place.

    Raises:
        ValueError: no address.
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    credentials = base64.b64encode(unquote_to_bytes(user)).decode()
    return urlunsplit(parts._replace(netloc=host)), f"Basic {credentials}" if at else None


def download(
    url: str,
    part: Path,
    *,
    name: str,
    size: int | None = None,
    progress: bool | None = None,
    say: Callable[[str], None] = print,
    retries: Retries | None = None,
) -> bool:
    """Download ``url`` into ``part``; bytes that lie there already are kept where the server can go on after them.

    What the server said about the file (length, ETag, date) is kept in ``part.json``, so that two versions of it are
    never joined.

    Args:
        url: http or https.
        part: the file to fill. It is whole when this returns.
        name: for the progress bar.
        size: the expected size in bytes, where it is known.
        progress: None draws a bar on a terminal only.
        say: takes a line about each further try.
        retries: see `Retries`.

    Returns:
        whether a part of the file stems from an earlier call.

    Raises:
        NotThere: 404 or 410.
        DataError: everything else; the message names the address and the reason, and the part is kept for next time.
    """
    retries = retries or Retries()
    known, authorization = False, None
    with contextlib.suppress(ValueError):
        url, authorization = _without_password(url)
        known = urlsplit(url).scheme in ("http", "https")
    if not known:
        message = f"expected an http or https address, found {shown(url.rpartition('@')[2])}"
        raise DataError(message, rule="option-value")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {part.parent} ({error.strerror})", rule="file-unreadable") from None
    had = now = _size(part)
    failures = tries = 0
    transfer = _Transfer(url, authorization, part, name, size, progress, retries.timeout)
    while True:
        tries, before = tries + 1, now
        try:
            transfer.go_on()
            return had > 0
        except _Again as failure:
            if isinstance(failure, _Changed):
                part.unlink(missing_ok=True)
            now = _size(part)
            failures = 1 if now > before else failures + 1
            if failures >= retries.attempts or tries >= MOST_TRIES:
                kept = f"; the {now} bytes that came are kept, the next run goes on after them" if now else ""
                kind = Unreachable if isinstance(failure, _NoAnswer) else DataError
                raise kind(f"{url}: {failure}, also after {tries} tries{kept}", rule="network") from None
            wait = failure.wait if failure.wait is not None else retries.wait * 2 ** (failures - 1)
            wait = min(wait, retries.most_wait)
            say(f"{name}: {failure}; next try in {wait:.0f} s")
            time.sleep(wait)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


class _Transfer(NamedTuple):
    """One file on its way; see `download`."""

    url: str
    authorization: str | None
    part: Path
    name: str
    size: int | None
    progress: bool | None
    timeout: float

    def go_on(self) -> None:
        """Fetch what is not there yet; `_Again` where a further try may help."""
        url, part = self.url, self.part
        notes = part.with_name(part.name + ".json")
        offset, known = _resumable(part, notes, url)
        headers = {"User-Agent": f"eraser-hub/{__version__}", "Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
            if condition := _validator(known):
                headers["If-Range"] = condition
        request = urllib.request.Request(url, headers=headers)
        if self.authorization:
            request.add_unredirected_header("Authorization", self.authorization)
        try:
            with urllib.request.build_opener(_NoDowngrade()).open(request, timeout=self.timeout) as response:
                offset, total = _where(response.status, response.headers, offset, known, url)
                if self.size is not None and total is not None and total != self.size:
                    raise DataError(f"{url}: expected {self.size} bytes, the server announces {total}", rule="network")
                if total is not None and total > MOST_BYTES:
                    message = f"{url}: the server announces {total} bytes, which no archive of the release has"
                    raise DataError(message, rule="size-limit")
                said = {"url": url, "length": total, **_validators(response.headers)}
                notes.write_text(json.dumps(said), encoding="utf-8")
                _write(response, part, offset, self.size if total is None else total, self.name, self.progress)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, DataError):
                raise
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if error.code == 416 and offset and known.get("length") == offset:
                    return  # all of it had come before
            raise _failure(error, url, part, offset) from None


def _failure(error: Exception, url: str, part: Path, offset: int) -> Exception:
    """The error in plain words, or `_Again`."""
    if isinstance(error, urllib.error.HTTPError):
        return _http_failure(error, url, offset)
    if isinstance(error, urllib.error.URLError):
        return _unreachable(error.reason, url)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        remedy = f"(free some room in {part.parent}; the next run goes on)"
        return DataError(f"{url}: the disk is full after {_size(part)} bytes {remedy}", rule="file-unreadable")
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.EISDIR):
        return DataError(f"{url}: cannot write {part} ({error.strerror})", rule="file-unreadable")
    if isinstance(error, OSError | http.client.HTTPException):
        return _Again(f"the connection broke ({_in_words(error)})")
    return DataError(f"{url}: the server sends to an address that is none ({error})", rule="network")


def _resumable(part: Path, notes: Path, url: str) -> tuple[int, dict[str, Any]]:
    """How many bytes there are to go on after, and what the server said of the file when they came."""
    if not part.exists():
        return 0, {}
    try:
        known = json.loads(notes.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        known = None
    kinds = {type(known.get(key)) for key in ("etag", "modified")} if isinstance(known, dict) else set()
    if not isinstance(known, dict) or not kinds <= {str, type(None)} or known.get("url") != url:
        part.unlink()  # bytes of unknown origin
        return 0, {}
    return part.stat().st_size, known


def _validators(headers: Message) -> dict[str, str | None]:
    return {"etag": headers.get("ETag"), "modified": headers.get("Last-Modified")}


def _validator(known: dict[str, Any]) -> str | None:
    etag = known.get("etag")
    return etag if etag and not etag.startswith("W/") else known.get("modified")


def _where(status: int, headers: Message, offset: int, known: dict[str, Any], url: str) -> tuple[int, int | None]:
    """(the offset at which the answer's bytes belong, the whole file's length where it is said)."""
    if status != 206:  # the whole file, whether or not a part of it was asked for
        length = headers.get("Content-Length", "")
        return 0, _whole_number(length)
    unit, _, rest = headers.get("Content-Range", "").partition(" ")
    span, _, total = rest.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or _whole_number(start) != offset:
        message = f"{url}: asked for the bytes from {offset} on, the server sent {headers.get('Content-Range')!r}"
        raise DataError(message, rule="network")
    whole = _whole_number(total)
    changed = (known.get("length") is not None and whole is not None and known["length"] != whole) or any(
        known.get(key) and value and known[key] != value for key, value in _validators(headers).items()
    )
    if changed:
        raise _Changed
    return offset, whole


def _whole_number(digits: str) -> int | None:
    """A header's number; None for anything else, and for one of more than 64 bits."""
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 19 else None


class _Changed(_Again):
    """The file on the server is not the one whose first bytes lie here."""

    def __init__(self) -> None:
        super().__init__("the file on the server has changed, the download starts anew", wait=0.0)


def _write(response: Any, part: Path, offset: int, total: int | None, name: str, progress: bool | None) -> None:
    with (
        part.open("r+b" if offset else "wb") as out,
        tqdm(
            total=total,
            initial=offset,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            desc=name,
            disable=None if progress is None else not progress,
        ) as bar,
    ):
        out.seek(offset)
        out.truncate()
        done = offset
        while block := response.read(BLOCK):
            done += len(block)
            if done > MOST_BYTES or (total is not None and done > total):
                message = f"{response.url}: the server sends more than the {total or MOST_BYTES} bytes expected"
                raise DataError(message, rule="size-limit")
            out.write(block)
            bar.update(len(block))
    if total is not None and done < total:
        raise _Again(f"the download was cut after {done} of {total} bytes")


def _http_failure(error: urllib.error.HTTPError, url: str, offset: int) -> Exception:
    said = f"{error.code} {error.reason}"
    if error.code == 416 and offset:
        return _Changed()
    if error.code in (404, 410):
        return NotThere(f"{url}: the server has no such file ({error.code})", rule="file-missing")
    if error.code in (401, 403, 407):
        return DataError(f"{url}: the server refuses to hand it out ({said})", rule="network")
    if error.code in (408, 425, 429) or error.code >= 500:
        after = _whole_number((error.headers or Message()).get("Retry-After", ""))
        return _Again(f"the server answered {said}", after)
    return DataError(f"{url}: the server answered {said}", rule="network")


def _unreachable(reason: object, url: str) -> Exception:
    if isinstance(reason, ssl.SSLCertVerificationError):
        message = f"{url}: the server's certificate cannot be verified ({reason.verify_message})"
        return DataError(message, rule="network")
    if isinstance(reason, socket.gaierror):
        return _NoAnswer(f"the name {urlsplit(url).hostname!r} cannot be resolved (is there a network?)")
    if isinstance(reason, ConnectionRefusedError):
        return _NoAnswer("the connection was refused")
    return _NoAnswer(f"the server cannot be reached ({_in_words(reason)})")


def _in_words(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, http.client.IncompleteRead):
        return "the server closed it early"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__
