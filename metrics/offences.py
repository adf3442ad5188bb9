"""What is wrong with the input: every offence is counted, the first ten are told in one ValueError."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

MOST_TOLD = 10


def cut(value: object, limit: int = 60) -> str:
    """The value as an error message shows it, cut."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class Offence(NamedTuple):
    """One thing wrong: in which input ("prediction" or "reference"), at which row, in which field, and what."""

    side: str
    row: int
    field: str
    message: str
    name: str | None = None  # the row's id as a message shows it, where whoever tells the offence knows no row number


class Offences(list[Offence]):
    """The first few offences; ``total`` counts them all."""

    total = 0

    def say(self, side: str, row: int, field: str, message: str) -> None:
        """Tell an offence of a row by the row's number."""
        self._keep(Offence(side, int(row), field, message))

    def say_of(self, side: str, name: object, field: str, message: str) -> None:
        """Tell an offence of a row by the row's id."""
        self._keep(Offence(side, -1, field, message, cut(name)))

    def say_all(self, side: str, rows: np.ndarray, field: str, message: str | Callable[[int], str]) -> None:
        """Tell one offence per row; ``message`` is a text, or a function of the position in ``rows`` that gives it."""
        for position in range(min(rows.size, max(MOST_TOLD - len(self), 0))):
            text = message(position) if callable(message) else message
            self.append(Offence(side, int(rows[position]), field, text))
        self.total += int(rows.size)

    def _keep(self, offence: Offence) -> None:
        self.total += 1
        if len(self) < MOST_TOLD:
            self.append(offence)

    def stop(self, ids: Mapping[str, Sequence[str]] | None = None) -> None:
        """Raise a ValueError that names row and field of the first offences, and says how many there are, if any.

        Args:
            ids: side -> the id of each row, for offences that were told by row number.
        """
        if not self.total:
            return
        lines = [_line(offence, (ids or {}).get(offence.side, ())) for offence in self]
        if self.total > len(self):
            lines.append(f"… and {self.total - len(self)} more ({self.total} in all)")
        raise ValueError("\n".join(lines))


def _line(offence: Offence, ids: Sequence[str]) -> str:
    side, row, field, message, name = offence
    where = f": {field}" if field else ""
    if name is not None:
        return f"{side} {name}{where}: {message}"
    if not ids:
        return f"{side}s: {message}"
    noun = "instance" if side == "prediction" else "reference"
    place = repr(ids[row]) if row < len(ids) and ids[row] else f"number {row}"
    return f"{noun} {place}{where}: {message}"
