"""Figures beside what a paper prints of them: one table as text, JSON or markdown.

A cell holds the recomputed value and, in brackets, the printed one and the difference; ``=`` where the value rounds to what
is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a table.

    Attributes:
        value: recomputed; None where it cannot be.
        printed: what the paper prints, with its digits; None where it prints nothing.
        digits: digits after the point to show of a value that has no printed counterpart.
    """

    value: float | int | None
    printed: str | None = None
    digits: int = 1

    @property
    def printed_value(self) -> float | None:
        """The printed figure as a number (None where there is none, or it is no plain number)."""
        try:
            return float(self.printed) if self.printed is not None else None
        except ValueError:
            return None

    @property
    def difference(self) -> float | None:
        """Recomputed minus printed, in the printed digits: 0 where the value rounds to what is printed."""
        if self.value is None or self.printed_value is None or self.printed is None:
            return None
        digits = len(self.printed.partition(".")[2])
        return round(round(self.value, digits) - self.printed_value, digits)

    def __str__(self) -> str:
        if self.value is None:
            return f"({with_commas(self.printed)})" if self.printed is not None else "–"
        digits = len((self.printed or "").partition(".")[2]) if self.printed_value is not None else self.digits
        shown = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:,.{digits}f}"
        if self.printed_value is None or self.printed is None:
            return shown
        if self.difference == 0:
            return f"{shown} (=)"
        exact = isinstance(self.value, int) and "." not in self.printed
        printed = with_commas(self.printed) if exact else self.printed
        return f"{shown} ({printed}, {self.difference:+,.{digits}f})"


def with_commas(printed: str) -> str:
    """A printed whole number with commas between its thousands; anything else as it is."""
    return f"{int(printed):,}" if printed.isdigit() else printed


@dataclass(slots=True)
class PaperTable:
    """A table: rows of (what stands at the left, its figures by column name)."""

    name: str
    title: str
    source: str
    left: tuple[str, ...]
    columns: tuple[str, ...]
    rows: list[tuple[tuple[str, ...], dict[str, Cell]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *left: str, **cells: Cell) -> None:
        """Take up a row: what stands at its left, and its cells by column name."""
        self.rows.append((left, cells))

    def cells(self) -> Iterator[list[str]]:
        """The rows as strings."""
        for left, figures in self.rows:
            yield [*left, *(str(figures.get(column, Cell(None))) for column in self.columns)]


@dataclass(slots=True)
class PaperTables:
    """All tables of a dataset."""

    dataset: str
    tables: list[PaperTable] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: per table its rows, each figure with value, printed and difference."""
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
                            **{
                                column: {
                                    "value": figure.value,
                                    "printed": figure.printed,
                                    "difference": figure.difference,
                                }
                                for column, figure in figures.items()
                            },
                        }
                        for left, figures in table.rows
                    ],
                }
                for table in self.tables
            },
        }

    def as_markdown(self) -> str:
        """Tables for a card: GitHub's markdown."""
        return "\n\n".join(_markdown(table) for table in self.tables)

    def as_text(self) -> str:
        """Tables for a terminal, columns aligned."""
        return "\n\n".join(_text(table) for table in self.tables)


LEGEND = "Recomputed (printed, difference); `=`: rounds to what is printed."


def heading(column: str) -> str:
    """A column's name in words."""
    return column.replace("_percent", " %").replace("_", " ")


def _markdown(table: PaperTable) -> str:
    headings = [*map(heading, table.left), *map(heading, table.columns)]
    lines = [f"**{table.title}**", "", _bar(headings), _bar(["---"] * len(table.left) + ["---:"] * len(table.columns))]
    lines += [_bar(cells) for cells in table.cells()]
    lines += ["", f"{LEGEND} Printed: {table.source}.", *(f"\n{note}" for note in table.notes)]
    return "\n".join(lines)


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text(table: PaperTable) -> str:
    rows = [[*map(heading, table.left), *map(heading, table.columns)], *table.cells()]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [table.title]
    for row in rows:
        aligned = [
            cell.ljust(width) if k < len(table.left) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(aligned).rstrip())
    lines += [f"{LEGEND.replace('`', '')}", f"Printed: {table.source}.", *table.notes]
    return "\n".join(lines)
