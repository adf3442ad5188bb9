"""The one error for bad input: where it is, what was expected there, and what was found.

The command line prints it on stderr as ``FILE:LINE: FIELD: expected .., found ..`` and exits with 1; in Python it
is a ValueError.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from eraser_hub.metrics.errors import MAX_LINE_LENGTH, cut
from eraser_hub.metrics.errors import DataError as DataError
from eraser_hub.metrics.errors import hide_credentials as hide_credentials
from eraser_hub.metrics.errors import show_controls as show_controls

MAX_LISTED = 20  # names that an error lists where some are similar to the wrong one
MAX_SIMILAR = 3  # names that an error suggests
MAX_LINES = 40  # of an error: a hostile name or value must not flood a terminal
MAX_NAME_LENGTH = 255  # of a system's or a dataset's name


def describe_bad_name(name: str) -> str:
    """Describe what a name for tables and pages should be; "" for a good one.

    >>> describe_bad_name("BERT + LIME"), describe_bad_name("a\\nb")
    ('', "expected up to 255 printable characters on one line, found 'a\\\\nb'")
    """
    if len(name) <= MAX_NAME_LENGTH and "\n" not in name and show_controls(name) == name:
        return ""
    return f"expected up to {MAX_NAME_LENGTH} printable characters on one line, found {show(name)}"


def make_printable(text: str) -> str:
    """Return text for a terminal: no credentials, `MAX_LINES` lines at most, each cut to `MAX_LINE_LENGTH`."""
    lines, half = hide_credentials(text).split("\n"), MAX_LINE_LENGTH // 2
    shown = [show_controls(line) for line in lines[:MAX_LINES]]
    shown = [line if len(line) <= MAX_LINE_LENGTH else f"{line[:half]} … {line[-half:]}" for line in shown]
    more = [f"… and {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    return "\n".join([*shown, *more])


def show(value: object, limit: int = 80) -> str:
    """Return ``repr`` of a value, cut to ``limit`` characters: a hostile file cannot flood the terminal."""
    return cut(value, limit)


def describe_choice(name: object, known: Collection[str]) -> str:
    """Return the message for a name that is none of the known ones; of many, similar ones alone are named.

    >>> describe_choice("token_f1", ["token_macro_f1", "accuracy"])
    "expected one of token_macro_f1, accuracy, found 'token_f1': did you mean 'token_macro_f1'?"
    """
    near = [one for one in known if str(name) and one.startswith(str(name))]
    near = near or get_close_matches(str(name)[:80], list(known), MAX_SIMILAR)
    names = f"{len(known)} names" if near and len(known) > MAX_LISTED else ", ".join(known)
    hint = f": did you mean {' or '.join(map(repr, near[:MAX_SIMILAR]))}?" if near else ""
    return f"expected one of {names}, found {show(name)}{hint}"


def get_first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def add_count(error: DataError, total: int) -> DataError:
    """Return the first of ``total`` errors, its message with the number of the others.

    >>> str(add_count(DataError("expected a label, found none", line=3), 12))
    'expected a label, found none (and 11 more)'
    """
    if total > 1:
        error.message += f" (and {total - 1:,} more)"
    return error


class UsageError(DataError):
    """A wrong argument, or arguments that do not go together: seen before any work, exit status 2."""


class BusyError(DataError):
    """Another run is at work in the same folder."""
