"""``eraser-hub highlight``: one instance in the terminal, gold and predicted rationale marked over the same text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from eraser_hub.records.arguments import Force, Revision, Split
from eraser_hub.records.hub import at_revision
from eraser_hub.records.options import Options
from eraser_hub.records.outputs import GENERATOR, OutputWriter, find_inputs

from .usage import with_options


@dataclass(frozen=True, kw_only=True)
class HighlightOptions(Options):
    """The options of ``eraser-hub highlight``.

    Attributes:
        dataset: Built dataset: a folder, or an id on the Hub.
        config: Configuration; by default that of the card.
        id: Id of the instance; by default the split's first.
        predictions: Predictions of a model, jsonl or Parquet: a file, https:// or hf://.
        whole: Show whole documents.
        out: File to write HTML to, in place of the terminal.
    """

    dataset: Path
    config: str | None = None
    split: Split = "test"
    revision: Revision = None
    id: str | None = None
    predictions: str | None = None
    whole: bool = False
    out: Path | None = None
    force: Force = False


@with_options(HighlightOptions)
def highlight(options: HighlightOptions) -> None:
    """Print one instance with its gold evidence, and a model's rationale and soft scores beside it.

    Gold evidence is underlined and opens with ‹ and its group's number; a predicted span is between ⟦ and ⟧; soft
    scores are background shades. The signs also work without colours: in a pipe, in print, on a monochrome screen. A
    record of the perturbation benchmark is shown with its partner, each with its top tokens.

    **Examples**

        eraser-hub highlight --dataset hub/eraser --config movies

        eraser-hub highlight --dataset hub/eraser --config movies --id negR_800.txt --predictions P.jsonl --whole
    """
    from eraser_hub.reports.highlight import highlight_split
    from eraser_hub.scoring.runs import parse_systems
    from eraser_hub.scoring.scored_split import read_split

    writer = OutputWriter(find_inputs(options.dataset, options.predictions), options.force)
    if options.out is not None:
        writer.check(options.out)
    system = None if options.predictions is None else parse_systems([options.predictions])[0]
    rows = read_split(Path(at_revision(str(options.dataset), options.revision)), options.config, options.split)
    shown = highlight_split(rows, options.id, system, fold=not options.whole)
    if options.out is None:
        from rich.console import Console

        Console().print(*shown, sep="\n\n")
        return
    from eraser_hub.reports.page import write_files

    pieces = [piece for each in shown for piece in (each._repr_html_(), "\n")]
    head = f'<!DOCTYPE html>\n<meta charset="utf-8">\n<meta name="generator" content="{GENERATOR}">\n'
    write_files({options.out: [head, *pieces]}, writer)
    typer.echo(str(options.out))
