"""Figures as data, drawn as SVG by hand for the page, without a plotting library; `plots` draws the same for papers.

A series is told by its colour, its dash pattern and its marker together: any one of them is enough. Drawing is a pure
function of the data: the same figure gives the same bytes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

# Okabe and Ito (2008); black first, as the palette's authors have it, yellow left out: too light on white paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4")
MARKERS = ("circle", "square", "triangle", "diamond", "cross", "circle", "square")
CHANCE = "#6b6b6b"
_ON_PAGE = {"#000000": "currentColor", CHANCE: "#808080"}


@dataclass(frozen=True, slots=True)
class Series:
    """A line or a set of bars.

    Attributes:
        name: what the legend says.
        x, y: the points; for bars ``x`` holds the bins' edges, one more than ``y``.
        low, high: a band around the line, or None.
        chance: drawn in grey and dashed: a baseline, not a system.
        place: the system's place among all of the report, so that it looks alike in figures where others are missing;
            None: its place in the figure.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    chance: bool = False
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One plot: lines over a numeric axis, or step outlines of histograms (``kind="bars"``)."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    caption: str = ""
    kind: str = "line"
    x_log: bool = False


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round values inside [low, high], about ``wanted`` of them, a multiple of 1, 2 or 5 times a power of ten apart."""
    if not high > low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / wanted))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= wanted:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _range(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    # two numbers that differ in their last bits alone leave no room to draw in
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = max(0.5, 0.05 * abs(high))
        return low - room, high + room
    margin = (high - low) * 0.06
    return low - margin, high + margin


def _label(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


def style_of(figure: Figure) -> list[tuple[str, str, str]]:
    """(colour, dash, marker) of each series: by the system's place, or counted here without the baselines."""
    styles, system = [], 0
    for series in figure.series:
        if series.chance:
            styles.append((CHANCE, "3 3", ""))
        else:
            k = (system if series.place is None else series.place) % len(COLOURS)
            styles.append((COLOURS[k], DASHES[k], MARKERS[k]))
            system += 1
    return styles


WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 30, 44


