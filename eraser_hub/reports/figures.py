"""A report's figures, drawn by matplotlib (the extra ``plots``): inline SVG in the page; PNG, SVG and PDF for papers.

A system has the same colour, line and marker in every figure and beside its name: any one of them is enough. The files
are deterministic: no date, no random identifiers.

Source of curves, bars by class and box plots: Carton, Rathore and Tan (2020), figures 3, 7 and 15.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import TYPE_CHECKING, Any

from eraser_hub.records.errors import DataError, show_controls
from eraser_hub.records.files import GENERATOR
from eraser_hub.scoring.result import Scores

from .catalogue import AGREEMENT, FAITHFULNESS, PERFORMANCE, find_range, metric

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# after Okabe and Ito (2008), darkened to a contrast of 3:1 on white; base.css has --c0 to --c6 for both themes
COLOURS = ("#0072b2", "#c05400", "#00805d", "#a8558a", "#2b8bc4", "#9a6a00", "#1c1c1c")
INK, CHANCE, GRID, PAPER = "#1c1c1c", "#6b6b6b", "#d9d9d6", "#ffffff"
ON_PAGE = {
    **{colour: f"var(--c{place})" for place, colour in enumerate(COLOURS)},
    INK: "var(--ink)",
    CHANCE: "var(--chance)",
    GRID: "var(--line)",
    PAPER: "none",
}
DASHES = ((), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (1, 2), (12, 4))
MARKERS = ("o", "s", "^", "D", "X", "v", "P")
RANDOM_LINE: Any = {"color": CHANCE, "linestyle": (0, (2, 1))}
ERASURE = ("comprehensiveness", "sufficiency")
# per-instance scores of which box plots are drawn
BOXES = (
    *("token_macro_f1", "token_f1", "auprc", "map"),
    *("comprehensiveness", "sufficiency", "comprehensiveness_aopc", "sufficiency_aopc"),
    *("normalized_comprehensiveness", "normalized_sufficiency"),
)
MAX_NAME = 26
# of each format: the generator, and no date
FACTS: dict[str, dict[str, str | None]] = {
    ".svg": {"Creator": GENERATOR, "Date": None},
    ".png": {"Software": GENERATOR},
    ".pdf": {"Creator": GENERATOR, "CreationDate": None},
}
STYLE: Any = {
    "svg.hashsalt": "eraser-hub",  # otherwise identifiers inside the SVG are random
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.parse_math": False,  # a name from the data is never read as a formula
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure.

    Attributes:
        name: the file's stem.
        title: what it shows.
        caption: how to read it.
        figure, axes: what it is drawn on.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    axes: Axes


def start_drawing(name: str, title: str, caption: str = "", rows: Sequence[str] = (), height: float = 0.0) -> Drawing:
    """Return a figure with empty axes.

    Args:
        name: the file's stem; what is neither letter, digit nor _ becomes _.
        title: what it shows.
        caption: how to read it.
        rows: names along the vertical axis, from the top.
        height: of the axes, in rows; by default that of the rows, or the usual one of a curve.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = 0.75 + 0.24 * max(height, len(rows)) if rows else 2.9
    figure = Figure(figsize=(4.6, size), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(fill(_clean(title), 60), x=0.01, ha="left", fontsize=10, fontweight="bold")
    axes = figure.add_subplot()
    if rows:
        axes.set_yticks(range(len(rows)), [_shorten(row) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
    return Drawing(re.sub(r"\W", "_", name), title, caption, figure, axes)


def draw_figures(
    systems: Sequence[Scores],
    keys: Sequence[str],
    drawn: Sequence[Scores],
    chance: Mapping[str, float],
    models: Mapping[str, str],
    folder: Path | None = None,
) -> tuple[dict[str, list[tuple[Drawing, Markup]]], dict[Path, bytes]]:
    """Draw the figures of a report, for its page and as files NAME.png (200 dpi), NAME.svg and NAME.pdf.

    Args:
        systems: in the report's order, which decides their looks.
        keys: the headline scores.
        drawn: draws of random rationales, for the curves.
        chance: scores of random rationales, for scores without a chance of their own.
        models: the model that each system explains, if several: faithfulness has figures for each.
        folder: the folder of the files; None: no files.

    Returns:
        Section of the page -> its figures, each with its SVG in the page's colours; path -> content of the files.

    Raises:
        DataError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise DataError('figures need matplotlib: pip install "eraser-hub[plots]"') from error
    inline: dict[str, list[tuple[Drawing, Markup]]] = {}
    files: dict[Path, bytes] = {}
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        if folder is None:  # the browser draws the page's text, in fonts of its own
            warnings.filterwarnings("ignore", ".*missing from font")
        sections = {
            "scores": draw_intervals(systems, keys, chance, models),
            "curves": [*draw_aopc(systems, drawn, models), *draw_fidelity(systems)],
            "texts": draw_boxes(systems),
            "classes": draw_classes(systems, keys),
        }
        for section, drawings in sections.items():
            inline[section] = []
            for drawing in drawings:
                written = render_drawing(drawing, FACTS if folder else (".svg",))
                inline[section].append((drawing, embed_svg(written[".svg"].decode(), drawing)))
                if folder is not None:
                    files |= {folder / f"{drawing.name}{suffix}": content for suffix, content in written.items()}
    return inline, files


def render_drawing(drawing: Drawing, suffixes: Iterable[str]) -> dict[str, bytes]:
    """Return a figure's files by suffix; one with lines that have names gets a legend below it."""
    figure, names = drawing.figure, drawing.axes.get_legend_handles_labels()[1]
    if names:
        columns = 2 if max(map(len, names)) <= MAX_NAME else 1
        figure.set_figheight(figure.get_figheight() + 0.2 * math.ceil(len(names) / columns))
        figure.legend(loc="outside lower left", frameon=False, fontsize=8, ncols=columns)
    if layout := figure.get_layout_engine():  # once for all formats
        layout.execute(figure)
        figure.set_layout_engine("none")
    files = {}
    for suffix in suffixes:
        content = io.BytesIO()
        figure.savefig(content, dpi=200, format=suffix[1:], metadata=FACTS[suffix])
        files[suffix] = content.getvalue()
    return files


def embed_svg(svg: str, drawing: Drawing) -> Markup:
    """Return an SVG file's element for a page, with identifiers of its own and the page's colours."""
    from markupsafe import Markup, escape

    element = svg[svg.index("<svg ") :]
    element = re.sub(r"<(metadata|style).*?</\1>\s*", "", element, flags=re.DOTALL)
    element = re.sub(r'(\bid="|url\(#|xlink:href="#)', rf"\g<1>{drawing.name}-", element)
    element = re.sub(r' (width|height)="[\d.]+pt"', "", element, count=2)
    element = re.sub("|".join(ON_PAGE), lambda found: ON_PAGE[found[0]], element)
    label = f'<svg role="img" aria-label="{escape(_clean(drawing.title))}" '
    return Markup(element.replace("<svg ", label, 1))


# -- looks and axes ---------------------------------------------------------------------------------------------------


def find_style(place: int) -> tuple[int, tuple[int, ...], str]:
    """Return (number of the colour, dashes, marker) of a system by its place: distinct up to 49 systems."""
    turn = (place + place // len(COLOURS)) % len(DASHES)
    return place % len(COLOURS), DASHES[turn], MARKERS[turn]


def _look(place: int) -> dict[str, Any]:
    colour, dashes, marker = find_style(place)
    line = (0, tuple(dash / 2 for dash in dashes)) if dashes else "solid"
    return {"color": COLOURS[colour], "linestyle": line, "marker": marker, "markersize": 4.5, "linewidth": 1.5}


def _clean(text: str) -> str:
    return show_controls(text).encode("utf-8", "replace").decode("utf-8")


def _shorten(name: str) -> str:
    name = _clean(name)
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 9]}…{name[-8:]}"


def find_limits(keys: Sequence[str], numbers: Iterable[float]) -> tuple[float, float]:
    """Return the limits of the axes that scores of a family share: what is drawn, within the scores' range.

    Args:
        keys: the scores; those of agreement and performance go from 0 to 1.
        numbers: what is to be drawn of them all.
    """
    if metric(keys[0]).family in (AGREEMENT, PERFORMANCE):
        return -0.02, 1.02
    finite = [0.0, *filter(math.isfinite, numbers)]
    room = 0.06 * ((max(finite) - min(finite)) or 1.0)
    lows, highs = zip(*map(find_range, keys), strict=True)
    return max(min(lows) - 0.02, min(finite) - room), min(max(highs) + 0.02, max(finite) + room)


def group_by_family(keys: Iterable[str]) -> list[list[str]]:
    """Return the keys by family, whose scores share their axes."""
    families: dict[str, list[str]] = {}
    for key in keys:
        families.setdefault(metric(key).family, []).append(key)
    return list(families.values())


def group_by_model(systems: Sequence[Scores], models: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the places of the systems by the model that they explain; "" for all where there is one model."""
    places: dict[str, list[int]] = {}
    for place, system in enumerate(systems):
        places.setdefault(models.get(system.name, ""), []).append(place)
    return places


def _numbers(values: Iterable[Any]) -> list[float]:
    return [float(value) if isinstance(value, int | float) else math.nan for value in values]


# -- the figures ------------------------------------------------------------------------------------------------------


def draw_intervals(
    systems: Sequence[Scores], keys: Sequence[str], chance: Mapping[str, float], models: Mapping[str, str]
) -> list[Drawing]:
    """Draw each headline score of every system with its interval and chance; arguments as of `draw_figures`."""
    drawings = []
    for family in group_by_family(keys):
        numbers = [[one.number(key), *one.intervals.get(key, ())] for one in systems for key in family]
        numbers += [[one.chance.get(key, chance.get(key))] for one in systems for key in family]
        limits = find_limits(family, _numbers(number for several in numbers for number in several))
        by_model = group_by_model(systems, models if metric(family[0]).family == FAITHFULNESS else {})
        for key, (model, places) in ((key, each) for key in family for each in by_model.items()):
            shown = [place for place in places if math.isfinite(_numbers([systems[place].number(key)])[0])]
            if not shown:
                continue
            title = f"{metric(key).head}{f', {_shorten(model)}' if model else ''}"
            stem = f"scores_{key}{f'_{model}' if model else ''}"
            drawing = start_drawing(stem, title, rows=[systems[place].name for place in shown])
            for row, place in enumerate(shown):
                system, (low, high) = systems[place], systems[place].intervals.get(key, (math.nan, math.nan))
                if math.isfinite(low) and math.isfinite(high):
                    drawing.axes.hlines(row, low, high, color=_look(place)["color"], linewidth=1.8)
                drawing.axes.plot([system.scores[key]], [row], **_look(place))
                expected = system.chance.get(key, chance.get(key))
                if expected is not None:
                    drawing.axes.vlines(expected, row - 0.4, row + 0.4, linewidth=1.3, **RANDOM_LINE)
            drawing.axes.set_xlim(limits)
            drawings.append(drawing)
    return drawings


def draw_line(axes: Axes, name: str, place: int, x: list[float], y: list[float], ends: list[list[float]]) -> None:
    """Draw a system's curve, and a band between ``ends`` (low and high of each point) where there are any."""
    axes.plot(x, y, label=_shorten(name), **_look(place))
    if ends:
        low, high = ([pair[end] for pair in ends] for end in (0, 1))
        axes.fill_between(x, low, high, color=_look(place)["color"], alpha=0.12, linewidth=0)


Curve = tuple[list[float], list[float], list[list[float]]]


def read_points(system: Scores, side: str) -> Curve | None:
    """Return (shares of tokens in percent, points, ends of each one's interval) of a system's AOPC."""
    thresholds, points = system.scores.get("aopc_thresholds"), system.scores.get(f"{side}_aopc_points")
    if not thresholds or not points:
        return None
    ends = [_numbers(pair) for pair in system.intervals.get(f"{side}_aopc_points") or ()]
    known = any(math.isfinite(end) for pair in ends for end in pair)
    return [round(100 * float(threshold), 9) for threshold in thresholds], _numbers(points), ends if known else []


def draw_aopc(systems: Sequence[Scores], drawn: Sequence[Scores], models: Mapping[str, str]) -> list[Drawing]:
    """Draw comprehensiveness and sufficiency against the share of tokens, on one scale; draws are averaged."""
    drawings = []
    own = {system.name for system in systems}  # a draw may be a system, too
    for model, places in group_by_model(systems, models).items():
        curves: dict[str, dict[int, Curve]] = {}
        for side in ERASURE:
            found = {place: read_points(systems[place], side) for place in places}
            curves[side] = {place: curve for place, curve in found.items() if curve}
        known = [curve for lines in curves.values() for curve in lines.values()]
        heights = [y for _, points, ends in known for several in (points, *ends) for y in several if math.isfinite(y)]
        for side, lines in curves.items():
            if not lines or not heights:
                continue
            has_bands = len(lines) <= len(COLOURS) and any(ends for *_, ends in lines.values())
            caption = "Mean per share; AOPC is the mean of a line's points."
            caption += " Bands: confidence intervals." if has_bands else ""
            title = f"{metric(side).head}{f', {_shorten(model)}' if model else ''}"
            drawing = start_drawing(f"aopc_{side}{f'_{model}' if model else ''}", title, caption)
            for place, (x, y, ends) in lines.items():
                draw_line(drawing.axes, systems[place].name, place, x, y, ends if has_bands else [])
            draws = [curve for one in drawn if one.name not in own and (curve := read_points(one, side))]
            if draws:
                means = [fmean(points) for points in zip(*(points for _, points, _ in draws), strict=True)]
                label = f"random ({len(draws)} draws)" if len(draws) > 1 else "random"
                drawing.axes.plot(draws[0][0], means, label=label, **RANDOM_LINE)
            ticks = sorted({x for shares, _, _ in lines.values() for x in shares})
            if ticks[0] > 0:
                drawing.axes.set_xscale("log")
            drawing.axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            drawing.axes.set_xticks([], minor=True)
            limits = min(0.0, *heights) - 0.02, max(0.0, *heights) + 0.02
            drawing.axes.set(xlabel="tokens, highest-scored first (%)", ylim=limits)
            drawings.append(drawing)
    return drawings


def draw_fidelity(systems: Sequence[Scores]) -> list[Drawing]:
    """Draw normalised sufficiency and comprehensiveness as tokens of the rationale are occluded at random."""
    drawings = []
    for side in reversed(ERASURE):
        known = [place for place, system in enumerate(systems) if system.scores.get(f"{side}_curve")]
        if not known:
            continue
        caption = "Mean over texts and trials; bands: one standard deviation over trials."
        drawing = start_drawing(f"fidelity_{side}", f"Normalised {side}", caption)
        for place in known:
            scores = systems[place].scores
            y, spread = _numbers(scores[f"{side}_curve"]), _numbers(scores.get(f"{side}_curve_std") or ())
            has_band = any(spread) and all(map(math.isfinite, spread))
            ends = [[mean - s, mean + s] for mean, s in zip(y, spread, strict=True)] if has_band else []
            draw_line(drawing.axes, systems[place].name, place, scores["occlusion_rates"], y, ends)
        drawing.axes.set(xlabel="share of the rationale's tokens occluded", ylabel=f"normalised {side}")
        drawings.append(drawing)
    return drawings


def draw_classes(systems: Sequence[Scores], keys: Sequence[str]) -> list[Drawing]:
    """Draw bars of each score by gold class, one a system."""
    classes = list(dict.fromkeys(label for system in systems for label in system.by_class))
    drawings = []
    for key in keys if len(classes) > 1 else ():
        values = [_numbers(system.by_class.get(label, {}).get(key) for label in classes) for system in systems]
        shown = [place for place, bars in enumerate(values) if any(map(math.isfinite, bars))]
        if not shown:
            continue
        title, size = f"{metric(key).head} by gold class", 0.7 * len(classes) * len(shown)
        drawing = start_drawing(f"class_{key}", title, rows=classes, height=size)
        height = 0.8 / len(shown)
        for turn, place in enumerate(shown):
            at = [row - 0.4 + (turn + 0.5) * height for row in range(len(classes))]
            look = {"color": _look(place)["color"], "label": _shorten(systems[place].name)}
            drawing.axes.barh(at, values[place], height=0.85 * height, **look)
        drawings.append(drawing)
    return drawings


def draw_boxes(systems: Sequence[Scores]) -> list[Drawing]:
    """Draw box plots of per-instance scores, a box a system: quartiles, whiskers to 1.5 interquartile ranges."""
    values: dict[str, dict[int, list[float]]] = {}
    for key in BOXES:
        columns = {place: system.per_instance.get(key, ()) for place, system in enumerate(systems)}
        finite = {place: list(filter(math.isfinite, _numbers(column))) for place, column in columns.items()}
        values[key] = {place: column for place, column in finite.items() if column}
    limits: dict[str, tuple[float, float]] = {}
    for family in group_by_family(key for key in BOXES if values[key]):
        numbers = [value for key in family for column in values[key].values() for value in column]
        limits |= dict.fromkeys(family, find_limits(family, numbers))
    drawings = []
    for key in limits:
        shown = {systems[place].name: column for place, column in values[key].items()}
        caption = "Box: quartiles; line: median; whiskers: up to 1.5 interquartile ranges."
        drawing = start_drawing(f"box_{key}", metric(key).head, caption, rows=list(shown))
        line: Any = {"linewidth": 1.2, "color": INK}
        boxes = drawing.axes.boxplot(
            list(shown.values()),
            positions=range(len(shown)),
            orientation="horizontal",
            manage_ticks=False,
            widths=0.6,
            patch_artist=True,
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": CHANCE},
            **dict.fromkeys(("medianprops", "whiskerprops", "capprops"), line),
        )["boxes"]
        for box, place in zip(boxes, values[key], strict=True):
            box.set(facecolor="none", edgecolor=_look(place)["color"], linewidth=2)
        drawing.axes.set_xlim(limits[key])
        drawings.append(drawing)
    return drawings
