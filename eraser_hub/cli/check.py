"""The ``check`` verb: is what was built what it should be?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from eraser_hub import api
from eraser_hub.records.errors import show_controls
from eraser_hub.records.tables import Tables

from .usage import TableFormat, call_with_options, with_options

if TYPE_CHECKING:
    from eraser_hub.conversion.checks import Finding, Report

_STYLE = {"violation": "bold red", "quirk": "yellow", "note": "dim"}


@dataclass(frozen=True)
class CheckOptions(api.StatsArguments):
    """The options of ``eraser-hub check``."""

    format: TableFormat = "text"


@with_options(CheckOptions)
def check(options: CheckOptions) -> None:
    """Check a built dataset: ids, labels, spans, texts, derived columns, splits, card.

    Known quirks of the releases are named and are no fault; the exit status is 1 when there is any other violation.

    **Examples**

        eraser-hub check

        eraser-hub check --dataset hub/eraser --config movies

        eraser-hub check bilingual_perturbation --format json
    """
    report = call_with_options(api.check, options)
    if options.format == "json":
        typer.echo(json.dumps(report.as_dict(), indent=2, ensure_ascii=False))
    else:
        if options.format == "text":
            _print(report)
        else:
            typer.echo(Tables(report.dataset, [report.table()]).written(options.format))
    if report.errors:
        raise typer.Exit(1)


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # in a file or a pipe: room for a line a finding
    table = Table(title=_escape(f"{report.dataset}: {report.folder}"), title_justify="left", show_lines=False)
    for heading, justify in (("config", "left"), ("split", "left"), ("rows", "right"), ("documents", "right")):
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("found", overflow="fold")
    for split in report.splits:
        documents = "" if split.documents is None else f"{split.documents:,}"
        findings = "\n".join(_line(finding) for finding in split.findings) or "[green]good[/]"
        table.add_row(_escape(split.config), _escape(split.split), f"{split.rows:,}", documents, findings)
    console.print(table)
    total = report.violations
    console.print(f"[bold red]{total:,} violations[/]" if total else "[green]no violation[/]", highlight=False)


def _escape(text: str) -> str:
    """Return text that is neither markup of rich nor steers the terminal."""
    from rich.markup import escape

    return escape(show_controls(text))


def _line(finding: Finding) -> str:
    words = f"[{_STYLE[finding.level]}]{finding.level}[/] {_escape(finding.check)}: {finding.count:,}"
    if finding.why:
        words += f" ({_escape(finding.why)})"
    if finding.level == "violation":
        words += "".join(f"\n  {_escape(example)}" for example in finding.examples)
    return words
