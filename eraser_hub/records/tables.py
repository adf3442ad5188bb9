"""Tables of figures, and the forms in which a verb prints them: text, Markdown, LaTeX, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

from .errors import show_controls

Format = Literal["text", "markdown", "latex", "csv", "json"]
FORMATS: tuple[str, ...] = get_args(Format)
LEGEND = "Recomputed (printed, difference); =: rounds to what is printed."
MISSING = "–"
LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "…": r"\dots{}",
    "\u00a0": "~",
    "\n": " ",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "κ": r"$\kappa$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "→": r"$\rightarrow$",
}
FORMULA, NUMBER = re.compile(r"[=+\-@\t\r]"), re.compile(r"[+-]?[\d.,]+%?")


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a table.

    Attributes:
        value: the figure; None where it cannot be computed.
        printed: what a paper prints there, with its digits; None where it prints nothing.
        digits: digits after the point of a value that has no printed counterpart.
        low, high: the ends of its interval, if it has one.
        better: the system is better by its verdict: a star behind the value, bold in Markdown and LaTeX.
    """

    value: float | int | str | None
    printed: str | None = None
    digits: int = 1
    low: float | None = None
    high: float | None = None
    better: bool = False

    @property
    def plain(self) -> float | int | str | None:
        """The value in full, NaN as None."""
        return None if isinstance(self.value, float) and math.isnan(self.value) else self.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, if it has one."""
        ends = (self.low, self.high)
        return None if None in ends or math.isnan(sum(ends)) else ends  # type: ignore[arg-type,return-value]

    @property
    def difference(self) -> float | None:
        """Recomputed minus printed, in the printed digits: 0 where the value rounds to what is printed."""
        if not isinstance(self.plain, int | float) or self.printed is None:
            return None
        digits = len(self.printed.partition(".")[2])
        with suppress(ValueError):  # a printed figure that is no plain number
            return round(round(self.plain, digits) - float(self.printed), digits)
        return None

    def parts(self) -> tuple[str, str]:
        """Return the value in its digits, and what stands behind it: interval, printed value, difference."""
        digits = self.digits if self.printed is None else len(self.printed.partition(".")[2])
        value, printed, behind = self.plain, self.printed, []
        shown = MISSING if value is None else value if isinstance(value, str) else f"{value:,}"
        if isinstance(value, float):
            shown = f"{round(value, digits) + 0.0:,.{digits}f}"  # adding 0 turns -0 into 0
        if self.interval:
            ends = [f"{round(end, self.digits) + 0.0:.{self.digits}f}" for end in self.interval]
            behind.append(f"[{', '.join(ends)}]")
        if printed is not None:
            if printed.isdigit() and not isinstance(value, float):
                printed = f"{int(printed):,}"
            if self.difference is not None:
                printed = f"{printed}, {self.difference:+,.{digits}f}" if self.difference else "="
            behind.append(f"({printed})")
        return shown, " ".join(behind)

    def __str__(self) -> str:
        shown, behind = self.parts()
        if self.value is None and behind:
            return behind
        return f"{shown}{'*' if self.better else ''} {behind}".rstrip()


EMPTY = Cell(None)


@dataclass(slots=True, repr=False)
class Table:
    """A table: rows of (headings at the left, figures by column name).

    Attributes:
        name: its key in JSON, and its label in LaTeX.
        title: its caption.
        left, columns: the names of the headings' columns, and of the figures'.
        source: where printed figures are from.
        rows: see `add`.
        notes: sentences below it.
        labels: the words for columns; by default their names with blanks for ``_``.
        is_verbatim: columns are names of the data, such as labels, and are printed as they stand.
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
        return to_text(self, None)

    def add(self, /, *left: str, **cells: Cell) -> None:
        """Add a row: its headings, and its cells by column name."""
        self.rows.append((left, cells))

    @property
    def footer(self) -> list[str]:
        """The lines below the table: how to read it, and the notes."""
        printed = any(cell.printed is not None for _, cells in self.rows for cell in cells.values())
        about = [LEGEND] if printed else []
        about += [f"Printed: {self.source}."] if self.source else []
        return [*([" ".join(about)] if about else []), *self.notes]

    def to_strings(self, heading: Callable[[str], str] = str, figure: Callable[[Cell], str] = str) -> list[list[str]]:
        """Return the line of headings and the rows, each word and figure formatted."""
        words = {name: name.replace("_percent", " %").replace("_", " ") for name in (*self.left, *self.columns)}
        words |= {name: name for name in self.columns if self.is_verbatim} | {**self.labels}
        lines = [[heading(words[name]) for name in (*self.left, *self.columns)]]
        for left, cells in self.rows:
            lines.append([*map(heading, left), *(figure(cells.get(name, EMPTY)) for name in self.columns)])
        return lines

    def to_records(self) -> list[dict[str, Any]]:
        """Return each row as plain values by column, with `_low`, `_high` and `_printed` where a column has any."""
        filled = [(name, cell) for _, cells in self.rows for name, cell in cells.items()]
        with_ends = {name for name, cell in filled if cell.interval}
        with_print = {name for name, cell in filled if cell.printed is not None}
        records = []
        for left, cells in self.rows:
            record: dict[str, Any] = dict(zip(self.left, left, strict=True))
            for name in self.columns:
                cell = cells.get(name, EMPTY)
                record[name] = cell.plain
                record |= {f"{name}_low": cell.low, f"{name}_high": cell.high} if name in with_ends else {}
                record |= {f"{name}_printed": cell.printed} if name in with_print else {}
            records.append(record)
        return records


