"""Fields that a format does not declare: near misses of a declared one are errors, others are counted and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from eraser_hub.schema.record import Record

from .issues import MAX_SHOWN, cut

# difflib's ratio from which a name counts as a misspelt known one: one letter too few or too many in five is .89
NEARLY = 0.8


def find_similar(name: object, known: Collection[str]) -> str | None:
    """Return the known name that is most similar; None if none is similar enough.

    >>> find_similar("rationale", ["rationales", "docid"]), find_similar("zebra", ["rationales"])
    ('rationales', None)
    """
    return _nearly(str(name), tuple(known))


@lru_cache(maxsize=1000)
def _nearly(name: str, known: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(name[:80].lower(), known, n=1, cutoff=NEARLY)), None)


def describe_misspelling(suggestion: str) -> str:
    """Return the message for a misspelt field."""
    return f"no field of this format: did you mean {suggestion!r}?"


class UnknownFields(Counter[str]):
    """Counter of unknown fields: path with a dot for each level -> number of rows that have it."""

    def count_row(self, row: Mapping[str, Any], record: Record) -> list[tuple[str, str]]:
        """Count the unknown fields of a row, and return (field, message) of each misspelt one."""
        unknown = [*_unknown(row, record)]
        self.update({path for _, path, near in unknown if near is None})
        return [(where, describe_misspelling(near)) for where, _, near in unknown if near is not None]

    def describe(self, besides: Collection[str | None] = ()) -> str:
        """Return one line that names the fields and their counts; "" if there are none.

        Args:
            besides: unknown fields that are used nevertheless.
        """
        names = sorted(name for name in self if name not in besides)
        if not names:
            return ""
        more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
        listed = ", ".join(f"{cut(name)[1:-1]} (in {self[name]})" for name in names[:MAX_SHOWN])
        return f"not scored, because the format has no such field: {listed}{more}"


def _unknown(
    row: Mapping[str, Any], record: Record, where: str = "", path: str = ""
) -> Iterator[tuple[str, str, str | None]]:
    """Yield (place, path, similar known field or None) of each unknown field, at any depth."""
    if not row.keys() <= record.keys():
        for name in [name for name in row if name not in record]:
            yield f"{where}{cut(str(name))[1:-1]}", f"{path}{name}", find_similar(name, record)
    for name, field in record.items():
        if field.record is None:
            continue
        values: list[tuple[str, Any]] = [(f"{where}{name}", row.get(name))]
        for _ in range(field.depth):
            values = [
                (f"{place}[{at}]", one)
                for place, several in values
                if isinstance(several, (list, tuple))
                for at, one in enumerate(several)
            ]
        for place, one in values:
            if isinstance(one, Mapping):
                yield from _unknown(one, field.record, f"{place}.", f"{path}{name}.")
