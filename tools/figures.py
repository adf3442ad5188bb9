"""Draws the figures of docs/results.md, docs/images/results-NAME.svg, from docs/results/NAME.csv: ``make figures``.

A figure has a panel for each value of one column, and in it a line for each value of another: a dot, its interval, and
the number as it stands in the row. The drawings follow the reader's light or dark theme and need no font of their own.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "results"
COLUMNS = 2
WIDTH, MARGIN, GAP = 760, 12, 24
LINE, HEAD, NUMBER = 17, 34, 44


class DotPlot(NamedTuple):
    """The look of a dot plot.

    Attributes:
        title: What the figure shows, for readers who do not see it.
        panel: The column with a panel for each of its values.
        row: The column with a line for each of its values.
        label: Widest label of a line, in pixels.
        reference: A value with a line of its own.
        logarithmic: Draw by factors.
        shared: All panels have one scale.
    """

    title: str
    panel: str
    row: str
    label: int = 125
    reference: float | None = None
    logarithmic: bool = False
    shared: bool = False


FIGURES = {
    "peers": DotPlot(
        "CPU time of other libraries as a multiple of eraser-hub's", "task", "library", 168, 1.0, True, True
    ),
    "movies-linear": DotPlot("Scores of a logistic regression's explanations on movies, by method", "score", "method"),
    "movies-minilm": DotPlot("Scores of MiniLM's explanations on movies, by method", "score", "method"),
    "every-score-linear": DotPlot("Every score of a logistic regression's explanations, by method", "score", "method"),
    "every-score-minilm": DotPlot("Every score of MiniLM's explanations, by method", "score", "method"),
    "eraser-4": DotPlot("ERASER, Table 4 on movies, here, in small", "score", "system", 226),
}


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the lines of a figure's file."""
    with open(DATA / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def draw(name: str) -> str:
    """Return a figure as SVG; rows hold ``value``, and where they are known ``low`` and ``high``."""
    figure, rows = FIGURES[name], rows_of(name)
    by_panel = dict[str, list[dict[str, str]]]()
    for row in rows:
        by_panel.setdefault(row[figure.panel], []).append(row)
    heights = [HEAD + LINE * len(own) + 14 for own in by_panel.values()]
    lines = [heights[i : i + COLUMNS] for i in range(0, len(heights), COLUMNS)]
    width = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS
    top, panels = MARGIN, []
    height = top + sum(map(max, lines)) + 8
    for number, (title, own) in enumerate(by_panel.items()):
        left = MARGIN + (number % COLUMNS) * (width + GAP)
        place = {"title": title, "left": left, "right": left + width, "top": top}
        panels.append(place | _lay_out(figure, own, rows if figure.shared else own, left, top, width))
        top += max(lines[number // COLUMNS]) if number % COLUMNS == COLUMNS - 1 else 0
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(autoescape=True, undefined=StrictUndefined, loader=loader)
    environment.filters["tenths"] = "{:.1f}".format
    look = {"width": WIDTH, "height": height, "label": _short}
    return environment.get_template("dots.svg").render(figure=figure, panels=panels, **look) + "\n"


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
    numbers = [float(row[key]) for row in scaled for key in ends if row.get(key)]
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


def main() -> None:
    """Draw all figures."""
    for name in FIGURES:
        path = DOCS / "images" / f"results-{name}.svg"
        path.write_text(draw(name), encoding="utf-8")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
