"""``eraser-hub board``: the results board, a static page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from eraser_hub.records.errors import UsageError
from eraser_hub.records.options import Option
from eraser_hub.records.tables import FORMATS, Format
from eraser_hub.reports.options import BoardArguments

from .usage import call_with_options, print_note, print_tables, with_options

_FORMATS = f"Print a table for each dataset ({', '.join(FORMATS)}): the papers' scores; csv and json have all."


@dataclass(frozen=True, kw_only=True)
class BoardOptions(BoardArguments):
    """The options of ``eraser-hub board``."""

    format: Annotated[Format | None, Option(help=_FORMATS)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.out is None and self.format is None:
            message = "expected where to write to (`out`) or `format`"
            raise UsageError(message, argument="out")


@with_options(BoardOptions)
def board(options: BoardOptions) -> None:
    """Write the results board: every system, metric and dataset, in a neutral order.

    Lines come from score files with a signature (self-reported) and from the papers' tables (printed). Lines of one
    group are scores of the same split of the same data.

    **Examples**

        eraser-hub board --out board

        eraser-hub board --scores report/ours.scores.json --scores "LIME@movies=scores.json" --out board

        eraser-hub board --scores report/ours.scores.json --scores report/theirs.scores.json --no-published \
--format latex

    """
    from eraser_hub import api

    made = call_with_options(api.board, options)
    for note in made.notes:
        print_note(note)
    for path in made.files:
        typer.echo(str(path), err=options.format is not None)
    if options.format is not None:
        details = [f"{line.system}, {line.dataset}: {line.detail}" for line in made.lines]
        print_tables(made.table(whole=options.format == "csv"), options.format, made.as_json(), details)
