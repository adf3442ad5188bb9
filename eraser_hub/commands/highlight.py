"""``eraser-hub highlight``: one instance in the terminal, gold and predicted rationale marked over the same text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eraser_hub.reports.highlight import Highlight


def highlight(
    dataset: Annotated[Path, typer.Option(help="Folder of a built dataset.")],
    config: Annotated[str | None, typer.Option(help="Config; the card's default if not given.")] = None,
    split: Annotated[str, typer.Option(help="Split: validation, val, test, ..")] = "validation",
    id: Annotated[str | None, typer.Option("--id", help="The instance's id; the split's first if not given.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="A model's output, jsonl or Parquet.")] = None,
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
    from eraser_hub.records.errors import DataError, shown
    from eraser_hub.reports.highlight import Highlight
    from eraser_hub.reports.highlight import highlight as highlighted
    from eraser_hub.reports.rows import by_id, read_predictions, read_table

    table = read_table(dataset, config, split)
    if not table.rows:
        raise DataError(f"expected instances in {table.config}, {table.split}, found none", file=dataset)
    if "sample_type" in table.rows[0]:
        from eraser_hub.reports.pairs import pairs_with

        answers = None if predictions is None else by_id(read_predictions(predictions), "id", predictions)
        try:
            marked = pairs_with(table.rows, id, answers, table.label_names)
        except DataError as error:
            file = predictions if error.instance is not None and predictions is not None else dataset
            raise DataError(error.message, file=file, instance=error.instance, field=error.field) from None
        _show([Highlight(instance, not whole) for instance in marked], html)
        return
    if id is None:
        row = table.rows[0]
    else:
        found = [row for row in table.rows if str(row.get("annotation_id")) == id]
        if not found:
            raise DataError(
                f"expected an annotation id of {table.config}, {table.split}, found {shown(id)}", file=dataset
            )
        row = found[0]
    instance = None
    if predictions is not None:
        outputs = by_id(read_predictions(predictions), "annotation_id", predictions)
        instance = outputs.get(str(row.get("annotation_id")))
        if instance is None:
            raise DataError(
                "expected a prediction for this annotation, found none", file=predictions, instance=row["annotation_id"]
            )
    _show([highlighted(row, instance, label_names=table.label_names, fold=not whole)], html)


def _show(instances: Sequence[Highlight], html: Path | None) -> None:
    """Write the notebook's HTML to the file, or print to the terminal."""
    from rich.console import Console

    from eraser_hub.reports.page import write_pieces

    if html is None:
        Console().print(*instances, sep="\n\n")
        return
    pieces = [piece for each in instances for piece in (each._repr_html_(), "\n")]
    write_pieces(html, ['<!DOCTYPE html>\n<meta charset="utf-8">\n', *pieces])
    typer.echo(str(html))
