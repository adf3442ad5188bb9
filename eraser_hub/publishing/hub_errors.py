"""Explain errors of the Hub, the network and the disk: the refused action, whether waiting helps, and remedies."""

from __future__ import annotations

import email.utils
import errno
import re
import time
from typing import Any

from eraser_hub.records.errors import DataError

_TRANSPORTS = ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3")
_WORDS = {
    400: "the Hub calls the request malformed",
    401: "the Hub does not accept this token (expired, revoked, or none was sent); log in again with `hf auth login`",
    402: "the Hub asks for payment: the account's storage is used up",
    403: "this token may not write there; it needs write access to the namespace",
    404: "there is no such repository or revision, or this token may not see it",
    408: "the Hub got tired of waiting",
    409: "another change came in between",
    412: "another change came in between",
    413: "a file is too large for the Hub",
    422: "the Hub does not accept the contents",
    429: "too many requests",
    507: "the Hub has no room left",
}
_PASSING = frozenset({408, 409, 412, 429, 500, 502, 503, 504})


class Refusal(DataError):
    """A failed request.

    Attributes:
        passing: True if the same request may succeed later.
        retry_after: The seconds that the Hub asks to wait, if it does.
    """

    def __init__(self, message: str, *, passing: bool = False, retry_after: float | None = None, **place: Any) -> None:
        super().__init__(message, **place)
        self.passing, self.retry_after = passing, retry_after


def redact(text: str, token: str | None = None) -> str:
    """Return the text without the token, and without anything that resembles one."""
    if token:
        text = text.replace(token, "***")
    text = re.sub(r"\bhf_[A-Za-z0-9_]{6,}", "hf_***", text)
    text = re.sub(r"(?i)\bbearer\s+\S+", "Bearer ***", text)
    return re.sub(r"//[^/@\s]+@", "//***@", text)


def explain_error(error: BaseException, what: str, endpoint: str, token: str | None = None) -> Refusal:
    """Explain in one line why an action failed.

    Args:
        error: The client's error; its causes are read as well.
        what: The action, e.g. ``create org/eraser``.
        endpoint: The Hub's address.
        token: The token, which the message must not hold.
    """
    if isinstance(error, Refusal):
        return error
    causes: dict[int, BaseException] = {}
    current: BaseException | None = error
    while current is not None and id(current) not in causes:
        causes[id(current)] = current
        current = current.__cause__ or current.__context__
    for cause in causes.values():
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if isinstance(status, int):
            return _explain_status(cause, status, what, token)
        if isinstance(cause, OSError) and cause.errno == errno.ENOSPC:
            return Refusal(f"cannot {what}: no space left on this machine's disk")
        if type(cause).__name__ == "OfflineModeIsEnabled":
            return Refusal(f"cannot {what}: HF_HUB_OFFLINE is set")
        if _is_network(cause):
            reason = redact(str(cause) or type(cause).__name__, token)
            message = f"cannot {what}: cannot reach {redact(endpoint, token)}: {reason}"
            return Refusal(message, passing=True)
    text = redact(" ".join(str(error).split())[:500], token)
    return Refusal(f"cannot {what}: {type(error).__name__}: {text}")


def _is_network(error: BaseException) -> bool:
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    return any(
        base.__module__.partition(".")[0] in _TRANSPORTS
        and base.__name__ in ("TransportError", "ConnectionError", "Timeout", "RequestException", "HTTPError")
        for base in type(error).__mro__
    )


def _explain_status(error: BaseException, status: int, what: str, token: str | None) -> Refusal:
    response = error.response  # type: ignore[attr-defined]
    detail = response.headers.get("X-Error-Message") or getattr(error, "server_message", None) or ""
    words = _WORDS.get(status) or ("the Hub has a fault" if status >= 500 else "the Hub refuses")
    detail = redact(" ".join(str(detail).split())[:300], token)
    message = f"cannot {what}: {words} ({status}{f': {detail}' if detail else ''})"
    retry_after = _parse_seconds(response.headers.get("Retry-After")) if status in (429, 503) else None
    if retry_after is not None:
        message += f"; it asks to wait {retry_after:g} s"
    return Refusal(message, passing=status in _PASSING, retry_after=retry_after)


def _parse_seconds(header: str | None) -> float | None:
    """Parse a Retry-After header: seconds, or a date."""
    if not header:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d+)?", header.strip()):
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
