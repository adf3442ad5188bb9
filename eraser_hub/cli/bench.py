"""``eraser-hub bench``: from models to a verdict."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub.reports.options import BenchArguments

from .usage import TableFormat, call_with_options, print_line, print_note, print_tables, with_options

NOTES = 5  # that are printed


@dataclass(frozen=True, kw_only=True)
class BenchOptions(BenchArguments):
    """The options of ``eraser-hub bench``: a plan, and how its table is printed."""

    format: TableFormat = "text"


@with_options(BenchOptions)
def bench(options: BenchOptions) -> None:
    """Find out which explanations are better: train, explain, score, compare and report in one command.

    Models are explained by several methods, beside tokens drawn by chance and what people marked. OUT has predictions,
    scores, comparison, report/index.html, table.tex, table.csv, verdict.md, and bench.yaml, which repeats the run. A
    second run does only what is missing.

    **Examples**

        eraser-hub bench --dataset hub/eraser --config movies --model logistic-regression --quick --out bench

        eraser-hub bench --dataset hub/eraser --config movies --model LR=model --model BERT=org/bert-movies --method all
        --seeds 3 --out bench

        eraser-hub bench --plan bench/bench.yaml --dry-run
    """
    from eraser_hub import api
    from eraser_hub.experiments.bench_run import BenchResult

    result = call_with_options(api.bench, options, say=print_note)
    if not isinstance(result, BenchResult):
        for line in result:
            print_line(line)
        return
    for note in result.notes[:NOTES]:
        print_note(note)
    if len(result.notes) > NOTES:
        print_note(f"{len(result.notes) - NOTES} more notes in {result.out / 'verdict.md'}")
    if options.format == "text":
        for line in result.findings:
            print_line(line)
        typer.echo()
    shown = {"findings": result.findings, **result.tables.as_json()}
    print_tables(result.tables, options.format, shown, [])
    typer.echo(f"report: {result.page}", err=True)
