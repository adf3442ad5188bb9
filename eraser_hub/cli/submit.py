"""``eraser-hub submit``: a system's predictions, as a pull request to a board's submissions."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub.reports.options import SubmitArguments

from .usage import TableFormat, call_with_options, print_note, print_tables, with_options


@dataclass(frozen=True, kw_only=True)
class SubmitOptions(SubmitArguments):
    """The options of ``eraser-hub submit``."""

    format: TableFormat = "text"


@with_options(SubmitOptions)
def submit(options: SubmitOptions) -> None:
    """Check a system's predictions, show their line beside the others, and open a pull request on the Hub.

    The request adds CONFIG.SPLIT/SYSTEM/system.yaml and the predictions to a dataset of submissions.
    `board --from-hub` scores them there. The token is the one of `hf auth login` or HF_TOKEN.

    **Examples**

        eraser-hub submit predictions.jsonl --system system.yaml --config movies --split test --dry-run

        eraser-hub submit predictions.jsonl --system system.yaml --config movies --repository org/rationale_submissions
    """
    from eraser_hub import api
    from eraser_hub.reports.board import make_board_tables, to_board_json

    made = call_with_options(api.submit, options, say=print_note)
    for note in made.notes:
        print_note(note)
    details = [f"{line.system}, {line.dataset}: {line.detail}" for line in made.lines if line.status == "verified"]
    print_tables(make_board_tables(made.lines), options.format, to_board_json(made.lines), details)
    if made.address:
        typer.echo(made.address, err=True)
    else:
        print_note(f"dry run: nothing was sent; the place in the repository is {made.place}")
