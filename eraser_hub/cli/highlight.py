"""``eraser-hub highlight``: one instance in the terminal, gold and predicted rationale marked over the same text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .usage import Revision, Split, at_revision


def highlight(
    dataset: Annotated[Path, typer.Option(help="A built dataset: its folder, or its id on the Hub.")],
    config: Annotated[str | None, typer.Option(help="Config; the card's default if not given.")] = None,
    split: Split = "test",
    revision: Revision = None,
    id: Annotated[str | None, typer.Option("--id", help="The instance's id; the split's first if not given.")] = None,
    predictions: Annotated[
        str | None, typer.Option(help="A model's output, jsonl or Parquet: a file, https:// or hf://.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Show whole documents, nothing folded away.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the notebook's HTML to this file instead.")] = None,
) -> None:
    """Print one instance with its gold evidence, and a model's rationale and soft scores beside it.

    Gold evidence is underlined and opens with ‹ and its group's number; a predicted span stands between ⟦ and ⟧; soft
    scores are shades of the ground. Signs stay where colours do not: in a pipe, in print, on a monochrome screen.
    A record of the perturbation benchmark is shown with its partner, each with its top tokens.

    **Examples**

        eraser-hub highlight --dataset hub/eraser --config movies

        eraser-hub highlight --dataset hub/eraser --config movies --id negR_800.txt --predictions P.jsonl --whole
    """
    from eraser_hub.reports.highlight import highlights
    from eraser_hub.scoring.runs import named_systems
    from eraser_hub.scoring.scored_split import read_split

    system = None if predictions is None else named_systems([predictions])[0]
    rows = read_split(Path(at_revision(str(dataset), revision)), config, split)
    shown = highlights(rows, id, system, fold=not whole)
    if html is None:
        from rich.console import Console

        Console().print(*shown, sep="\n\n")
        return
    from eraser_hub.reports.page import write_files

    pieces = [piece for each in shown for piece in (each._repr_html_(), "\n")]
    write_files({html: ['<!DOCTYPE html>\n<meta charset="utf-8">\n', *pieces]})
    typer.echo(str(html))
