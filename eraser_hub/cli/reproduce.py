"""``eraser-hub reproduce``: a printed table of a paper, computed again."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub.experiments.configs import ReproduceConfig

from .usage import TableFormat, call_with_options, print_note, print_tables, spell_arguments, with_options


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(ReproduceConfig):
    """The options of ``eraser-hub reproduce``: a plan, and how it is printed."""

    format: TableFormat = "text"


@with_options(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> None:
    """Recompute a printed table: train, explain and score each of its rows.

    The figures have 95 % intervals and stand beside the printed ones. A row that cannot run (no train split, no
    encoder) says why. If no row can run, the exit status is 1. If the command is stopped, the same command goes on.
    OUT/*.scores.json are entries for `eraser-hub board --scores`.

    **Examples**

        eraser-hub reproduce --table eraser-3 --config movies --fast

        eraser-hub reproduce --table eraser-4 --config movies --encoder bert-base-uncased --format latex
    """
    from eraser_hub import api

    tables = call_with_options(api.reproduce, options, say=print_note)
    for table in tables.tables:
        table.notes = list(map(spell_arguments, table.notes))
    signature = f"reproduce|{options.table}|{options.config}|seed:{options.seed}"
    signature += (f"|seeds:{options.seeds}" if options.seeds > 1 else "") + ("|fast" if options.fast else "")
    print_tables(tables, options.format, tables.as_json(), [signature])
    cells = [cell for table in tables.tables[:1] for _, row in table.rows for cell in row.values()]
    if all(cell.value is None for cell in cells):
        raise typer.Exit(1)
