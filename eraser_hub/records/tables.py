"""Tables of figures, as a terminal, a README, a paper or a spreadsheet wants them: text, JSON, markdown, LaTeX, CSV.

    table = Table("agreement", "Agreement", ("system",), ("token_micro_f1",))
    table.add("lime", token_micro_f1=Cell(0.31, digits=3, low=0.28, high=0.34))
    Tables("movies", [table]).written("latex")

Every verb that prints a table with ``--format`` writes it here.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from .errors import show_controls

FormatName = Literal["text", "json", "markdown", "latex", "csv"]
FORMATS: tuple[str, ...] = get_args(FormatName)
LEGEND = "Recomputed (printed, difference); =: rounds to what is printed."
MISSING = "–"
_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a table.

    Attributes:
        value: the figure; None where it cannot be computed.
        printed: what a paper prints there, with its digits; None where it prints nothing.
        digits: digits after the point to show of a value that has no printed counterpart.
        low, high: the ends of its interval, if it has one.
        better: the system is better by its verdict: a star behind the value, bold in markdown and LaTeX.
    """

    value: float | int | str | None
    printed: str | None = None
    digits: int = 1
    low: float | None = None
    high: float | None = None
    better: bool = False

    @property
    def number(self) -> float | int | None:
        """The value where it is a number."""
        there = isinstance(self.value, int | float) and not math.isnan(self.value)
        return self.value if there else None  # type: ignore[return-value]

    @property
    def plain(self) -> float | int | str | None:
        """The value in full, NaN as None."""
        return self.value if isinstance(self.value, str) else self.number

    @property
    def difference(self) -> float | None:
        """Recomputed minus printed, in the printed digits: 0 where the value rounds to what is printed."""
        if self.number is None or self.printed is None:
            return None
        digits = len(self.printed.partition(".")[2])
        try:
            return round(round(self.number, digits) - float(self.printed), digits)
        except ValueError:  # a printed figure that is no plain number
            return None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, if it has one."""
        if self.low is None or self.high is None or (math.isnan(self.low) and math.isnan(self.high)):
            return None
        return self.low, self.high

    def parts(self) -> tuple[str, str, str, str]:
        """Return the value in its digits, its sign, ``[low, high]``, and ``(printed, difference)``; "" for none.

        The sign is the star of a better system.
        """
        value, digits, shown, beside = self.value, self.digits, MISSING, ""
        if self.printed is not None:
            exact = isinstance(value, int) and "." not in self.printed
            whole = self.printed.isdigit() and (exact or self.number is None)
            beside, difference = f"{int(self.printed):,}" if whole else self.printed, self.difference
            if difference is not None:
                digits = len(self.printed.partition(".")[2])
                beside = f"{beside}, {difference:+,.{digits}f}" if difference else "="
            beside = f"({beside})"
        if isinstance(value, str):
            shown = value
        elif isinstance(value, int):
            shown = f"{value:,}"
        elif value is not None and not math.isnan(value):
            shown = f"{round(value, digits) + 0.0:,.{digits}f}"  # adding 0 turns -0 into 0
        ends = ", ".join(f"{round(end, digits) + 0.0:.{digits}f}" for end in self.interval or ())
        return shown, "*" if self.better else "", f"[{ends}]" if ends else "", beside

    def __str__(self) -> str:
        shown, star, interval, beside = self.parts()
        if self.value is None and beside:
            return beside
        return " ".join(part for part in (shown + star, interval, beside) if part)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, with the interval if there is one."""
        values: dict[str, Any] = {"value": self.plain, "printed": self.printed, "difference": self.difference}
        return values | ({"low": self.low, "high": self.high} if self.interval else {})


