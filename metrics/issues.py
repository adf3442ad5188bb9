"""Issues of the input: all are counted, and one `InputError` shows the first ten.

Each issue names the rule that it breaks: an id of the package's records/rules.py, by which programs distinguish errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

MAX_SHOWN = 10
# the option that leaves out annotations without an instance
ONLY_PREDICTED = "only_predicted=True"
MAX_LINE_LENGTH = 1000  # characters: an id or a label may be of any length


def cut(value: object, limit: int = 60) -> str:
    """Return the value as an error message shows it: its ``repr``, at most ``limit`` characters long."""
    try:
        text = repr(value)
    except Exception:  # lists nested past any bound, or an object that cannot say what it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def check_choice(value: object, known: Collection[str], argument: str) -> None:
    """Raise an `InputError` if the value of an argument is none of the known words."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"expected one of {', '.join(known)}, found {value!r}", "option-value", argument)


class Issue(NamedTuple):
    """Issue of the input: its side ("prediction", "reference" or ""), row, field and message."""

    side: str
    row: int
    field: str
    message: str
    name: str | None = None  # the row's id as a message shows it, where the row number is not known
    id: str | None = None  # the row's id, if `Issues.sides` has it
    rule: str = "input"  # the broken rule

    @property
    def instance(self) -> str | None:
        """Id of the row; None if it is not known or empty."""
        return self.id or None


class InputError(ValueError):
    """Wrong input, or a wrong argument.

    Args:
        message: the expected value and the one found.
        rule: the broken rule.
        field: the argument, or the path of the field; the text begins with it.
        errors: the issues that ``message`` describes; by default one without a row.
        total: the number of issues.
    """

    def __init__(
        self, message: str, rule: str = "input", field: str = "", errors: Sequence[Issue] = (), total: int = 1
    ) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.errors, self.total = list(errors) or [Issue("", -1, field, message, rule=rule)], total

    @property
    def rule(self) -> str:
        """Rule of the first issue."""
        return self.errors[0].rule


class RowNames(NamedTuple):
    """Names of the rows of one side in messages: their numbers (or lines), and their ids."""

    numbers: Sequence[int]
    ids: Sequence[str]


class Issues(list[Issue]):
    """List of the first few issues; ``total`` counts all of them.

    Args:
        sides: "prediction" or "reference" -> the names of its rows; rows of other sides keep their numbers.
    """

    total = 0

    def __init__(self, sides: Mapping[str, RowNames] | None = None) -> None:
        super().__init__()
        self.sides = {} if sides is None else sides

    def add(self, side: str, row: int, field: str, message: str, rule: str) -> None:
        """Add an issue of a row, given the row's number."""
        self.add_issue(self._make_issue(side, int(row), field, message, rule))

    def add_by_id(self, side: str, name: object, field: str, message: str, rule: str) -> None:
        """Add an issue of a row, given the row's id, or the place of a row without id."""
        self.add_issue(Issue(side, -1, field, message, cut(name), name if isinstance(name, str) else None, rule))

    def add_where(
        self,
        side: str,
        bad: np.ndarray,
        field: str | Callable[[int], str],
        message: str | Callable[[int], str],
        rule: str,
        rows: np.ndarray | None = None,
    ) -> None:
        """Add one issue for each place that is bad.

        Args:
            side: "prediction" or "reference".
            bad: bool (places,), or the bad places.
            field: the path of the field, or a function from the place to the path.
            message: a text, or a function from the place to the text.
            rule: the broken rule.
            rows: the row of each place; None: the place itself.
        """
        at = np.flatnonzero(bad) if bad.dtype == bool else bad
        for place in at[: max(MAX_SHOWN - len(self), 0)].tolist():
            path, text = (value(place) if callable(value) else value for value in (field, message))
            self.append(self._make_issue(side, place if rows is None else int(rows[place]), path, text, rule))
        self.total += int(at.size)

    def take(self, other: Issues) -> None:
        """Add the issues of another list."""
        self += other[: max(MAX_SHOWN - len(self), 0)]
        self.total += other.total

    def _make_issue(self, side: str, row: int, field: str, message: str, rule: str) -> Issue:
        if side not in self.sides:
            return Issue(side, row, field, message, rule=rule)
        numbers, ids = self.sides[side]
        return Issue(side, int(numbers[row]), field, message, id=ids[row] if row < len(ids) else None, rule=rule)

    def add_issue(self, issue: Issue) -> None:
        """Add an issue; beyond the first ten it is only counted."""
        self.total += 1
        if len(self) < MAX_SHOWN:
            self.append(issue)

    def raise_if_any(self, ids: Mapping[str, Sequence[str]] | None = None) -> None:
        """Raise an `InputError` with the first issues and their total number, if there are any.

        Args:
            ids: side -> the id of each row, for issues that were added by row number.

        Raises:
            InputError: there is at least one issue.
        """
        if not self.total:
            return
        errors, lines = [], []
        for issue in self:
            names = (ids or {}).get(issue.side, ())
            if issue.name is None and issue.id is None and 0 <= issue.row < len(names):
                issue = issue._replace(id=names[issue.row])
            where, half = f": {issue.field}" if issue.field else "", MAX_LINE_LENGTH // 2
            if issue.name is not None:
                line = f"{issue.side} {issue.name}{where}: {issue.message}"
            elif not names and issue.id is None:
                line = f"{issue.side}s: {issue.message}"
            else:
                noun = "instance" if issue.side == "prediction" else "reference"
                line = f"{noun} {repr(issue.id) if issue.id else f'number {issue.row}'}{where}: {issue.message}"
            errors.append(issue)
            lines.append(line if len(line) <= MAX_LINE_LENGTH else f"{line[:half]} … {line[-half:]}")
        if self.total > len(self):
            lines.append(f"… and {self.total - len(self)} more ({self.total} in all)")
        raise InputError("\n".join(lines), errors=errors, total=self.total)


class IssuesByRule(dict[str, Issues]):
    """Issues by rule, of input that comes in chunks.

    Rules belong to stages. Where an earlier stage has issues, those of later stages are not shown.

    Args:
        stages: the names of each stage's rules, in the order of messages.

    Attributes:
        sides: the names of the rows of the current chunk, see `Issues`.
    """

    def __init__(self, *stages: Sequence[str]) -> None:
        self.stages, self.sides = stages, dict[str, RowNames]()
        super().__init__((rule, Issues(self.sides)) for stage in stages for rule in stage)

    def collect(self, until: str | None = None) -> Issues:
        """Return the issues of the first stage that has any; of the stages up to that of the rule ``until``."""
        issues = Issues()
        for stage in self.stages:
            for own in (self[rule] for rule in stage if self[rule]):
                issues.take(own)
            if issues or until in stage:
                break
        return issues
