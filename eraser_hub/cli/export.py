"""``eraser-hub export``: a built dataset folder as the release's own files."""

from __future__ import annotations

import typer

from eraser_hub import api

from .usage import call_with_options, print_note, with_options


@with_options(api.ExportArguments)
def export(options: api.ExportArguments) -> None:
    """Write the raw files of the release back; every record and document is unchanged.

    **Examples**

        eraser-hub export --dataset hub/eraser --config movies --out raw
    """
    result = call_with_options(api.export, options)
    for note in result.notes:
        print_note(note)
    for file in result.files:
        typer.echo(file)