@dataclass(slots=True, repr=False)
class Tables:
    """Several tables about one thing, e.g. a dataset."""

    dataset: str
    tables: list[Table] = field(default_factory=list)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.tables))

    def table(self, whole: bool = False) -> Tables:
        """Return the tables themselves, as results have them that can be printed."""
        return self

    def as_json(self) -> dict[str, Any]:
        """Return plain values: the rows of each table, each figure with value, printed and difference."""
        tables = {}
        for table in self.tables:
            rows = []
            for left, cells in table.rows:
                row: dict[str, Any] = dict(zip(table.left, left, strict=True))
                for name, cell in cells.items():
                    row[name] = {"value": cell.plain, "printed": cell.printed, "difference": cell.difference}
                    row[name] |= {"low": cell.low, "high": cell.high} if cell.interval else {}
                rows.append(row)
            tables[table.name] = {"title": table.title, "source": table.source, "notes": table.notes, "rows": rows}
        return {"dataset": self.dataset, "tables": tables}

    def written(self, format: str, width: int | None = None) -> str:
        """Return the tables in one of the `FORMATS`; control characters are made visible, but for JSON.

        Args:
            format: the form.
            width: characters of a line of text; wider tables are cut into blocks of columns. None: any width.
        """
        if format == "json":
            return json.dumps(self.as_json(), indent=2, ensure_ascii=False)
        writers: dict[str, Callable[[Table], str]] = {"markdown": to_markdown, "latex": to_latex}
        writers["text"] = partial(to_text, width=width)
        text = to_csv(self.tables) if format == "csv" else "\n\n".join(map(writers[format], self.tables))
        return "\n".join(map(show_controls, text.split("\n")))


def to_text(table: Table, width: int | None) -> str:
    """Return aligned columns; blocks of as many columns as the width holds, each with the headings at the left."""
    rows = [[word.replace("\n", " ") for word in row] for row in table.to_strings()]
    sizes, fixed = [max(map(len, column)) for column in zip(*rows, strict=True)], len(table.left)
    values = [[cells[name].value for _, cells in table.rows if name in cells] for name in table.columns]
    texts = {fixed + at for at, column in enumerate(values) if any(isinstance(value, str) for value in column)}
    blocks: list[list[int]] = [[]]
    for at in range(fixed, len(sizes)):
        taken = sum(sizes[k] + 2 for k in (*range(fixed), *blocks[-1]))
        if width is not None and blocks[-1] and taken + sizes[at] > width:
            blocks.append([])
        blocks[-1].append(at)
    lines = [table.title]
    for number, block in enumerate(blocks):
        lines += [""] if number else []
        for row in rows:
            cells = [row[at].ljust(sizes[at]) if at in texts else row[at].rjust(sizes[at]) for at in block]
            lines.append("  ".join([*(row[at].ljust(sizes[at]) for at in range(fixed)), *cells]).rstrip())
    return "\n".join([*lines, *table.footer])


def to_markdown(table: Table) -> str:
    """Return a pipe table with its title above it; the score of a better system in bold."""

    def figure(cell: Cell) -> str:
        words = str(cell).replace("*", "\\*")
        return f"**{words}**" if cell.better else words

    heading, *rows = table.to_strings(figure=figure)
    rules = ["---"] * len(table.left) + ["---:"] * len(table.columns)
    lines = [[word.replace("|", "\\|").replace("\n", " ") for word in line] for line in (heading, rules, *rows)]
    bars = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([f"**{table.title}**", "", *bars, *(f"\n{line}" for line in table.footer)])


def to_latex(table: Table) -> str:
    """Return a table for the package booktabs: the score of a better system in bold, intervals small."""

    def figure(cell: Cell) -> str:
        shown, behind = map(escape_latex, cell.parts())
        is_text = cell.plain is None or isinstance(cell.value, str)
        shown = f"$-${shown[1:]}" if shown.startswith("-") and not is_text else shown
        shown = rf"\textbf{{{shown}$^{{*}}$}}" if cell.better else shown
        behind = re.sub(r"(?<=[\[ ])-(?=\d)", "$-$", behind)
        return rf"{shown} {{\scriptsize {behind}}}" if behind else shown

    heading, *rows = [" & ".join(line) + r" \\" for line in table.to_strings(escape_latex, figure)]
    caption = " ".join(words.rstrip(".") + "." for words in (table.title, *table.footer))
    lines = [
        "\\begin{table}[t]\n\\centering",
        rf"\begin{{tabular}}{{{'l' * len(table.left)}{'r' * len(table.columns)}}}",
        *("\\toprule", heading, "\\midrule", *rows, "\\bottomrule", "\\end{tabular}"),
        rf"\caption{{{escape_latex(caption)}}}",
        f"\\label{{tab:{re.sub(r'[^A-Za-z0-9.:+-]', '-', table.name)}}}\n\\end{{table}}",
    ]
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    """Return text with the special characters of TeX escaped, and control characters by their number."""
    return "".join(LATEX.get(sign) or (sign if show_controls(sign) == sign else f"U+{ord(sign):04X}") for sign in text)


def to_csv(tables: Sequence[Table]) -> str:
    """Return the numbers in full, all tables under one heading; the first column names the table.

    No string begins as a formula does.
    """
    records = [{"table": table.name, **record} for table in tables for record in table.to_records()]
    left = ["table", *(name for table in tables for name in table.left)]
    others = [name for record in records for name in record] or [name for table in tables for name in table.columns]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys([*left, *others])), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: guard_formula(value) for name, value in record.items()})
    return out.getvalue().rstrip("\n")


def guard_formula(value: Any) -> Any:
    """Return a value of a spreadsheet: a string that begins as a formula does gets an apostrophe before it."""
    is_formula = isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value
