"""Download of one file over HTTP: resumable, with retries, and with plain error messages."""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import json
import logging
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit, urlunsplit

from tqdm import tqdm

from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.version import __version__

log = logging.getLogger("eraser_hub")
BLOCK = 1 << 16
MAX_TRIES = 100  # also limits tries with a server that cuts after every few bytes
MAX_BYTES = 4 << 30  # the archives of the release are much smaller
LEAST_BYTES = 1 << 16  # that a server sends within the timeout; a slower one keeps a run for days


@dataclass(frozen=True, slots=True)
class Retries:
    """Number of tries and waiting times of a download.

    Attributes:
        attempts: consecutive tries without new bytes before giving up.
        wait: seconds before the second try; doubled each time, up to ``most_wait``.
        most_wait: longest wait in seconds, also for a server's ``Retry-After``.
        timeout: seconds with fewer than `LEAST_BYTES` bytes after which a connection counts as broken.
    """

    attempts: int = 4
    wait: float = 1.0
    most_wait: float = 30.0
    timeout: float = 60.0


class FileNotOnServer(DataError):
    """Error: the server has no such file (404 or 410)."""


class _RetryableError(Exception):
    """A failure after which a further try may succeed; ``wait`` has the seconds that the server asks for."""

    wait: float | None = None


class _Unanswered(_RetryableError):
    """A failure to reach the server."""


class _FileChangedError(_RetryableError):
    """A failure: the file on the server is not the one whose first bytes are stored."""

    wait = 0.0


class _SlowError(_RetryableError):
    """A failure: bytes come too slowly to count as progress."""


CHANGED = "the file on the server has changed, the download starts anew"


