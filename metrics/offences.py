"""What is wrong with the input: every offence is counted, the first ten are told in one `InputError`.

Each names the rule that it breaks, an id of the package's records/rules.py, by which programs tell errors apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

MOST_TOLD = 10
# how a caller asks that annotations without an instance be left out
ONLY_PREDICTED = "only_predicted=True"
LONGEST_LINE = 1000  # characters: an id or a label may be of any length


def cut(value: object, limit: int = 60) -> str:
    """The value as an error message shows it, cut."""
    try:
        text = repr(value)
    except Exception:  # lists nested past any bound, or an object that cannot say what it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class Offence(NamedTuple):
    """One thing wrong: in which input ("prediction", "reference" or ""), at which row, in which field, and what."""

    side: str
    row: int
    field: str
    message: str
    name: str | None = None  # the row's id as a message shows it, where whoever tells the offence knows no row number
    id: str | None = None  # the row's id, where `Offences.sides` knows it
    rule: str = "input"  # the rule that is broken

    @property
    def instance(self) -> str | None:
        """The row's id, where it is known and the row has one."""
        return self.id or None


class InputError(ValueError):
    """Wrong input, or a wrong argument.

    Args:
        message: what was expected and what was found.
        rule: the rule that is broken.
        field: the argument or the path of the field, which the text then begins with.
        errors: the offences that ``message`` tells; by default it is one, of no row.
        total: how many offences there are.
    """

    def __init__(
        self, message: str, rule: str = "input", field: str = "", errors: Sequence[Offence] = (), total: int = 1
    ) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.errors, self.total = list(errors) or [Offence("", -1, field, message, rule=rule)], total

    @property
    def rule(self) -> str:
        """The first offence's rule."""
        return self.errors[0].rule


class Rows(NamedTuple):
    """What offences call the rows of one side: by number (or by line), and by id."""

    numbers: Sequence[int]
    ids: Sequence[str]


class Offences(list[Offence]):
    """The first few offences; ``total`` counts them all.

    Args:
        sides: "prediction" or "reference" -> what rows are called while they are spoken of; without, they keep their
            numbers.
    """

    total = 0

    def __init__(self, sides: Mapping[str, Rows] | None = None) -> None:
        super().__init__()
        self.sides = {} if sides is None else sides

    def say(self, side: str, row: int, field: str, message: str, rule: str) -> None:
        """Tell an offence of a row by the row's number."""
        self.repeat(self._offence(side, int(row), field, message, rule))

    def say_of(self, side: str, name: object, field: str, message: str, rule: str) -> None:
        """Tell an offence of a row by the row's id; a number is the place of a row without one."""
        self.repeat(Offence(side, -1, field, message, cut(name), name if isinstance(name, str) else None, rule))

    def say_all(self, side: str, rows: np.ndarray, field: str, message: str | Callable[[int], str], rule: str) -> None:
        """Tell one offence per row; ``message`` is a text, or a function of the position in ``rows`` that gives it."""
        for position in range(min(rows.size, max(MOST_TOLD - len(self), 0))):
            text = message(position) if callable(message) else message
            self.append(self._offence(side, int(rows[position]), field, text, rule))
        self.total += int(rows.size)

    def say_where(
        self,
        side: str,
        bad: np.ndarray,
        field: str,
        message: str | Callable[[int], str],
        rule: str,
        rows: np.ndarray | None = None,
    ) -> None:
        """Report one offence for each place that is bad.

        Args:
            bad: bool (places,), or the bad places.
            message: a text, or a function of the place that gives it.
            rows: the row of each place; None: the place itself.
        """
        at = np.flatnonzero(bad) if bad.dtype == bool else bad
        text = (lambda k: message(int(at[k]))) if callable(message) else message
        self.say_all(side, at if rows is None else rows[at], field, text, rule)

    def take(self, other: Offences) -> None:
        """Add what was told elsewhere."""
        self += other[: max(MOST_TOLD - len(self), 0)]
        self.total += other.total

    def forget(self) -> None:
        """Take back what was told."""
        self.clear()
        self.total = 0

    def _offence(self, side: str, row: int, field: str, message: str, rule: str) -> Offence:
        if side not in self.sides:
            return Offence(side, row, field, message, rule=rule)
        numbers, ids = self.sides[side]
        return Offence(side, int(numbers[row]), field, message, id=ids[row] if row < len(ids) else None, rule=rule)

    def repeat(self, offence: Offence) -> None:
        """Tell an offence as it stands."""
        self.total += 1
        if len(self) < MOST_TOLD:
            self.append(offence)

    def stop(self, ids: Mapping[str, Sequence[str]] | None = None) -> None:
        """Raise an `InputError` that names row and field of the first offences, and says how many there are, if any.

        Args:
            ids: side -> the id of each row, for offences that were told by row number.
        """
        if not self.total:
            return
        errors, lines = [], []
        for offence in self:
            names = (ids or {}).get(offence.side, ())
            if offence.name is None and offence.id is None and 0 <= offence.row < len(names):
                offence = offence._replace(id=names[offence.row])
            line, half = _line(offence, bool(names)), LONGEST_LINE // 2
            errors.append(offence)
            lines.append(line if len(line) <= LONGEST_LINE else f"{line[:half]} … {line[-half:]}")
        if self.total > len(self):
            lines.append(f"… and {self.total - len(self)} more ({self.total} in all)")
        raise InputError("\n".join(lines), errors=errors, total=self.total)


def _line(offence: Offence, known: bool) -> str:
    """An offence in words; ``known``: the ids of its side are known."""
    where = f": {offence.field}" if offence.field else ""
    if offence.name is not None:
        return f"{offence.side} {offence.name}{where}: {offence.message}"
    if not known and offence.id is None:
        return f"{offence.side}s: {offence.message}"
    noun = "instance" if offence.side == "prediction" else "reference"
    return f"{noun} {repr(offence.id) if offence.id else f'number {offence.row}'}{where}: {offence.message}"


class Rules(dict[str, Offences]):
    """Offences rule by rule, of input that comes in parts: those of a rule stand together, whichever part they are of.

    Rules stand in stages; where an earlier stage has offences, what a later one says is not told.

    Args:
        stages: the names of each stage's rules, in the order in which they are told.

    Attributes:
        sides: what the rows of the part are called that is spoken of, see `Offences`.
    """

    def __init__(self, *stages: Sequence[str]) -> None:
        self.stages, self.sides = stages, dict[str, Rows]()
        super().__init__((rule, Offences(self.sides)) for stage in stages for rule in stage)

    def broken(self, until: str | None = None) -> bool:
        """Whether there are offences, up to and with the stage of the rule ``until``."""
        for stage in self.stages:
            if any(self[rule].total for rule in stage):
                return True
            if until in stage:
                break
        return False

    def told(self) -> Offences:
        """The offences of the first stage that has any."""
        told = Offences()
        for rule in next((stage for stage in self.stages if any(self[rule].total for rule in stage)), ()):
            told.take(self[rule])
        return told
