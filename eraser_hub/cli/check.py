"""The ``check`` verb: is what was built what it should be?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.records.tables import Tables

from .usage import Format, Revision, chosen_dataset, known_configs

if TYPE_CHECKING:
    from eraser_hub.conversion.checks import Finding, Report

MOST_LINES = 10
_STYLE = {"violation": "bold red", "quirk": "yellow", "note": "dim"}


def check(
    name: Annotated[str | None, typer.Argument(help=f"{', '.join(HUB_DATASETS)}.")] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(help="A built folder, a dataset of the Hub (org/eraser), or raw corpora; by default hub/NAME."),
    ] = None,
    revision: Revision = None,
    config: Annotated[list[str] | None, typer.Option(help="A configuration; repeat it for several.")] = None,
    leakage: Annotated[
        bool, typer.Option("--leakage", help="List repeated documents, and evidence that a text search misplaces.")
    ] = False,
    viewer: Annotated[bool, typer.Option("--viewer", help="Also check what the Hub's dataset viewer needs.")] = False,
    format: Format = "text",
) -> None:
    """Check a built dataset: ids, labels, spans, texts, derived columns, splits, card.

    Known quirks of the releases are named and are no fault; the exit status is 1 when there is any other violation.

    Examples:

        eraser-hub check

        eraser-hub check --dataset hub/eraser --config movies --leakage

        eraser-hub check bilingual_perturbation --viewer --format json
    """
    name, folder = chosen_dataset(name, dataset, revision)
    hub_dataset = HUB_DATASETS[name]
    known_configs(config, hub_dataset, folder)
    report, seen = hub_dataset.check(folder, config or None, leakage=leakage), None
    if viewer:
        from eraser_hub.publishing.viewer import viewer_report

        seen = viewer_report(folder, config or None)
    if format == "json":
        import json

        values = report.as_dict()
        if seen is not None:
            values["viewer"] = {"problems": [str(each) for each in seen.problems], "warnings": list(seen.warnings)}
        typer.echo(json.dumps(values, indent=2, ensure_ascii=False))
    else:
        if format == "text":
            _print(report)
        else:
            typer.echo(Tables(name, [report.table()]).written(format))
        for line in seen.lines() if seen is not None else ():
            typer.echo(line, err=format != "text")
    if report.violations or (seen is not None and seen.problems):
        raise typer.Exit(1)


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # in a file or a pipe: room for a line a finding
    table = Table(title=f"{report.dataset}: {report.folder}", title_justify="left", show_lines=False)
    for heading, justify in (("config", "left"), ("split", "left"), ("rows", "right"), ("documents", "right")):
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("found", overflow="fold")
    for split in report.splits:
        documents = "" if split.documents is None else f"{split.documents:,}"
        findings = "\n".join(_line(finding) for finding in split.findings) or "[green]good[/]"
        table.add_row(escape(split.config), escape(split.split), f"{split.rows:,}", documents, findings)
    console.print(table)
    for finding in report.leakage:
        console.print(f"[bold]{escape(finding.check)}[/]: {finding.count:,} {escape(finding.why)}", highlight=False)
        for example in finding.examples[:MOST_LINES]:
            console.print(f"    {escape(example)}", highlight=False)
        if finding.count > MOST_LINES:
            more = f"    … and {finding.count - MOST_LINES:,} more (--format json lists up to a thousand)"
            console.print(more, highlight=False)
    total = report.violations
    console.print(f"[bold red]{total:,} violations[/]" if total else "[green]no violation[/]", highlight=False)


def _line(finding: Finding) -> str:
    from rich.markup import escape

    words = f"[{_STYLE[finding.level]}]{finding.level}[/] {escape(finding.check)}: {finding.count:,}"
    if finding.why:
        words += f" ({escape(finding.why)})"
    if finding.level == "violation":
        words += "".join(f"\n  {escape(example)}" for example in finding.examples)
    return words
