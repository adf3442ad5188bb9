"""The ``export`` verb: a built dataset folder -> the release's own files."""

from __future__ import annotations

import typer

from eraser_hub import api

from .usage import call, say, takes


@takes(api.ExportArguments)
def export(options: api.ExportArguments) -> None:
    """Write the raw files back, under the release's own names, every record and document equal to what went in.

    Examples:

        eraser-hub export --dataset hub/eraser --config movies --out raw
    """
    result = call(api.export, options)
    for note in result.notes:
        say(note)
    for file in result.files:
        typer.echo(file)
