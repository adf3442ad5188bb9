"""A report's figures, drawn by matplotlib (the extra ``plots``): inline SVG in the page; PNG, SVG and PDF for papers.

A system has the same colour, line and marker in every figure and beside its name: any one of them is enough. The files
are deterministic: no date, no random identifiers.

Source of curves, bars by class and box plots: Carton, Rathore and Tan (2020), figures 3, 7 and 15.
"""

from __future__ import annotations

import html
import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from textwrap import fill
from typing import TYPE_CHECKING, Any

from eraser_hub.records.errors import DataError, show_controls
from eraser_hub.records.files import GENERATOR
from eraser_hub.scoring.result import Scores

from .catalogue import AGREEMENT, FAITHFULNESS, PERFORMANCE, metric
from .score_ranges import find_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# after Okabe and Ito (2008), darkened to a contrast of 3:1 on white; base.css has --c0 to --c6 for both themes
COLOURS = ("#0072b2", "#c05400", "#00805d", "#a8558a", "#2b8bc4", "#9a6a00", "#1c1c1c")
INK, CHANCE, GRID, PAPER = "#1c1c1c", "#6b6b6b", "#d9d9d6", "#ffffff"
_ON_PAGE = {
    **{colour: f"var(--c{place})" for place, colour in enumerate(COLOURS)},
    INK: "var(--ink)",
    CHANCE: "var(--chance)",
    GRID: "var(--line)",
    PAPER: "none",
}
_COLOUR = re.compile("|".join(_ON_PAGE))
DASHES = ((), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (1, 2), (12, 4))
MARKERS = ("o", "s", "^", "D", "X", "v", "P")
# per-instance scores of which box plots are drawn
BOXES = (
    *(
        "token_macro_f1",
        "token_f1",
        "auprc",
        "map",
        "comprehensiveness",
        "sufficiency",
        "comprehensiveness_aopc",
        "sufficiency_aopc",
    ),
    *("normalized_comprehensiveness", "normalized_sufficiency"),
)
MAX_NAME = 26
# of each format: the generator, and no date
_FACTS: dict[str, dict[str, str | None]] = {
    ".png": {"Software": GENERATOR},
    ".svg": {"Creator": GENERATOR, "Date": None},
    ".pdf": {"Creator": GENERATOR, "CreationDate": None},
}
_STYLE: Any = {
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
class Figure:
    """One figure.

    Attributes:
        name: the file's stem.
        title: what it shows.
        caption: how to read it.
        draw: draws it over axes.
        rows: lines of a list on the vertical axis, which decide its height; 0: the usual height.
        legend: whether the systems are named below it.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Axes], None]
    rows: int = 0
    legend: bool = False


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


def render_figures(figures: Sequence[Figure], folder: Path | None = None) -> tuple[dict[str, str], dict[Path, bytes]]:
    """Draw figures for the page, and as files NAME.png (200 dpi), NAME.svg and NAME.pdf.

    Args:
        figures: what to draw.
        folder: the folder of the files; None: no files.

    Returns:
        Name -> SVG for a page, its colours as the page's variables; path -> content of the files. Nothing is written.

    Raises:
        DataError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise DataError('figures need matplotlib: pip install "eraser-hub[plots]"') from error
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    inline: dict[str, str] = {}
    files: dict[Path, bytes] = {}
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        if folder is None:  # the browser draws the page's text, in fonts of its own
            warnings.filterwarnings("ignore", ".*missing from font")
        for figure in figures:
            canvas = Canvas(figsize=(4.6, 0.75 + 0.24 * figure.rows if figure.rows else 2.9), layout="constrained")
            FigureCanvasAgg(canvas)
            axes = canvas.add_subplot()
            canvas.suptitle(fill(_clean(figure.title), 60), x=0.01, ha="left", fontsize=10, fontweight="bold")
            figure.draw(axes)
            labels = axes.get_legend_handles_labels()[1]
            if figure.legend:
                columns = 2 if max(map(len, labels), default=0) <= MAX_NAME else 1
                canvas.set_figheight(canvas.get_figheight() + 0.2 * math.ceil(len(labels) / columns))
                canvas.legend(loc="outside lower left", frameon=False, fontsize=8, ncols=columns)
            drawn = {}
            for suffix in _FACTS if folder else (".svg",):
                content = io.BytesIO()
                canvas.savefig(content, dpi=200, format=suffix[1:], metadata=_FACTS[suffix])
                drawn[suffix] = content.getvalue()
            inline[figure.name] = _embed(drawn[".svg"].decode("utf-8"), figure)
            if folder is not None:
                files |= {folder / f"{figure.name}{suffix}": content for suffix, content in drawn.items()}
    return inline, files


def _embed(svg: str, figure: Figure) -> str:
    """Return an SVG file's element for a page, with identifiers of its own and the page's colours."""
    element = svg[svg.index("<svg ") :]
    element = re.sub(r"<(metadata|style).*?</\1>\s*", "", element, flags=re.DOTALL)
    element = re.sub(r'(\bid="|url\(#|xlink:href="#)', rf"\g<1>{figure.name}-", element)
    element = re.sub(r' (width|height)="[\d.]+pt"', "", element, count=2)
    element = _COLOUR.sub(lambda found: _ON_PAGE[found[0]], element)
    return element.replace("<svg ", f'<svg role="img" aria-label="{html.escape(_clean(figure.title))}" ', 1)


def make_interval_figures(
    systems: Sequence[Scores], keys: Sequence[str], chance: Mapping[str, float], models: Mapping[str, str]
) -> list[Figure]:
    """Draw each headline score of every system with its interval and chance; a figure a score.

    Args:
        systems: in the report's order, which decides their colours.
        keys: the scores.
        chance: scores of random rationales, for scores without a chance of their own.
        models: the model that each system explains, if several: faithfulness has a figure for each.
    """
    figures = []
    drawn: dict[str, dict[str, list[float]]] = {}
    for key in keys:
        numbers = drawn.setdefault(metric(key).family, {}).setdefault(key, [])
        for system in systems:
            numbers += [system.number(key) or 0.0, *system.intervals.get(key, ())]
            numbers.append(system.chance.get(key, chance.get(key, 0.0)))
    limits = {family: _share_limits(family, numbers) for family, numbers in drawn.items()}
    for key in keys:
        shown = metric(key)
        for model, places in _by_model(systems, models if shown.family == FAITHFULNESS else {}).items():
            rows = [(place, systems[place]) for place in places if systems[place].number(key) is not None]
            rows = [(place, one) for place, one in rows if math.isfinite(one.number(key) or 0.0)]
            if not rows:
                continue

            def draw(axes: Axes, key: str = key, rows: Any = rows, limits: Any = limits[shown.family]) -> None:
                for at, (place, system) in enumerate(rows):
                    value, ends = system.number(key), system.intervals.get(key)
                    if ends and all(map(math.isfinite, ends)):
                        axes.hlines(at, *ends, color=_look(place)["color"], linewidth=1.8)
                    axes.plot([value], [at], **_look(place))
                    expected = system.chance.get(key, chance.get(key))
                    if expected is not None:
                        axes.vlines(expected, at - 0.4, at + 0.4, color=CHANCE, linestyle=(0, (2, 1)), linewidth=1.3)
                axes.set_yticks(range(len(rows)), [_shorten(system.name) for _, system in rows])
                axes.set(ylim=(len(rows) - 0.4, -0.6), xlim=limits)
                axes.grid(visible=False, axis="y")

            name = f"scores_{_file_name(key)}{f'_{_file_name(model)}' if model else ''}"
            title = f"{shown.head}{f', {_shorten(model)}' if model else ''}"
            figures.append(Figure(name, title, "", draw, rows=len(rows)))
    return figures


def _share_limits(family: str, numbers: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """Return the limits of a family's axes, the same for all its scores and within their ranges.

    Args:
        family: of scores; those of agreement and performance go from 0 to 1.
        numbers: what is to be drawn of each score.
    """
    if family in (AGREEMENT, PERFORMANCE):
        return -0.02, 1.02
    finite = [0.0, *(number for several in numbers.values() for number in several if math.isfinite(number))]
    room = 0.06 * ((max(finite) - min(finite)) or 1.0)
    ends = [find_range(key) for key in numbers] or [(-math.inf, math.inf)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return max(low - 0.02, min(finite) - room), min(high + 0.02, max(finite) + room)


def _by_model(systems: Sequence[Scores], models: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the places of the systems by the model that they explain; "" for all where there is one model."""
    places: dict[str, list[int]] = {}
    for place, system in enumerate(systems):
        places.setdefault(models.get(system.name, ""), []).append(place)
    return places


def _file_name(key: str) -> str:
    return re.sub(r"\W", "_", key)


def make_aopc_figures(
    systems: Sequence[Scores], baselines: Sequence[Scores], models: Mapping[str, str]
) -> list[Figure]:
    """Draw comprehensiveness and sufficiency against the share of tokens, on one scale; several baselines are averaged.

    Args:
        systems: those without points are left out.
        baselines: draws of random rationales.
        models: the model that each system explains, if several: each has figures of its own.
    """
    figures = []
    for model, places in _by_model(systems, models).items():
        shown = [(place, systems[place]) for place in places]
        curves = {
            side: [(place, one.name, line) for place, one in shown if (line := _read_points(one, side))]
            for side in ("comprehensiveness", "sufficiency")
        }
        every = [y for lines in curves.values() for *_, line in lines for band in line[1:] for y in band]
        every = list(filter(math.isfinite, every))
        if not every:
            continue
        limits = min(0.0, *every) - 0.02, max(0.0, *every) + 0.02
        for side, lines in curves.items():
            if not lines:
                continue
            drawn = [
                line
                for one in baselines
                if one.name not in {s.name for s in systems}
                if (line := _read_points(one, side))
            ]
            random = [fmean(points) for points in zip(*(line[1] for line in drawn), strict=True)] if drawn else []

            def draw(
                axes: Axes, lines: Any = lines, drawn: Any = drawn, random: Any = random, limits: Any = limits
            ) -> None:
                for place, name, (x, y, low, high) in lines:
                    axes.plot(x, y, label=_shorten(name), **_look(place))
                    if low and high and len(lines) <= len(COLOURS):
                        axes.fill_between(x, low, high, color=_look(place)["color"], alpha=0.12, linewidth=0)
                if random:
                    label = f"random ({len(drawn)} draws)" if len(drawn) > 1 else "random"
                    axes.plot(drawn[0][0], random, color=CHANCE, linestyle=(0, (2, 1)), label=label)
                ticks = sorted({x for _, _, line in lines for x in line[0]})
                if ticks[0] > 0:
                    axes.set_xscale("log")
                axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                axes.set_xticks([], minor=True)
                axes.set(xlabel="tokens, highest-scored first (%)", ylim=limits)

            head = metric(side).head
            title = f"{head}{f', {_shorten(model)}' if model else ''}"
            caption = "Mean per share; AOPC is the mean of a line's points."
            if any(map(math.isfinite, chain.from_iterable(line[2] for *_, line in lines))) and len(lines) <= len(
                COLOURS
            ):
                caption += " Bands: confidence intervals."
            name = f"aopc_{side}{f'_{_file_name(model)}' if model else ''}"
            figures.append(Figure(name, title, caption, draw, legend=True))
    return figures


def _read_points(system: Scores, side: str) -> tuple[list[float], ...] | None:
    """Return (shares in percent, points, low ends, high ends) of a system's AOPC."""
    thresholds, points = system.scores.get("aopc_thresholds"), system.scores.get(f"{side}_aopc_points")
    if not thresholds or not points:
        return None
    y = [math.nan if point is None else float(point) for point in points]
    ends = system.intervals.get(f"{side}_aopc_points") or ()
    low, high = [end[0] for end in ends], [end[1] for end in ends]
    return [round(100 * float(threshold), 9) for threshold in thresholds], y, low, high


def make_fidelity_figures(systems: Sequence[Scores]) -> list[Figure]:
    """Draw normalised sufficiency and comprehensiveness as tokens of the rationale are occluded at random."""
    figures = []
    for side in ("sufficiency", "comprehensiveness"):
        known = [(place, system) for place, system in enumerate(systems) if system.scores.get(f"{side}_curve")]
        if not known:
            continue

        def draw(axes: Axes, known: Any = known, side: str = side) -> None:
            for place, system in known:
                rates, spread = system.scores["occlusion_rates"], system.scores.get(f"{side}_curve_std")
                y = [_read(point) for point in system.scores[f"{side}_curve"]]
                axes.plot(rates, y, label=_shorten(system.name), **_look(place))
                if spread and all(s is not None and math.isfinite(s) for s in spread) and any(spread):
                    low, high = ([a + sign * s for a, s in zip(y, spread, strict=True)] for sign in (-1, 1))
                    axes.fill_between(rates, low, high, color=_look(place)["color"], alpha=0.12, linewidth=0)
            axes.set(xlabel="share of the rationale's tokens occluded", ylabel=f"normalised {side}")

        caption = "Mean over texts and trials; bands: one standard deviation over trials."
        figures.append(Figure(f"fidelity_{side}", f"Normalised {side}", caption, draw, legend=True))
    return figures


def make_class_figures(systems: Sequence[Scores], keys: Sequence[str]) -> list[Figure]:
    """Draw bars of each score by gold class, one a system."""
    classes = list(dict.fromkeys(label for system in systems for label in system.by_class))
    figures = []
    for key in keys if len(classes) > 1 else ():
        bars = {
            place: values
            for place, system in enumerate(systems)
            if any(map(math.isfinite, values := [_read(system.by_class.get(label, {}).get(key)) for label in classes]))
        }
        if not bars:
            continue

        def draw(axes: Axes, bars: Any = bars) -> None:
            height = 0.8 / len(bars)
            for turn, (place, values) in enumerate(bars.items()):
                at = [row - 0.4 + (turn + 0.5) * height for row in range(len(classes))]
                colour = COLOURS[find_style(place)[0]]
                label = _shorten(systems[place].name)
                axes.barh(at, values, height=0.85 * height, color=colour, label=label)
            axes.set_yticks(range(len(classes)), [_shorten(label) for label in classes])
            axes.set_ylim(len(classes) - 0.5, -0.5)
            axes.grid(visible=False, axis="y")

        rows = max(len(classes), math.ceil(len(classes) * len(bars) * 0.6))
        title = f"{metric(key).head} by gold class"
        figures.append(Figure(f"class_{_file_name(key)}", title, "", draw, rows=rows, legend=True))
    return figures


def _read(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _list_values(systems: Sequence[Scores], key: str) -> list[tuple[int, Scores, list[float]]]:
    """Return (place, system, its per-instance values) of the systems that have any."""
    columns = [[v for v in one.per_instance.get(key, ()) if v is not None and math.isfinite(v)] for one in systems]
    return [(place, systems[place], values) for place, values in enumerate(columns) if values]


def make_box_figures(systems: Sequence[Scores]) -> list[Figure]:
    """Draw box plots of per-instance scores, a box a system: quartiles, whiskers to 1.5 interquartile ranges."""
    found = {key: _list_values(systems, key) for key in BOXES}
    limits = {
        family: _share_limits(
            family,
            {
                key: [v for *_, values in known for v in values]
                for key, known in found.items()
                if metric(key).family == family
            },
        )
        for family in {metric(key).family for key in BOXES}
    }
    figures = []
    for key, known in found.items():
        if not known:
            continue

        def draw(axes: Axes, known: Any = known, limits: Any = limits[metric(key).family]) -> None:
            names = [_shorten(system.name) for _, system, _ in known]
            look = {"linewidth": 1.2, "color": INK}
            fliers = {"marker": ".", "markersize": 3, "markeredgecolor": CHANCE}
            parts = axes.boxplot(
                [values for _, _, values in known],
                orientation="horizontal",
                tick_labels=names,
                widths=0.6,
                patch_artist=True,
                flierprops=fliers,
                medianprops=look,
                boxprops={"linewidth": 1.2},
                whiskerprops=look,
                capprops=look,
            )
            for box, (place, _, _) in zip(parts["boxes"], known, strict=True):
                box.set(facecolor="none", edgecolor=COLOURS[find_style(place)[0]], linewidth=2)
            axes.invert_yaxis()
            axes.set_xlim(limits)
            axes.grid(visible=False, axis="y")

        if len(known) <= 4:
            words = ", ".join(f"{one.name}: {len(values)}, median {median(values):.3f}" for _, one, values in known)
            caption = f"Texts and medians. {words}."
        else:
            sizes = sorted({len(values) for *_, values in known})
            caption = f"{' to '.join(map(str, sizes[:: max(1, len(sizes) - 1)]))} texts a system."
        figures.append(Figure(f"box_{_file_name(key)}", metric(key).head, caption, draw, rows=len(known)))
    return figures
