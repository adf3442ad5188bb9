"""The report's figures as PNG, SVG and PDF files for a paper, drawn by matplotlib (the extra ``plots``).

The files are deterministic: no date, no random identifiers, one style.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError
from eraser_hub.records.files import GENERATOR

from .figures import Figure, get_series_style

# of each format: the generator, and no date
_FACTS: dict[str, dict[str, str | None]] = {
    ".png": {"Software": GENERATOR},
    ".svg": {"Creator": GENERATOR, "Date": None},
    ".pdf": {"Creator": GENERATOR, "CreationDate": None},
}
_MARKS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "x", "": None}


def draw_figures(figures: Sequence[Figure], folder: Path) -> dict[Path, bytes]:
    """Draw each figure as NAME.png (200 dpi), NAME.svg and NAME.pdf.

    Args:
        figures: what to draw.
        folder: the folder of the files.

    Returns:
        Path -> content, in order; nothing is written.

    Raises:
        DataError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise DataError('figures need matplotlib: pip install "eraser-hub[plots]"') from error
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    drawn = {}
    style: Any = {
        "svg.hashsalt": "eraser-hub",  # otherwise identifiers inside the SVG are random
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        # a name from the data is never read as a formula
        "text.parse_math": False,
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e4e4e4",
    }
    with matplotlib.rc_context(style):
        for figure in figures:
            canvas = Canvas(figsize=(4.4, 3.2 + 0.16 * len(figure.series)), layout="constrained")
            FigureCanvasAgg(canvas)
            _draw(figure, canvas)
            for suffix, facts in _FACTS.items():
                content = io.BytesIO()
                canvas.savefig(content, dpi=200, format=suffix[1:], metadata=facts)
                drawn[folder / f"{figure.name}{suffix}"] = content.getvalue()
    return drawn


def _dash(pattern: str) -> Any:
    return (0, tuple(float(part) / 2 for part in pattern.split())) if pattern else "solid"


def _draw(figure: Figure, canvas: Any) -> None:
    axes = canvas.add_subplot()
    for series, (colour, dash, marker) in zip(figure.series, get_series_style(figure), strict=True):
        look = {"color": colour, "linestyle": _dash(dash), "linewidth": 1.4, "label": series.name}
        if figure.kind == "bars":
            axes.stairs(series.y, series.x, **look)
            continue
        axes.plot(series.x, series.y, marker=_MARKS[marker], markersize=4, **look)
        if series.low is not None and series.high is not None:
            axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.14, linewidth=0)
    if figure.x_log:
        from matplotlib.ticker import FixedLocator, NullLocator

        axes.set_xscale("log")
        places = sorted({x for series in figure.series for x in series.x})
        axes.xaxis.set_major_locator(FixedLocator(places))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(places, [f"{place:.6g}" for place in places])
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
    axes.title.set_fontsize(10)
    if figure.series:
        canvas.legend(loc="outside lower center", frameon=False, fontsize=8)
