"""The ``export`` verb: a built dataset folder -> the release's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eraser_hub.conversion import HUB_DATASETS

from .usage import Revision, chosen_dataset, known_configs, say


def export(
    dataset: Annotated[
        Path, typer.Option(help="A built dataset folder, e.g. hub/eraser, or one of the Hub: org/eraser.")
    ],
    out: Annotated[Path, typer.Option(help="Where the raw folders are written, one per configuration.")],
    config: Annotated[
        list[str] | None, typer.Option(help="A configuration; repeat it for several. Default: all.")
    ] = None,
    revision: Revision = None,
) -> None:
    """Write the raw files back, under the release's own names, every record and document equal to what went in.

    Examples:

        eraser-hub export --dataset hub/eraser --config movies --out raw
    """
    name, folder = chosen_dataset(None, dataset, revision, named=True)
    chosen = HUB_DATASETS[name]
    known_configs(config, chosen, folder)
    result = chosen.export(folder, config or None, out=out)
    for note in result.notes:
        say(note)
    for file in result.files:
        typer.echo(file)
