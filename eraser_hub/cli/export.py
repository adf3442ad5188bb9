"""``eraser-hub export``: a built dataset folder as the release's own files."""

from __future__ import annotations

import typer

from eraser_hub import api

from .usage import call_with_options, print_note, with_options


@with_options(api.ExportArguments)
def export(options: api.ExportArguments) -> None:
    """Write the raw files of the release back, or the tasks of an annotation tool.

    Every record and document of a release is unchanged. Tasks hold the gold rationales, or a model's to be corrected.

    **Examples**

        eraser-hub export --dataset hub/eraser --config movies --out raw

        eraser-hub export --dataset hub/eraser --config movies --split val --format label-studio \
--predictions predictions.jsonl --out tasks
    """
    result = call_with_options(api.export, options)
    for note in result.notes:
        print_note(note)
    for file in result.files:
        typer.echo(file)
