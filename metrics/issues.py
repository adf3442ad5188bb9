"""What is wrong with the input: every issue is counted, the first ten are told in one `InputError`.

Each names the rule that it breaks, an id of the package's records/rules.py, by which programs tell errors apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

MAX_SHOWN = 10
# how a caller asks that annotations without an instance be left out
ONLY_PREDICTED = "only_predicted=True"
MAX_LINE_LENGTH = 1000  # characters: an id or a label may be of any length


def cut(value: object, limit: int = 60) -> str:
    """The value as an error message shows it, cut."""
    try:
        text = repr(value)
    except Exception:  # lists nested past any bound, or an object that cannot say what it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class Issue(NamedTuple):
    """One thing wrong: in which input ("prediction", "reference" or ""), at which row, in which field, and what."""

    side: str
    row: int
    field: str
    message: str
    name: str | None = None  # the row's id as a message shows it, where whoever tells the issue knows no row number
    id: str | None = None  # the row's id, where `Issues.sides` knows it
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
        errors: the issues that ``message`` tells; by default it is one, of no row.
        total: how many issues there are.
    """

    def __init__(
        self, message: str, rule: str = "input", field: str = "", errors: Sequence[Issue] = (), total: int = 1
    ) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.errors, self.total = list(errors) or [Issue("", -1, field, message, rule=rule)], total

    @property
    def rule(self) -> str:
        """The first issue's rule."""
        return self.errors[0].rule


class RowNames(NamedTuple):
    """What issues call the rows of one side: by number (or by line), and by id."""

    numbers: Sequence[int]
    ids: Sequence[str]


class Issues(list[Issue]):
    """The first few issues; ``total`` counts them all.

    Args:
        sides: "prediction" or "reference" -> what rows are called while they are spoken of; without, they keep their
            numbers.
    """

    total = 0

    def __init__(self, sides: Mapping[str, RowNames] | None = None) -> None:
        super().__init__()
        self.sides = {} if sides is None else sides

    def add(self, side: str, row: int, field: str, message: str, rule: str) -> None:
        """Tell an issue of a row by the row's number."""
        self.add_issue(self._make_issue(side, int(row), field, message, rule))

    def add_by_id(self, side: str, name: object, field: str, message: str, rule: str) -> None:
        """Tell an issue of a row by the row's id; a number is the place of a row without one."""
        self.add_issue(Issue(side, -1, field, message, cut(name), name if isinstance(name, str) else None, rule))

    def add_rows(self, side: str, rows: np.ndarray, field: str, message: str | Callable[[int], str], rule: str) -> None:
        """Tell one issue per row; ``message`` is a text, or a function of the position in ``rows`` that gives it."""
        for position in range(min(rows.size, max(MAX_SHOWN - len(self), 0))):
            text = message(position) if callable(message) else message
            self.append(self._make_issue(side, int(rows[position]), field, text, rule))
        self.total += int(rows.size)

    def add_where(
        self,
        side: str,
        bad: np.ndarray,
        field: str,
        message: str | Callable[[int], str],
        rule: str,
        rows: np.ndarray | None = None,
    ) -> None:
        """Report one issue for each place that is bad.

        Args:
            bad: bool (places,), or the bad places.
            message: a text, or a function of the place that gives it.
            rows: the row of each place; None: the place itself.
        """
        at = np.flatnonzero(bad) if bad.dtype == bool else bad
        text = (lambda k: message(int(at[k]))) if callable(message) else message
        self.add_rows(side, at if rows is None else rows[at], field, text, rule)

    def take(self, other: Issues) -> None:
        """Add what was told elsewhere."""
        self += other[: max(MAX_SHOWN - len(self), 0)]
        self.total += other.total

    def reset(self) -> None:
        """Take back what was told."""
        self.clear()
        self.total = 0

    def _make_issue(self, side: str, row: int, field: str, message: str, rule: str) -> Issue:
        if side not in self.sides:
            return Issue(side, row, field, message, rule=rule)
        numbers, ids = self.sides[side]
        return Issue(side, int(numbers[row]), field, message, id=ids[row] if row < len(ids) else None, rule=rule)

    def add_issue(self, issue: Issue) -> None:
        """Tell an issue as it stands."""
        self.total += 1
        if len(self) < MAX_SHOWN:
            self.append(issue)

    def raise_if_any(self, ids: Mapping[str, Sequence[str]] | None = None) -> None:
        """Raise an `InputError` that names row and field of the first issues, and says how many there are, if any.

        Args:
            ids: side -> the id of each row, for issues that were told by row number.
        """
        if not self.total:
            return
        errors, lines = [], []
        for issue in self:
            names = (ids or {}).get(issue.side, ())
            if issue.name is None and issue.id is None and 0 <= issue.row < len(names):
                issue = issue._replace(id=names[issue.row])
            line, half = _describe_issue(issue, bool(names)), MAX_LINE_LENGTH // 2
            errors.append(issue)
            lines.append(line if len(line) <= MAX_LINE_LENGTH else f"{line[:half]} … {line[-half:]}")
        if self.total > len(self):
            lines.append(f"… and {self.total - len(self)} more ({self.total} in all)")
        raise InputError("\n".join(lines), errors=errors, total=self.total)


def _describe_issue(issue: Issue, known: bool) -> str:
    """An issue in words; ``known``: the ids of its side are known."""
    where = f": {issue.field}" if issue.field else ""
    if issue.name is not None:
        return f"{issue.side} {issue.name}{where}: {issue.message}"
    if not known and issue.id is None:
        return f"{issue.side}s: {issue.message}"
    noun = "instance" if issue.side == "prediction" else "reference"
    return f"{noun} {repr(issue.id) if issue.id else f'number {issue.row}'}{where}: {issue.message}"


class IssuesByRule(dict[str, Issues]):
    """Issues rule by rule, of input that comes in parts: those of a rule stand together, whichever part they are of.

    Rules stand in stages; where an earlier stage has issues, what a later one says is not told.

    Args:
        stages: the names of each stage's rules, in the order in which they are told.

    Attributes:
        sides: what the rows of the part are called that is spoken of, see `Issues`.
    """

    def __init__(self, *stages: Sequence[str]) -> None:
        self.stages, self.sides = stages, dict[str, RowNames]()
        super().__init__((rule, Issues(self.sides)) for stage in stages for rule in stage)

    def has_issues(self, until: str | None = None) -> bool:
        """Whether there are issues, up to and with the stage of the rule ``until``."""
        for stage in self.stages:
            if any(self[rule].total for rule in stage):
                return True
            if until in stage:
                break
        return False

    def collect(self) -> Issues:
        """The issues of the first stage that has any."""
        issues = Issues()
        for rule in next((stage for stage in self.stages if any(self[rule].total for rule in stage)), ()):
            issues.take(self[rule])
        return issues
