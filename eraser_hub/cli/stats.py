"""The ``stats`` verb: the papers' tables, recomputed."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub import api

from .usage import TableFormat, call_with_options, with_options


@dataclass(frozen=True)
class StatsOptions(api.StatsArguments):
    """The options of ``eraser-hub stats``."""

    format: TableFormat = "text"


@with_options(StatsOptions)
def stats(options: StatsOptions) -> None:
    """Recompute the papers' tables of sizes and evidence, beside the printed figures and with the difference.

    **Examples**

        eraser-hub stats

        eraser-hub stats --dataset hub/eraser --config movies --format markdown

        eraser-hub stats human_rationales --format json

        eraser-hub stats --format latex > tables.tex
    """
    typer.echo(call_with_options(api.stats, options).written(options.format))
