"""Figures as data, drawn as SVG by a template, without a plotting library; `plots` draws the same for papers.

A series has its own colour, dash pattern and marker: any one of them is enough. Drawing is a pure function of the data:
the same figure gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import quote

from .markup import fill_template

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
    """One plot: lines over a numeric axis, or step outlines of histograms (``kind="bars"``).

    ``key`` is the per-instance score behind it: bins and points link to their documents.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    caption: str = ""
    kind: str = "line"
    x_log: bool = False
    key: str = ""


def compute_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round values in [low, high], about ``wanted`` of them, spaced by 1, 2 or 5 times a power of ten."""
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


def find_system_style(place: int) -> tuple[str, str, str]:
    """Return (colour on the page, dash, marker) of a system by its place among all: distinct up to 49 systems."""
    colour, dash, marker = _find_style(place)
    return _ON_PAGE.get(colour, colour), dash, marker


def _find_style(place: int) -> tuple[str, str, str]:
    turn = (place + place // len(COLOURS)) % len(DASHES)
    return COLOURS[place % len(COLOURS)], DASHES[turn], MARKERS[turn]


def get_series_style(figure: Figure) -> list[tuple[str, str, str]]:
    """Return (colour, dash, marker) of each series, by the system's place or by order without baselines."""
    styles, system = [], 0
    for series in figure.series:
        if series.chance:
            styles.append((CHANCE, "3 3", ""))
        else:
            styles.append(_find_style(system if series.place is None else series.place))
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

    def draw(self, points: Sequence[tuple[float, float]]) -> str:
        """Return a path through these points."""
        return "M" * bool(points) + "L".join(f"{self.px(x):.1f} {self.py(y):.1f}" for x, y in points)

    def draw_outline(self, edges: Sequence[float], values: Sequence[float]) -> str:
        """Return the outline of a histogram, for the template of figures."""
        corners = [(x, y) for (left, right), y in zip(pairwise(edges), values, strict=False) for x in (left, right)]
        return self.draw([(edges[0], 0.0), *corners, (edges[-1], 0.0)] if corners else [])


def find_points(x: Sequence[float], y: Sequence[float] | None) -> list[tuple[float, float]]:
    """Return the finite points of a line."""
    return [point for point in zip(x, y or (), strict=False) if math.isfinite(point[1])]


def render_svg(figure: Figure) -> str:
    """Return the figure as one SVG element with every text escaped."""
    xs = [x for series in figure.series for x in series.x]
    ys = [y for series in figure.series for y in (*series.y, *(series.low or ()), *(series.high or ()))]
    x_low, x_high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    y_low, y_high = _range(ys)
    frame = _Frame(x_low, x_high, 0.0 if figure.kind == "bars" else y_low, y_high, figure.x_log)
    # black lines, grid and text have the page's own colour: white in a dark theme
    styles = [(_ON_PAGE.get(colour, colour), dash, marker) for colour, dash, marker in get_series_style(figure)]
    return fill_template(
        "figure.svg",
        figure=figure,
        frame=frame,
        lines=list(zip(figure.series, styles, strict=True)),
        find_points=find_points,
        link_documents=link_documents,
        links=_link_bins(figure, frame) if figure.key else [],
        label=lambda value: f"{value:.6g}".replace("-", "−"),
        x_ticks=sorted(set(xs)) if figure.x_log else compute_ticks(frame.x_low, frame.x_high),
        y_ticks=compute_ticks(frame.y_low, frame.y_high),
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
    )


def link_documents(system: str, key: str) -> str:
    """Return the address of a system's documents by falling score."""
    return f"#systems={quote(system, safe='')}&score={quote(key, safe='')}&order=down"


def _link_bins(figure: Figure, frame: _Frame) -> list[dict[str, Any]]:
    """Return the areas of a histogram's bins, each with the address of its documents; a bin holds its lower end."""
    if figure.kind != "bars" or not figure.series:
        return [{"width": 0}]
    edges, links = figure.series[0].x, list[dict[str, Any]]()
    for low, high in pairwise(edges):
        below = "" if high == edges[-1] else "&below=1"
        href = f"#score={quote(figure.key, safe='')}&low={low:.12g}&high={high:.12g}{below}&order=up"
        label = f"{low:.4g} to {high:.4g}: the documents"
        links.append({"x": frame.px(low), "width": frame.px(high) - frame.px(low), "href": href, "label": label})
    return links


def compute_histogram(values: Sequence[float | None], low: float, high: float, bins: int = 20) -> tuple[float, ...]:
    """Return the share of values in each of ``bins`` equal bins of [low, high]; None and NaN are left out."""
    counts, finite = [0] * bins, [value for value in values if value is not None and math.isfinite(value)]
    for value in finite:
        place = int((value - low) / (high - low) * bins) if high > low else 0
        counts[min(bins - 1, max(0, place))] += 1
    return tuple(count / max(1, len(finite)) for count in counts)
