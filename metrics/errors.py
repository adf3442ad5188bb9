"""The one error for bad input, and the version: the lowest layer, which every other module may import."""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches
from os import PathLike
from typing import Any

import numpy as np

VERSION = "1.0.0"
MAX_LINE_LENGTH = 1000  # of a message: an id or a label of the input may be of any length


def cut(value: object, limit: int = 60) -> str:
    """Return the ``repr`` of a value as an error message shows it, at most ``limit`` characters long."""
    try:
        text = repr(value)
    except Exception:  # lists nested past any bound, or an object that cannot say what it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class DataError(ValueError):
    """One fault in an input: where it is, what was expected there, and what was found.

    Args:
        message: for example ``"expected a number, found 'x'"``.
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
        text, half = ": ".join(part for part in parts if part), MAX_LINE_LENGTH // 2
        return text if len(text) <= MAX_LINE_LENGTH else f"{text[:half]} … {text[-half:]}"


def raise_first(bad: np.ndarray, describe: Callable[[int], DataError]) -> None:
    """Raise the error of the first bad place, with the number of further ones ("and 11 more").

    Args:
        bad: bool (places,).
        describe: the error of a place.
    """
    places = np.flatnonzero(bad)
    if places.size:
        error = describe(int(places[0]))
        if places.size > 1:
            error.message += f" (and {places.size - 1:,} more)"
        raise error


def find_similar(name: object, known: Collection[str]) -> str | None:
    """Return the known name that a misspelt one may stand for; None where none is near."""
    near = get_close_matches(str(name)[:80], list(known), 1, 0.8)
    return near[0] if near else None


def check_choice(value: object, known: Collection[str], argument: str) -> Any:
    """Return the value of an argument if it is one of the known words, else raise a `DataError`."""
    if not isinstance(value, str) or value not in known:
        raise DataError(f"expected one of {', '.join(known)}, found {cut(value)}", argument=argument)
    return value
