"""Several faults of one input, as checks and builds gather them."""

from __future__ import annotations

from collections.abc import Sequence

from eraser_hub.records.errors import DataError

MOST_SHOWN = 10


def summarize_errors(errors: Sequence[DataError], total: int | None = None) -> str:
    """Return at most ten errors, one a line, and their number."""
    total = len(errors) if total is None else total
    lines = [str(error) for error in errors[:MOST_SHOWN]]
    if total > len(lines):
        lines.append(f"… and {total - len(lines)} more ({total} in all)")
    return "\n".join(lines)


class DataErrors(DataError):
    """Several faults at once: the message shows the first ten and their number.

    Args:
        errors: the issues that are kept (more than ten need not be).
        total: how many there were; by default as many as given.
    """

    def __init__(self, errors: Sequence[DataError], total: int | None = None) -> None:
        self.errors, self.total = list(errors), len(errors) if total is None else total
        super().__init__(summarize_errors(self.errors, self.total))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.errors, self.total)


def raise_all(errors: Sequence[DataError]) -> None:
    """Raise what was gathered: one error as it is, several together; none raises nothing."""
    if errors:
        raise errors[0] if len(errors) == 1 else DataErrors(errors)