class _Frame(NamedTuple):
    """The ranges of both axes, and where their values lie in the picture."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    x_log: bool

    def px(self, x: float) -> float:
        if self.x_log:
            share = (math.log(x) - math.log(self.x_low)) / ((math.log(self.x_high) - math.log(self.x_low)) or 1.0)
        else:
            share = (x - self.x_low) / ((self.x_high - self.x_low) or 1.0)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def py(self, y: float) -> float:
        return TOP + (1 - (y - self.y_low) / (self.y_high - self.y_low)) * (HEIGHT - TOP - BOTTOM)


def _frame(figure: Figure) -> _Frame:
    xs = [x for series in figure.series for x in series.x]
    ys = [y for series in figure.series for y in (*series.y, *(series.low or ()), *(series.high or ()))]
    x_low, x_high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    y_low, y_high = _range(ys)
    return _Frame(x_low, x_high, 0.0 if figure.kind == "bars" else y_low, y_high, figure.x_log)


def svg(figure: Figure) -> str:
    """The figure as one SVG element; every text is escaped."""
    frame = _frame(figure)
    # black lines, grid and text have the page's own colour: white in a dark theme
    styles = [(_ON_PAGE.get(colour, colour), dash, marker) for colour, dash, marker in style_of(figure)]
    height = HEIGHT + 18 * len(figure.series)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{_escaped(figure.title)}" font-family="system-ui, DejaVu Sans, sans-serif" font-size="11.5" '
        'fill="currentColor">',
        f"<title>{_escaped(figure.title)}</title>",
        f'<text x="{LEFT}" y="16" font-size="13" font-weight="600">{_escaped(figure.title)}</text>',
        *_axes(figure, frame),
    ]
    for series, style in zip(figure.series, styles, strict=True):
        drawn += _series(figure, series, *style, frame)
    for row, (series, (colour, dash, marker)) in enumerate(zip(figure.series, styles, strict=True)):
        y = HEIGHT + 4 + 18 * row
        drawn.append(f'<path d="M{LEFT} {y}h34" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        if marker and figure.kind == "line":
            drawn.append(_marker(marker, LEFT + 17, y, colour))
        drawn.append(f'<text x="{LEFT + 42}" y="{y + 4}">{_escaped(series.name)}</text>')
    return "".join([*drawn, "</svg>"])


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)


def _axes(figure: Figure, frame: _Frame) -> Iterator[str]:
    for y in ticks(frame.y_low, frame.y_high):
        yield (
            f'<path d="M{LEFT} {frame.py(y):.1f}H{WIDTH - RIGHT}" '
            f'stroke="currentColor" stroke-opacity="{".6" if y == 0 else ".13"}"/>'
            f'<text x="{LEFT - 6}" y="{frame.py(y) + 4:.1f}" text-anchor="end">{_label(y)}</text>'
        )
    every = {x for series in figure.series for x in series.x}
    for x in sorted(every) if figure.x_log else ticks(frame.x_low, frame.x_high):
        yield (
            f'<path d="M{frame.px(x):.1f} {HEIGHT - BOTTOM}v4" stroke="currentColor"/>'
            f'<text x="{frame.px(x):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{_label(x)}</text>'
        )
    yield f'<path d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="currentColor"/>'
    across, down = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    yield f'<text x="{across}" y="{HEIGHT - 10}" text-anchor="middle">{_escaped(figure.x_label)}</text>'
    yield (
        f'<text transform="translate(13 {down:.1f}) rotate(-90)" text-anchor="middle">{_escaped(figure.y_label)}</text>'
    )


def _series(figure: Figure, series: Series, colour: str, dash: str, marker: str, frame: _Frame) -> list[str]:
    px, py, out = frame.px, frame.py, list[str]()
    if figure.kind == "bars":
        steps: list[str] = []
        for left, right, y in zip(series.x, series.x[1:], series.y, strict=False):
            steps += [f"{px(left):.1f} {py(y):.1f}", f"{px(right):.1f} {py(y):.1f}"]
        if steps:
            base = py(0.0)
            path = f"M{px(series.x[0]):.1f} {base:.1f}L" + "L".join(steps) + f"L{px(series.x[-1]):.1f} {base:.1f}"
            out.append(
                f'<path d="{path}" fill="{colour}" fill-opacity=".12" stroke="{colour}" '
                f'stroke-width="1.8" stroke-dasharray="{dash}"/>'
            )
        return out
    if series.low is not None and series.high is not None:
        up = [f"{px(x):.1f} {py(y):.1f}" for x, y in zip(series.x, series.high, strict=True) if math.isfinite(y)]
        back = [f"{px(x):.1f} {py(y):.1f}" for x, y in zip(series.x, series.low, strict=True) if math.isfinite(y)]
        if up and back:
            out.append(f'<path d="M{"L".join(up)}L{"L".join(reversed(back))}Z" fill="{colour}" fill-opacity=".14"/>')
    points = [(px(x), py(y)) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
    if points:
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        out.extend(_marker(marker, x, y, colour) for x, y in points if marker)
    return out


def _marker(kind: str, x: float, y: float, colour: str) -> str:
    shapes = {
        "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{colour}"/>',
        "square": f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" fill="{colour}"/>',
        "triangle": f'<path d="M{x:.1f} {y - 4.2:.1f}l4.2 7.4h-8.4z" fill="{colour}"/>',
        "diamond": f'<path d="M{x:.1f} {y - 4.6:.1f}l4 4.6l-4 4.6l-4-4.6z" fill="{colour}"/>',
        "cross": f'<path d="M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0-7l-7 7" stroke="{colour}" stroke-width="2"/>',
    }
    return shapes[kind]


def histogram(values: Sequence[float | None], low: float, high: float, bins: int = 20) -> tuple[float, ...]:
    """The share of values in each of ``bins`` equal bins of [low, high], the last one closed; None and NaN left out."""
    counts = [0] * bins
    kept = 0
    for value in values:
        if value is None or not math.isfinite(value):
            continue
        kept += 1
        place = int((value - low) / (high - low) * bins) if high > low else 0
        counts[min(bins - 1, max(0, place))] += 1
    return tuple(count / kept for count in counts) if kept else tuple(0.0 for _ in counts)
