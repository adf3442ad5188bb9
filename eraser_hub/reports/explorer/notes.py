"""Notes on several systems, merged: one line for what is true of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 5  # names in a row


def merge_notes(notes: Iterable[tuple[str, str]], systems: Sequence[str]) -> list[str]:
    """Return one line for each text, with the systems that it is about.

    Args:
        notes: (system, text).
        systems: the names of all systems.

    >>> merge_notes([("a", "no curve"), ("b", "no curve"), ("a", "one run")], ["a", "b"])
    ['all 2 systems: no curve', 'a: one run']
    """
    named: dict[str, list[str]] = {}
    for system, text in notes:
        if system not in named.setdefault(text, []):
            named[text].append(system)
    return [f"{count_systems(names, len(systems))}: {text}" for text, names in named.items()]


def _list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def count_systems(names: Sequence[str], total: int) -> str:
    """Return words for some of the systems: a name, a count with names, or all of them.

    >>> count_systems(["a", "b"], 3), count_systems(["a"], 3), count_systems(["a", "b"], 2)
    ('2 of 3 systems (a, b)', 'a', 'all 2 systems')
    """
    if len(names) == 1:
        return names[0]
    return f"all {total} systems" if len(names) == total else f"{len(names)} of {total} systems ({_list_some(names)})"
