"""A forest plot: each headline score of every system with its interval and chance; a panel for each score."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eraser_hub.records.predictions import read_signature
from eraser_hub.scoring.result import Scores

from ..catalogue import AGREEMENT, format_interval, format_number, metric
from ..figures import compute_ticks, find_system_style, link_documents
from ..markup import fill_template

WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 440, 146, 58, 26, 19, 26
NAME_LENGTH = 22
# in a run's signature: the rationales are those of the gold; tokens are ranked at random
PEOPLE, RANDOM = "rationales:human", "method:random"


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A system's score in a panel.

    Attributes:
        system: its name.
        place: its place among all systems, which decides its colour and marker.
        value: the score.
        interval: (low, high); None where there is none.
        chance: the score of random rationales; None where unknown.
    """

    system: str
    place: int
    value: float
    interval: Sequence[float] | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class ForestPanel:
    """A score's panel; ``counted``: the annotations that the score counts, "" where it counts all."""

    key: str
    rows: tuple[ForestRow, ...]
    counted: str = ""


def make_panels(
    systems: Sequence[Scores], keys: Sequence[str], chance: Mapping[str, float], people: Container[str] = ()
) -> list[ForestPanel]:
    """Return a panel for each score that any system has.

    Args:
        systems: in the report's order.
        keys: the scores.
        chance: scores of random rationales, for scores without a chance of their own.
        people: systems whose rationales are the gold's: they have no agreement with themselves.
    """
    panels = []
    for key in keys:
        left_out = people if metric(key).family == AGREEMENT else ()
        rows = tuple(
            ForestRow(
                system.name,
                place,
                value,
                (ends[0], ends[1]) if (ends := system.intervals.get(key)) and all(map(math.isfinite, ends)) else None,
                system.chance.get(key, chance.get(key)),
            )
            for place, system in enumerate(systems)
            if (value := system.number(key)) is not None and math.isfinite(value) and system.name not in left_out
        )
        if rows:
            shown = [systems[row.place] for row in rows]
            counted = [one.counted(key) for one in shown]
            sizes = {n or len(one.ids) for n, one in zip(counted, shown, strict=True)} if any(counted) else set[int]()
            words = " to ".join(map(str, sorted(sizes)[:: max(1, len(sizes) - 1)]))
            panels.append(ForestPanel(key, rows, f", n {words}" if words else ""))
    return panels


def find_systems(systems: Sequence[Scores], part: str) -> list[str]:
    """Return the systems all of whose runs record this part of a signature, such as `PEOPLE`."""
    return [
        one.name for one in systems if one.files and all(part in read_signature(path).split("|") for path in one.files)
    ]


def drop_agreement(system: Scores) -> Scores:
    """Return a system without its agreement, for one whose rationales are the gold's: it would be with themselves."""

    def others(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in values.items() if metric(key).family != AGREEMENT}

    parts = ("scores", "intervals", "per_instance", "spread", "chance")
    kept: dict[str, Any] = {name: others(getattr(system, name)) for name in parts}
    return replace(system, by_class={name: others(own) for name, own in system.by_class.items()}, **kept)


def render_panel(panel: ForestPanel) -> str:
    """Return a panel as SVG; each marker links to the documents in the order of its score."""
    known, numbers = metric(panel.key), [0.0]
    for row in panel.rows:
        numbers += [row.value, *(row.interval or ()), row.chance or 0.0]
    finite = [number for number in numbers if math.isfinite(number)]
    low, high = min(finite), max(finite)
    high = high if high > low else low + 1.0

    def px(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    return fill_template(
        "forest.svg",
        panel=panel,
        title=known.label,
        arrow={"higher": "↑", "lower": "↓", "": ""}[known.better],
        px=px,
        style=find_system_style,
        link=link_documents,
        name=shorten,
        describe=describe_row,
        number=format_number,
        ticks=[(px(tick), f"{tick:.6g}".replace("-", "−")) for tick in compute_ticks(low, high, 4)],
        width=WIDTH,
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=TOP + ROW * len(panel.rows),
        height=TOP + ROW * len(panel.rows) + BOTTOM,
        step=ROW,
    )


def shorten(name: str) -> str:
    """Return a name that fits: systems often begin alike (the model) and end apart (the method), so both ends stay.

    >>> shorten("logistic-regression, occlusion")
    'logistic-r…, occlusion'
    """
    half = (NAME_LENGTH - 1) // 2
    return name if len(name) <= NAME_LENGTH else f"{name[:half]}…{name[half - NAME_LENGTH + 1 :]}"


def describe_row(row: ForestRow) -> str:
    """Return a row in words."""
    words = f"{row.system}: {format_number(row.value)} {format_interval(row.interval)}".rstrip()
    return words if row.chance is None else f"{words}, chance {format_number(row.chance)}"
