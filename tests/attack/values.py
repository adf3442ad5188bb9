"""Hostile values, misspelt names, and places in JSON."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

GONE = object()  # in a table of values: the key is deleted
NAMES = {"nan": math.nan, "inf": math.inf, "GONE": GONE}


def odd(text: str) -> list[Any]:
    """The values of Python expressions that stand between blanks, with ``nan``, ``inf`` and ``GONE``."""
    return [eval(word, NAMES) for word in text.split()]


VALUES = odd(r"""None True False 0 -1 1.5 1e308 -0.0 10**30 -(2**63) nan inf '' 'x' '1' '\x00' '\ud800'
    '\x1b[31mred\x1b[0m' 'a'*5000 '../../etc/passwd' [] {} [[]] [None] {'':None} {'x':{}} [[[1]]] ['a',1]""")


def nested(depth: int, kind: str = "list") -> Any:
    """A list (or dict) that many levels deep."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


def also(**cells: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A change of a record: these cells, whatever was there."""
    return lambda record: {**record, **cells}


def misspelt(draw: random.Random, name: str) -> str:
    """The name with one letter left out or doubled."""
    at = draw.randrange(1, len(name) - 1)
    return draw.choice([name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:]])


def targets(draw: random.Random, value: Any, path: Sequence[str]) -> list[tuple[Any, Any, tuple[Any, ...]]]:
    """(container, key, keys from the top) of a path: "*" is any element, "+" every one, "a|b" one of these names."""
    part, rest = path[0], path[1:]
    if part in ("*", "+"):
        every = list(value) if isinstance(value, dict) else list(range(len(value)))
        keys = every if part == "+" else [draw.choice(every)]
    else:
        keys = [draw.choice(part.split("|"))]
        keys = [int(key) if isinstance(value, list) else key for key in keys]
    if not rest:
        return [(value, key, (key,)) for key in keys]
    inner = [(key, found) for key in keys for found in targets(draw, value[key], rest)]
    return [(container, last, (key, *way)) for key, (container, last, way) in inner]


def places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything below a JSON value, itself not."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys if depth < 20 else ():
        yield value, key
        yield from places(value[key], depth + 1)


def any_place(draw: random.Random, value: Any) -> tuple[Any, Any]:
    """(container, key) of one place below the value; long lists of numbers do not crowd out the rest."""
    every = list(places(value))
    return draw.choice([place for place in every if not (isinstance(place[1], int) and place[1] > 2)] or every)


def replace(draw: random.Random, container: Any, key: Any, values: Sequence[Any]) -> None:
    """Put one of the values there; a function makes it of the old one, GONE deletes the key."""
    value = draw.choice(values)
    if value is GONE:
        del container[key]
    else:
        container[key] = value(container[key]) if callable(value) and not isinstance(value, type) else value
