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


def merge_pair_notes(notes: Iterable[str], systems: Sequence[str]) -> list[str]:
    """Return one line for each text on pairs of systems, ``A and B: text``; other notes stay as they are.

    >>> merge_pair_notes(["a and b: alike", "few texts", "a and c: alike", "b and c: apart"], ["a", "b", "c"])
    ['2 pairs (a and b, a and c): alike', 'few texts', 'b and c: apart']
    """
    pairs = [f"{one} and {other}" for one in systems for other in systems if one != other]
    named: dict[tuple[bool, str], list[str]] = {}
    for note in notes:
        pair = next((pair for pair in pairs if note.startswith(f"{pair}: ")), "")
        named.setdefault((bool(pair), note[len(pair) + 2 :] if pair else note), []).append(pair)
    return [f"{_count_pairs(names)}: {text}" if of_pairs else text for (of_pairs, text), names in named.items()]


def _count_pairs(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} pairs ({_list_some(names)})"


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
