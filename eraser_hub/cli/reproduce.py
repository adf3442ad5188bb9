"""``eraser-hub reproduce``: the rows of a printed table, run here, beside the print."""

from __future__ import annotations

from dataclasses import dataclass

from eraser_hub.experiments.configs import ReproduceArguments

from .usage import TableFormat, call, print_tables, say, spelled, takes


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(ReproduceArguments):
    """The options of ``eraser-hub reproduce``: a plan, and how it is printed."""

    format: TableFormat = "text"


@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> None:
    """Train, explain and score each row of a printed table, and print the figures beside the print, with 95 %
    intervals.

    A row that cannot run here (no train split, no encoder) says why. Stopped at any point, the same command goes on.
    OUT/*.scores.json are entries for `eraser-hub board --scores`.

    Examples:

        eraser-hub experiment reproduce --table eraser-3 --config movies --fast

        eraser-hub experiment reproduce --table eraser-4 --config movies --encoder bert-base-uncased --format latex
    """
    from eraser_hub import api

    tables = call(api.reproduce, options, say=say)
    for table in tables.tables:
        table.notes = list(map(spelled, table.notes))
    signature = f"reproduce|{options.table}|{options.config}|seed:{options.seed}" + ("|fast" if options.fast else "")
    print_tables(tables, options.format, tables.as_dict(), [signature])
