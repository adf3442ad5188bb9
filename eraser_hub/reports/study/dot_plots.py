"""Dot plots with intervals as SVG: a panel for each value of one column, in it a line for each value of another.

A line has a dot, its interval, and the number as it stands in the row. The drawings follow the reader's light or dark
theme and need no font of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..markup import fill_template

TITLE = "Share of planted texts where a score puts the true explanation first"
COLUMNS = 2
WIDTH, MARGIN, GAP = 760, 12, 24
LINE, HEAD, NUMBER = 17, 34, 44
CAPTION_LINE = 16


class DotPlot(NamedTuple):
    """The look of a dot plot.

    Attributes:
        title: what the figure shows, for readers who do not see it.
        panel: the column with a panel for each of its values.
        row: the column with a line for each of its values; several are joined.
        label: widest label of a line, in pixels.
        reference: a value with a line of its own, such as that of chance.
        logarithmic: draw by factors.
        shared: all panels have one scale.
        caption: lines above the panels; the first stands out.
        ends: the least and the greatest value of the scale; by default those of the rows.
    """

    title: str
    panel: str
    row: str
    label: int = 125
    reference: float | None = None
    logarithmic: bool = False
    shared: bool = False
    caption: tuple[str, ...] = ()
    ends: tuple[float, float] | None = None


def draw_dots(figure: DotPlot, rows: Sequence[Mapping[str, str]]) -> str:
    """Return a figure as SVG.

    Rows hold ``value``, and where they are known ``low``, ``high`` and ``mark``; with ``weak`` they are drawn quietly.
    """
    by_panel = dict[str, list[Mapping[str, str]]]()
    for row in rows:
        by_panel.setdefault(row[figure.panel], []).append(row)
    heights = [HEAD + LINE * len(own) + 14 for own in by_panel.values()]
    lines = [heights[i : i + COLUMNS] for i in range(0, len(heights), COLUMNS)]
    width = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS
    top = MARGIN + (CAPTION_LINE * len(figure.caption) + 6 if figure.caption else 0)
    height, panels = top + sum(map(max, lines)) + 8, []
    for number, (title, own) in enumerate(by_panel.items()):
        left = MARGIN + (number % COLUMNS) * (width + GAP)
        place = {"title": title, "left": left, "right": left + width, "top": top}
        panels.append(place | _lay_out(figure, own, rows if figure.shared else own, left, top, width))
        top += max(lines[number // COLUMNS]) if number % COLUMNS == COLUMNS - 1 else 0
    look: dict[str, Any] = {"width": WIDTH, "height": height, "margin": MARGIN, "step": CAPTION_LINE, "label": _short}
    return fill_template("dots.svg", figure=figure, panels=panels, **look) + "\n"


def make_plot(family: str, column: str, level: float, alone: bool = False) -> DotPlot:
    """Return the look of a figure of a family's shares; ``alone``: one model judges each planting."""
    intervals = f"{100 * level:g} % intervals{' over new texts, of one model of each planting' if alone else ''}"
    caption = (
        f"{TITLE}: {family} models",
        f"Lines: {intervals}. A tie counts half; dashed: a coin. = the interval holds a coin's 0.5, ! it lies below.",
        "Hollow, last: decided by construction.",
    )
    return DotPlot(f"{TITLE}, with {intervals}; {family}", column, "score", 182, 0.5, False, True, caption, (0.0, 1.0))


def _lay_out(
    figure: DotPlot,
    rows: Sequence[Mapping[str, str]],
    scaled: Sequence[Mapping[str, str]],
    left: float,
    top: float,
    width: float,
) -> dict[str, Any]:
    """Return the places of a panel's scale and lines; ``scaled`` are the rows that its scale holds."""
    ends = ("value", "low", "high")
    numbers = [float(row[key]) for row in scaled for key in ends if row.get(key)] + list(figure.ends or ())
    reference = [] if figure.reference is None else [figure.reference]
    low, high = min(numbers + reference), max(numbers + reference)
    low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
    start, length = left + figure.label, width - NUMBER - figure.label

    def at(value: float) -> float:
        if figure.logarithmic:
            return start + length * math.log(value / low) / math.log(high / low)
        return start + length * (value - low) / (high - low)

    marks = dict[float, float]()
    for value in (*reference, low, high):
        if all(abs(at(value) - x) >= 26 for x in marks.values()):  # else its number would lie on another's
            marks[value] = at(value)
    places = [{key: at(float(row[key])) for key in ends if row.get(key)} for row in rows]
    lines = [(row, xs, top + HEAD + LINE * n + 4) for n, (row, xs) in enumerate(zip(rows, places, strict=True))]
    return {"bottom": top + HEAD + LINE * len(rows) - 6, "marks": list(marks.items()), "rows": lines}


def _short(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 0.01 and value else f"{value:.2f}".rstrip("0").rstrip(".")
