"""The one error for bad input: where it is, what was expected there, and what was found.

The command line prints it on stderr as ``FILE:LINE: FIELD: expected .., found ..`` and exits with 1; in Python it
is a ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

MOST_SHOWN = 10


def shown(value: object, limit: int = 80) -> str:
    """``repr`` of a value, cut to ``limit`` characters so that a hostile file cannot flood the terminal."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def first_line(error: BaseException) -> str:
    """The first line of an error's words, or its type's name when it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class DataError(ValueError):
    """One offence in the input.

    Args:
        message: what was expected and what was found, e.g. ``"expected an integer, found '3'"``.
        file: the file that holds it.
        line: the 1-based line in that file.
        instance: the annotation id, where it is known.
        field: the path of the field, e.g. ``evidences[0][2].start_token``.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        instance: object | None = None,
        field: str | None = None,
    ) -> None:
        self.message, self.file, self.line, self.instance, self.field = message, file, line, instance, field
        super().__init__(message)

    def __str__(self) -> str:
        parts = []
        if self.file is not None:
            parts.append(str(self.file) if self.line is None else f"{self.file}:{self.line}")
        if self.instance is not None:
            parts.append(f"instance {shown(self.instance)}")
        if self.field is not None:
            parts.append(self.field)
        return ": ".join([*parts, self.message])

    def at(self, *, file: str | PathLike[str] | None, line: int | None = None) -> DataError:
        """The same offence with the place that holds it, for who knows that while its finder did not."""
        return DataError(self.message, file=file, line=line, instance=self.instance, field=self.field)

    def __reduce__(self) -> tuple[object, ...]:  # keyword-only arguments do not survive the default pickling
        return _restore, (type(self), self.message, self.file, self.line, self.instance, self.field)


def _restore(cls: type[DataError], message: str, file, line, instance, field) -> DataError:
    return cls(message, file=file, line=line, instance=instance, field=field)


def summary(errors: Sequence[DataError], total: int | None = None) -> str:
    """At most ten offenders, one a line, and their number."""
    total = len(errors) if total is None else total
    lines = [str(error) for error in errors[:MOST_SHOWN]]
    if total > len(lines):
        lines.append(f"… and {total - len(lines)} more ({total} in all)")
    return "\n".join(lines)


class DataErrors(DataError):
    """Several offences at once: the first ten are shown, and their number is said.

    Args:
        errors: the offences that are kept (more than ten need not be).
        total: how many there were; by default as many as given.
    """

    def __init__(self, errors: Sequence[DataError], total: int | None = None) -> None:
        self.errors, self.total = list(errors), len(errors) if total is None else total
        super().__init__(summary(self.errors, self.total))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.errors, self.total)


def raise_all(errors: Sequence[DataError]) -> None:
    """Raise what was gathered: one error as it is, several together; none raises nothing."""
    if errors:
        raise errors[0] if len(errors) == 1 else DataErrors(errors)


class BusyError(DataError):
    """Another run is at work in the same folder."""
