"""Fields that a format does not know: one that is nearly a known one is an offence, any other is counted, and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from .fields import Format
from .offences import MOST_TOLD, cut

# difflib's ratio from which on a name is a known one misspelt: one letter too few or too many in five is .89
NEARLY = 0.8


def nearly(name: object, known: Iterable[str]) -> str | None:
    """The known name that this one is nearly; None where there is none.

    >>> nearly("rationale", ["rationales", "docid"]), nearly("zebra", ["rationales"])
    ('rationales', None)
    """
    return _nearly(str(name), tuple(known))


@lru_cache(maxsize=1000)
def _nearly(name: str, known: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(name[:80].lower(), known, n=1, cutoff=NEARLY)), None)


def misspelt(suggestion: str) -> str:
    """What is said of a field that is nearly another one."""
    return f"no field of this format: did you mean {suggestion!r}?"


class Strangers(Counter[str]):
    """Field, with a dot for each level -> in how many rows it stands that the format does not know."""

    def look(self, row: Mapping[str, Any], known: Format, say: Callable[[str, str], object]) -> None:
        """Count those of a row; ``say(field, message)`` is told of a misspelt one."""
        found = set[str]()
        for where, path, suggestion in _strangers(row, known):
            if suggestion is None:
                found.add(path)
            else:
                say(where, misspelt(suggestion))
        self.update(found)

    def told(self, besides: str | None = None) -> str:
        """One line that names them and their numbers; empty where there are none.

        Args:
            besides: a field that is used all the same.
        """
        names = sorted(name for name in self if name != besides)
        if not names:
            return ""
        more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
        listed = ", ".join(f"{cut(name)[1:-1]} (in {self[name]})" for name in names[:MOST_TOLD])
        return f"not scored, because the format has no such field: {listed}{more}"


def _strangers(
    row: Mapping[str, Any], known: Format, where: str = "", path: str = ""
) -> Iterator[tuple[str, str, str | None]]:
    """(place, path, the known field that it nearly is) of each unknown field, at any depth."""
    if not row.keys() <= known.keys():
        for name in [name for name in row if name not in known]:
            yield f"{where}{cut(str(name))[1:-1]}", f"{path}{name}", nearly(name, known)
    for name, inner in known.items():
        value = row.get(name) if inner else None
        if isinstance(value, Mapping):
            yield from _strangers(value, inner or {}, f"{where}{name}.", f"{path}{name}.")
        elif isinstance(value, (list, tuple)):
            for at, one in enumerate(value):
                if isinstance(one, Mapping):
                    yield from _strangers(one, inner or {}, f"{where}{name}[{at}].", f"{path}{name}.")
