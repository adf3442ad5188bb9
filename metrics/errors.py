"""The one error for bad input, and the version: the lowest layer, which every other module may import."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from functools import partial
from os import PathLike
from typing import Any

VERSION = "1.0.0"
# of an address; a path of it may have lost one of its slashes. hf://ORG/NAME@REVISION names no user
USER = re.compile(r"((?:https?|ftp):/{1,2}|\b\w{1,30}:/{1,2}(?=[^/@\s]*:))[^/\s]+@", re.IGNORECASE)
SECRET = re.compile(r"([?&](?:\w*token|\w*key|password|secret|sig|\w*signature)=)[^&#:\s'\"]+", re.IGNORECASE)
MAX_LINE_LENGTH = 1000  # of a message: an id or a label of the input may be of any length


# what turns the direction of text round, or ends a line unseen
STEERING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x2028, 0x2029, 0x061C)
SIGNS = {
    **{code: f"<U+{code:04X}>" for code in (*range(0x80, 0xA0), *STEERING, *range(0xD800, 0xE000))},
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "␡",
}


def cut(value: object, limit: int = 60) -> str:
    """Return the ``repr`` of a value as an error message shows it, at most ``limit`` characters long."""
    try:
        text = repr(value)
    except Exception:  # lists nested past any bound, or an object that cannot say what it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def show_controls(text: str) -> str:
    """Return text with control and direction-changing characters made visible: data cannot steer a terminal.

    >>> show_controls("a\\x1b[31mb")
    'a␛[31mb'
    """
    return text if text.isprintable() else text.translate(SIGNS)


def hide_credentials(text: str) -> str:
    """Return text in which addresses have no user name and password, and no token in their query.

    >>> hide_credentials("https://me:secret@host/p.jsonl?token=hf_1 is not there")
    'https://***@host/p.jsonl?token=*** is not there'
    """
    return SECRET.sub(r"\1***", USER.sub(r"\1***@", text))


class DataError(ValueError):
    """One fault in an input: where it is, what was expected there, and what was found.

    Args:
        message: for example ``"expected a number, found 'x'"``; it names arguments of a call in backquotes.
        file: the file that holds it.
        line: its line there, from 1.
        instance: the id of the row.
        field: the path of the field, for example ``evidences[0][2].start_token``.
        argument: the argument of the call that is wrong, for example ``kd``.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        instance: object = None,
        field: str | None = None,
        argument: str | None = None,
    ) -> None:
        self.message, self.file, self.line = message, file, line
        self.instance, self.field, self.argument = instance, field, argument
        super().__init__(message)

    def __str__(self) -> str:
        place = "" if self.file is None else str(self.file) if self.line is None else f"{self.file}:{self.line}"
        row = "" if self.instance is None else f"instance {cut(self.instance)}"
        parts = [place, row, self.field, self.argument, self.message]
        text = hide_credentials(": ".join(part for part in parts if part))
        lines, half = [show_controls(line) for line in text.split("\n")], MAX_LINE_LENGTH // 2
        return "\n".join(x if len(x) <= MAX_LINE_LENGTH else f"{x[:half]} … {x[-half:]}" for x in lines)

    def at(self, *, file: str | PathLike[str] | None, line: int | None = None) -> DataError:
        """Return the same error with the place of the fault, for callers that know the place."""
        names = ("instance", "field", "argument")
        return DataError(self.message, file=file, line=line, **{name: getattr(self, name) for name in names})

    def __reduce__(self) -> tuple[Any, ...]:  # keyword-only arguments do not survive the default pickling
        names = ("file", "line", "instance", "field", "argument")
        return partial(type(self), **{name: getattr(self, name) for name in names}), (self.message,)


def find_similar(name: object, known: Collection[str]) -> str | None:
    """Return the known name that a misspelt one may stand for; None where none is near."""
    near = get_close_matches(str(name)[:80], list(known), 1, 0.8)
    return near[0] if near else None


def check_choice(value: object, known: Collection[str], argument: str) -> Any:
    """Return the value of an argument if it is one of the known words, else raise a `DataError`."""
    if not isinstance(value, str) or value not in known:
        raise DataError(f"expected one of {', '.join(known)}, found {cut(value)}", argument=argument)
    return value


def check_number(value: object, argument: str, least: float, most: float | None = None, whole: bool = True) -> None:
    """Raise a `DataError` for the value of an argument that is no number of the range, or no whole one."""
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not fits or not least <= value or (most is not None and value > most):  # type: ignore[operator]
        limits = f"of at least {least:.12g}" if most is None else f"from {least:.12g} to {most:.12g}"
        noun = "a whole number" if whole else "a number"
        raise DataError(f"expected {noun} {limits}, found {cut(value)}", argument=argument)
