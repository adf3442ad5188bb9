"""Dot plots with intervals as SVG: a panel for each value of one column, in it a line for each value of another.

A line has a dot, its interval, and the number as it stands in the row. The drawings follow the reader's light or dark
theme and need no font of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

TITLE = "Share of planted texts where a score puts the true explanation first"
COLUMNS = 2
WIDTH, MARGIN, GAP = 760, 12, 24
LINE, HEAD = 17, 34
STYLE = """
svg { --ground: #fff; --ink: #1c1c1c; --quiet: #5c5c5c; --grid: #e2e2e2; --mark: #8a3b12;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; font-size: 11px; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #211e1c; --ink: #ececec; --quiet: #b0b0b0; --grid: #43403d; --mark: #ffb088; } }
.ground { fill: var(--ground); } text { fill: var(--ink); } .quiet { fill: var(--quiet); }
.title { font-size: 12px; font-weight: 600; } .grid { stroke: var(--grid); }
.interval { stroke: var(--mark); stroke-width: 2; } .dot { fill: var(--mark); }
.number { text-anchor: end; }
"""
MORE_STYLE = """.reference { stroke: var(--quiet); stroke-dasharray: 3 2; }
.weak text { fill: var(--quiet); } .weak .dot { fill: var(--ground); stroke: var(--mark); stroke-width: 1.5; }
"""
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
    panels = list(dict.fromkeys(row[figure.panel] for row in rows))
    within = {panel: [row for row in rows if row[figure.panel] == panel] for panel in panels}
    heights = [HEAD + LINE * len(within[panel]) + 14 for panel in panels]
    lines = [heights[i : i + COLUMNS] for i in range(0, len(heights), COLUMNS)]
    width, height = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS, MARGIN + sum(map(max, lines)) + 8
    top = MARGIN + (CAPTION_LINE * len(figure.caption) + 6 if figure.caption else 0)
    height += top - MARGIN
    parts = [f'<rect class="ground" width="{WIDTH}" height="{height}" rx="4"/>']
    for number, line in enumerate(figure.caption):
        place = f'x="{MARGIN}" y="{MARGIN + 12 + CAPTION_LINE * number}"'
        parts.append(f'<text class="{"quiet" if number else "title"}" {place}>{escape(line)}</text>')
    for number, panel in enumerate(panels):
        left = MARGIN + (number % COLUMNS) * (width + GAP)
        parts.append(_panel(figure, panel, within[panel], rows if figure.shared else within[panel], left, top, width))
        top += max(lines[number // COLUMNS]) if number % COLUMNS == COLUMNS - 1 else 0
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    style = STYLE + (MORE_STYLE if figure.caption else "")
    return "\n".join([head, f"<title>{escape(figure.title)}</title>", f"<style>{style}</style>", *parts, "</svg>", ""])


def make_plot(family: str, column: str, level: float) -> DotPlot:
    """Return the look of a figure of a family's shares."""
    intervals = f"{100 * level:g} % intervals"
    caption = (
        f"{TITLE}: {family} models",
        f"Lines: {intervals}. A tie counts half; dashed: a coin. = the interval holds a coin's 0.5, ! it lies below.",
        "Hollow, last: decided by construction.",
    )
    return DotPlot(f"{TITLE}, with {intervals}; {family}", column, "score", 182, 0.5, False, True, caption, (0.0, 1.0))


def _numbers(rows: Sequence[Mapping[str, str]], keys: tuple[str, ...] = ("value", "low", "high")) -> list[float]:
    return [float(row[key]) for row in rows for key in keys if row.get(key)]


def _panel(
    figure: DotPlot,
    title: str,
    rows: Sequence[Mapping[str, str]],
    scaled: Sequence[Mapping[str, str]],
    left: float,
    top: float,
    width: float,
) -> str:
    """One panel: its title, a line for each row, the scale's ends below."""
    number_width = 44
    start, end = left + figure.label, left + width - number_width
    numbers: list[float] = [*_numbers(scaled), *(figure.ends or ())]
    numbers += [] if figure.reference is None else [figure.reference]
    low, high = (
        (min(numbers), max(numbers)) if min(numbers) < max(numbers) else (min(numbers) - 0.5, max(numbers) + 0.5)
    )

    def at(value: float) -> float:
        if figure.logarithmic:
            return start + (end - start) * math.log(value / low) / math.log(high / low)
        return start + (end - start) * (value - low) / (high - low)

    parts = [f'<text class="title" x="{left:.1f}" y="{top + 16:.1f}">{escape(title)}</text>']
    bottom = top + HEAD + LINE * len(rows) - 6
    lines = [low, high] if figure.reference is None else [figure.reference, low, high]
    drawn: list[float] = []
    for value in lines:
        x = f"{at(value):.1f}"
        if any(abs(at(value) - at(other)) < 26 for other in drawn):
            continue  # its number would lie on another's
        drawn.append(value)
        kind = "reference" if figure.caption and value == figure.reference else "grid"
        parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top + 24:.1f}" y2="{bottom:.1f}"/>')
        parts.append(f'<text class="quiet" text-anchor="middle" x="{x}" y="{bottom + 12:.1f}">{_short(value)}</text>')
    for place, row in enumerate(rows):
        y = top + HEAD + LINE * place + 4
        parts += ['<g class="weak">'] if row.get("weak") else []
        parts.append(f'<text x="{left:.1f}" y="{y + 4:.1f}">{escape(row[figure.row])}</text>')
        if row.get("low"):
            x1, x2 = at(float(row["low"])), at(float(row["high"]))
            parts.append(f'<line class="interval" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<circle class="dot" cx="{at(float(row["value"])):.1f}" cy="{y:.1f}" r="3.5"/>')
        words = escape(row["value"] + (row.get("mark") or ""))
        parts.append(f'<text class="number" x="{left + width:.1f}" y="{y + 4:.1f}">{words}</text>')
        parts += ["</g>"] if row.get("weak") else []
    return "\n".join(parts)


def _short(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 0.01 and value else f"{value:.2f}".rstrip("0").rstrip(".")