class Unreachable(DataError):
    """Error: no server answers under the address after several tries."""


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Handler that follows redirects to http and https only, and from https to https only."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        target, authorization = _remove_password(newurl)
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            message = f"{req.full_url}: refused to follow a redirect away from https, to {target}"
            raise DataError(message)
        if authorization or not newurl.startswith(("https:", "http:")):
            message = f"{req.full_url}: refused to follow a redirect to {target}, which is no http or https address"
            raise DataError(message)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _remove_password(url: str) -> tuple[str, str | None]:
    """Return an address without user and password, and the Authorization header in their place.

    Messages and files must not show the password.

    Raises:
        ValueError: the text is no address.
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
    retries: Retries | None = None,
) -> bool:
    """Download ``url`` into ``part``, and continue an earlier download if the server allows it.

    ``part.json`` stores the server's facts of the file (length, ETag, date), to avoid joining two versions of it.

    Args:
        url: http or https.
        part: the file to fill. It is complete when this returns.
        name: for the progress bar.
        size: the expected size in bytes, if known.
        retries: see `Retries`; each further try is logged.

    Returns:
        True if a part of the file is from an earlier call.

    Raises:
        FileNotOnServer: 404 or 410.
        DataError: another failure, with the address and the reason; the part is kept for the next call.
    """
    retries = retries or Retries()
    known, authorization = False, None
    with contextlib.suppress(ValueError):
        url, authorization = _remove_password(url)
        known = urlsplit(url).scheme in ("http", "https")
    if not known:
        message = f"expected an http or https address, found {show(url.rpartition('@')[2])}"
        raise UsageError(message)
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {part.parent} ({error.strerror})") from None
    transfer = _Transfer(url, authorization, part, name, size)
    bytes_before = now = transfer.size
    failures = tries = 0
    while True:
        tries, before = tries + 1, now
        try:
            transfer.run(retries.timeout)
            return bytes_before > 0
        except _RetryableError as failure:
            if isinstance(failure, _FileChangedError):
                part.unlink(missing_ok=True)
            now = transfer.size
            failures = 1 if now > before and not isinstance(failure, _SlowError) else failures + 1
            if failures >= retries.attempts or tries >= MAX_TRIES:
                kept = f"; the {now} bytes that came are kept, the next run goes on after them" if now else ""
                kind = Unreachable if isinstance(failure, _Unanswered) else DataError
                raise kind(f"{url}: {failure}, also after {tries} tries{kept}") from None
            wait = failure.wait if failure.wait is not None else retries.wait * 2 ** (failures - 1)
            wait = min(wait, retries.most_wait)
            log.warning(f"{name}: {failure}; next try in {wait:.0f} s")
            time.sleep(wait)


@dataclass(slots=True)
class _Transfer:
    """State of one download.

    Attributes:
        url: address without user and password.
        authorization: the Authorization header in their place.
        part: the file to write.
        name: name for the progress bar.
        expected: expected size in bytes, if known.
        known: the server's facts of the file at the time of the stored bytes.
        offset: number of stored bytes to continue after.
    """

    url: str
    authorization: str | None
    part: Path
    name: str
    expected: int | None
    known: dict[str, Any] = field(default_factory=dict)
    offset: int = 0

    @property
    def size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def run(self, timeout: float) -> None:
        """Download the missing bytes; raise a `_RetryableError` if a further try may succeed."""
        self._resume()
        headers = {"User-Agent": f"eraser-hub/{__version__}", "Accept-Encoding": "identity"}
        if self.offset:
            headers["Range"] = f"bytes={self.offset}-"
            etag = self.known.get("etag")
            if condition := etag if etag and not etag.startswith("W/") else self.known.get("modified"):
                headers["If-Range"] = condition
        request = urllib.request.Request(self.url, headers=headers)
        if self.authorization:
            request.add_unredirected_header("Authorization", self.authorization)
        try:
            with urllib.request.build_opener(_NoDowngrade()).open(request, timeout=timeout) as response:
                facts = self._read_headers(response.status, response.headers)
                total = facts["length"]
                if total is not None and self.expected not in (None, total):
                    message = f"{self.url}: expected {self.expected} bytes, the server announces {total}"
                    raise DataError(message)
                if total is not None and total > MAX_BYTES:
                    message = f"{self.url}: the server announces {total} bytes, which no archive of the release has"
                    raise DataError(message)
                self._facts_path.write_text(json.dumps({"url": self.url, **facts}), encoding="utf-8")
                _write(response, self, self.expected if total is None else total, timeout)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 416 or not self.offset or self.known.get("length") != self.offset:
                raise self._make_status_error(error) from None  # else the stored bytes were complete
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise self._make_connection_error(error) from None

    def _resume(self) -> None:
        """Find stored bytes to continue after, and remove those of unknown origin."""
        self.offset, self.known = 0, {}
        if not self.part.exists():
            return
        with contextlib.suppress(OSError, ValueError, RecursionError):
            known = json.loads(self._facts_path.read_text(encoding="utf-8"))
            kinds = {type(known.get(key)) for key in ("etag", "modified")} if isinstance(known, dict) else {int}
            if kinds <= {str, type(None)} and known.get("url") == self.url:
                self.offset, self.known = self.size, known
                return
        self.part.unlink()

    @property
    def _facts_path(self) -> Path:
        return self.part.with_name(self.part.name + ".json")

    def _read_headers(self, status: int, headers: Message) -> dict[str, Any]:
        """Return the server's facts of the file, and set ``offset`` to the position of the answer's bytes."""
        facts: dict[str, Any] = {"length": None, "etag": headers.get("ETag"), "modified": headers.get("Last-Modified")}
        if status != 206:  # the server sends the whole file
            self.offset = 0
            return facts | {"length": _parse_whole_number(headers.get("Content-Length", ""))}
        unit, _, rest = headers.get("Content-Range", "").partition(" ")
        span, _, total = rest.partition("/")
        if unit != "bytes" or _parse_whole_number(span.partition("-")[0]) != self.offset:
            sent = f"asked for the bytes from {self.offset} on, the server sent {headers.get('Content-Range')!r}"
            raise DataError(f"{self.url}: {sent}")
        facts["length"] = _parse_whole_number(total)
        if any(None not in (value, self.known.get(key)) and self.known[key] != value for key, value in facts.items()):
            raise _FileChangedError(CHANGED)
        return facts

    def _make_status_error(self, error: urllib.error.HTTPError) -> Exception:
        """Return the error for a server's answer without a file; a `_RetryableError` if a further try may succeed."""
        status = f"{error.code} {error.reason}"
        if error.code == 416 and self.offset:
            return _FileChangedError(CHANGED)
        if error.code in (404, 410):
            return FileNotOnServer(f"{self.url}: the server has no such file ({error.code})")
        if error.code in (401, 403, 407):
            return DataError(f"{self.url}: the server refuses to hand it out ({status})")
        if error.code in (408, 425, 429) or error.code >= 500:
            retryable = _RetryableError(f"the server answered {status}")
            retryable.wait = _parse_whole_number((error.headers or Message()).get("Retry-After", ""))
            return retryable
        return DataError(f"{self.url}: the server answered {status}")

    def _make_connection_error(self, error: Exception) -> Exception:
        """Return the error for a failed connection; a `_RetryableError` if a further try may succeed."""
        number = error.errno if isinstance(error, OSError) else None
        if isinstance(error, urllib.error.URLError):
            reason = error.reason
            if isinstance(reason, ssl.SSLCertVerificationError):
                message = f"{self.url}: the server's certificate cannot be verified ({reason.verify_message})"
                return DataError(message)
            if isinstance(reason, socket.gaierror):
                return _Unanswered(f"the name {urlsplit(self.url).hostname!r} cannot be resolved (is there a network?)")
            if isinstance(reason, ConnectionRefusedError):
                return _Unanswered("the connection was refused")
            return _Unanswered(f"the server cannot be reached ({_describe(reason)})")
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = f"(free some room in {self.part.parent}; the next run goes on)"
            return DataError(f"{self.url}: the disk is full after {self.size} bytes {remedy}")
        if number in (errno.EACCES, errno.EROFS, errno.EPERM, errno.EISDIR):
            return DataError(f"{self.url}: cannot write {self.part} ({_describe(error)})")
        if isinstance(error, OSError | http.client.HTTPException):
            return _RetryableError(f"the connection broke ({_describe(error)})")
        return DataError(f"{self.url}: the server sends to an address that is none ({error})")


def _write(response: Any, transfer: _Transfer, total: int | None, timeout: float) -> None:
    done = since = transfer.offset
    deadline = time.monotonic() + timeout
    scale: dict[str, Any] = {"unit": "B", "unit_scale": True, "unit_divisor": 1024}
    with (
        transfer.part.open("r+b" if done else "wb") as out,
        tqdm(total=total, initial=done, desc=transfer.name, disable=None, delay=2, **scale) as bar,
    ):
        out.seek(done)
        out.truncate()
        while block := response.read1(BLOCK):
            done += len(block)
            if done > (MAX_BYTES if total is None else min(total, MAX_BYTES)):
                message = f"{response.url}: the server sends more than the {total or MAX_BYTES} bytes expected"
                raise DataError(message)
            out.write(block)
            bar.update(len(block))
            if time.monotonic() > deadline:
                if done < since + LEAST_BYTES:
                    raise _SlowError(f"the server sent {done - since} bytes in {timeout:g} s")
                since, deadline = done, time.monotonic() + timeout
    if total is not None and done < total:
        raise _RetryableError(f"the download was cut after {done} of {total} bytes")


def _parse_whole_number(digits: str) -> int | None:
    """Return the number in a header; None for other text, and for more than 64 bits."""
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 19 else None


def _describe(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, http.client.IncompleteRead):
        return "the server closed it early"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__
