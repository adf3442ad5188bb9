"""Draws the figure of docs/results.md, docs/images/results-peers.svg, from docs/results/peers.csv: ``make figures``.

It has a panel for each task, and in it a line for each library: a dot, and the number as it stands in the row. The
drawing follows the reader's light or dark theme and needs no font of its own.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA, FIGURE = DOCS / "results" / "peers.csv", DOCS / "images" / "results-peers.svg"
TITLE = "CPU time of other libraries as a multiple of eraser-hub's"
COLUMNS = 2
WIDTH, MARGIN, GAP = 760, 12, 24
LINE, HEAD, LABEL, NUMBER = 17, 34, 168, 44


def read_rows() -> list[dict[str, str]]:
    """Return the figure's rows: ``task``, ``library``, and ``value``, a factor."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def draw() -> str:
    """Return the figure as SVG; its panels share one logarithmic scale with a line at 1."""
    rows = read_rows()
    by_task: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row)
    values = [1.0, *(float(row["value"]) for row in rows)]
    low, high = min(values), max(values)
    width = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS
    start, length = LABEL, width - NUMBER - LABEL

    def scale(value: float) -> float:
        return start + length * math.log(value / low) / math.log(high / low)

    marks: dict[float, float] = {}
    for value in (1.0, low, high):
        if all(abs(scale(value) - x) >= 26 for x in marks.values()):  # else its number would lie on another's
            marks[value] = scale(value)
    heights = [HEAD + LINE * len(own) + 14 for own in by_task.values()]
    top: float = MARGIN
    panels: list[dict[str, Any]] = []
    for number, (task, own) in enumerate(by_task.items()):
        left = MARGIN + (number % COLUMNS) * (width + GAP)
        lines = [(row, left + scale(float(row["value"])), top + HEAD + LINE * n + 4) for n, row in enumerate(own)]
        bottom, at_left = top + HEAD + LINE * len(own) - 6, [(value, left + x) for value, x in marks.items()]
        panel = {"title": task, "left": left, "right": left + width, "top": top, "bottom": bottom}
        panel |= {
            "bottom": top + HEAD + LINE * len(own) - 6,
            "marks": [(value, left + x) for value, x in marks.items()],
        }
        panels.append(panel | {"marks": at_left, "rows": lines})
        if number % COLUMNS == COLUMNS - 1 or number == len(by_task) - 1:
            top += max(heights[number - number % COLUMNS : number + 1])
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(autoescape=True, undefined=StrictUndefined, loader=loader)
    environment.filters["tenths"] = "{:.1f}".format
    template = environment.get_template("dots.svg")
    return template.render(title=TITLE, panels=panels, width=WIDTH, height=top + 8) + "\n"


def main() -> None:
    """Draw the figure."""
    FIGURE.write_text(draw(), encoding="utf-8")
    print(FIGURE.name, FIGURE.stat().st_size)


if __name__ == "__main__":
    main()