@dataclass(slots=True, repr=False)
class Table:
    """A table: rows of (what stands at the left, its figures by column name).

    Attributes:
        name: its key in JSON, and its label in LaTeX.
        title: its caption.
        left, columns: the names of the words at the left, and of the figures.
        source: where printed figures are from.
        rows: see `add`.
        notes: sentences below it.
        labels: columns as papers print them, for LaTeX and Markdown.
        is_verbatim: the columns are names of the data, labels or systems, and are printed as they stand.
    """

    name: str
    title: str
    left: tuple[str, ...]
    columns: tuple[str, ...]
    source: str = ""
    rows: list[tuple[tuple[str, ...], dict[str, Cell]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: Mapping[str, str] = field(default_factory=dict)
    is_verbatim: bool = False

    def __repr__(self) -> str:
        return Tables("", [self]).written("text")

    def add(self, /, *left: str, **cells: Cell) -> None:
        """Add a row: its headings, and its cells by column name."""
        self.rows.append((left, cells))

    @property
    def footer(self) -> list[str]:
        """The lines below the table: how to read it, and the notes."""
        printed = any(cell.printed is not None for _, cells in self.rows for cell in cells.values())
        about = " ".join([*([LEGEND] if printed else []), *([f"Printed: {self.source}."] if self.source else [])])
        return [*([about] if about else []), *self.notes]

    def lines(
        self, word: Callable[[str], str], figure: Callable[[Cell], str], labels: Mapping[str, str] = _NO_LABELS
    ) -> Iterator[list[str]]:
        """Yield the headings and the rows as strings.

        Args:
            word: formats a heading.
            figure: formats a cell.
            labels: names of columns that take the place of their names in words.
        """
        names = (*self.left, *self.columns)
        own = {name: name for name in self.columns if self.is_verbatim}
        words = {name: name.replace("_percent", " %").replace("_", " ") for name in names}
        yield [word({**words, **own, **labels}[name]) for name in names]
        for left, figures in self.rows:
            yield [*map(word, left), *(figure(figures.get(column, Cell(None))) for column in self.columns)]


@dataclass(slots=True, repr=False)
class Tables:
    """Several tables about one thing, e.g. a dataset."""

    dataset: str
    tables: list[Table] = field(default_factory=list)

    def __repr__(self) -> str:
        return self.written("text")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values: the rows of each table, each figure with value, printed and difference."""
        return {
            "dataset": self.dataset,
            "tables": {
                table.name: {
                    "title": table.title,
                    "source": table.source,
                    "notes": table.notes,
                    "rows": [
                        {
                            **dict(zip(table.left, left, strict=True)),
                            **{column: figure.as_dict() for column, figure in figures.items()},
                        }
                        for left, figures in table.rows
                    ],
                }
                for table in self.tables
            },
        }

    def written(self, format: str) -> str:
        """Return the tables in one of the `FORMATS`; control characters are made visible, but for JSON."""
        if format == "json":
            return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)
        writers = {"text": _text, "markdown": _markdown, "latex": _latex, "csv": _csv}
        text = "\n\n".join(map(writers[format], self.tables))
        return "\n".join(map(show_controls, text.split("\n")))


def _markdown(table: Table) -> str:
    def figure(cell: Cell) -> str:
        words = str(cell).replace("*", "\\*")
        return f"**{words}**" if cell.better else words

    rules = ["---"] * len(table.left) + ["---:"] * len(table.columns)
    headings, *rows = table.lines(str, figure, table.labels)
    lines = [f"**{table.title}**", "", *map(_bar, (headings, rules, *rows))]
    return "\n".join([*lines, *(f"\n{line}" for line in table.footer)])


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _text(table: Table) -> str:
    rows = list(table.lines(str, str))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [table.title]
    rows = [[cell.replace("\n", " ") for cell in row] for row in rows]
    for row in rows:
        aligned = [
            cell.ljust(width) if k < len(table.left) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join([*lines, *table.footer])


_TEXT_SIGNS = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar"}
_MATHS_SIGNS = {"±": "pm", "→": "rightarrow", "≥": "geq", "≤": "leq", "κ": "kappa", "↑": "uparrow", "↓": "downarrow"}
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: rf"\text{name}{{}}" for sign, name in _TEXT_SIGNS.items()},
    **{sign: rf"$\{name}$" for sign, name in _MATHS_SIGNS.items()},
    "–": "--",
    "…": r"\dots{}",
    "\u00a0": "~",
    "\n": " ",
}


LATEX_WIDTH, LATEX_SMALL = 75, 0.7  # characters of a row that an article's page holds; width of small ones
# the table's width, or the page's if that is less
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{"


def escape_latex(text: str) -> str:
    """Return text with the special characters of TeX escaped, and control characters by their number."""
    return "".join(_LATEX.get(sign) or (sign if show_controls(sign) == sign else f"U+{ord(sign):04X}") for sign in text)


def _latex(table: Table) -> str:
    """Return a table for ``\\usepackage{booktabs}``: the score of a better system in bold, intervals small.

    A table that is wider than a page stands sideways, no larger than the page: it needs ``graphicx`` and ``rotating``.
    """

    def figure(cell: Cell) -> str:
        if cell.number is None:
            return escape_latex(str(cell))
        value, star, *beside = cell.parts()
        value += f"$^{{{star}}}$" if star else ""
        value = value.replace("-", "$-$", 1) if value.startswith("-") else value
        value = rf"\textbf{{{value}}}" if cell.better else value
        small = re.sub(r"(?<=[\[ ])-(?=\d)", "$-$", escape_latex(" ".join(filter(None, beside))))
        return rf"{value} {{\scriptsize {small}}}" if small else value

    def measure(cell: Cell) -> str:
        value, _, *beside = cell.parts()
        return " " * round(len(value) + LATEX_SMALL * len(" ".join(filter(None, beside))))

    headings, *rows = [f"{' & '.join(row)} \\\\" for row in table.lines(escape_latex, figure, table.labels)]
    columns = zip(*table.lines(str, measure, table.labels), strict=True)
    is_wide = sum(2 + max(map(len, column)) for column in columns) > LATEX_WIDTH
    place, opening, closing = ("sidewaystable", _FITTED, "}") if is_wide else ("table", "", "")
    return "\n".join(
        [
            *([r"% \usepackage{booktabs, graphicx, rotating}"] if is_wide else []),
            f"\\begin{{{place}}}[t]\n\\centering",
            rf"{opening}\begin{{tabular}}{{{'l' * len(table.left)}{'r' * len(table.columns)}}}",
            f"\\toprule\n{headings}\n\\midrule",
            *rows,
            f"\\bottomrule\n\\end{{tabular}}{closing}",
            rf"\caption{{{escape_latex(' '.join(part.rstrip('.') + '.' for part in (table.title, *table.footer)))}}}",
            f"\\label{{tab:{re.sub(r'[^A-Za-z0-9.:+-]', '-', table.name)}}}\n\\end{{{place}}}",
        ]
    )


def _csv(table: Table) -> str:
    """Write numbers in full; the first column, ``table``, distinguishes several tables.

    A string that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    columns: list[tuple[str, str, str]] = []  # heading, column, attribute of the cell
    for name in table.columns:
        cells = [cells[name] for _, cells in table.rows if name in cells]
        columns.append((name, name, "plain"))
        if any(cell.interval for cell in cells):
            columns += [(f"{name}_low", name, "low"), (f"{name}_high", name, "high")]
        if any(cell.printed is not None for cell in cells):
            columns.append((f"{name}_printed", name, "printed"))
    out, none = io.StringIO(), Cell(None)
    writer = csv.writer(out, lineterminator="\n")
    rows: list[list[Any]] = [["table", *table.left, *(heading for heading, _, _ in columns)]]
    for left, figures in table.rows:
        values = (getattr(figures.get(name, none), attribute) for _, name, attribute in columns)
        rows.append([table.name, *left, *values])
    writer.writerows([[f"'{cell}" if _is_formula(cell) else cell for cell in row] for row in rows])
    return out.getvalue().rstrip("\n")


def _is_formula(cell: object) -> bool:
    """Return True for a string that begins as a formula does and is no number."""
    is_number = re.compile(r"[+-]?[\d.,]+%?").fullmatch
    return isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not is_number(cell)
