"""Draws the figures of docs/results.md, docs/images/results-NAME.svg, from docs/results/NAME.csv: ``make figures``."""

from __future__ import annotations

import csv
from pathlib import Path

from eraser_hub.reports.study.dot_plots import DotPlot, draw_dots, make_plot

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "results"
FIGURES = {
    "peers": DotPlot(
        "CPU time of other libraries as a multiple of eraser-hub's", "task", "library", 168, 1.0, True, True
    ),
    "movies-linear": DotPlot("Scores of a logistic regression's explanations on movies, by method", "score", "method"),
    "movies-minilm": DotPlot("Scores of MiniLM's explanations on movies, by method", "score", "method"),
    "every-score-linear": DotPlot("Every score of a logistic regression's explanations, by method", "score", "method"),
    "every-score-minilm": DotPlot("Every score of MiniLM's explanations, by method", "score", "method"),
    "eraser-4": DotPlot("ERASER, Table 4 on movies, here, in small", "score", "system", 226),
    **{
        f"benchmark-{family}{end}": make_plot(family, column, 0.95)
        for family in ("closed-form", "recurrent", "transformer")
        for end, column in (("", "explanation"), ("-kinds", "kind"))
    },
}


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the lines of a figure's file."""
    with open(DATA / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def draw(name: str) -> str:
    """Return a figure as SVG."""
    return draw_dots(FIGURES[name], rows_of(name))


def main() -> None:
    """Draw all figures."""
    for name in FIGURES:
        path = DOCS / "images" / f"results-{name}.svg"
        path.write_text(draw(name), encoding="utf-8")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
